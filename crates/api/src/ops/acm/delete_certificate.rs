//! `DeleteCertificate`: deletes a certificate and its key.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DeleteCertificate.html>

use outlast_domain::acm::certificate;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{DeleteCertificate, DeleteCertificateRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, find_certificate};
use crate::wire::ApiError;

impl Run for DeleteCertificate {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let allowed = authorize_certificate(call, action::acm::DeleteCertificate, &certificate)?;
        certificate::delete(&mut call.work, &certificate, &allowed)?;
        Ok(Empty {})
    }
}
