//! `DeletePermission`: takes Certificate Manager's permissions on a CA away.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_DeletePermission.html>

use outlast_domain::ca::permission;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm_pca::{DeletePermission, DeletePermissionRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::wire::ApiError;

impl Run for DeletePermission {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("principal", input.principal.as_str());
        let allowed = call.authorize_authority(action::acm_pca::DeletePermission, &authority)?;
        let account = input.source_account.unwrap_or_else(|| call.scope.account.clone());
        permission::delete(&mut call.work, &authority, &input.principal, &account, &allowed)?;
        Ok(Empty {})
    }
}
