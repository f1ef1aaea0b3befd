//! `ListAcmeDomainValidations`: the domain validations of an ACME endpoint.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListAcmeDomainValidations.html>

use outlast_domain::acme;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_acme::{
    AcmeDomainValidation, authorize_tagged, find_endpoint, next_token, page_limit,
};
use crate::model::marker;
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct ListAcmeDomainValidations;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub next_token: Option<String>,
    pub max_results: Option<i64>,
    pub acme_endpoint_arn: String,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub acme_domain_validations: Vec<AcmeDomainValidation>,
    pub next_token: Option<String>,
}

impl Operation for ListAcmeDomainValidations {
    const NAME: &'static str = "ListAcmeDomainValidations";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_limit(input.max_results)?;
        let marker = next_token(input.next_token.as_deref())?;
        let endpoint = find_endpoint(call, &input.acme_endpoint_arn)?;
        let action = action::acm::ListAcmeDomainValidations;
        let allowed = authorize_tagged(call, action, &endpoint.arn(), endpoint.tags())?;
        let page = acme::validations(&call.work, &endpoint, marker.as_deref(), limit, &allowed)?;
        let acme_domain_validations = page.items.iter().map(AcmeDomainValidation::from).collect();
        Ok(Output { acme_domain_validations, next_token: page.next.as_deref().map(marker::wrap) })
    }
}
