//! Fields that all records have.

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::event::End;

/// The fields of a record, in order: the columns of CSV. Records of SSH have these, too, and [`super::SSH_FIELDS`] in JSON.
pub const FIELDS: &[&str] = &[
    "time",
    "process",
    "connection",
    "listener",
    "address",
    "principal",
    "verdict",
    "outcome",
    "reason",
    "policy",
    "mode",
    "version",
    "suite",
    "group",
    "postQuantum",
    "helloRetryRequest",
    "resumed",
    "signatureScheme",
    "certificate",
    "clientCertificate",
    "serverName",
    "transport",
    "software",
    "ja4",
    "offeredVersions",
    "offeredGroups",
    "keyShares",
    "offeredSuites",
    "offeredSchemes",
    "offeredCertificateSchemes",
    "protocols",
    "extensions",
    "handshakeMicros",
    "end",
    "received",
    "sent",
];

/// What a record has of the connection's end.
pub(super) fn of_end(field: &str, end: Option<&End>) -> Value {
    match field {
        "principal" => json!(end.and_then(|end| end.principal.as_deref())),
        "end" => end.map_or(Value::Null, |end| rfc3339(end.time_ms)),
        "received" => json!(end.map(|end| end.received)),
        "sent" => json!(end.map(|end| end.sent)),
        _ => Value::Null,
    }
}

pub(super) fn rfc3339(time_ms: i64) -> Value {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(time_ms) * 1_000_000)
        .ok()
        .and_then(|time| time.format(&Rfc3339).ok())
        .map_or(Value::Null, Value::String)
}
