//! `ListAcmeDomainValidations`: the domain validations of an ACME endpoint.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListAcmeDomainValidations.html>

use outlast_domain::acme;
use outlast_domain::identity::action;

pub use crate::aws::acm::{
    ListAcmeDomainValidations, ListAcmeDomainValidationsRequest as Input,
    ListAcmeDomainValidationsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_acme::{AcmeDomainValidation, authorize_tagged, find_endpoint, next_token};
use crate::model::marker;
use crate::wire::{ApiError, validate};

impl Run for ListAcmeDomainValidations {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("MaxResults", input.max_results)?;
        let marker = next_token(input.next_token.as_deref())?;
        let endpoint = find_endpoint(call, &input.acme_endpoint_arn)?;
        let action = action::acm::ListAcmeDomainValidations;
        let allowed = authorize_tagged(call, action, &endpoint.arn(), endpoint.tags())?;
        let page = acme::validations(&call.work, &endpoint, marker.as_deref(), limit, &allowed)?;
        let acme_domain_validations = page.items.iter().map(AcmeDomainValidation::from).collect();
        Ok(Output { acme_domain_validations, next_token: page.next.as_deref().map(marker::wrap) })
    }
}
