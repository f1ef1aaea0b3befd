//! `DescribeCertificateAuthority`: tells all about a CA but its key.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_DescribeCertificateAuthority.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_pca::{CertificateAuthority, find_authority};
use crate::ops::{ACM_PCA, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct DescribeCertificateAuthority;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub certificate_authority: CertificateAuthority,
}

impl Operation for DescribeCertificateAuthority {
    const NAME: &'static str = "DescribeCertificateAuthority";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.authorize_authority(action::acm_pca::DescribeCertificateAuthority, &authority)?;
        Ok(Output { certificate_authority: CertificateAuthority::new(&authority, &call.settings) })
    }
}
