//! `UpdateUser`: changes a user of an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_UpdateUser.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::{UserChange, update_user};

pub use crate::aws::transfer::{
    UpdateUser, UpdateUserRequest as Input, UpdateUserResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{
    authorize_tagged, find_user, invalid, mappings, may_pass, note_policy, posix, role_arn,
};
use crate::wire::ApiError;

impl Run for UpdateUser {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_user(call, &input.server_id, &input.user_name)?;
        let role = input.role.as_deref().map(role_arn).transpose()?;
        let action = action::transfer::UpdateUser;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let may_pass = may_pass(call, role.as_slice())?;
        note_policy(call, input.policy.as_deref());
        let given = input.home_directory_mappings.map(mappings);
        let mappings = match (input.home_directory_type.as_deref(), given) {
            (Some("PATH"), None) => Some(None),
            (Some("PATH"), Some(_)) => {
                return Err(invalid("HomeDirectoryMappings need the HomeDirectoryType LOGICAL"));
            }
            (Some(_), None) if found.home().is_logical() => None,
            (Some(_), given) => Some(Some(given.unwrap_or_default())),
            (None, Some(_)) if !found.home().is_logical() => {
                return Err(invalid("HomeDirectoryMappings need the HomeDirectoryType LOGICAL"));
            }
            (None, given) => given.map(Some),
        };
        let change = UserChange {
            role,
            directory: input.home_directory,
            mappings,
            policy: input.policy,
            posix: input.posix_profile.as_ref().map(posix),
        };
        let found = update_user(&mut call.work, found, change, &allowed, &may_pass)?;
        Ok(Output { server_id: input.server_id, user_name: found.name().to_owned() })
    }
}
