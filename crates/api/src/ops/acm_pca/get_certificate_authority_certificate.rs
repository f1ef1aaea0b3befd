//! `GetCertificateAuthorityCertificate`: returns the certificate and chain of a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_GetCertificateAuthorityCertificate.html>

use outlast_domain::identity::action;

pub use crate::aws::acm_pca::{
    GetCertificateAuthorityCertificate, GetCertificateAuthorityCertificateRequest as Input,
    GetCertificateAuthorityCertificateResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::wire::ApiError;
use crate::wire::types::pem;

impl Run for GetCertificateAuthorityCertificate {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.authorize_authority(action::acm_pca::GetCertificateAuthorityCertificate, &authority)?;
        let (certificate, chain) = authority.certificate_pem()?;
        Ok(Output {
            certificate: pem(certificate.to_owned()),
            certificate_chain: chain.map(|chain| pem(chain.to_owned())),
        })
    }
}
