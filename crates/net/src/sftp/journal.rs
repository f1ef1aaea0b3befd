//! Audit events of sessions. The store commits those of many sessions together, so that they share a sync.

use std::sync::Arc;

use outlast_api::service::Service;
use outlast_api::service::sftp::{FileEvent, Session, Subject};
use outlast_domain::change::Contended;
use outlast_sftp::error::Status;
use outlast_sftp::operation::Record;
use outlast_sftp::path::RemotePath;
use outlast_sftp::volume::OpenHow;
use outlast_store::driver::{Attempt, committed, drive};
use outlast_store::{Store, StoreError, Transaction};

use crate::server::Clock;

/// The bucket and path of a file.
pub(super) type Target = Arc<dyn Fn(&RemotePath) -> Vec<u8> + Send + Sync>;

/// Where the events of a session go.
#[derive(Clone)]
pub(super) struct Journal {
    pub(super) service: Arc<Service>,
    pub(super) session: Arc<Session>,
    pub(super) clock: Clock,
    /// The bucket and path of a file, for its event.
    pub(super) target: Target,
}

/// Whether what was done has an event. Reads, writes and lists have none of their own: the events of opening and closing
/// say what was read and written.
pub(super) fn is_told(record: &Record) -> bool {
    if record.status == Status::PermissionDenied {
        return true;
    }
    let changes = matches!(
        record.kind,
        "open"
            | "close"
            | "abandon"
            | "remove"
            | "rename"
            | "posix-rename"
            | "mkdir"
            | "rmdir"
            | "setstat"
            | "lsetstat"
            | "fsetstat"
            | "symlink"
            | "hardlink"
    );
    // A file that could not be closed was not stored.
    let is_over = record.status == Status::Ok || record.kind == "close";
    changes && is_over && !(record.kind == "close" && record.path.is_none())
}

/// How a file is opened: its flags, in the order of AWS's `CREATE|TRUNCATE|WRITE`.
fn mode(how: &OpenHow) -> String {
    let flags = [
        (how.append, "APPEND"),
        (how.create, "CREATE"),
        (how.exclusive, "EXCLUSIVE"),
        (how.read, "READ"),
        (how.truncate, "TRUNCATE"),
        (how.write, "WRITE"),
    ];
    flags.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect::<Vec<_>>().join("|")
}

impl Journal {
    /// Makes the event of a record durable. What it tells may be answered then.
    pub(super) async fn tell(&self, record: &Record) -> Result<(), String> {
        let root = RemotePath::root();
        let path = record.path.as_ref().unwrap_or(&root);
        let to = record.to.as_ref().unwrap_or(&root);
        let (bytes_in, bytes_out) = (record.bytes_written, record.bytes_read);
        let upper = record.kind.to_uppercase();
        let (target, new_target) = ((self.target)(path), (self.target)(to));
        let subject = Subject {
            target: &target,
            new_target: &new_target,
            writes: record.writes,
            since_ms: record.since.saturating_mul(1000),
            why: &record.text,
            is_apart: record.is_apart,
        };
        let (path, to) = (path.as_bytes(), to.as_bytes());
        let mode = mode(&record.how.unwrap_or_default());
        let event = match record.kind {
            _ if record.status == Status::PermissionDenied => {
                FileEvent::Denied { path, operation: &upper }
            }
            "open" => FileEvent::Open { path, target: &target, mode: &mode },
            "close" if record.status != Status::Ok => {
                FileEvent::PartialClose { path, bytes_in, bytes_out }
            }
            "close" => FileEvent::Close { path, bytes_in, bytes_out },
            "abandon" => FileEvent::PartialClose { path, bytes_in, bytes_out },
            "remove" => FileEvent::Delete(path),
            "rename" | "posix-rename" => FileEvent::Rename { path, new_path: to },
            "mkdir" => FileEvent::Mkdir(path),
            "rmdir" => FileEvent::Rmdir(path),
            "symlink" | "hardlink" => FileEvent::Symlink { path, target: to },
            _ => FileEvent::SetStat { path, attributes: record.kind },
        };
        // An upload may begin a workflow, whose records others change at the same time.
        let may_read = record.writes && matches!(record.kind, "close" | "abandon");
        let make = || self.service.sftp_file_event(&self.session, &event, &subject, (self.clock)());
        let prepare = || {
            let made = if may_read { tokio::task::block_in_place(make) } else { make() };
            std::future::ready(match made {
                Ok(transaction) => Attempt::Commit(transaction, ()),
                Err(fault) if fault.is_conflict() => Attempt::Again,
                Err(fault) => Attempt::Done(Err(fault.to_string())),
            })
        };
        let finish =
            |(), outcome: Result<(), StoreError>| outcome.map_err(|error| error.to_string());
        let done = drive(self.service.store().as_ref(), prepare, finish).await;
        done.unwrap_or_else(|| Err("too many others change the same records".to_owned()))
    }

    /// Records the end of the connection.
    pub(super) async fn ended(&self) -> Result<(), String> {
        let events = [FileEvent::Disconnected];
        let made = self.service.sftp_events(&self.session, &events, (self.clock)());
        commit(&self.service, made.map_err(|error| error.to_string())?).await
    }
}

/// Commits events.
pub(super) async fn commit(service: &Service, transaction: Transaction) -> Result<(), String> {
    let store: &dyn Store = service.store().as_ref();
    committed(store, transaction).await.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_names_the_flags_that_were_used() {
        let upload = OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() };
        let exclusive = OpenHow { truncate: false, exclusive: true, ..upload };
        let resumed = OpenHow { write: true, append: true, ..OpenHow::default() };
        let both = OpenHow { write: true, ..OpenHow::reading() };
        for (how, expected) in [
            (OpenHow::reading(), "READ"),
            (upload, "CREATE|TRUNCATE|WRITE"),
            (exclusive, "CREATE|EXCLUSIVE|WRITE"),
            (resumed, "APPEND|WRITE"),
            (both, "READ|WRITE"),
        ] {
            assert_eq!(mode(&how), expected);
        }
    }
}
