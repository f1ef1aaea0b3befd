//! `GetCertificateAuthorityCertificate`: gives the certificate and chain of a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_GetCertificateAuthorityCertificate.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_pca::find_authority;
use crate::ops::{ACM_PCA, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct GetCertificateAuthorityCertificate;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub certificate: String,
    pub certificate_chain: Option<String>,
}

impl Operation for GetCertificateAuthorityCertificate {
    const NAME: &'static str = "GetCertificateAuthorityCertificate";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.authorize_authority(action::acm_pca::GetCertificateAuthorityCertificate, &authority)?;
        let (certificate, chain) = authority.certificate_pem()?;
        Ok(Output {
            certificate: certificate.to_owned(),
            certificate_chain: chain.map(str::to_owned),
        })
    }
}
