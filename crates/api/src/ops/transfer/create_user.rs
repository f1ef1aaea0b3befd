//! `CreateUser`: creates a user of an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_CreateUser.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::{Home, NewUser, USER, create_user};

pub use crate::aws::transfer::{
    CreateUser, CreateUserRequest as Input, CreateUserResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{
    authorize_tagged, find_server, invalid, mappings, may_pass, may_tag, new_tags, note_policy,
    posix, role_arn,
};
use crate::wire::ApiError;

impl Run for CreateUser {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let server = find_server(call, &input.server_id)?;
        call.notes.parameter("userName", input.user_name.as_str());
        call.notes.parameter("role", input.role.as_str());
        let role = role_arn(&input.role)?;
        let tags = new_tags(call, input.tags)?;
        let action = action::transfer::CreateUser;
        let allowed = authorize_tagged(call, action, &server.arn(), server.tags())?;
        let resource = USER.arn(&call.scope, &format!("{}/{}", server.id(), input.user_name));
        may_tag(call, &tags, &resource)?;
        let may_pass = may_pass(call, std::slice::from_ref(&role))?;
        note_policy(call, input.policy.as_deref());
        let is_logical = input.home_directory_type.as_deref() == Some("LOGICAL");
        if !is_logical && input.home_directory_mappings.is_some() {
            return Err(invalid("HomeDirectoryMappings need the HomeDirectoryType LOGICAL"));
        }
        let new = NewUser {
            name: input.user_name,
            role,
            home: Home {
                directory: input.home_directory,
                mappings: is_logical
                    .then(|| mappings(input.home_directory_mappings.unwrap_or_default())),
            },
            policy: input.policy,
            posix: input.posix_profile.as_ref().map(posix),
            key: input.ssh_public_key_body,
            tags,
        };
        let made = create_user(&mut call.work, &server, new, &allowed, &may_pass)?;
        call.notes.resource(made.arn(), USER.cloudtrail);
        Ok(Output { server_id: input.server_id, user_name: made.name().to_owned() })
    }
}
