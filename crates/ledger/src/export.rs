//! The ledger for other programs: one record per connection, with names instead of code points.

mod fields;
mod ssh;

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};

pub use self::fields::FIELDS;
use self::fields::{of_end, rfc3339};
pub use self::ssh::FIELDS as SSH_FIELDS;
use crate::event::{End, Handshake, Outcome, SshHandshake, SshOutcome};
use crate::known::{self, group_name, scheme_name, suite_name, version_name};
use crate::line::Line;
use crate::tally::Filter;
use crate::verdict::Verdict;

/// Connections that are kept until their end is read; those beyond are exported without it.
const MAX_OPEN: usize = 50_000;

/// Joins handshakes and ends to records.
pub struct Exporter {
    filter: Filter,
    process: String,
    open: HashMap<u64, Begun>,
}

impl Exporter {
    /// Exports the handshakes that pass the filter.
    pub fn new(filter: Filter) -> Self {
        Self { filter, process: String::new(), open: HashMap::new() }
    }

    /// Adds a line, and returns the records that it completes. Lines come process by process.
    pub fn add(&mut self, line: Line) -> Vec<Map<String, Value>> {
        match line {
            Line::Open { process, .. } if process != self.process => {
                let records = self.finish();
                self.process = process;
                records
            }
            Line::Handshake(handshake)
                if self.filter.takes(handshake.time_ms, &handshake.listener) =>
            {
                let waits = matches!(handshake.outcome, Outcome::Served(_));
                self.begin(Begun::Tls(handshake), waits)
            }
            Line::Ssh(handshake) if self.filter.takes(handshake.time_ms, &handshake.listener) => {
                let waits = matches!(handshake.outcome, SshOutcome::Served(_));
                self.begin(Begun::Ssh(handshake), waits)
            }
            Line::End(end) => {
                let begun = self.open.remove(&end.connection);
                begun.iter().map(|begun| begun.record(&self.process, Some(&end))).collect()
            }
            Line::Open { .. } | Line::Handshake(_) | Line::Ssh(_) | Line::Dropped { .. } => {
                Vec::new()
            }
        }
    }

    /// Keeps a connection that waits for its end, if there is room.
    fn begin(&mut self, begun: Begun, waits: bool) -> Vec<Map<String, Value>> {
        if !waits || self.open.len() >= MAX_OPEN {
            return vec![begun.record(&self.process, None)];
        }
        let before = self.open.insert(begun.key().1, begun);
        before.iter().map(|before| before.record(&self.process, None)).collect()
    }

    /// The records of connections without an end.
    pub fn finish(&mut self) -> Vec<Map<String, Value>> {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_by_key(Begun::key);
        open.iter().map(|begun| begun.record(&self.process, None)).collect()
    }
}

/// A connection whose end has not been read.
enum Begun {
    Tls(Box<Handshake>),
    Ssh(Box<SshHandshake>),
}

impl Begun {
    /// When its handshake ended, and its number.
    fn key(&self) -> (i64, u64) {
        match self {
            Self::Tls(handshake) => (handshake.time_ms, handshake.connection),
            Self::Ssh(handshake) => (handshake.time_ms, handshake.connection),
        }
    }

    fn record(&self, process: &str, end: Option<&End>) -> Map<String, Value> {
        match self {
            Self::Tls(handshake) => record(process, handshake, end),
            Self::Ssh(handshake) => ssh::record(process, handshake, end),
        }
    }
}

fn record(process: &str, handshake: &Handshake, end: Option<&End>) -> Map<String, Value> {
    let (outcome, reason) = match &handshake.outcome {
        Outcome::Served(_) => ("served", None),
        Outcome::Refused(refusal) => ("refused", Some(refusal.to_string())),
        Outcome::Failed(reason) => ("failed", Some(reason.clone())),
    };
    let served = match &handshake.outcome {
        Outcome::Served(served) => Some(served),
        Outcome::Refused(_) | Outcome::Failed(_) => None,
    };
    let offer = handshake.offer.as_ref();
    let names = |values: Option<&[u16]>, name: fn(u16) -> String| {
        values.map(|values| values.iter().map(|code| name(*code)).collect::<Vec<_>>())
    };
    let hex: fn(u16) -> String = |code| format!("0x{code:04x}");
    let value = |field: &str| match field {
        "time" => rfc3339(handshake.time_ms),
        "process" => json!(process),
        "connection" => json!(handshake.connection),
        "listener" => json!(handshake.listener),
        "address" => json!(handshake.peer.map(|peer| peer.to_string())),
        "verdict" => json!(Verdict::of(handshake)),
        "outcome" => json!(outcome),
        "reason" => json!(reason),
        "policy" => json!(handshake.policy),
        "mode" => json!(handshake.mode),
        "version" => json!(served.map(|served| &served.version)),
        "suite" => json!(served.map(|served| &served.suite)),
        "group" => json!(served.and_then(|served| served.group.as_ref())),
        "postQuantum" => json!(served.map(|served| served.post_quantum)),
        "helloRetryRequest" => json!(served.map(|served| served.hello_retry)),
        "resumed" => json!(served.map(|served| served.resumed)),
        "signatureScheme" => json!(served.and_then(|served| served.scheme.as_ref())),
        "certificate" => json!(served.and_then(|served| served.certificate.as_ref())),
        "clientCertificate" => json!(served.and_then(|served| served.client.as_ref())),
        "serverName" => json!(offer.and_then(|offer| offer.sni.as_ref())),
        "transport" => json!(offer.map(|offer| offer.transport)),
        "software" => json!(offer.and_then(known::software).map(|software| software.name)),
        "ja4" => json!(handshake.ja4),
        "offeredVersions" => {
            json!(names(offer.map(|offer| offer.versions.as_slice()), version_name))
        }
        "offeredGroups" => json!(names(offer.map(|offer| offer.groups.as_slice()), group_name)),
        "keyShares" => {
            json!(names(offer.and_then(|offer| offer.shares.as_deref()), group_name))
        }
        "offeredSuites" => json!(names(offer.map(|offer| offer.suites.as_slice()), suite_name)),
        "offeredSchemes" => json!(names(offer.map(|offer| offer.schemes.as_slice()), scheme_name)),
        "offeredCertificateSchemes" => {
            json!(names(offer.and_then(|offer| offer.certificate_schemes.as_deref()), scheme_name))
        }
        "protocols" => json!(offer.map(|offer| &offer.protocols)),
        "extensions" => json!(names(offer.map(|offer| offer.extensions.as_slice()), hex)),
        "handshakeMicros" => json!(handshake.micros),
        field => of_end(field, end),
    };
    FIELDS.iter().map(|field| ((*field).to_owned(), value(field))).collect()
}

/// A record as a line of CSV (RFC 4180), without line end; lists are joined by colons.
///
/// Clients choose some of the texts, and spreadsheets may take them for formulas: such texts get an apostrophe in
/// front.
pub fn csv(record: &Map<String, Value>) -> String {
    let mut out = String::new();
    for (index, field) in FIELDS.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let text = match record.get(*field) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(values)) => {
                values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(":")
            }
            Some(other) => other.to_string(),
        };
        let formula = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
        if text.contains([',', '"', '\n', '\r']) {
            let _ = write!(out, "\"{formula}{}\"", text.replace('"', "\"\""));
        } else {
            let _ = write!(out, "{formula}{text}");
        }
    }
    out
}
