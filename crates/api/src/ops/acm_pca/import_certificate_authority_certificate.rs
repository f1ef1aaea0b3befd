//! `ImportCertificateAuthorityCertificate`: installs the certificate of a CA, which makes it active.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_ImportCertificateAuthorityCertificate.html>

use outlast_domain::ca;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm_pca::{
    ImportCertificateAuthorityCertificate, ImportCertificateAuthorityCertificateRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::wire::ApiError;

impl Run for ImportCertificateAuthorityCertificate {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let chain = input.certificate_chain.as_ref().map(|chain| chain.0.as_slice());
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        let action = action::acm_pca::ImportCertificateAuthorityCertificate;
        let allowed = call.authorize_authority(action, &authority)?;
        let certificate = &input.certificate.0;
        ca::import_certificate(&mut call.work, call.ring, authority, certificate, chain, &allowed)?;
        Ok(Empty {})
    }
}
