//! `RenewCertificate`: renews a certificate of a private CA now.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_RenewCertificate.html>

use outlast_domain::acm::renew;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{RenewCertificate, RenewCertificateRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, find_certificate};
use crate::wire::ApiError;

impl Run for RenewCertificate {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let allowed = authorize_certificate(call, action::acm::RenewCertificate, &certificate)?;
        renew::renew(&mut call.work, call.ring, certificate, &allowed)?;
        Ok(Empty {})
    }
}
