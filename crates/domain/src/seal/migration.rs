//! Migrates stores of earlier versions, whose records are not authenticated.
//!
//! The record [`CANARY`] says what a store has. It is sealed, and nothing opens a store without it: somebody who can
//! write to the database cannot make a store of this version pass for an older one, unless they kept the old canary.
//! The migration runs in steps ([`step`]) that may be interrupted; the canary is written last ([`set_state`]).

use outlast_crypto::Secret;

use super::layout::authentic_under;
use super::{CANARY, sealed_under};
use crate::Fault;
use crate::records::Protection;
use crate::records::protection;
use crate::work::Work;

/// What a store has, according to its canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Whether its audit events form a Merkle log; otherwise they form a hash chain.
    pub has_log: bool,
    /// Whether its records are authenticated; otherwise they are as an earlier version left them.
    pub is_authenticated: bool,
}

/// Contents of the canary in each state.
const CANARIES: &[(&[u8], State)] = &[
    (b"canary", State { has_log: false, is_authenticated: false }),
    (b"canary 2: audit log", State { has_log: true, is_authenticated: false }),
    (b"canary 3: authenticated records", State { has_log: false, is_authenticated: true }),
    (
        b"canary 4: audit log, authenticated records",
        State { has_log: true, is_authenticated: true },
    ),
];

/// The result of one step over the store.
#[derive(Debug, Default)]
pub struct Step {
    /// Where to go on; `None` at the end.
    pub next: Option<String>,
    /// Number of records read.
    pub seen: usize,
    /// Records that cannot be read, and are left as they are.
    pub unreadable: Vec<String>,
}

/// The state of a store; `None` if it has no canary.
pub fn state(work: &mut Work<'_>) -> Result<Option<State>, Fault> {
    let Some(canary) = work.secret(CANARY)? else { return Ok(None) };
    let found = CANARIES.iter().find(|(said, _)| *said == canary.expose());
    found.map(|(_, state)| Some(*state)).ok_or_else(|| Fault::Damaged(CANARY.to_owned()))
}

/// Sets the state of a store.
pub fn set_state(work: &mut Work<'_>, state: State) -> Result<(), Fault> {
    let found = CANARIES.iter().find(|(_, known)| *known == state);
    let (said, _) = found.ok_or_else(|| Fault::Damaged(CANARY.to_owned()))?;
    work.put_secret(CANARY, &Secret::new(said.to_vec()))
}

/// Authenticates plain records: reads up to `limit` after `after`. Their contents are trusted, which is why [`state`]
/// must have said that they are plain.
pub fn step(work: &mut Work<'_>, after: &str, limit: usize) -> Result<Step, Fault> {
    let found = work.store().scan("", after, limit)?;
    let mut step = Step { seen: found.len(), ..Step::default() };
    step.next = (found.len() == limit).then(|| found.last().map(|(key, _)| key.clone())).flatten();
    for (key, record) in found {
        let done = authentic_under(&record.value).is_some()
            || sealed_under(&key, &record.value).is_some()
            || protection(&key) == Protection::Plain;
        if done {
            continue;
        }
        if serde_json::from_slice::<serde::de::IgnoredAny>(&record.value).is_ok() {
            work.authenticate_plain(&key, &record)?;
        } else {
            step.unreadable.push(key);
        }
    }
    Ok(step)
}
