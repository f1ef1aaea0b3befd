//! `ListServers`: lists SFTP servers.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_ListServers.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::{SERVER, servers};

pub use crate::aws::transfer::{
    ListServers, ListServersRequest as Input, ListServersResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::transfer::{listed_server, next_token, page_size};
use crate::wire::ApiError;

impl Run for ListServers {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.max_results)?;
        let after = next_token(input.next_token.as_deref())?;
        let allowed =
            call.authorize(action::transfer::ListServers, &SERVER.arn(&call.scope, "*"))?;
        let page = servers(&call.work, &call.scope, after.as_deref(), limit, &allowed)?;
        let listed = page.items.iter().map(|server| listed_server(call, server));
        Ok(Output {
            next_token: page.next.as_deref().map(marker::wrap),
            servers: listed.collect::<Result<_, _>>()?,
        })
    }
}
