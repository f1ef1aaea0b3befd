//! Checks that Certificate Manager's records match.

use std::collections::BTreeMap;

use outlast_crypto::Secret;
use outlast_pki::certificate::Certificate;
use serde_json::Value;

use super::trial::try_out;
use crate::acm::certificate::{Origin, Record, serial_record_key};
use crate::acm::details::requestable;

/// Serial number and public key of a certificate.
type Half = (String, Vec<u8>);

/// What the check remembers of Certificate Manager's records.
#[derive(Default)]
pub(super) struct Certificates {
    /// By account, region and id.
    records: BTreeMap<String, Record>,
    /// Serial number and public key of the texts, and of their partners.
    texts: BTreeMap<String, (Option<Half>, Option<Half>)>,
    /// By account, region, id of the certificate and id of the key.
    keys: BTreeMap<String, Option<Vec<u8>>>,
    /// By account, region and id of the CA, and serial number: account, region and id of the certificate.
    serials: BTreeMap<String, String>,
    problems: Vec<(String, String)>,
}

impl Certificates {
    /// Checks a plain record; `false` if it is none of these.
    pub(super) fn record(&mut self, record_key: &str, value: &Value) -> bool {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        if let Some(rest) = record_key.strip_prefix("acm/certificate/") {
            match serde_json::from_value::<Record>(value.clone()) {
                Ok(record) => {
                    self.records.insert(rest.to_owned(), record);
                }
                Err(_) => self.problem(record_key, "the certificate's record cannot be read"),
            }
        } else if let Some(rest) = record_key.strip_prefix("acm/text/") {
            let read = |value: &Value| {
                let pem = value.get("certificate").and_then(Value::as_str)?;
                let found = Certificate::parse_one(pem.as_bytes()).ok()?;
                Some((hex::encode(found.serial()), found.public_key().ok()?))
            };
            let (own, paired) = (read(value), value.get("paired"));
            if own.is_none() || paired.is_some_and(|paired| read(paired).is_none()) {
                self.problem(record_key, "the certificate cannot be read");
            }
            self.texts.insert(rest.to_owned(), (own, paired.and_then(read)));
        } else if let Some(rest) = record_key.strip_prefix("acm/serial/") {
            match (text("account"), text("region"), text("id")) {
                (Some(account), Some(region), Some(id)) => {
                    self.serials.insert(rest.to_owned(), format!("{account}/{region}/{id}"));
                }
                _ => self.problem(record_key, "it does not say which certificate it is for"),
            }
        } else {
            return false;
        }
        true
    }

    /// Tries a secret out; `false` if it is none of these. The certificate's record comes before it in the order of
    /// keys.
    pub(super) fn secret(&mut self, record_key: &str, secret: &Secret) -> bool {
        let Some(rest) = record_key.strip_prefix("acm/material/") else { return false };
        let (owner, id) = rest.rsplit_once('/').unwrap_or_default();
        let Some(record) = self.records.get(owner) else {
            self.problem(record_key, "the certificate that this key belongs to is missing");
            return true;
        };
        let paired = record.paired.as_ref().filter(|paired| paired.material == id);
        let listed = record.material.as_deref() == Some(id) || paired.is_some();
        let details = paired.map_or(&record.details, |paired| &paired.details);
        let outcome = requestable(&details.key_algorithm)
            .ok_or("the certificate has no known key type")
            .and_then(|spec| try_out(spec, secret));
        let public_key = match outcome {
            Ok(key) => key.public_key().map(<[u8]>::to_vec),
            Err(what) => {
                self.problem(record_key, what);
                None
            }
        };
        if !listed {
            self.problem(record_key, "the certificate does not list this key");
        }
        self.keys.insert(rest.to_owned(), public_key);
        true
    }

    /// Checks that need all records.
    pub(super) fn end(&mut self) -> Vec<(String, String)> {
        let mut found = std::mem::take(&mut self.problems);
        let mut problem =
            |record_key: String, what: &str| found.push((record_key, what.to_owned()));
        for (rest, record) in &self.records {
            if !record.is_issued() {
                continue;
            }
            let record_key = format!("acm/certificate/{rest}");
            let Some((text, paired_text)) = self.texts.get(rest) else {
                problem(record_key, "its text is missing");
                continue;
            };
            let own = record.authority.as_ref();
            let mut halves = vec![(own, record.material.as_ref(), &record.details, text)];
            if record.paired.is_some() && paired_text.is_none() {
                problem(record_key.clone(), "the text of its paired certificate is missing");
            }
            if let Some(paired) = &record.paired {
                let (authority, material) = (Some(&paired.authority), Some(&paired.material));
                halves.push((authority, material, &paired.details, paired_text));
            }
            for (authority, material, details, text) in halves {
                if text.as_ref().is_some_and(|(serial, _)| *serial != details.serial) {
                    problem(record_key.clone(), "its text is another certificate's");
                }
                match material.map(|id| self.keys.get(&format!("{rest}/{id}"))) {
                    None if record.origin == Origin::Acme => {}
                    None | Some(None) => problem(record_key.clone(), "its private key is missing"),
                    Some(Some(key)) => {
                        let pair = key.as_ref().zip(text.as_ref());
                        if pair.is_some_and(|(key, (_, public_key))| key != public_key) {
                            problem(record_key.clone(), "its private key is another certificate's");
                        }
                    }
                }
                let filed = authority.map(|arn| serial_record_key(arn, &details.serial));
                let filed =
                    filed.as_ref().map(|record_key| record_key.trim_start_matches("acm/serial/"));
                if filed.is_some_and(|filed| self.serials.get(filed) != Some(rest)) {
                    problem(record_key.clone(), "the index of serial numbers does not lead to it");
                }
            }
        }
        for rest in self.texts.keys().filter(|rest| !self.records.contains_key(*rest)) {
            problem(format!("acm/text/{rest}"), "the certificate with this text is missing");
        }
        for (rest, owner) in &self.serials {
            if !self.records.contains_key(owner) {
                problem(
                    format!("acm/serial/{rest}"),
                    "the certificate with this serial number is missing",
                );
            }
        }
        found
    }

    fn problem(&mut self, record_key: &str, what: &str) {
        self.problems.push((record_key.to_owned(), what.to_owned()));
    }
}
