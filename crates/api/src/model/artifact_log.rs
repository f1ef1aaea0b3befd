//! What the operations of the artifact log share.

use outlast_domain::Fault;
use outlast_domain::artifacts::{self, Log, LogEntry};
use outlast_domain::audit::{self, LogKey};
use outlast_domain::identity::Permit;
use outlast_domain::identity::action::{Action, outlast};
use outlast_domain::kms::{Key, KmsError};
use outlast_pki::cms::verify::SignedMessage;
use outlast_tlog::{SignedCheckpoint, policy};
use serde::Deserialize;

use crate::aws::outlast::{KeySignature, NewLogEntry};
use crate::call::Call;
use crate::wire::{ApiError, Timestamp, validate};

/// Events that one call searches, at most.
const SEARCHED: usize = 4096;

/// Authorizes `action` on the log, and notes the log for the audit record; returns its ARN, too.
pub fn authorize<A: Action>(
    call: &mut Call<'_>,
    action: A,
) -> Result<(String, Permit<A>), ApiError> {
    let account = call.scope.account.clone();
    let arn = artifacts::arn(&mut call.work, &account).map_err(internal)?;
    call.notes.resource(arn.clone(), "Outlast::ArtifactLog");
    let permit = call.authorize(action, &arn)?;
    Ok((arn, permit))
}

/// A failure of ours, with KMS's name.
pub fn internal(fault: Fault) -> ApiError {
    KmsError::from(fault).into()
}

/// The log, once it has begun.
pub fn log(call: &mut Call<'_>) -> Result<Log, ApiError> {
    let found = artifacts::read(&mut call.work).map_err(internal)?;
    found.ok_or_else(|| ApiError::new("NotFoundException", "The artifact log has no entry yet."))
}

/// The entry of what a caller sends: its signatures must be those of their certificates, or the log would hold what
/// nobody has signed.
pub fn entry(new: &NewLogEntry, time: i64) -> Result<LogEntry, ApiError> {
    let refused = |reason: &dyn std::fmt::Display| {
        ApiError::new("InvalidLogEntryException", format!("The entry was refused: {reason}"))
    };
    let mut messages = Vec::with_capacity(new.messages.len());
    for message in &new.messages {
        let message = SignedMessage::parse(&message.0).map_err(|error| refused(&error))?;
        message.authenticate_alone().map_err(|error| refused(&error))?;
        messages.push(message);
    }
    LogEntry::new(&messages, new.file_name.as_deref(), time).map_err(|error| refused(&error))
}

/// The policy that verifiers of this log need (C2SP tlog-policy).
pub fn policy_text(call: &Call<'_>, key: &LogKey) -> String {
    let [ml_dsa_44, _] = key.verifiers();
    let settings = &call.settings.artifact_log;
    policy::text(&ml_dsa_44, &settings.witnesses, settings.quorum)
}

/// Whether as many witnesses have cosigned a head as verifiers must see.
pub fn is_cosigned(call: &Call<'_>, head: &SignedCheckpoint) -> bool {
    let settings = &call.settings.artifact_log;
    let keys: Vec<_> = settings.witnesses.iter().map(|(key, _)| key.clone()).collect();
    let names: std::collections::BTreeSet<_> = match head.note().verify(&keys) {
        Ok(verified) => verified.iter().map(|by| by.key.name().to_owned()).collect(),
        Err(_) => std::collections::BTreeSet::new(),
    };
    names.len() >= settings.quorum
}

/// The signatures that a key has made, from the audit trail.
pub struct Found {
    /// The signatures.
    pub signatures: Vec<KeySignature>,
    /// Index of the first event that was not pruned.
    pub first: u64,
    /// Index of the first event that was not searched.
    pub next: u64,
    /// Number of events.
    pub end: u64,
}

/// The members of an event that tell about a signature.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignEvent {
    #[serde(rename = "eventID")]
    event_id: String,
    event_time: String,
    event_source: String,
    event_name: String,
    error_code: Option<String>,
    #[serde(rename = "sourceIPAddress", default)]
    source_ip_address: String,
    user_identity: UserIdentity,
    #[serde(default)]
    request_parameters: Option<Parameters>,
    #[serde(default)]
    additional_event_data: Option<Additional>,
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UserIdentity {
    #[serde(default)]
    arn: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parameters {
    #[serde(default)]
    signing_algorithm: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Additional {
    signature_sha256: Option<String>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(rename = "ARN", default)]
    arn: String,
}

/// Searches some events from `from` on for signatures of a key, up to `most` of them.
pub fn signatures(
    call: &Call<'_>,
    key: &Key,
    from: u64,
    most: usize,
    permit: &Permit<outlast::ListKeySignatures>,
) -> Result<Found, ApiError> {
    let arn = artifacts::signatures_arn(key);
    let found =
        audit::serve::events_of(&call.work, &arn, from, SEARCHED, permit).map_err(internal)?;
    let (first, end) = (found.first, found.end);
    let (mut signatures, mut next) = (Vec::new(), from.max(first).min(end));
    for event in &found.events {
        if signatures.len() == most {
            break;
        }
        next = event.sequence;
        signatures.extend(signature(&event.body, event.sequence - 1, &key.arn()));
    }
    Ok(Found { signatures, first, next, end })
}

fn signature(body: &[u8], index: u64, key_arn: &str) -> Option<KeySignature> {
    // Most events are of other operations; these need not be parsed.
    let has = |text: &[u8]| body.windows(text.len()).any(|window| window == text);
    if !has(b"\"eventName\":\"Sign\"") {
        return None;
    }
    let event: SignEvent = serde_json::from_slice(body).ok()?;
    let is_it = event.event_source == "kms.amazonaws.com"
        && event.event_name == "Sign"
        && event.error_code.is_none()
        && event.resources.iter().any(|resource| resource.arn == key_arn);
    let at = outlast_pki::time::from_rfc3339(&event.event_time).filter(|_| is_it)?;
    Some(KeySignature {
        event_index: i64::try_from(index).ok()?,
        event_id: event.event_id,
        event_time: Timestamp::from_ms(at * 1000),
        signature_sha256: event.additional_event_data.and_then(|data| data.signature_sha256),
        signing_algorithm: event.request_parameters.map(|said| said.signing_algorithm),
        principal_arn: event.user_identity.arn,
        source_ip_address: event.source_ip_address,
    })
}

/// A number of a request that counts from 0; the model allows no other.
pub fn index(value: Option<i64>) -> Result<u64, ApiError> {
    let value = value.unwrap_or(0);
    u64::try_from(value).map_err(|_| {
        let shown = validate::shorten(&value.to_string());
        ApiError::validation(format!("{shown} is not an index."))
    })
}

/// A number of an answer.
pub fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
