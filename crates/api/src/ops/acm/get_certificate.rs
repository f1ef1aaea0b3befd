//! `GetCertificate`: returns a certificate and its chain.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_GetCertificate.html>

use outlast_domain::identity::action;

pub use crate::aws::acm::{
    GetCertificate, GetCertificateRequest as Input, GetCertificateResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, find_certificate};
use crate::wire::ApiError;
use crate::wire::types::pem;

impl Run for GetCertificate {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let allowed = authorize_certificate(call, action::acm::GetCertificate, &certificate)?;
        let text = certificate.text(&mut call.work, &allowed)?;
        let paired = text.paired.map(|paired| *paired);
        let (paired_certificate, paired_certificate_chain) =
            paired.map_or((None, None), |text| (Some(pem(text.certificate)), text.chain.map(pem)));
        Ok(Output {
            certificate: pem(text.certificate),
            certificate_chain: text.chain.map(pem),
            paired_certificate,
            paired_certificate_chain,
        })
    }
}
