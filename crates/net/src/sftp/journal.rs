//! Audit events of sessions. The store commits those of many sessions together, so that they share a sync.

use std::sync::Arc;

use outlast_api::service::Service;
use outlast_api::service::sftp::{FileEvent, Session, Subject};
use outlast_domain::change::Contended;
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::Status;
use outlast_sftp::operation::{Outcome, Record};
use outlast_sftp::path::RemotePath;
use outlast_sftp::volume::OpenHow;
use outlast_store::driver::{Attempt, committed, drive};
use outlast_store::{Store, StoreError, Transaction};

use super::SftpServer;
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
/// say what was read and written. Of what failed, only changes have one: clients probe for files that may be missing, which
/// would flood the trail.
fn is_told(record: &Record) -> bool {
    if record.status == Status::PermissionDenied {
        // Clients send many requests to a handle before they learn that the first was denied.
        return !record.is_repeated;
    }
    // A handle or path that the session does not know is that of no file.
    if record.path.is_none() {
        return false;
    }
    match record.kind {
        "close" | "abandon" | "remove" | "rename" | "posix-rename" | "mkdir" | "rmdir"
        | "setstat" | "lsetstat" | "fsetstat" | "symlink" | "hardlink" => true,
        "open" => record.status == Status::Ok || record.writes,
        // Clients send many writes before they learn that one has failed.
        "write" => record.is_broken,
        "copy-data" | "fsync" => record.status != Status::Ok,
        _ => false,
    }
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

/// Attributes that were to be set, as `size=0, mode=0600`. Times are in seconds since 1970.
fn words(attributes: &Attributes) -> String {
    let mut words = Vec::new();
    if let Some(size) = attributes.size {
        words.push(format!("size={size}"));
    }
    if let Some((user, group)) = attributes.owner {
        words.push(format!("uid={user}, gid={group}"));
    }
    if let Some(mode) = attributes.mode {
        words.push(format!("mode={:04o}", mode & 0o7777));
    }
    if let Some((access, modification)) = attributes.times {
        words.push(format!("atime={access}, mtime={modification}"));
    }
    words.join(", ")
}

/// The event of a record, whose other members the caller has made.
fn event<'a>(record: &'a Record, texts: &Texts<'a>) -> FileEvent<'a> {
    let Texts { path, to, target, operation, mode, attributes } = *texts;
    let (bytes_in, bytes_out) = (record.bytes_written, record.bytes_read);
    let is_denied = record.status == Status::PermissionDenied;
    match record.kind {
        "abandon" => FileEvent::PartialClose { path, bytes_in, bytes_out },
        // A file that could not be closed was not stored; one of which a write has failed is not whole.
        "close" if !is_denied && (record.status != Status::Ok || record.is_broken) => {
            FileEvent::PartialClose { path, bytes_in, bytes_out }
        }
        _ if record.status != Status::Ok => {
            let other = match (&record.to, &record.target) {
                (Some(_), _) => Some(("new-path", to)),
                (None, Some(link)) => Some(("target", &link[..])),
                (None, None) => None,
            };
            let status = record.status.name();
            let message: &str = if is_denied { "Access denied" } else { &record.text };
            FileEvent::Failed { path, other, operation, status, message }
        }
        "open" => FileEvent::Open { path, target, mode },
        "close" => FileEvent::Close { path, bytes_in, bytes_out },
        "remove" => FileEvent::Delete(path),
        "rename" | "posix-rename" => FileEvent::Rename { path, new_path: to },
        "mkdir" => FileEvent::Mkdir(path),
        "rmdir" => FileEvent::Rmdir(path),
        "symlink" => {
            FileEvent::Symlink { path, target: record.target.as_deref().unwrap_or_default() }
        }
        // The link is the new name; it leads to the file that was there.
        "hardlink" => FileEvent::Symlink { path: to, target: path },
        _ => FileEvent::SetStat { path, attributes },
    }
}

/// Texts of an event that its record does not have itself.
#[derive(Clone, Copy)]
struct Texts<'a> {
    path: &'a [u8],
    to: &'a [u8],
    /// Bucket and path of the file.
    target: &'a [u8],
    operation: &'a str,
    mode: &'a str,
    attributes: &'a str,
}

impl Journal {
    /// Where the events of a user's session go.
    pub(super) fn of(server: &SftpServer, session: &Arc<Session>, target: &Target) -> Self {
        Self {
            service: server.service.clone(),
            session: session.clone(),
            clock: server.clock,
            target: target.clone(),
        }
    }

    /// Makes the event of a record durable. What it tells may be answered then.
    pub(super) async fn tell(&self, record: &Record) -> Result<(), String> {
        let root = RemotePath::root();
        let path = record.path.as_ref().unwrap_or(&root);
        let to = record.to.as_ref().unwrap_or(&root);
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
        let mode = mode(&record.how.unwrap_or_default());
        let attributes = record.attributes.as_ref().map(words).unwrap_or_default();
        let texts = Texts {
            path: path.as_bytes(),
            to: to.as_bytes(),
            target: &target,
            operation: &upper,
            mode: &mode,
            attributes: &attributes,
        };
        let event = event(record, &texts);
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

/// Records the end of a session whose connection is gone.
pub(super) async fn ended(journal: &Journal) {
    if let Err(error) = journal.ended().await {
        tracing::error!(error, "the end of an SFTP session could not be recorded");
    }
}

impl Journal {
    /// Makes the events of operations durable.
    pub(super) async fn tell_all(&self, outcomes: &[Outcome]) -> Result<(), String> {
        for outcome in outcomes.iter().filter(|outcome| is_told(&outcome.record)) {
            self.tell(&outcome.record).await?;
        }
        Ok(())
    }
}

/// Records a file that a connection which is gone has left open.
pub(super) async fn told(journal: &Journal, record: &Record) {
    if let Err(error) = journal.tell(record).await {
        tracing::error!(error, "a file that was not closed could not be recorded");
    }
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

    /// A record of a request about `/a` that has succeeded.
    fn record(kind: &'static str) -> Record {
        let root = RemotePath::root();
        Record {
            kind,
            path: Some(root.join(b"a")),
            to: None,
            target: None,
            attributes: None,
            how: None,
            writes: false,
            is_apart: false,
            is_broken: false,
            is_repeated: false,
            bytes_read: 0,
            bytes_written: 0,
            since: 0,
            status: Status::Ok,
            text: "".into(),
        }
    }

    fn failed(kind: &'static str) -> Record {
        Record { status: Status::Failure, text: "the file exists already".into(), ..record(kind) }
    }

    fn shown(record: &Record) -> String {
        let texts = Texts {
            path: b"/a",
            to: b"/b",
            target: b"bucket/a",
            operation: "OPERATION",
            mode: "MODE",
            attributes: "ATTRIBUTES",
        };
        match event(record, &texts) {
            FileEvent::Symlink { path, target } => {
                format!("{} -> {}", path.escape_ascii(), target.escape_ascii())
            }
            FileEvent::Failed { path, other, operation, status, message } => {
                let (name, other) = other.unwrap_or_default();
                let (path, other) = (path.escape_ascii(), other.escape_ascii());
                format!("{operation} {path} {name} {other} {status} {message}")
            }
            FileEvent::SetStat { attributes, .. } => attributes.to_owned(),
            FileEvent::PartialClose { .. } => "partial".to_owned(),
            FileEvent::Close { .. } => "closed".to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn changes_are_told_if_they_fail_and_missing_files_are_not() {
        let changes = [
            "close",
            "remove",
            "rename",
            "posix-rename",
            "mkdir",
            "rmdir",
            "setstat",
            "lsetstat",
            "fsetstat",
            "symlink",
            "hardlink",
        ];
        for kind in changes {
            assert!(is_told(&record(kind)) && is_told(&failed(kind)), "{kind}");
            assert!(!is_told(&Record { path: None, ..failed(kind) }), "{kind}");
        }
        assert!(is_told(&record("open")) && !is_told(&failed("open")));
        assert!(is_told(&Record { writes: true, ..failed("open") }));
        for kind in ["copy-data", "fsync"] {
            assert!(!is_told(&record(kind)) && is_told(&failed(kind)), "{kind}");
        }
        // The first write that fails, not those that were under way.
        assert!(!is_told(&record("write")) && !is_told(&failed("write")));
        assert!(is_told(&Record { is_broken: true, ..failed("write") }));
        for kind in ["stat", "lstat", "opendir", "readdir", "readlink", "read", "realpath"] {
            assert!(!is_told(&record(kind)) && !is_told(&failed(kind)), "{kind}");
            let denied = Record { status: Status::PermissionDenied, ..failed(kind) };
            assert!(is_told(&denied), "{kind}");
            assert!(!is_told(&Record { is_repeated: true, ..denied }), "{kind}");
        }
    }

    #[test]
    fn events_say_where_links_lead_and_why_changes_fail() {
        let to = Some(RemotePath::root().join(b"b"));
        let target = Some(bytes::Bytes::from_static(b"../x\xff"));
        let symlink = Record { target: target.clone(), ..record("symlink") };
        assert_eq!(shown(&symlink), r"/a -> ../x\xff");
        assert_eq!(shown(&Record { to: to.clone(), ..record("hardlink") }), "/b -> /a");
        let failure = "SSH_FX_FAILURE the file exists already";
        let renamed = Record { to: to.clone(), ..failed("rename") };
        assert_eq!(shown(&renamed), format!("OPERATION /a new-path /b {failure}"));
        let linked = Record { target, ..failed("symlink") };
        assert_eq!(shown(&linked), format!(r"OPERATION /a target ../x\xff {failure}"));
        assert_eq!(shown(&failed("remove")), format!("OPERATION /a   {failure}"));
        let denied = Record { status: Status::PermissionDenied, ..renamed };
        let refused = "OPERATION /a new-path /b SSH_FX_PERMISSION_DENIED Access denied";
        assert_eq!(shown(&denied), refused);
        assert_eq!(shown(&record("close")), "closed");
        assert_eq!(shown(&failed("close")), "partial");
        assert_eq!(shown(&Record { is_broken: true, ..record("close") }), "partial");
        assert_eq!(shown(&record("setstat")), "ATTRIBUTES");
    }

    #[test]
    fn attributes_are_told_by_name_and_value() {
        let none = Attributes::default();
        let all = Attributes {
            size: Some(u64::MAX),
            owner: Some((0, 100)),
            mode: Some(0o104_755),
            times: Some((1, 1_795_500_000)),
        };
        for (attributes, expected) in [
            (none, ""),
            (Attributes { size: Some(0), ..none }, "size=0"),
            (Attributes { mode: Some(0o600), ..none }, "mode=0600"),
            (
                all,
                "size=18446744073709551615, uid=0, gid=100, mode=4755, atime=1, mtime=1795500000",
            ),
        ] {
            assert_eq!(words(&attributes), expected);
        }
    }
}
