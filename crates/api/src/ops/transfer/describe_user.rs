//! `DescribeUser`: describes a user of an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DescribeUser.html>

use outlast_domain::identity::action;

pub use crate::aws::transfer::{
    DescribeUser, DescribeUserRequest as Input, DescribeUserResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, described_user, find_user};
use crate::wire::ApiError;

impl Run for DescribeUser {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_user(call, &input.server_id, &input.user_name)?;
        let action = action::transfer::DescribeUser;
        let _ = authorize_tagged(call, action, &found.arn(), found.tags())?;
        Ok(Output { user: described_user(call, &found), server_id: input.server_id })
    }
}
