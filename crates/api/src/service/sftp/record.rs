//! Audit events of SFTP: CloudTrail's form, with the members of Transfer Family's structured log as additional data.
//!
//! Source: Transfer Family User Guide, "Amazon CloudWatch log structure for Transfer Family": `activity-type` and the names
//! beside it. They are data events; the session of the user's role is the caller.

use outlast_domain::transfer::{Certified, Refusal, SERVER, USER};
use outlast_domain::{Fault, ids, limits};
use outlast_pki::time::rfc3339;
use serde_json::{Map, Value, json};

use super::failures::Window;
use super::{Connection, Session};
use crate::audit::{Actor, user_identity};
use crate::ops::TRANSFER;

/// What happens in a session. Paths are those that the user sees; targets are buckets and paths in them.
#[derive(Debug, Clone, Copy)]
pub enum FileEvent<'a> {
    /// A file was opened.
    Open {
        /// Its path.
        path: &'a [u8],
        /// `bucket/path`
        target: &'a [u8],
        /// The flags, in AWS's words: `READ`, `CREATE|TRUNCATE|WRITE`.
        mode: &'a str,
    },
    /// A file was closed, with the bytes that were read from it and written to it.
    Close {
        /// Its path.
        path: &'a [u8],
        /// Bytes that the user has written.
        bytes_in: u64,
        /// Bytes that the user has read.
        bytes_out: u64,
    },
    /// A connection was lost while a file was open, or part of what was sent could not be written.
    PartialClose {
        /// Its path.
        path: &'a [u8],
        /// Bytes that the user has written.
        bytes_in: u64,
        /// Bytes that the user has read.
        bytes_out: u64,
    },
    /// A file was removed.
    Delete(&'a [u8]),
    /// A file or directory was renamed.
    Rename {
        /// Its path.
        path: &'a [u8],
        /// Its new path.
        new_path: &'a [u8],
    },
    /// A directory was made.
    Mkdir(&'a [u8]),
    /// A directory was removed.
    Rmdir(&'a [u8]),
    /// Attributes were set.
    SetStat {
        /// The path.
        path: &'a [u8],
        /// Which ones and their values, in words.
        attributes: &'a str,
    },
    /// A symbolic or hard link was made.
    Symlink {
        /// Its path.
        path: &'a [u8],
        /// Where it leads: what the client wrote, or the path of the file that got another name.
        target: &'a [u8],
    },
    /// The connection has ended.
    Disconnected,
    /// A request was refused because the user may not do that, or a change has failed.
    Failed {
        /// The path.
        path: &'a [u8],
        /// Its second path, and the member of the event that has it: `new-path`, or `target` of a symbolic link.
        other: Option<(&'a str, &'a [u8])>,
        /// The request, such as `OPEN`.
        operation: &'a str,
        /// The status that the user got, such as `SSH_FX_FAILURE`.
        status: &'a str,
        /// Why it failed.
        message: &'a str,
    },
}

impl FileEvent<'_> {
    /// Its `activity-type`, whether it changes nothing, and the other members.
    fn told(&self) -> (&'static str, bool, Value) {
        let bytes = |path: &[u8], bytes_in: u64, bytes_out: u64| {
            // AWS writes numbers as texts.
            json!({ "path": shown(path), "bytes-in": bytes_in.to_string(), "bytes-out": bytes_out.to_string() })
        };
        match *self {
            Self::Open { path, target, mode } => {
                let told = json!({ "path": shown(path), "target": shown(target), "mode": mode });
                ("OPEN", mode == "READ", told)
            }
            Self::Close { path, bytes_in, bytes_out } => {
                ("CLOSE", bytes_in == 0, bytes(path, bytes_in, bytes_out))
            }
            Self::PartialClose { path, bytes_in, bytes_out } => {
                ("PARTIAL_CLOSE", bytes_in == 0, bytes(path, bytes_in, bytes_out))
            }
            Self::Delete(path) => ("DELETE", false, json!({ "path": shown(path) })),
            Self::Rename { path, new_path } => {
                ("RENAME", false, json!({ "path": shown(path), "new-path": shown(new_path) }))
            }
            Self::Mkdir(path) => ("MKDIR", false, json!({ "path": shown(path) })),
            Self::Rmdir(path) => ("RMDIR", false, json!({ "path": shown(path) })),
            Self::SetStat { path, attributes } => {
                ("SETSTAT", false, json!({ "path": shown(path), "attributes": attributes }))
            }
            Self::Symlink { path, target } => {
                ("CREATE_SYMLINK", false, json!({ "path": shown(path), "target": shown(target) }))
            }
            Self::Disconnected => ("DISCONNECTED", true, json!({})),
            Self::Failed { path, other, operation, status, message } => {
                let mut told = json!({
                    "path": shown(path), "operation": operation, "status": status,
                    "message": quoted(message, 255),
                });
                if let Some((member, other)) = other {
                    told[member] = shown(other).into();
                }
                ("ERROR", true, told)
            }
        }
    }
}

/// A path as text: bytes that are not UTF-8 become U+FFFD, and the bytes follow in hexadecimal.
pub(super) fn shown(path: &[u8]) -> String {
    let cut = path.get(..limits::SFTP_PATH_QUOTED).unwrap_or(path);
    match std::str::from_utf8(cut) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("{} (hex {})", String::from_utf8_lossy(cut), hex::encode(cut)),
    }
}

fn quoted(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// What all events of a connection have.
fn of_connection(connection: &Connection, activity: &str) -> Map<String, Value> {
    let mut told = Map::new();
    told.insert("activity-type".to_owned(), activity.into());
    told.insert("resource-arn".to_owned(), connection.server_arn.as_str().into());
    told.insert("session-id".to_owned(), quoted(&connection.session, 64).into());
    told.insert("source-ip".to_owned(), connection.source_ip.to_string().into());
    told
}

/// What the connection negotiated.
fn negotiated(connection: &Connection, told: &mut Map<String, Value>) {
    let list = |both: &[String; 2]| both.join(",");
    told.insert("client".to_owned(), quoted(&connection.client, 255).into());
    told.insert("kex".to_owned(), connection.key_exchange.as_str().into());
    told.insert("post-quantum".to_owned(), connection.post_quantum.into());
    told.insert("host-key".to_owned(), connection.host_key.as_str().into());
    told.insert("ciphers".to_owned(), list(&connection.ciphers).into());
    if connection.macs.iter().any(|mac| !mac.is_empty()) {
        told.insert("macs".to_owned(), list(&connection.macs).into());
    }
}

/// What a user has proved at a login.
#[derive(Default)]
pub(super) struct Proved<'a> {
    /// Fingerprint and type of the key.
    pub(super) key: Option<&'a (String, &'static str)>,
    /// The certificate of the key.
    pub(super) certificate: Option<&'a Certified>,
}

/// The event `CONNECTED`.
pub(super) fn connected(
    session: &Session,
    home: &[u8],
    proved: &Proved<'_>,
    now_ms: i64,
) -> Result<Vec<u8>, Fault> {
    let mut told = of_connection(&session.connection, "CONNECTED");
    negotiated(&session.connection, &mut told);
    told.insert("user".to_owned(), session.user.as_str().into());
    if !session.role_arn.is_empty() {
        told.insert("role".to_owned(), session.role_arn.as_str().into());
    }
    told.insert("home-dir".to_owned(), shown(home).into());
    if let Some((fingerprint, kind)) = proved.key {
        told.insert("ssh-public-key-fingerprint".to_owned(), fingerprint.as_str().into());
        told.insert("ssh-public-key-type".to_owned(), (*kind).into());
    }
    if let Some(certificate) = proved.certificate {
        let key_id = certificate.key_id.as_str();
        told.insert("ssh-certificate-key-id".to_owned(), key_id.into());
        told.insert("ssh-certificate-serial".to_owned(), certificate.serial.to_string().into());
        let authority = certificate.authority.as_str();
        told.insert("ssh-certificate-authority-fingerprint".to_owned(), authority.into());
    }
    of_session(session, "CONNECTED", true, told, now_ms)
}

/// An event of a session.
pub(super) fn file_event(
    session: &Session,
    event: &FileEvent<'_>,
    now_ms: i64,
) -> Result<Vec<u8>, Fault> {
    let (activity, read_only, more) = event.told();
    let mut told = of_connection(&session.connection, activity);
    told.insert("user".to_owned(), session.user.as_str().into());
    if let Value::Object(more) = more {
        told.extend(more);
    }
    of_session(session, activity, read_only, told, now_ms)
}

fn of_session(
    session: &Session,
    activity: &str,
    read_only: bool,
    told: Map<String, Value>,
    now_ms: i64,
) -> Result<Vec<u8>, Fault> {
    let connection = &session.connection;
    let mut identity = match &session.principal {
        Some(principal) => user_identity(principal),
        // Nobody that IAM knows.
        None => json!({
            "type": "Unknown", "principalId": "", "arn": session.user_arn, "accountId": connection.scope.account,
            "accessKeyId": "", "userName": session.user,
        }),
    };
    identity["invokedBy"] = TRANSFER.model.event_source.into();
    let account = &connection.scope.account;
    let resources = json!([
        { "accountId": account, "type": SERVER.cloudtrail, "ARN": connection.server_arn },
        { "accountId": account, "type": USER.cloudtrail, "ARN": session.user_arn },
    ]);
    event(connection, activity, read_only, identity, resources, told, now_ms)
}

/// Tries of a connection to log in that failed.
#[derive(Debug, Clone, Copy)]
pub struct AuthFailure<'a> {
    /// The name that the client gives.
    pub user: &'a str,
    /// Method of the try that matters most.
    pub method: &'a str,
    /// Why that one failed.
    pub refusal: &'a Refusal,
    /// Methods of those that failed, each once.
    pub methods: &'a [&'a str],
    /// How many failed.
    pub tries: u32,
}

/// The event `AUTH_FAILURE` of a connection.
pub(super) fn auth_failure(
    connection: &Connection,
    failure: &AuthFailure<'_>,
    now_ms: i64,
) -> Result<Vec<u8>, Fault> {
    let mut told = of_connection(connection, "AUTH_FAILURE");
    negotiated(connection, &mut told);
    told.insert("user".to_owned(), quoted(failure.user, limits::SFTP_USER_QUOTED).into());
    told.insert("method".to_owned(), quoted(failure.method, 64).into());
    told.insert("message".to_owned(), failure.refusal.to_string().into());
    told.insert("methods".to_owned(), failure.methods.into());
    told.insert("tries".to_owned(), failure.tries.into());
    let account = &connection.scope.account;
    let resources = json!([
        { "accountId": account, "type": SERVER.cloudtrail, "ARN": connection.server_arn },
    ]);
    let identity = Actor::Certificate(account).identity();
    event(connection, "AUTH_FAILURE", true, identity, resources, told, now_ms)
}

/// The event that sums up failures of a minute.
pub(super) fn sum_of_failures(window: &Window, now_ms: i64) -> Result<Vec<u8>, Fault> {
    let at = |ms: i64| rfc3339(ms.div_euclid(1000));
    let peers: Vec<_> = window.peers.iter().map(ToString::to_string).collect();
    let account = &window.scope.account;
    let event = json!({
        "eventVersion": "1.11",
        "userIdentity": { "accountId": account, "invokedBy": "AWS Internal" },
        "eventTime": at(now_ms),
        "eventSource": TRANSFER.model.event_source,
        "eventName": "SumUpAuthFailures",
        "awsRegion": window.scope.region,
        "sourceIPAddress": "AWS Internal",
        "userAgent": "AWS Internal",
        "requestParameters": null,
        "responseElements": null,
        "eventID": ids::event_id(now_ms)?,
        "readOnly": true,
        "resources": [{ "accountId": account, "type": SERVER.cloudtrail, "ARN": window.server_arn }],
        "eventType": "AwsServiceEvent",
        "managementEvent": false,
        "recipientAccountId": account,
        "eventCategory": "Data",
        "additionalEventData": {
            "activity-type": "AUTH_FAILURE",
            "resource-arn": window.server_arn,
            "count": window.count,
            "firstTime": at(window.first_ms),
            "lastTime": at(window.last_ms),
            "users": window.users,
            "peers": peers,
            "more": window.has_more,
        },
    });
    Ok(event.to_string().into_bytes())
}

fn event(
    connection: &Connection,
    activity: &str,
    read_only: bool,
    identity: Value,
    resources: Value,
    told: Map<String, Value>,
    now_ms: i64,
) -> Result<Vec<u8>, Fault> {
    let event = json!({
        "eventVersion": "1.11",
        "userIdentity": identity,
        "eventTime": rfc3339(now_ms.div_euclid(1000)),
        "eventSource": TRANSFER.model.event_source,
        "eventName": activity,
        "awsRegion": connection.scope.region,
        "sourceIPAddress": connection.source_ip.to_string(),
        "userAgent": quoted(&connection.client, 255),
        "requestParameters": null,
        "responseElements": null,
        "eventID": ids::event_id(now_ms)?,
        "readOnly": read_only,
        "resources": resources,
        "eventType": "AwsServiceEvent",
        "managementEvent": false,
        "recipientAccountId": connection.scope.account,
        "eventCategory": "Data",
        "additionalEventData": told,
    });
    Ok(event.to_string().into_bytes())
}
