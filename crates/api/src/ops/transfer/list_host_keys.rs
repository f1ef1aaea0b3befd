//! `ListHostKeys`: lists the host keys of an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_ListHostKeys.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::host_keys;

pub use crate::aws::transfer::{
    ListHostKeys, ListHostKeysRequest as Input, ListHostKeysResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::transfer::{
    authorize_tagged, find_server, listed_host_key, next_token, page_size,
};
use crate::wire::ApiError;

impl Run for ListHostKeys {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.max_results)?;
        let after = next_token(input.next_token.as_deref())?;
        let server = find_server(call, &input.server_id)?;
        let action = action::transfer::ListHostKeys;
        let allowed = authorize_tagged(call, action, &server.arn(), server.tags())?;
        let page = host_keys(&call.work, &server, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            next_token: page.next.as_deref().map(marker::wrap),
            server_id: input.server_id,
            host_keys: page.items.iter().map(listed_host_key).collect::<Result<_, _>>()?,
        })
    }
}
