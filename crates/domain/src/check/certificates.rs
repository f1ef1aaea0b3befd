//! Whether Certificate Manager's records fit together.

use std::collections::{BTreeMap, BTreeSet};

use outlast_crypto::Secret;
use outlast_pki::certificate::Certificate;
use serde_json::Value;

use super::trial::try_out;
use crate::acm::certificate::{Origin, Record};
use crate::acm::details::requestable;

/// Records that go with a certificate, which is filed as they are.
const COMPANIONS: &[(&str, &str)] = &[
    ("acm/renewal/", "there is no certificate that is to be renewed"),
    ("acm/ended/", "there is no certificate that is to be forgotten"),
];

/// What is remembered of Certificate Manager's records.
#[derive(Default)]
pub(super) struct Certificates {
    /// By account, region and id.
    records: BTreeMap<String, Record>,
    /// Serial number and public key of the texts.
    texts: BTreeMap<String, Option<(String, Vec<u8>)>>,
    /// By account, region, id of the certificate and id of the key.
    keys: BTreeMap<String, Option<Vec<u8>>>,
    companions: BTreeSet<(&'static str, String)>,
    /// By account, region and id of the CA, and serial number: account, region and id of the certificate.
    serials: BTreeMap<String, String>,
    problems: Vec<(String, String)>,
}

impl Certificates {
    /// Looks at a plain record; `false` if it is none of these.
    pub(super) fn record(&mut self, place: &str, value: &Value) -> bool {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        if let Some(rest) = place.strip_prefix("acm/certificate/") {
            match serde_json::from_value::<Record>(value.clone()) {
                Ok(record) => {
                    self.records.insert(rest.to_owned(), record);
                }
                Err(_) => self.problem(place, "the certificate's record cannot be read"),
            }
        } else if let Some(rest) = place.strip_prefix("acm/text/") {
            let read = text("certificate")
                .and_then(|pem| Certificate::parse_one(pem.as_bytes()).ok())
                .and_then(|found| Some((hex::encode(found.serial()), found.public_key().ok()?)));
            if read.is_none() {
                self.problem(place, "the certificate cannot be read");
            }
            self.texts.insert(rest.to_owned(), read);
        } else if let Some(rest) = place.strip_prefix("acm/serial/") {
            match (text("account"), text("region"), text("id")) {
                (Some(account), Some(region), Some(id)) => {
                    self.serials.insert(rest.to_owned(), format!("{account}/{region}/{id}"));
                }
                _ => self.problem(place, "it does not say which certificate it is for"),
            }
        } else if let Some((prefix, _)) = COMPANIONS.iter().find(|row| place.starts_with(row.0)) {
            self.companions.insert((*prefix, place[prefix.len()..].to_owned()));
        } else {
            return false;
        }
        true
    }

    /// Tries a secret out; `false` if it is none of these. The certificate's record comes before in the order of keys.
    pub(super) fn secret(&mut self, place: &str, secret: &Secret) -> bool {
        let Some(rest) = place.strip_prefix("acm/material/") else { return false };
        let (owner, id) = rest.rsplit_once('/').unwrap_or_default();
        let Some(record) = self.records.get(owner) else {
            self.problem(place, "there is no certificate that this key belongs to");
            return true;
        };
        let listed = record.material.as_deref() == Some(id);
        let outcome = requestable(&record.details.key_algorithm)
            .ok_or("the certificate has no known key type")
            .and_then(|spec| try_out(spec, secret));
        let public_key = match outcome {
            Ok(key) => key.public_key().map(<[u8]>::to_vec),
            Err(what) => {
                self.problem(place, what);
                None
            }
        };
        if !listed {
            self.problem(place, "the certificate does not list this key");
        }
        self.keys.insert(rest.to_owned(), public_key);
        true
    }

    /// What can be said only when all records have been seen.
    pub(super) fn end(&mut self) -> Vec<(String, String)> {
        let mut found = std::mem::take(&mut self.problems);
        let mut problem = |place: String, what: &str| found.push((place, what.to_owned()));
        for (rest, record) in &self.records {
            let place = format!("acm/certificate/{rest}");
            let text = self.texts.get(rest);
            let Some(text) = text else {
                problem(place, "its text is missing");
                continue;
            };
            if text.as_ref().is_some_and(|(serial, _)| *serial != record.details.serial) {
                problem(place.clone(), "its text is another certificate's");
            }
            match &record.material {
                None if record.origin != Origin::Acme => {
                    problem(place.clone(), "its private key is missing");
                }
                None => {}
                Some(id) => match (self.keys.get(&format!("{rest}/{id}")), text) {
                    (None, _) => problem(place.clone(), "its private key is missing"),
                    (Some(Some(key)), Some((_, public_key))) if key != public_key => {
                        problem(place.clone(), "its private key is another certificate's");
                    }
                    _ => {}
                },
            }
            if let Some(authority) = &record.authority {
                let filed =
                    crate::acm::certificate::serial_place(authority, &record.details.serial);
                let filed = filed.trim_start_matches("acm/serial/");
                if self.serials.get(filed) != Some(rest) {
                    problem(place, "it is not found by its serial number");
                }
            }
        }
        for rest in self.texts.keys().filter(|rest| !self.records.contains_key(*rest)) {
            problem(format!("acm/text/{rest}"), "there is no certificate with this text");
        }
        for (rest, owner) in &self.serials {
            if !self.records.contains_key(owner) {
                problem(format!("acm/serial/{rest}"), "there is no certificate with this number");
            }
        }
        for (prefix, rest) in &self.companions {
            if !self.records.contains_key(rest) {
                let what = COMPANIONS.iter().find(|row| row.0 == *prefix).map_or("", |row| row.1);
                problem(format!("{prefix}{rest}"), what);
            }
        }
        found
    }

    fn problem(&mut self, place: &str, what: &str) {
        self.problems.push((place.to_owned(), what.to_owned()));
    }
}
