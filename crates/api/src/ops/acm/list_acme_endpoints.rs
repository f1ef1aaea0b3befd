//! `ListAcmeEndpoints`: the ACME endpoints of an account.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListAcmeEndpoints.html>

use outlast_domain::acme;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_acme::{AcmeEndpoint, next_token, page_limit};
use crate::model::marker;
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct ListAcmeEndpoints;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub next_token: Option<String>,
    pub max_results: Option<i64>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub acme_endpoints: Vec<AcmeEndpoint>,
    pub next_token: Option<String>,
}

impl Operation for ListAcmeEndpoints {
    const NAME: &'static str = "ListAcmeEndpoints";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_limit(input.max_results)?;
        let marker = next_token(input.next_token.as_deref())?;
        let resource = call.scope.arn("acm", "*");
        let allowed = call.authorize(action::acm::ListAcmeEndpoints, &resource)?;
        let page = acme::endpoints(&call.work, &call.scope, marker.as_deref(), limit, &allowed)?;
        let acme_endpoints =
            page.items.iter().map(|found| AcmeEndpoint::new(found, call)).collect();
        Ok(Output { acme_endpoints, next_token: page.next.as_deref().map(marker::wrap) })
    }
}
