//! `ImportCertificateAuthorityCertificate`: gives a CA its certificate, which makes it active.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_ImportCertificateAuthorityCertificate.html>

use outlast_domain::identity::action;
use outlast_domain::{ca, limits};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_pca::find_authority;
use crate::ops::{ACM_PCA, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, validate};

/// The operation.
pub struct ImportCertificateAuthorityCertificate;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
    pub certificate: Blob,
    pub certificate_chain: Option<Blob>,
}

impl Operation for ImportCertificateAuthorityCertificate {
    const NAME: &'static str = "ImportCertificateAuthorityCertificate";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("Certificate", input.certificate.0.len(), 1, limits::MAX_CA_CERTIFICATE)?;
        let chain = input.certificate_chain.as_ref().map(|chain| chain.0.as_slice());
        validate::length("CertificateChain", chain.map_or(0, <[u8]>::len), 0, 2_097_152)?;
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        let action = action::acm_pca::ImportCertificateAuthorityCertificate;
        let allowed = call.authorize_authority(action, &authority)?;
        let certificate = &input.certificate.0;
        ca::import_certificate(&mut call.work, call.ring, authority, certificate, chain, &allowed)?;
        Ok(Empty {})
    }
}
