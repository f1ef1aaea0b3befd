//! Proofs of the names of a certificate whose request names no CA: one CNAME record in DNS for each domain.
//!
//! The record of a domain depends on the account, the domain and a key of the store alone: every request for the domain
//! has the same one, a wildcard shares that of its domain, and no other account or store can use it.

use std::collections::BTreeSet;

use outlast_crypto::{Secret, hmac, random};
use serde::{Deserialize, Serialize};

use super::AcmError;
use crate::settings::PublicCertificates;
use crate::work::Work;
use crate::{Fault, limits};

/// Record key of the key from which the records follow; it is made with the first request.
const KEY: &str = "acm/validation-key";
/// Suffix of AWS's names that the records point to. They need not exist: the record itself is the proof.
const TARGET: &str = "acm-validations.aws";

/// `ValidationMethod`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Method {
    /// A CNAME record in DNS.
    #[serde(rename = "DNS")]
    Dns,
    /// An e-mail to the domain's owner. None is sent: only names that the operator has approved can have it.
    #[serde(rename = "EMAIL")]
    Email,
}

impl Method {
    /// Every method.
    pub const ALL: &[Self] = &[Self::Dns, Self::Email];

    /// AWS's spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "DNS",
            Self::Email => "EMAIL",
        }
    }
}

/// `ValidationStatus` of a name
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NameStatus {
    /// Its record was not found yet.
    #[serde(rename = "PENDING_VALIDATION")]
    Pending,
    /// Its record was found, or the operator has approved it.
    #[serde(rename = "SUCCESS")]
    Proved,
    /// Its record was not found in time.
    #[serde(rename = "FAILED")]
    Failed,
}

impl NameStatus {
    /// AWS's spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING_VALIDATION",
            Self::Proved => "SUCCESS",
            Self::Failed => "FAILED",
        }
    }
}

/// A name, and the record that proves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// The name, as requested.
    pub name: String,
    /// Name of the CNAME record, without a dot at its end.
    record_name: String,
    /// Where it must point, without a dot at its end.
    record_value: String,
    /// Status in the validation before the certificate was issued, or in that of the last renewal.
    pub status: NameStatus,
}

impl Name {
    /// Name and value of the CNAME record, as fully qualified names.
    pub fn resource_record(&self) -> (String, String) {
        (format!("{}.", self.record_name), format!("{}.", self.record_value))
    }
}

/// Why a certificate was not issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// The names were not proved in time.
    TimedOut,
    /// The CA has refused.
    Failed {
        /// `FailureReason`
        reason: String,
    },
}

/// The proofs of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Public {
    /// How the names are proved.
    pub method: Method,
    /// `DomainName` and the other names.
    pub names: Vec<Name>,
    /// When the validation began that is under way, or was last: milliseconds since 1970.
    since_ms: i64,
    /// Why the certificate was not issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

impl Public {
    /// The proofs of these names, none of which is there yet.
    pub(super) fn new(
        work: &mut Work<'_>,
        account: &str,
        method: Method,
        names: &[String],
    ) -> Result<Self, AcmError> {
        let key = key(work)?;
        let names = names.iter().map(|name| {
            let domain = name.strip_prefix("*.").unwrap_or(name).to_ascii_lowercase();
            let (record_name, record_value) = record(&key, account, &domain);
            if method == Method::Dns && record_name.len() > limits::MAX_DNS_NAME {
                return Err(AcmError::InvalidParameter(format!(
                    "{name} is too long to be validated by DNS."
                )));
            }
            let name = name.clone();
            Ok(Name { name, record_name, record_value, status: NameStatus::Pending })
        });
        let names = names.collect::<Result<_, _>>()?;
        Ok(Self { method, names, since_ms: work.now_ms(), ended: None })
    }

    /// Begins a validation at a time, milliseconds since 1970.
    pub(super) fn begin(&mut self, now_ms: i64) {
        self.since_ms = now_ms;
        self.names.iter_mut().for_each(|name| name.status = NameStatus::Pending);
    }

    /// Takes the names as proved that the operator has approved for the account.
    pub(super) fn approve(&mut self, settings: &PublicCertificates, account: &str) {
        for name in self.names.iter_mut().filter(|name| settings.approves(account, &name.name)) {
            name.status = NameStatus::Proved;
        }
    }

    /// Takes the names as proved whose record is that of the name with this number.
    pub(super) fn found(&mut self, number: usize) {
        let Some(record_name) = self.names.get(number).map(|name| name.record_name.clone()) else {
            return;
        };
        for name in self.names.iter_mut().filter(|name| name.record_name == record_name) {
            name.status = NameStatus::Proved;
        }
    }

    /// Gives up on the names that are not proved.
    pub(super) fn fail(&mut self) {
        for name in self.names.iter_mut().filter(|name| name.status == NameStatus::Pending) {
            name.status = NameStatus::Failed;
        }
    }

    /// Whether all names are proved.
    pub fn is_proved(&self) -> bool {
        self.names.iter().all(|name| name.status == NameStatus::Proved)
    }

    /// Whether the time for the proofs is over.
    pub fn is_late(&self, now_ms: i64) -> bool {
        self.under_way_ms(now_ms) >= limits::ACME_VALIDATION_MS
    }

    /// For how long the validation has been under way, in milliseconds.
    pub(super) fn under_way_ms(&self, now_ms: i64) -> i64 {
        now_ms - self.since_ms
    }

    /// Numbers of names with different records, one for each record.
    pub(super) fn lookups(&self) -> Vec<usize> {
        let mut known = BTreeSet::new();
        let names = self.names.iter().enumerate();
        names
            .filter(|(_, name)| known.insert(&name.record_name))
            .map(|(number, _)| number)
            .collect()
    }

    /// Name and value of the CNAME record of the name with this number, if it is not proved yet.
    pub(super) fn wanted(&self, number: usize) -> Option<(String, String)> {
        let name = self.names.get(number).filter(|name| name.status == NameStatus::Pending)?;
        Some((name.record_name.clone(), name.record_value.clone()))
    }
}

fn key(work: &mut Work<'_>) -> Result<Secret, Fault> {
    if let Some(key) = work.secret(KEY)? {
        return Ok(key);
    }
    let key = random::secret(32)?;
    work.put_secret(KEY, &key)?;
    Ok(key)
}

/// Name and value of a domain's record, in AWS's form.
fn record(key: &Secret, account: &str, domain: &str) -> (String, String) {
    let name = hmac::sha256(key.expose(), format!("name/{account}/{domain}").as_bytes());
    let value = hmac::sha256(key.expose(), format!("value/{account}/{domain}").as_bytes());
    let (digits, rest) = value.split_at(16);
    let letters: String = rest.iter().take(10).map(|byte| char::from(b'a' + byte % 26)).collect();
    (
        format!("_{}.{domain}", hex::encode(&name[..16])),
        format!("_{}.{letters}.{TARGET}", hex::encode(digits)),
    )
}
