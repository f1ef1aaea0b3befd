//! `DescribeAcmeDomainValidation`: a domain validation, with the DNS record that proves it.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DescribeAcmeDomainValidation.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_acme::{AcmeDomainValidation, authorize_tagged, find_validation};
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct DescribeAcmeDomainValidation;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub acme_domain_validation_arn: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub acme_domain_validation: AcmeDomainValidation,
}

impl Operation for DescribeAcmeDomainValidation {
    const NAME: &'static str = "DescribeAcmeDomainValidation";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let validation = find_validation(call, &input.acme_domain_validation_arn)?;
        let action = action::acm::DescribeAcmeDomainValidation;
        authorize_tagged(call, action, &validation.arn(), validation.tags())?;
        Ok(Output { acme_domain_validation: (&validation).into() })
    }
}
