//! `UpdateCertificateAuthority`: switches a CA on or off, and its CRLs and OCSP.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_UpdateCertificateAuthority.html>

use outlast_domain::ca;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_pca::{RevocationConfiguration, find_authority};
use crate::ops::{ACM_PCA, Call, Empty, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct UpdateCertificateAuthority;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
    pub revocation_configuration: Option<RevocationConfiguration>,
    pub status: Option<String>,
}

impl Operation for UpdateCertificateAuthority {
    const NAME: &'static str = "UpdateCertificateAuthority";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let status = match input.status.as_deref() {
            None => None,
            Some("ACTIVE") => Some(ca::Status::Active),
            Some("DISABLED") => Some(ca::Status::Disabled),
            Some(_) => {
                return Err(ApiError::new(
                    "InvalidArgsException",
                    "Status can be set to ACTIVE or DISABLED.",
                ));
            }
        };
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("status", input.status);
        let action = action::acm_pca::UpdateCertificateAuthority;
        let allowed = call.authorize_authority(action, &authority)?;
        let revocation = match input.revocation_configuration {
            None => None,
            Some(given) => Some(given.apply(authority.revocation(), &call.settings)?),
        };
        let update = ca::Update { status, revocation };
        ca::set_status(&mut call.work, authority, update, &allowed)?;
        Ok(Empty {})
    }
}
