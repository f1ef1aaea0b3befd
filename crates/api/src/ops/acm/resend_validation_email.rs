//! `ResendValidationEmail`: has nothing to send: private certificates need no validation.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ResendValidationEmail.html>

use outlast_domain::acm::AcmError;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm::{authorize_certificate, check_domain, find_certificate};
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct ResendValidationEmail;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_arn: String,
    pub domain: String,
    pub validation_domain: String,
}

impl Operation for ResendValidationEmail {
    const NAME: &'static str = "ResendValidationEmail";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        check_domain("Domain", &input.domain)?;
        check_domain("ValidationDomain", &input.validation_domain)?;
        let certificate = find_certificate(call, &input.certificate_arn)?;
        authorize_certificate(call, action::acm::ResendValidationEmail, &certificate)?;
        Err(AcmError::InvalidState(format!(
            "Certificate {} is not validated by e-mail: it is a private one or was imported.",
            input.certificate_arn
        ))
        .into())
    }
}
