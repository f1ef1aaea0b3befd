//! `AddLogEntries`: enters signatures in the artifact log, and returns their proofs. Ours; described in
//! `docs/guide/log.md`.
//!
//! A call that is repeated enters them again.

use outlast_domain::artifacts;
use outlast_domain::identity::action;

pub use crate::aws::outlast::{
    AddLogEntries, AddLogEntriesRequest as Input, AddLogEntriesResponse as Output, AddedLogEntry,
};
use crate::call::{Call, Run};
use crate::model::artifact_log::{authorize, entry, internal, is_cosigned, number};
use crate::wire::ApiError;

impl Run for AddLogEntries {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        call.notes.parameter("entries", input.entries.len());
        let (arn, permit) = authorize(call, action::outlast::AddLogEntries)?;
        let time = call.work.now();
        let new = input.entries.iter().map(|new| entry(new, time));
        let entries = new.collect::<Result<Vec<_>, ApiError>>()?;
        let (first, log) =
            artifacts::append(&mut call.work, &arn, &entries, &permit).map_err(internal)?;
        call.notes.response("firstIndex", first);
        call.notes.response("logSize", log.head.size);
        let mut added = Vec::with_capacity(entries.len());
        for index in first..log.head.size {
            let proof = log.prove(&mut call.work, &log.signed, index).map_err(internal)?;
            let proof = proof.map(|proof| proof.to_string()).unwrap_or_default();
            added.push(AddedLogEntry { index: number(index), proof });
        }
        Ok(Output { entries: added, is_cosigned: is_cosigned(call, &log.signed) })
    }
}
