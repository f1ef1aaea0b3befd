//! `DeleteCertificateAuthority`: deletes a CA that is not active; it can be restored for some days.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_DeleteCertificateAuthority.html>

use outlast_domain::ca;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm_pca::{
    DeleteCertificateAuthority, DeleteCertificateAuthorityRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::wire::ApiError;

impl Run for DeleteCertificateAuthority {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let days = input.permanent_deletion_time_in_days.unwrap_or(30);
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("permanentDeletionTimeInDays", days);
        let action = action::acm_pca::DeleteCertificateAuthority;
        let allowed = call.authorize_authority(action, &authority)?;
        ca::delete(&mut call.work, authority, days, &allowed)?;
        Ok(Empty {})
    }
}
