//! The audit trail: a Merkle log over the events (RFC 6962; C2SP tlog-tiles), whose heads the service signs.
//!
//! Event `n` of the store is entry `n - 1` of the log. A head is signed within a minute of the events it covers. It
//! is computed from the last signed head, which is sealed, and the events since ([`log`]), so somebody who can only
//! write to the database cannot get a changed past signed: a server that finds such a change stops signing and
//! refuses calls ([`guard`], [`patrol`]). The holder of a signed head, or a witness, can tell that nothing before it
//! was changed or removed, and a few hashes prove that an event is in the log ([`prove`]).

pub mod alarm;
pub mod cosigned;
pub mod guard;
pub mod head;
pub mod key;
pub mod legacy;
pub mod log;
pub mod patrol;
pub mod prove;
pub mod prune;
pub mod serve;
pub mod tiles;

use outlast_tlog::SignedCheckpoint;

use crate::Fault;
use crate::work::Work;

pub use guard::Guard;
pub use head::Head;
pub use key::LogKey;
pub use log::{INTERVAL, MAX_AGE_MS, establish};
pub use patrol::Patrol;

/// Record with the last signed head: the text of a signed note (C2SP tlog-checkpoint).
pub const SIGNED: &str = "audit/signed-head";

/// The last head that the log signed.
///
/// # Errors
/// [`Fault::Audit`] if it is missing, cannot be read, or is not signed with the log's keys.
pub fn signed_head(work: &mut Work<'_>, key: &LogKey) -> Result<SignedCheckpoint, Fault> {
    let missing = || Fault::Audit("the signed head is missing".into());
    let text = work.get::<String>(SIGNED)?.ok_or_else(missing)?;
    let wrong = |error: String| Fault::Audit(format!("the signed head is not valid: {error}"));
    let head =
        SignedCheckpoint::parse(text.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    head.verify_log(&key.verifiers()).map_err(|error| wrong(error.to_string()))?;
    if head.checkpoint().origin() != key.origin {
        return Err(wrong("it belongs to another log".into()));
    }
    Ok(head)
}

/// Checks that a store's log can be continued: the sealed head and the log's key exist, the events that the head
/// covers are complete, and the tiles match it. To be called before a store is served.
pub fn check_start(work: &mut Work<'_>) -> Result<Head, Fault> {
    if let Some(reason) = alarm::read(work)? {
        return Err(Fault::Audit(format!("{reason} (an alarm that nobody has cleared)")));
    }
    let key = LogKey::read(work)?;
    let head = Head::read(work)?;
    let signed = signed_head(work, &key)?;
    if signed.checkpoint().size() != head.size || *signed.checkpoint().root() != head.root()? {
        return Err(Fault::Audit("the signed head is not the sealed one".into()));
    }
    // This process remembers nothing yet, so this compares the store with the sealed head.
    log::verify_head(work, &Guard::default())?;
    Ok(head)
}
