//! `ListUsers`: lists the users of an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_ListUsers.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::users;

pub use crate::aws::transfer::{ListUsers, ListUsersRequest as Input, ListUsersResponse as Output};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::transfer::{authorize_tagged, find_server, listed_user, next_token, page_size};
use crate::wire::ApiError;

impl Run for ListUsers {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.max_results)?;
        let after = next_token(input.next_token.as_deref())?;
        let server = find_server(call, &input.server_id)?;
        let action = action::transfer::ListUsers;
        let allowed = authorize_tagged(call, action, &server.arn(), server.tags())?;
        let page = users(&call.work, &server, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            next_token: page.next.as_deref().map(marker::wrap),
            server_id: input.server_id,
            users: page.items.iter().map(|user| listed_user(call, user)).collect(),
        })
    }
}
