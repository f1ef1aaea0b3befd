//! `ListConnectors`: lists SFTP connectors.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_ListConnectors.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::CONNECTOR;
use outlast_domain::transfer::connector::connectors;

pub use crate::aws::transfer::{
    ListConnectors, ListConnectorsRequest as Input, ListConnectorsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::connectors::listed;
use crate::model::marker;
use crate::model::transfer::{next_token, page_size};
use crate::wire::ApiError;

impl Run for ListConnectors {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.max_results)?;
        let after = next_token(input.next_token.as_deref())?;
        let resource = CONNECTOR.arn(&call.scope, "*");
        let allowed = call.authorize(action::transfer::ListConnectors, &resource)?;
        let page = connectors(&call.work, &call.scope, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            next_token: page.next.as_deref().map(marker::wrap),
            connectors: page.items.iter().map(listed).collect(),
        })
    }
}
