//! `GetLogEntries`: returns entries of the artifact log, in order. Ours; described in `docs/guide/log.md`.

use outlast_domain::identity::action;
use outlast_domain::{Fault, artifacts};

pub use crate::aws::outlast::{
    GetLogEntries, GetLogEntriesRequest as Input, GetLogEntriesResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::artifact_log::{authorize, index, internal, number};
use crate::wire::ApiError;

/// Entries of an answer, at most and by default.
const MOST: i64 = 256;

impl Run for GetLogEntries {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        authorize(call, action::outlast::GetLogEntries)?;
        let first = index(input.start_index)?;
        let most = usize::try_from(input.max_results.unwrap_or(MOST)).unwrap_or(0);
        call.notes.parameter("startIndex", first);
        let Some(log) = artifacts::read(&mut call.work).map_err(internal)? else {
            return Ok(Output { entries: Vec::new(), log_size: 0 });
        };
        let entries = log.entries(&call.work, first, most).map_err(internal)?;
        let text =
            |entry| String::from_utf8(entry).map_err(|_| Fault::Damaged("artifacts/entry".into()));
        let entries =
            entries.into_iter().map(text).collect::<Result<_, Fault>>().map_err(internal)?;
        Ok(Output { entries, log_size: number(log.head.size) })
    }
}
