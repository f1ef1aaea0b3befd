//! `ExportCertificate`: returns a certificate with its private key, encrypted under a passphrase.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ExportCertificate.html>

use outlast_crypto::Secret;
use outlast_domain::acm::export;
use outlast_domain::identity::action;

pub use crate::aws::acm::{
    ExportCertificate, ExportCertificateRequest as Input, ExportCertificateResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, find_certificate};
use crate::wire::ApiError;
use crate::wire::types::pem;

impl Run for ExportCertificate {
    const READ_ONLY: bool = false;
    // Deriving a key from the passphrase takes many rounds.
    const SLOW: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let passphrase = Secret::new(input.passphrase.0);
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let allowed = authorize_certificate(call, action::acm::ExportCertificate, &certificate)?;
        let exported = export::export(&mut call.work, certificate, &passphrase, &allowed)?;
        let paired = exported.text.paired.map(|paired| *paired);
        let (paired_certificate, paired_certificate_chain) =
            paired.map_or((None, None), |text| (Some(pem(text.certificate)), text.chain.map(pem)));
        Ok(Output {
            certificate: pem(exported.text.certificate),
            certificate_chain: exported.text.chain.map(pem),
            private_key: pem(exported.private_key),
            paired_certificate,
            paired_certificate_chain,
            paired_private_key: exported.paired_private_key.map(pem),
        })
    }
}
