//! `ListFileTransferResults`: says what came of the files of a transfer.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_ListFileTransferResults.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::connector::results;

pub use crate::aws::transfer::{
    ListFileTransferResults, ListFileTransferResultsRequest as Input,
    ListFileTransferResultsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::connectors::{file_result, find_connector};
use crate::model::marker;
use crate::model::transfer::{authorize_tagged, next_token, page_size};
use crate::wire::ApiError;

impl Run for ListFileTransferResults {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.max_results)?;
        let after = next_token(input.next_token.as_deref())?;
        let found = find_connector(call, &input.connector_id)?;
        call.notes.parameter("transferId", input.transfer_id.as_str());
        let action = action::transfer::ListFileTransferResults;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let (work, id) = (&mut call.work, &input.transfer_id);
        let page = results(work, &found, id, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            next_token: page.next.as_deref().map(marker::wrap),
            file_transfer_results: page.items.iter().map(file_result).collect(),
        })
    }
}
