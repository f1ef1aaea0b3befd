//! `DescribeCertificate`: describes a certificate.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DescribeCertificate.html>

use outlast_domain::identity::action;

pub use crate::aws::acm::{
    DescribeCertificate, DescribeCertificateRequest as Input, DescribeCertificateResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, find_certificate};
use crate::model::acm_certificate::CertificateDetail;
use crate::wire::ApiError;

impl Run for DescribeCertificate {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let allowed = authorize_certificate(call, action::acm::DescribeCertificate, &certificate)?;
        let text = match certificate.record().is_issued() {
            true => Some(certificate.text(&mut call.work, &allowed)?),
            false => None,
        };
        let now_ms = call.work.now_ms();
        Ok(Output { certificate: CertificateDetail::new(&certificate, text.as_ref(), now_ms) })
    }
}
