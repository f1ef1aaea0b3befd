//! CRLs that are also written to a bucket: which are due, and where they go.

use serde::{Deserialize, Serialize};

use super::crl::record::{self, Made};
use super::told;
use crate::work::{Due, Work};
use crate::{Fault, events, limits};

/// A CRL that is to be written.
#[derive(Serialize, Deserialize)]
struct Pending {
    /// Milliseconds since 1970.
    due_ms: i64,
    /// Number of failed attempts.
    failures: u32,
}

/// A file that has to be written to a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The account of its authority.
    pub account: String,
    /// Name of the bucket.
    pub bucket: String,
    /// Object key in the bucket.
    pub key: String,
    /// Contents of the object.
    pub bytes: Vec<u8>,
}

/// Marks the CRL with this name to be written to its authority's bucket.
pub(super) fn crl_pending(work: &mut Work<'_>, name: &str) -> Result<(), Fault> {
    let pending = Pending { due_ms: work.now_ms(), failures: 0 };
    work.put(&record_key(name), &pending)
}

pub(super) fn forget_crl(work: &mut Work<'_>, name: &str) {
    work.delete(&record_key(name));
}

/// Record keys of those that are due, among up to `limit` after one of them.
pub fn due_crls(work: &Work<'_>, after: &str, limit: usize) -> Result<Due, Fault> {
    work.due(PREFIX, after, limit, |pending: &Pending, now_ms| pending.due_ms <= now_ms)
}

/// The file to write for `record_key`; `None` if there is none any more, and then `record_key` is deleted.
pub fn crl_file(work: &mut Work<'_>, record_key: &str) -> Result<Option<File>, Fault> {
    let name = record_key.strip_prefix(PREFIX).unwrap_or_default();
    let found = match work.get::<Pending>(record_key)? {
        Some(_) => file(work, name)?,
        None => return Ok(None),
    };
    if found.is_none() {
        work.delete(record_key);
    }
    Ok(found)
}

fn file(work: &mut Work<'_>, name: &str) -> Result<Option<File>, Fault> {
    let Some(made) = record::made(work, name)? else { return Ok(None) };
    let Some(bucket) = bucket(work, &made)? else { return Ok(None) };
    let Some(bytes) = record::der(work, name, &made)? else { return Ok(None) };
    let account = made.account().to_owned();
    Ok(Some(File { account, bucket, key: made.path, bytes }))
}

fn bucket(work: &mut Work<'_>, made: &Made) -> Result<Option<String>, Fault> {
    let authority = made.authority(work)?;
    Ok(authority.and_then(|found| found.revocation().crl.as_ref()?.bucket.clone()))
}

/// Records the outcome of an attempt. A failed one is repeated later, with growing intervals.
pub fn crl_written(work: &mut Work<'_>, record_key: &str, written: bool) -> Result<(), Fault> {
    let Some(pending) = work.get::<Pending>(record_key)? else { return Ok(()) };
    if written {
        work.delete(record_key);
        return Ok(());
    }
    if pending.failures == 0 {
        tell_failure(work, record_key)?;
    }
    let failures = pending.failures.saturating_add(1);
    let wait = limits::FIRST_RETRY_MS.saturating_mul(1 << failures.min(16));
    let due_ms = work.now_ms() + wait.min(limits::LAST_RETRY_MS);
    work.put(record_key, &Pending { due_ms, failures })
}

/// Tells that a CRL is not in its bucket yet.
fn tell_failure(work: &mut Work<'_>, record_key: &str) -> Result<(), Fault> {
    let name = record_key.strip_prefix(PREFIX).unwrap_or_default();
    let Some(made) = record::made(work, name)? else { return Ok(()) };
    let Some(authority) = made.authority(work)? else { return Ok(()) };
    // AWS's words.
    let reason = Some("Failed to write CRL to S3. Check your S3 bucket permissions.");
    told::tell_failure(work, &events::CRL_GENERATED, &authority.arn(), None, reason)
}

/// Marks the CRL of `record_key` to be written again: another CRL, or another server's write, came in between, so it
/// is not known which CRL is in the bucket.
pub fn write_again(work: &mut Work<'_>, record_key: &str) -> Result<(), Fault> {
    let name = record_key.strip_prefix(PREFIX).unwrap_or_default();
    if record::made(work, name)?.is_some() {
        crl_pending(work, name)?;
    }
    Ok(())
}

fn record_key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

const PREFIX: &str = "ca/crl-publish/";
