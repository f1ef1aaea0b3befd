//! `DeleteUser`: deletes a user of an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DeleteUser.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::delete_user;

use crate::aws::Empty;
pub use crate::aws::transfer::{DeleteUser, DeleteUserRequest as Input};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, find_user};
use crate::wire::ApiError;

impl Run for DeleteUser {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let found = find_user(call, &input.server_id, &input.user_name)?;
        let action = action::transfer::DeleteUser;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        delete_user(&mut call.work, &found, &allowed)?;
        Ok(Empty {})
    }
}
