//! `ListAcmeEndpoints`: the ACME endpoints of an account.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListAcmeEndpoints.html>

use outlast_domain::acme;
use outlast_domain::identity::action;

pub use crate::aws::acm::{
    ListAcmeEndpoints, ListAcmeEndpointsRequest as Input, ListAcmeEndpointsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_acme::{AcmeEndpoint, next_token};
use crate::model::marker;
use crate::wire::{ApiError, validate};

impl Run for ListAcmeEndpoints {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("MaxResults", input.max_results)?;
        let marker = next_token(input.next_token.as_deref())?;
        let resource = call.scope.arn("acm", "*");
        let allowed = call.authorize(action::acm::ListAcmeEndpoints, &resource)?;
        let page = acme::endpoints(&call.work, &call.scope, marker.as_deref(), limit, &allowed)?;
        let acme_endpoints =
            page.items.iter().map(|found| AcmeEndpoint::new(found, call)).collect();
        Ok(Output { acme_endpoints, next_token: page.next.as_deref().map(marker::wrap) })
    }
}
