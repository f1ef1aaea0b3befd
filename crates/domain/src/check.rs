//! A look at the whole store: whether everything opens, fits together and works. Changes nothing.
//!
//! Looks at records as they are, not through the operations that use them: those stop at the first fault,
//! and this is to find them all.

use std::collections::{BTreeMap, BTreeSet};

use outlast_crypto::Secret;
use outlast_crypto::keys::{KEY_SPECS, Key, KeySpec, KeyUsage};
use outlast_crypto::signatures::Message;
use outlast_pki::certificate::Certificate;
use outlast_pki::csr::CertificateRequest;
use outlast_store::{Event, Item, Store, chain};
use serde::Serialize;
use serde_json::Value;

use crate::Fault;
use crate::seal::{self, RootKey};

/// Problems that are kept at most; all are counted.
const MAX_PROBLEMS: usize = 1000;
/// Records below these must be sealed.
const SECRETS: &[&str] =
    &["ca/material/", "iam/access-key-secret/", "kms/material/", "meta/canary", "tls/key/"];

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The record, or the event as `event/number`.
    pub place: String,
    /// What is wrong with it.
    pub what: String,
}

/// What was found.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Report {
    /// Records looked at.
    pub records: u64,
    /// Sealed records that open.
    pub opened: u64,
    /// KMS keys.
    pub keys: u64,
    /// Aliases of KMS keys.
    pub aliases: u64,
    /// Certificate authorities.
    pub authorities: u64,
    /// Audit events.
    pub events: u64,
    /// How many problems there are.
    pub problem_count: u64,
    /// The first of them.
    pub problems: Vec<Problem>,
}

/// Looks at everything as of one point in time; tells `progress` from time to time.
pub fn check(
    store: &dyn Store,
    root: &RootKey,
    progress: &mut dyn FnMut(&Report),
) -> Result<Report, Fault> {
    let mut look = Look::new(store, root);
    store.snapshot(&mut |item| {
        match item {
            Item::Record(key, record) => look.record(&key, &record.value),
            Item::Event(event) => look.event(&event),
        }
        if (look.report.records + look.report.events).is_multiple_of(256) {
            progress(&look.report);
        }
        Ok(())
    })?;
    look.relations();
    Ok(look.report)
}

/// What must be remembered of the records, to see whether they fit together.
struct Look<'a> {
    store: &'a dyn Store,
    root: &'a RootKey,
    report: Report,
    /// KMS keys: type, and the place of the current material.
    keys: BTreeMap<String, (&'static KeySpec, Option<String>)>,
    /// Authorities and TLS certificates: type of the key if it is known, and public key.
    public_keys: BTreeMap<String, (Option<&'static KeySpec>, Option<Vec<u8>>)>,
    /// Places of secrets.
    secrets: BTreeSet<String>,
    /// Access keys.
    access_keys: BTreeSet<String>,
    /// Aliases: the place of the key.
    aliases: BTreeMap<String, String>,
    /// The lists of keys' aliases: the places of alias and key.
    aliases_of: BTreeMap<String, (String, String)>,
    link: [u8; 32],
    sequence: u64,
}

impl<'a> Look<'a> {
    fn new(store: &'a dyn Store, root: &'a RootKey) -> Self {
        Self {
            store,
            root,
            report: Report::default(),
            keys: BTreeMap::new(),
            public_keys: BTreeMap::new(),
            secrets: BTreeSet::new(),
            access_keys: BTreeSet::new(),
            aliases: BTreeMap::new(),
            aliases_of: BTreeMap::new(),
            link: chain::START,
            sequence: 0,
        }
    }

    fn problem(&mut self, place: &str, what: impl Into<String>) {
        self.report.problem_count += 1;
        if self.report.problems.len() < MAX_PROBLEMS {
            self.report.problems.push(Problem { place: place.to_owned(), what: what.into() });
        }
    }

    fn record(&mut self, place: &str, value: &[u8]) {
        self.report.records += 1;
        if let Some(id) = place.strip_prefix(seal::WRAPPED) {
            if self.root.check_wrapped(id, value).is_err() {
                self.problem(place, "this root key does not unwrap");
            }
            return;
        }
        if seal::sealed_under(place, value).is_some() {
            match self.root.open(self.store, place, value) {
                Ok(secret) => {
                    self.report.opened += 1;
                    self.secret(place, &secret);
                }
                Err(_) => self.problem(
                    place,
                    "does not open: it is damaged, was moved here from another place, or is sealed under \
                     another root key",
                ),
            }
            self.secrets.insert(place.to_owned());
            return;
        }
        if SECRETS.iter().any(|prefix| place.starts_with(prefix)) {
            self.secrets.insert(place.to_owned());
            return self.problem(place, "is not sealed");
        }
        match serde_json::from_slice(value) {
            Ok(value) => self.plain(place, &value),
            Err(_) => self.problem(place, "is neither sealed nor JSON"),
        }
    }

    /// Remembers what a plain record says.
    fn plain(&mut self, place: &str, value: &Value) {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        if let Some(rest) = place.strip_prefix("kms/key/") {
            self.report.keys += 1;
            // A key whose material its owner imports may be without.
            let external = text("origin").is_some_and(|origin| origin != "AWS_KMS");
            let material = text("material_id")
                .filter(|id| !id.is_empty() && !external)
                .map(|id| format!("kms/material/{rest}/{id}"));
            let usage = text("usage").and_then(|name| KeyUsage::by_name(&name));
            let Some(spec) = text("spec").and_then(|name| KeySpec::by_name(&name)) else {
                return self.problem(place, "the key has no known type");
            };
            if usage.is_none_or(|usage| !spec.usages.contains(&usage)) {
                self.problem(place, "the key's use is none of its type");
            }
            self.keys.insert(place.to_owned(), (spec, material));
        } else if let Some(rest) = place.strip_prefix("kms/alias/") {
            self.report.aliases += 1;
            match (text("target"), rest.split_once("/alias/")) {
                (Some(target), Some((scope, _))) => {
                    self.aliases.insert(place.to_owned(), format!("kms/key/{scope}/{target}"));
                }
                _ => self.problem(place, "the alias has no target"),
            }
        } else if let Some(rest) = place.strip_prefix("kms/alias-of/") {
            let parts: Vec<_> = rest.splitn(4, '/').collect();
            if let [account, region, id, name] = parts.as_slice() {
                let alias = format!("kms/alias/{account}/{region}/{name}");
                let key = format!("kms/key/{account}/{region}/{id}");
                self.aliases_of.insert(place.to_owned(), (alias, key));
            }
        } else if place.starts_with("ca/authority/") {
            self.report.authorities += 1;
            let spec = text("key_algorithm").and_then(|name| KeySpec::by_pca_name(&name));
            if spec.is_none() {
                self.problem(place, "the authority has no known key type");
            }
            let public_key = match (text("certificate"), text("csr")) {
                (Some(pem), _) => certificate_key(&pem),
                (None, Some(pem)) => CertificateRequest::parse_and_verify(pem.as_bytes())
                    .map(|request| request.public_key)
                    .ok(),
                (None, None) => None,
            };
            if public_key.is_none() {
                self.problem(place, "its certificate or request cannot be read");
            }
            self.public_keys.insert(place.to_owned(), (spec, public_key));
        } else if place.starts_with("tls/certificate/") {
            let public_key = text("certificate").and_then(|pem| certificate_key(&pem));
            if public_key.is_none() {
                self.problem(place, "its certificate cannot be read");
            }
            self.public_keys.insert(place.to_owned(), (None, public_key));
        } else if let Some(id) = place.strip_prefix("iam/access-key/") {
            self.access_keys.insert(id.to_owned());
        }
    }

    /// Tries a secret out. What it belongs to has been seen: it comes before in the order of keys.
    fn secret(&mut self, place: &str, secret: &Secret) {
        if let Some(rest) = place.strip_prefix("kms/material/") {
            let owner = rest.rsplit_once('/').map(|(key, _)| format!("kms/key/{key}"));
            let Some((spec, _)) = owner.and_then(|owner| self.keys.get(&owner)) else {
                return self.problem(place, "there is no key that this material belongs to");
            };
            if let Err(what) = try_out(spec, secret) {
                self.problem(place, what);
            }
            return;
        }
        let (owner, tls) = match place.strip_prefix("tls/key/") {
            Some(rest) => (format!("tls/certificate/{rest}"), true),
            None => match place.strip_prefix("ca/material/") {
                Some(rest) => (format!("ca/authority/{rest}"), false),
                None => return,
            },
        };
        let Some((spec, Some(public_key))) = self.public_keys.get(&owner) else {
            return self.problem(place, "there is no certificate that this key belongs to");
        };
        let outcome = match spec {
            Some(spec) => try_out(spec, secret).and_then(|key| same_key(key.as_ref(), public_key)),
            // A TLS certificate does not say which row its key is of.
            None if tls => fitting(secret, public_key)
                .ok_or("the private key is not the certificate's")
                .and_then(|spec| try_out(spec, secret).map(|_| ())),
            None => Ok(()),
        };
        if let Err(what) = outcome {
            self.problem(place, what);
        }
    }

    fn event(&mut self, event: &Event) {
        self.report.events += 1;
        let place = format!("event/{}", event.sequence);
        if event.sequence != self.sequence + 1 {
            self.problem(&place, format!("the events after {} are missing", self.sequence));
        }
        if chain::next(&self.link, event.sequence, &event.body) != event.chain {
            self.problem(
                &place,
                "the audit chain is broken: this event or one before it was changed",
            );
        } else if serde_json::from_slice::<serde::de::IgnoredAny>(&event.body).is_err() {
            self.problem(&place, "the event is not JSON");
        }
        // From what is written, so that one break is one problem.
        (self.sequence, self.link) = (event.sequence, event.chain);
    }

    /// What can be said only when all records have been seen.
    fn relations(&mut self) {
        let mut found = Vec::new();
        for (place, (_, material)) in &self.keys {
            if material.as_ref().is_some_and(|material| !self.secrets.contains(material)) {
                found.push((place.clone(), "its key material is missing".to_owned()));
            }
        }
        for place in self.public_keys.keys() {
            let key = place.replacen("tls/certificate/", "tls/key/", 1).replacen(
                "ca/authority/",
                "ca/material/",
                1,
            );
            if !self.secrets.contains(&key) {
                found.push((place.clone(), "its private key is missing".to_owned()));
            }
        }
        for id in &self.access_keys {
            if !self.secrets.contains(&format!("iam/access-key-secret/{id}")) {
                found.push((format!("iam/access-key/{id}"), "its secret is missing".to_owned()));
            }
        }
        for place in &self.secrets {
            let id = place.strip_prefix("iam/access-key-secret/");
            if id.is_some_and(|id| !self.access_keys.contains(id)) {
                found.push((place.clone(), "there is no access key that it belongs to".to_owned()));
            }
        }
        for (place, key) in &self.aliases {
            if !self.keys.contains_key(key) {
                found.push((place.clone(), "it points at a key that does not exist".to_owned()));
            }
            let name = place.splitn(5, '/').last().unwrap_or_default();
            let listed = key.replacen("kms/key/", "kms/alias-of/", 1) + "/" + name;
            if !self.aliases_of.contains_key(&listed) {
                found.push((place.clone(), "it is missing in the list of its key".to_owned()));
            }
        }
        for (place, (alias, key)) in &self.aliases_of {
            if self.aliases.get(alias) != Some(key) {
                found.push((place.clone(), "there is no such alias of this key".to_owned()));
            }
        }
        for (place, what) in found {
            self.problem(&place, what);
        }
    }
}

fn certificate_key(pem: &str) -> Option<Vec<u8>> {
    Certificate::parse_one(pem.as_bytes()).and_then(|found| found.public_key()).ok()
}

/// Loads a key and has it do what it is for.
fn try_out(spec: &KeySpec, secret: &Secret) -> Result<Box<dyn Key>, &'static str> {
    const TEXT: &[u8] = b"outlast store check";
    let key = spec.load(secret).map_err(|_| "the key material is not one of the key's type")?;
    if let (Some(algorithm), Some(public_key)) = (spec.signing.first(), key.public_key()) {
        key.sign(algorithm, Message::Raw(TEXT))
            .and_then(|signature| algorithm.verify(public_key, Message::Raw(TEXT), &signature))
            .map_err(|_| "what the key signs does not verify")?;
    }
    if let Some(algorithm) = spec.encryption.first() {
        let opened = key
            .encrypt(algorithm, b"", TEXT)
            .and_then(|sealed| key.decrypt(algorithm, b"", &sealed))
            .map_err(|_| "what the key encrypts does not decrypt")?;
        if opened.expose() != TEXT {
            return Err("what the key encrypts does not decrypt");
        }
    }
    Ok(key)
}

/// The key type of which `secret` is a key with this public half.
fn fitting(secret: &Secret, public_key: &[u8]) -> Option<&'static KeySpec> {
    KEY_SPECS
        .iter()
        .find(|spec| spec.load(secret).is_ok_and(|key| same_key(key.as_ref(), public_key).is_ok()))
}

fn same_key(key: &dyn Key, public_key: &[u8]) -> Result<(), &'static str> {
    if key.public_key() == Some(public_key) {
        return Ok(());
    }
    Err("the private key is not the certificate's")
}
