//! What is written to buckets: requested audit reports, and CRLs of authorities that name a bucket.

use outlast_domain::Fault;
use outlast_domain::ca::{publish, report};
use outlast_store::StoreError;

use super::Service;
use crate::ops::ACM_PCA;

/// Writes to buckets. Its errors are texts for the log.
pub trait Sink: Send + Sync {
    /// Writes or replaces an object, durably. Bucket and key are as a caller gave them.
    fn put(&self, bucket: &str, key: &str, content_type: &str, bytes: &[u8]) -> Result<(), String>;

    /// Whether an account may have objects written to a bucket. Asked before each object.
    fn may_use(&self, account: &str, bucket: &str) -> bool {
        let _ = (account, bucket);
        true
    }
}

/// Records examined in one step.
const PAGE: usize = 100;
/// Attempts to write a report before it has failed.
const ATTEMPTS: u32 = 2;

impl Service {
    /// Writes what is waiting, as long as `go_on` returns true. Each object takes as long as `sink` does.
    ///
    /// # Errors
    /// The first failure of the store. A refusal by `sink` is noted in the report or CRL, and is not
    /// an error here.
    pub fn publish(
        &self,
        sink: &dyn Sink,
        now_ms: i64,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        let crls = self.publish_crls(sink, now_ms, go_on);
        self.publish_reports(sink, now_ms, go_on).and(crls)
    }

    fn publish_reports(
        &self,
        sink: &dyn Sink,
        now_ms: i64,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        let mut after = String::new();
        loop {
            let found = report::pending(&self.work(now_ms), &after, PAGE)?;
            let Some((last, _)) = found.last() else { return Ok(()) };
            last.clone_into(&mut after);
            for (record_key, pending) in found {
                if !go_on() {
                    return Ok(());
                }
                let written = self.write_report(sink, now_ms, &pending);
                if let Err(reason) = &written {
                    tracing::warn!(record_key, reason, "an audit report could not be written");
                }
                let noted = self.do_once(&ACM_PCA, now_ms, |work, _| {
                    report::finish(work, &record_key, written.is_ok())
                });
                match noted {
                    // Another server was quicker.
                    Ok(_) | Err(Fault::Store(StoreError::Conflict)) => {}
                    Err(fault) => return Err(fault),
                }
            }
        }
    }

    fn write_report(
        &self,
        sink: &dyn Sink,
        now_ms: i64,
        pending: &report::Pending,
    ) -> Result<(), String> {
        if !sink.may_use(&pending.account(), &pending.bucket) {
            return Err(not_allowed(&pending.account(), &pending.bucket));
        }
        let content_type = match pending.format {
            report::Format::Json => "application/json",
            report::Format::Csv => "text/csv",
        };
        let bytes = report::render(&self.work(now_ms), &pending.authority, pending.format)
            .map_err(|fault| fault.to_string())?;
        let mut outcome = Ok(());
        for _ in 0..ATTEMPTS {
            outcome = sink.put(&pending.bucket, &pending.key, content_type, &bytes);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    fn write_again(&self, now_ms: i64, record_key: &str) -> Result<(), Fault> {
        self.do_at_last(&ACM_PCA, now_ms, |work, _| publish::write_again(work, record_key))?;
        Ok(())
    }

    fn publish_crls(
        &self,
        sink: &dyn Sink,
        now_ms: i64,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        let mut after = Some(String::new());
        while let Some(from) = after {
            let due = publish::due_crls(&self.work(now_ms), &from, PAGE)?;
            for record_key in due.record_keys {
                if !go_on() {
                    return Ok(());
                }
                let mut written = false;
                let noted = self.do_once(&ACM_PCA, now_ms, |work, _| {
                    let Some(file) = publish::crl_file(work, &record_key)? else { return Ok(()) };
                    let kind = "application/pkix-crl";
                    let outcome = if sink.may_use(&file.account, &file.bucket) {
                        sink.put(&file.bucket, &file.key, kind, &file.bytes)
                    } else {
                        Err(not_allowed(&file.account, &file.bucket))
                    };
                    if let Err(reason) = &outcome {
                        tracing::warn!(
                            record_key,
                            reason,
                            "a CRL could not be written to its bucket"
                        );
                    }
                    written = outcome.is_ok();
                    publish::crl_written(work, &record_key, written)
                });
                match noted {
                    // The CRL was remade, or another server has noted that it wrote one. It is not known which was
                    // written last; it may be this older one. So the newest is written once more.
                    Err(Fault::Store(StoreError::Conflict)) if written => {
                        self.write_again(now_ms, &record_key)?;
                    }
                    Ok(_) | Err(Fault::Store(StoreError::Conflict)) => {}
                    Err(fault) => return Err(fault),
                }
            }
            after = due.next;
        }
        Ok(())
    }
}

fn not_allowed(account: &str, bucket: &str) -> String {
    format!("the account {account} may not use the bucket {bucket}")
}
