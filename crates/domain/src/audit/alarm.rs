//! The record of an alarm: a server that has found the log changed tells the next one, and `store check`.
//!
//! The evidence may be known to one process only: the events that it wrote itself. The record outlives the process.

use outlast_crypto::Secret;

use crate::Fault;
use crate::work::Work;

/// Sealed record with the reason of the first alarm.
pub const ALARM: &str = "audit/alarm";

/// Records an alarm, unless one is recorded already.
pub fn note(work: &mut Work<'_>, reason: &str) -> Result<(), Fault> {
    if work.exists(ALARM)? {
        return Ok(());
    }
    work.put_secret(ALARM, &Secret::new(reason.as_bytes().to_vec()))
}

/// The reason of an alarm that nobody has cleared.
pub fn read(work: &mut Work<'_>) -> Result<Option<String>, Fault> {
    let sealed = work.secret(ALARM)?;
    Ok(sealed.map(|reason| String::from_utf8_lossy(reason.expose()).into_owned()))
}

/// Clears the alarm. Returns its reason.
pub fn clear(work: &mut Work<'_>) -> Result<Option<String>, Fault> {
    let reason = read(work)?;
    if reason.is_some() {
        work.delete(ALARM);
    }
    Ok(reason)
}
