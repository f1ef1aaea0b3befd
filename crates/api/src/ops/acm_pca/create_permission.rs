//! `CreatePermission`: lets Certificate Manager renew certificates of a CA without a caller.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_CreatePermission.html>

use outlast_domain::ca::permission;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm_pca::{CreatePermission, CreatePermissionRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::wire::ApiError;

impl Run for CreatePermission {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("principal", input.principal.as_str());
        call.notes.parameter("actions", serde_json::json!(input.actions));
        let allowed = call.authorize_authority(action::acm_pca::CreatePermission, &authority)?;
        let account = input.source_account.unwrap_or_else(|| call.scope.account.clone());
        let actions = input.actions.into_iter().collect();
        let (work, principal) = (&mut call.work, &input.principal);
        permission::create(work, &authority, principal, &account, actions, &allowed)?;
        Ok(Empty {})
    }
}
