//! `ResendValidationEmail`: always refused: private certificates need no validation, so there is no mail to send.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ResendValidationEmail.html>

use outlast_domain::acm::AcmError;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{ResendValidationEmail, ResendValidationEmailRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, check_domain, find_certificate};
use crate::wire::ApiError;

impl Run for ResendValidationEmail {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        check_domain("Domain", &input.domain)?;
        check_domain("ValidationDomain", &input.validation_domain)?;
        let certificate = find_certificate(call, &input.certificate_arn)?;
        authorize_certificate(call, action::acm::ResendValidationEmail, &certificate)?;
        Err(AcmError::InvalidState(format!(
            "Certificate {} is not validated by e-mail: outlast sends none.",
            input.certificate_arn
        ))
        .into())
    }
}
