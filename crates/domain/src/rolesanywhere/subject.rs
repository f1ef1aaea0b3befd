//! Subjects: the names of those who have authenticated, when, and with which certificates.

use std::collections::BTreeMap;

use outlast_crypto::digests;
use outlast_pki::certificate::Certificate;
use outlast_pki::{name, pem};
use serde::{Deserialize, Serialize};

use super::tag_set::Tags;
use super::{RolesAnywhereError, SUBJECT};
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::work::{Page, Work};
use crate::{Fault, ids, limits, quotas};

/// A subject as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    id: String,
    x509_subject: String,
    created_ms: i64,
    updated_ms: i64,
    last_seen_ms: i64,
    pub(super) tags: BTreeMap<String, String>,
    /// The certificates that it has shown last, the last one first.
    credentials: Vec<Seen>,
    /// What it has said about its instances last, the last one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    instances: Vec<Instance>,
}

/// A certificate that was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// When it was shown last, milliseconds since 1970.
    pub seen_ms: i64,
    /// Serial number, decimal.
    pub serial_number: String,
    /// Issuer (RFC 4514).
    pub issuer: String,
    /// The certificate in PEM.
    pub certificate: String,
    /// Whether the last request with it was refused.
    pub failed: bool,
}

/// Properties of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// When they were given, milliseconds since 1970.
    pub seen_ms: i64,
    /// The properties.
    pub properties: BTreeMap<String, String>,
    /// Whether the request was refused.
    pub failed: bool,
}

/// A subject that was found.
#[derive(Debug, Clone)]
pub struct Subject {
    scope: Scope,
    pub(super) record: Record,
}

impl Subject {
    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Id, a UUID.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// ARN.
    pub fn arn(&self) -> String {
        SUBJECT.arn(&self.scope, &self.record.id)
    }

    /// The name (RFC 4514).
    pub fn x509_subject(&self) -> &str {
        &self.record.x509_subject
    }

    /// First authentication, milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.record.created_ms
    }

    /// Milliseconds since 1970.
    pub fn updated_ms(&self) -> i64 {
        self.record.updated_ms
    }

    /// Last authentication, milliseconds since 1970.
    pub fn last_seen_ms(&self) -> i64 {
        self.record.last_seen_ms
    }

    /// Tags.
    pub fn tags(&self) -> &Tags {
        &self.record.tags
    }

    /// The certificates that it has shown last.
    pub fn credentials(&self) -> &[Seen] {
        &self.record.credentials
    }

    /// What it has said about its instances last.
    pub fn instances(&self) -> &[Instance] {
        &self.record.instances
    }
}

/// The id of the subject of a certificate: one name has one id in an account and a Region.
pub(super) fn id_of(certificate: &Certificate) -> Result<String, Fault> {
    let digest = digests::sha256(&name::to_der(certificate.subject())?);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    // RFC 9562, section 5.8: version 8, for ids that are made in a way of one's own.
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Ok(ids::uuid_text(bytes))
}

/// Notes that a certificate has authenticated, and the outcome of its request.
pub(super) fn saw(
    work: &mut Work<'_>,
    scope: &Scope,
    certificate: &Certificate,
    properties: Option<&BTreeMap<String, String>>,
    failed: bool,
) -> Result<(), RolesAnywhereError> {
    let id = id_of(certificate)?;
    let record_key = SUBJECT.record_key(scope, &id);
    let now_ms = work.now_ms();
    let found = work.get::<Record>(&record_key)?;
    if found.is_none() {
        work.admit::<RolesAnywhereError>(&quotas::SUBJECTS, &[&scope.account, &scope.region])?;
    }
    let mut record = found.unwrap_or_else(|| Record {
        id,
        x509_subject: certificate.subject().to_string(),
        created_ms: now_ms,
        updated_ms: now_ms,
        last_seen_ms: now_ms,
        tags: BTreeMap::new(),
        credentials: Vec::new(),
        instances: Vec::new(),
    });
    record.last_seen_ms = now_ms;
    record.updated_ms = now_ms;
    let seen = Seen {
        seen_ms: now_ms,
        serial_number: decimal(certificate.serial()),
        issuer: certificate.issuer().to_string(),
        certificate: pem::certificate(certificate.der()),
        failed,
    };
    record.credentials.retain(|known| known.certificate != seen.certificate);
    record.credentials.insert(0, seen);
    record.credentials.truncate(limits::MAX_SUBJECT_CREDENTIALS);
    if let Some(properties) = properties {
        record.instances.retain(|known| known.properties != *properties);
        let instance = Instance { seen_ms: now_ms, properties: properties.clone(), failed };
        record.instances.insert(0, instance);
        record.instances.truncate(limits::MAX_SUBJECT_CREDENTIALS);
    }
    Ok(work.put(&record_key, &record)?)
}

/// Finds a subject by its id or ARN.
pub fn find_subject(
    work: &mut Work<'_>,
    scope: &Scope,
    text: &str,
) -> Result<Subject, RolesAnywhereError> {
    let id = SUBJECT.id_of(work, scope, text)?;
    let record = work.get::<Record>(&SUBJECT.record_key(scope, &id))?;
    let record = record.ok_or_else(|| SUBJECT.missing(text))?;
    Ok(Subject { scope: scope.clone(), record })
}

/// Lists subjects, after the marker of the previous page.
pub fn subjects(
    work: &Work<'_>,
    scope: &Scope,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::rolesanywhere::ListSubjects>,
) -> Result<Page<Subject>, RolesAnywhereError> {
    permit.opens(&SUBJECT.arn(scope, "*"))?;
    let page = work.page::<Record>(&SUBJECT.prefix(scope), marker, limit)?;
    let of = |record| Subject { scope: scope.clone(), record };
    Ok(Page { items: page.items.into_iter().map(of).collect(), next: page.next })
}

/// Writes a subject that was changed.
pub(super) fn save(work: &mut Work<'_>, subject: &mut Subject) -> Result<(), Fault> {
    subject.record.updated_ms = work.now_ms();
    work.put(&SUBJECT.record_key(&subject.scope, &subject.record.id), &subject.record)
}

/// A number, big-endian, in decimal.
pub fn decimal(bytes: &[u8]) -> String {
    // Digits from the last one on.
    let mut digits = vec![0u8];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            let value = u32::from(*digit) * 256 + carry;
            *digit = u8::try_from(value % 10).unwrap_or_default();
            carry = value / 10;
        }
        while carry > 0 {
            digits.push(u8::try_from(carry % 10).unwrap_or_default());
            carry /= 10;
        }
    }
    digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_written_in_decimal(number: u128) {
            prop_assert_eq!(decimal(&number.to_be_bytes()), number.to_string());
        }
    }

    #[test]
    fn nothing_is_zero() {
        assert_eq!(decimal(&[]), "0");
        assert_eq!(decimal(&[0, 0, 1, 0]), "256");
    }
}
