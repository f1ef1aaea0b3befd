//! `UpdateCertificateAuthority`: enables or disables a CA, and configures its CRLs and OCSP.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_UpdateCertificateAuthority.html>

use outlast_domain::ca;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm_pca::{
    UpdateCertificateAuthority, UpdateCertificateAuthorityRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::wire::ApiError;

impl Run for UpdateCertificateAuthority {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let status = match input.status.as_deref() {
            None => None,
            Some("ACTIVE") => Some(ca::Status::Active),
            Some("DISABLED") => Some(ca::Status::Disabled),
            Some(_) => {
                return Err(ApiError::new(
                    "InvalidArgsException",
                    "Status can only be set to ACTIVE or DISABLED.",
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
