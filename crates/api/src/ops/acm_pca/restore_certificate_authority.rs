//! `RestoreCertificateAuthority`: takes a deletion back, while it can be.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_RestoreCertificateAuthority.html>

use outlast_domain::ca;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_pca::find_authority;
use crate::ops::{ACM_PCA, Call, Empty, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct RestoreCertificateAuthority;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
}

impl Operation for RestoreCertificateAuthority {
    const NAME: &'static str = "RestoreCertificateAuthority";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        let action = action::acm_pca::RestoreCertificateAuthority;
        let allowed = call.authorize_authority(action, &authority)?;
        ca::restore(&mut call.work, authority, &allowed)?;
        Ok(Empty {})
    }
}
