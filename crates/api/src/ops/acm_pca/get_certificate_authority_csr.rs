//! `GetCertificateAuthorityCsr`: returns the certificate request of a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_GetCertificateAuthorityCsr.html>

use outlast_domain::identity::action;

pub use crate::aws::acm_pca::{
    GetCertificateAuthorityCsr, GetCertificateAuthorityCsrRequest as Input,
    GetCertificateAuthorityCsrResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::wire::ApiError;
use crate::wire::types::pem;

impl Run for GetCertificateAuthorityCsr {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.authorize_authority(action::acm_pca::GetCertificateAuthorityCsr, &authority)?;
        Ok(Output { csr: pem(authority.csr_pem()?.to_owned()) })
    }
}
