//! `DescribeAcmeEndpoint`: an ACME endpoint: its URL and settings.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DescribeAcmeEndpoint.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_acme::{AcmeEndpoint, authorize_tagged, find_endpoint};
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct DescribeAcmeEndpoint;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub acme_endpoint_arn: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub acme_endpoint: AcmeEndpoint,
}

impl Operation for DescribeAcmeEndpoint {
    const NAME: &'static str = "DescribeAcmeEndpoint";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let endpoint = find_endpoint(call, &input.acme_endpoint_arn)?;
        authorize_tagged(
            call,
            action::acm::DescribeAcmeEndpoint,
            &endpoint.arn(),
            endpoint.tags(),
        )?;
        Ok(Output { acme_endpoint: AcmeEndpoint::new(&endpoint, call) })
    }
}
