//! `UpdateCertificateOptions`: changes the options of a certificate that was requested.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_UpdateCertificateOptions.html>

use outlast_domain::acm::certificate;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm::{CertificateOptions, authorize_certificate, find_certificate};
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct UpdateCertificateOptions;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_arn: String,
    pub options: CertificateOptions,
}

impl Operation for UpdateCertificateOptions {
    const NAME: &'static str = "UpdateCertificateOptions";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let options = input.options.read()?;
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let allowed =
            authorize_certificate(call, action::acm::UpdateCertificateOptions, &certificate)?;
        if input.options.validation_method.is_some() {
            return Err(ApiError::new(
                "InvalidStateException",
                "The domains of a private certificate are not validated, so ValidationMethod cannot be changed.",
            ));
        }
        certificate::set_options(&mut call.work, certificate, options, &allowed)?;
        Ok(Empty {})
    }
}
