//! What happens to files, told to programs outside: Transfer Family's events of servers.
//!
//! Source: Transfer Family User Guide, "Transfer Family events detail reference". An event enters the outbox in the transaction of the
//! audit event of its cause.

use outlast_domain::Fault;
use outlast_domain::events::{
    DIRECTORY_CREATE_COMPLETED, DIRECTORY_CREATE_FAILED, DIRECTORY_DELETE_COMPLETED,
    DIRECTORY_DELETE_FAILED, DOWNLOAD_COMPLETED, DOWNLOAD_FAILED, FILE_DELETE_COMPLETED,
    FILE_DELETE_FAILED, FILE_RENAME_COMPLETED, FILE_RENAME_FAILED, Fact, Kind, Told,
    UPLOAD_COMPLETED, UPLOAD_FAILED, tell_of_files,
};
use outlast_domain::work::Work;

use super::{FileEvent, Session};

/// What is known of the file of an event besides its path.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// `bucket/path`, or the path in the machine.
    pub target: &'a [u8],
    /// The same for its new name, if it gets one.
    pub new_target: &'a [u8],
    /// Whether it was opened for writing.
    pub writes: bool,
    /// When it was opened, milliseconds since 1970; the time of the request otherwise.
    pub since_ms: i64,
    /// Why something failed, as the user was told.
    pub why: &'a str,
    /// Whether what was written is not visible under its name, see [`outlast_domain::transfer::Uploaded::is_apart`].
    pub is_apart: bool,
}

/// Puts what has happened into the outbox, if it is of a kind that AWS tells.
pub(super) fn announce(
    work: &mut Work<'_>,
    session: &Session,
    event: &FileEvent<'_>,
    subject: &Subject<'_>,
    now_ms: i64,
) -> Result<(), Fault> {
    let Some((kind, bytes, code)) = kind_of(event, subject) else { return Ok(()) };
    let connection = &session.connection;
    let server = connection.server_arn.rsplit('/').next().unwrap_or_default();
    let (status, message) = match (code, subject.why) {
        ("", _) => ("COMPLETED", ""),
        (_, "") => ("FAILED", "File was partially transferred."),
        (_, why) => ("FAILED", why),
    };
    let facts = [
        (Fact::Status, Told::from(status)),
        (Fact::FailureCode, code.into()),
        (Fact::FailureMessage, message.into()),
        (Fact::Protocol, "SFTP".into()),
        (Fact::Bytes, i64::try_from(bytes).unwrap_or(i64::MAX).into()),
        (Fact::ClientIp, connection.source_ip.to_string().into()),
        (Fact::Begun, Told::Time(subject.since_ms)),
        (Fact::Ended, Told::Time(now_ms)),
        (Fact::File, path(subject.target).into()),
        (Fact::OldFile, path(subject.target).into()),
        (Fact::NewFile, path(subject.new_target).into()),
        (Fact::Directory, path(subject.target).into()),
        (Fact::Server, server.into()),
        (Fact::User, session.user.as_str().into()),
        (Fact::Session, connection.session.as_str().into()),
    ];
    tell_of_files(work, kind, &connection.scope, &connection.server_arn, facts)
}

/// The kind of an event, the bytes that were transferred, and AWS's category of a failure.
fn kind_of(
    event: &FileEvent<'_>,
    subject: &Subject<'_>,
) -> Option<(&'static Kind, u64, &'static str)> {
    let unknown = "UNKNOWN_ERROR";
    Some(match *event {
        FileEvent::Close { bytes_in, .. } if subject.writes => (&UPLOAD_COMPLETED, bytes_in, ""),
        FileEvent::Close { bytes_out, .. } => (&DOWNLOAD_COMPLETED, bytes_out, ""),
        FileEvent::PartialClose { bytes_in, .. } if subject.writes => {
            (&UPLOAD_FAILED, bytes_in, "PARTIAL_UPLOAD")
        }
        FileEvent::PartialClose { bytes_out, .. } => {
            (&DOWNLOAD_FAILED, bytes_out, "PARTIAL_DOWNLOAD")
        }
        FileEvent::Delete(_) => (&FILE_DELETE_COMPLETED, 0, ""),
        FileEvent::Rename { .. } => (&FILE_RENAME_COMPLETED, 0, ""),
        FileEvent::Mkdir(_) => (&DIRECTORY_CREATE_COMPLETED, 0, ""),
        FileEvent::Rmdir(_) => (&DIRECTORY_DELETE_COMPLETED, 0, ""),
        FileEvent::Failed { operation, .. } => match operation {
            "OPEN" | "CLOSE" if subject.writes => (&UPLOAD_FAILED, 0, unknown),
            "OPEN" => (&DOWNLOAD_FAILED, 0, unknown),
            "REMOVE" => (&FILE_DELETE_FAILED, 0, unknown),
            "RENAME" | "POSIX-RENAME" => (&FILE_RENAME_FAILED, 0, unknown),
            "MKDIR" => (&DIRECTORY_CREATE_FAILED, 0, unknown),
            "RMDIR" => (&DIRECTORY_DELETE_FAILED, 0, unknown),
            _ => return None,
        },
        _ => return None,
    })
}

/// A path as AWS has it, with the bucket as its first name.
fn path(target: &[u8]) -> String {
    let text = String::from_utf8_lossy(target);
    if text.starts_with('/') { text.into_owned() } else { format!("/{text}") }
}
