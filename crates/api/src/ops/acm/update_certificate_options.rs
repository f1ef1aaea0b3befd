//! `UpdateCertificateOptions`: changes the options of a certificate that was requested.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_UpdateCertificateOptions.html>

use outlast_domain::acm::certificate;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{UpdateCertificateOptions, UpdateCertificateOptionsRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, find_certificate};
use crate::wire::ApiError;

impl Run for UpdateCertificateOptions {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let options = input.options.read();
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let allowed =
            authorize_certificate(call, action::acm::UpdateCertificateOptions, &certificate)?;
        if let Some(method) = &input.options.validation_method {
            let public = certificate.record().public.as_ref();
            let refusal = match public.map(|public| public.method.name()) {
                None => {
                    "The domains of a private certificate are not validated, so ValidationMethod cannot be changed."
                }
                Some(current) if current == method => "",
                Some(_) => {
                    "The domains are validated by DNS alone, so ValidationMethod cannot be changed."
                }
            };
            if !refusal.is_empty() {
                return Err(ApiError::new("InvalidStateException", refusal));
            }
        }
        certificate::set_options(&mut call.work, certificate, options, &allowed)?;
        Ok(Empty {})
    }
}
