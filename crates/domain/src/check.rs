//! Checks the whole store: every record opens, matches the others and works. Changes nothing.
//!
//! Reads the records themselves, not through the operations that use them: those stop at the first fault, and this is
//! to find them all.

mod artifacts;
mod authorities;
mod certificates;
mod counts;
mod relations;
mod trail;
mod trial;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use outlast_crypto::Secret;
use outlast_crypto::keys::{KeySpec, KeyUsage};
use outlast_pki::csr::CertificateRequest;
use outlast_store::{Event, Item, Store};
use serde::Serialize;
use serde_json::Value;

use crate::Fault;
use crate::ca::crl;
use crate::identity::{AccessKey, User};
use crate::records::{self, Protection};
use crate::register::Register;
use crate::seal::{self, RootKey, migration};
use crate::work::Work;
use artifacts::Artifacts;
use certificates::Certificates;
use trail::Trail;
use trial::{certificate_key, fitting, same_key, try_out};
use values::Values;

/// Problems that the report lists at most; all are counted.
const MAX_PROBLEMS: usize = 1000;
/// The problem of a record that fails its verification.
const FORGED: &str = "is not as the service wrote it: it was changed, was moved here from another place, or was added";
/// Records that point at grants.
const GRANT_POINTERS: &[&str] =
    &["kms/by-grantee/", "kms/grant-of/", "kms/grant-to/", "kms/grant-named/"];
/// A problem of a record or event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Record key, or `event/number` for an event.
    #[serde(rename = "place")]
    pub record_key: String,
    /// What operators call it.
    pub title: String,
    /// What is wrong.
    pub what: String,
}

/// The result of a check.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Report {
    /// Number of records.
    pub records: u64,
    /// Sealed records that could be opened.
    pub opened: u64,
    /// KMS keys.
    pub keys: u64,
    /// Aliases of KMS keys.
    pub aliases: u64,
    /// Certificate authorities.
    pub authorities: u64,
    /// Certificates that they issued.
    pub certificates: u64,
    /// Audit events.
    pub events: u64,
    /// Number of problems.
    pub problem_count: u64,
    /// The first problems.
    pub problems: Vec<Problem>,
}

/// Checks everything as of one point in time; reports to `progress` from time to time.
pub fn check(
    store: &dyn Store,
    root: &RootKey,
    progress: &mut dyn FnMut(&Report),
) -> Result<Report, Fault> {
    let mut look = Look::new(store, root);
    // If that cannot be determined, the store counts as one of this version.
    let state = migration::state(&mut Work::new(store, root, 0)).ok().flatten();
    look.is_plain = state.is_some_and(|state| !state.is_authenticated);
    look.has_register = state.is_some_and(|state| state.is_authenticated);
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
    look.counts()?;
    Ok(look.report)
}

/// The result of a check of the audit trail.
#[derive(Debug, Default, Clone, Serialize)]
pub struct TrailReport {
    /// Events in the store.
    pub events: u64,
    /// Number of entries that the last signed head covers.
    pub size: u64,
    /// Events after it, not signed yet.
    pub unsigned: u64,
    /// Entries that were pruned.
    pub pruned: u64,
    /// Root of the last signed head, in hexadecimal.
    pub root: String,
    /// Number of problems.
    pub problem_count: u64,
    /// The first problems.
    pub problems: Vec<Problem>,
}

/// Checks the audit trail alone, as of one point in time: every event, its log and the signed head.
pub fn check_trail(
    store: &dyn Store,
    root: &RootKey,
    progress: &mut dyn FnMut(u64),
) -> Result<TrailReport, Fault> {
    let mut look = Look::new(store, root);
    store.snapshot(&mut |item| {
        match item {
            Item::Record(key, record) if key.starts_with("audit/") => {
                look.record(&key, &record.value);
            }
            Item::Record(..) => {}
            Item::Event(event) => look.event(&event),
        }
        if look.report.events.is_multiple_of(4096) {
            progress(look.report.events);
        }
        Ok(())
    })?;
    for (record_key, what) in look.trail.end() {
        look.problem(&record_key, what);
    }
    let head = look.trail.head();
    let size = head.map_or(0, |head| head.size);
    let pruned = head.map_or(0, |head| head.pruned);
    Ok(TrailReport {
        events: look.report.events,
        size,
        unsigned: (look.report.events + pruned).saturating_sub(size),
        pruned,
        root: head.and_then(|head| head.root().ok()).map(hex::encode).unwrap_or_default(),
        problem_count: look.report.problem_count,
        problems: look.report.problems,
    })
}

/// What the check remembers of the records, to compare them with each other.
struct Look<'a> {
    store: &'a dyn Store,
    root: &'a RootKey,
    /// Whether an earlier version left the records, without authentication.
    is_plain: bool,
    /// Whether a register must exist: the stores of tests have none.
    has_register: bool,
    report: Report,
    /// KMS keys: type, record keys of the materials that must exist, and of those that must not.
    keys: BTreeMap<String, KeyParts>,
    /// Authorities and TLS certificates: type of the key, if it is known, and public key.
    public_keys: BTreeMap<String, (Option<&'static KeySpec>, Option<Vec<u8>>)>,
    /// Record keys of secrets.
    secrets: BTreeSet<String>,
    /// Records that others belong to.
    owners: BTreeSet<String>,
    /// Records that belong to others: record key of the owner, and the problem if it does not exist.
    belongings: BTreeMap<String, (String, &'static str)>,
    /// Grants, and the index entries that point to them: the end of the grant's record key.
    grants: BTreeSet<String>,
    pointers: BTreeMap<String, String>,
    /// Access keys that users list, and records of access keys: id, and record key of the user.
    listed_access_keys: BTreeMap<String, String>,
    access_keys: BTreeMap<String, String>,
    /// Aliases: record key of the key.
    aliases: BTreeMap<String, String>,
    /// The lists of keys' aliases: record keys of alias and key.
    aliases_of: BTreeMap<String, (String, String)>,
    /// Chains that issued certificates refer to, and chains that exist.
    wanted_chains: BTreeSet<String>,
    chains: BTreeSet<String>,
    /// Accounts that policies share authorities with, and the records that say so.
    wanted_shares: BTreeSet<String>,
    shares: BTreeSet<String>,
    /// Records that the store counts, by the prefix of their keys.
    counts: BTreeMap<String, u64>,
    trail: Trail,
    artifacts: Artifacts,
    register: Register,
    certificates: Certificates,
    values: Values,
}

struct KeyParts {
    spec: &'static KeySpec,
    present: Vec<String>,
    absent: Vec<String>,
}

impl<'a> Look<'a> {
    fn new(store: &'a dyn Store, root: &'a RootKey) -> Self {
        Self {
            store,
            root,
            is_plain: false,
            has_register: false,
            report: Report::default(),
            keys: BTreeMap::new(),
            public_keys: BTreeMap::new(),
            secrets: BTreeSet::new(),
            owners: BTreeSet::new(),
            belongings: BTreeMap::new(),
            grants: BTreeSet::new(),
            pointers: BTreeMap::new(),
            listed_access_keys: BTreeMap::new(),
            access_keys: BTreeMap::new(),
            aliases: BTreeMap::new(),
            aliases_of: BTreeMap::new(),
            wanted_chains: BTreeSet::new(),
            chains: BTreeSet::new(),
            counts: BTreeMap::new(),
            wanted_shares: BTreeSet::new(),
            shares: BTreeSet::new(),
            trail: Trail::default(),
            artifacts: Artifacts::default(),
            register: Register::default(),
            certificates: Certificates::default(),
            values: Values::default(),
        }
    }

    fn problem(&mut self, record_key: &str, what: impl Into<String>) {
        self.report.problem_count += 1;
        if self.report.problems.len() < MAX_PROBLEMS {
            let title = match record_key.strip_prefix("event/") {
                Some(number) => format!("the audit event {number}"),
                None => records::title(self.store, record_key),
            };
            self.report.problems.push(Problem {
                record_key: record_key.to_owned(),
                title,
                what: what.into(),
            });
        }
    }

    fn record(&mut self, record_key: &str, value: &[u8]) {
        self.report.records += 1;
        let Some(kind) = records::kind(record_key) else {
            return self.problem(record_key, "no known version of outlast writes such a record");
        };
        if let Some(prefix) = kind.tally_of(record_key) {
            *self.counts.entry(prefix).or_default() += 1;
        }
        if let (Some(owner), Some(at)) = (kind.owner, kind.owner_of(record_key)) {
            self.belongings.insert(record_key.to_owned(), (at, owner.missing));
        }
        if records::KINDS.iter().any(|row| row.owner.is_some_and(|owner| kind.has(owner.key))) {
            self.owners.insert(record_key.to_owned());
        }
        if let Some(id) = record_key.strip_prefix(seal::WRAPPED) {
            if self.root.check_wrapped(id, value).is_err() {
                self.problem(record_key, "this root key does not unwrap");
            }
            return;
        }
        if seal::sealed_under(record_key, value).is_some() {
            match self.root.open(self.store, record_key, value) {
                Ok(secret) => {
                    self.report.opened += 1;
                    self.secret(record_key, &secret);
                }
                Err(_) => self.problem(
                    record_key,
                    "does not open: it is damaged, was moved here from another place, or is sealed under \
                     another root key",
                ),
            }
            self.secrets.insert(record_key.to_owned());
            return;
        }
        if kind.protection == Protection::Sealed {
            self.secrets.insert(record_key.to_owned());
            return self.problem(record_key, "is not sealed");
        }
        if record_key.starts_with(crl::DER) {
            if outlast_pki::crl::Crl::parse(value).is_err() {
                self.problem(record_key, "it is not a CRL");
            }
            return;
        }
        let json = seal::json(value);
        let Ok(parsed) = serde_json::from_slice(json) else {
            return self.problem(record_key, "is neither sealed nor JSON");
        };
        let is_old = self.is_plain && json.len() == value.len();
        if !is_old {
            let verifies = self.root.verify(self.store, record_key, value).is_ok();
            self.register.record(record_key, value, verifies);
            if !verifies {
                self.problem(record_key, FORGED);
            }
        }
        // Also if it is forged: what else is wrong with it shows the intention.
        self.plain(record_key, &parsed);
    }

    /// Remembers the contents of a plain record.
    fn plain(&mut self, record_key: &str, value: &Value) {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        if let Some(rest) = record_key.strip_prefix("kms/key/") {
            self.report.keys += 1;
            let place_of = |id: &str| format!("kms/material/{rest}/{id}");
            let present = materials(value, true).map(place_of).collect();
            let absent = materials(value, false).map(place_of).collect();
            let usage = text("usage").and_then(|name| KeyUsage::by_name(&name));
            let Some(spec) = text("spec").and_then(|name| KeySpec::by_name(&name)) else {
                return self.problem(record_key, "the key has no known type");
            };
            if usage.is_none_or(|usage| !spec.usages.contains(&usage)) {
                self.problem(record_key, "the key's usage is not one that its type allows");
            }
            self.keys.insert(record_key.to_owned(), KeyParts { spec, present, absent });
        } else if let Some(rest) = record_key.strip_prefix("kms/alias/") {
            self.report.aliases += 1;
            match (text("target"), rest.split_once("/alias/")) {
                (Some(target), Some((scope, _))) => {
                    self.aliases.insert(record_key.to_owned(), format!("kms/key/{scope}/{target}"));
                }
                _ => self.problem(record_key, "the alias has no target"),
            }
        } else if let Some(rest) = record_key.strip_prefix("kms/alias-of/") {
            let parts: Vec<_> = rest.splitn(4, '/').collect();
            if let [account, region, id, name] = parts.as_slice() {
                let alias = format!("kms/alias/{account}/{region}/{name}");
                let key = format!("kms/key/{account}/{region}/{id}");
                self.aliases_of.insert(record_key.to_owned(), (alias, key));
            }
        } else if record_key.starts_with("ca/authority/") {
            self.report.authorities += 1;
            let spec = text("key_algorithm").and_then(|name| KeySpec::by_pca_name(&name));
            if spec.is_none() {
                self.problem(record_key, "the authority has no known key type");
            }
            let public_key = match (text("certificate"), text("csr")) {
                (Some(pem), _) => certificate_key(&pem),
                (None, Some(pem)) => CertificateRequest::parse_and_verify(pem.as_bytes())
                    .map(|request| request.public_key)
                    .ok(),
                (None, None) => None,
            };
            if public_key.is_none() {
                self.problem(record_key, "its certificate or request cannot be read");
            }
            self.public_keys.insert(record_key.to_owned(), (spec, public_key));
        } else if record_key.starts_with("tls/certificate/")
            || record_key.starts_with("ca/responder-certificate/")
        {
            let public_key = text("certificate").and_then(|pem| certificate_key(&pem));
            if public_key.is_none() {
                self.problem(record_key, "its certificate cannot be read");
            }
            // A responder names its key, which is the next record.
            let owner = text("key_id")
                .map_or_else(|| record_key.to_owned(), |id| format!("{record_key}/{id}"));
            self.public_keys.insert(owner, (None, public_key));
        } else if let Some(rest) = record_key.strip_prefix("kms/grant/") {
            self.grants.insert(rest.to_owned());
        } else if let Some(rest) =
            GRANT_POINTERS.iter().find_map(|prefix| record_key.strip_prefix(prefix))
        {
            // It may be stored under the account of the retiring principal, and names the grant's record.
            match (rest.split('/').nth(1), text("account"), text("key_id"), text("grant_id")) {
                (Some(region), Some(account), Some(key), Some(id)) => {
                    let grant = format!("{account}/{region}/{key}/{id}");
                    self.pointers.insert(record_key.to_owned(), grant);
                }
                _ => self.problem(record_key, "it does not say which grant it is for"),
            }
        } else if record_key.starts_with("iam/user/") {
            match serde_json::from_value::<User>(value.clone()) {
                Ok(user) => {
                    for id in user.access_keys {
                        self.listed_access_keys.insert(id, record_key.to_owned());
                    }
                }
                Err(_) => self.problem(record_key, "the user cannot be read"),
            }
        } else if self.of_authorities(record_key, value)
            || self.trail.record(record_key, value)
            || self.artifacts.record(record_key, value)
            || self.certificates.record(record_key, value)
        {
            // It is checked together with the others of its kind.
        } else if let Some(problem) = self.values.record(record_key, value) {
            if let Some(problem) = problem {
                self.problem(record_key, problem);
            }
        } else if let Some(id) = record_key.strip_prefix("iam/access-key/") {
            match serde_json::from_value::<AccessKey>(value.clone()) {
                // The administrator of a store of the first version has no record.
                Ok(key) if !key.has_user => {}
                Ok(key) => {
                    let user = format!("iam/user/{}/{}", key.account, key.user);
                    self.access_keys.insert(id.to_owned(), user);
                }
                Err(_) => self.problem(record_key, "the access key cannot be read"),
            }
        }
    }

    /// Tries a secret out. Its owner comes before it in the order of keys.
    fn secret(&mut self, record_key: &str, secret: &Secret) {
        if self.register.secret(record_key, secret)
            || self.trail.secret(record_key, secret)
            || self.artifacts.secret(record_key, secret)
            || self.certificates.secret(record_key, secret)
        {
            return;
        }
        if let Some(rest) = record_key.strip_prefix("kms/material/") {
            let owner = rest.rsplit_once('/').map(|(key, _)| format!("kms/key/{key}"));
            let Some(key) = owner.and_then(|owner| self.keys.get(&owner)) else {
                return self
                    .problem(record_key, "the key that this material belongs to is missing");
            };
            let is = |list: &[String]| list.iter().any(|listed| listed == record_key);
            let (gone, listed) = (is(&key.absent), is(&key.present));
            if let Err(what) = try_out(key.spec, secret) {
                self.problem(record_key, what);
            }
            if gone {
                self.problem(record_key, "the key says that this material was deleted");
            } else if !listed {
                self.problem(record_key, "the key does not list this material");
            }
            return;
        }
        let (owner, tls) = match record_key.strip_prefix("tls/key/") {
            Some(rest) => (format!("tls/certificate/{rest}"), true),
            None if let Some(rest) = record_key.strip_prefix("ca/responder-key/") => {
                (format!("ca/responder-certificate/{rest}"), true)
            }
            None => match record_key.strip_prefix("ca/material/") {
                Some(rest) => (format!("ca/authority/{rest}"), false),
                None => return,
            },
        };
        let Some((spec, Some(public_key))) = self.public_keys.get(&owner) else {
            return self.problem(record_key, "the certificate that this key belongs to is missing");
        };
        let outcome = match spec {
            Some(spec) => try_out(spec, secret).and_then(|key| same_key(key.as_ref(), public_key)),
            // A TLS certificate does not name the row of its key.
            None if tls => fitting(secret, public_key)
                .ok_or("the private key is not the certificate's")
                .and_then(|spec| try_out(spec, secret).map(|_| ())),
            None => Ok(()),
        };
        if let Err(what) = outcome {
            self.problem(record_key, what);
        }
    }

    fn event(&mut self, event: &Event) {
        self.report.events += 1;
        self.register.event(event);
        for (record_key, what) in self.trail.event(event) {
            self.problem(&record_key, what);
        }
    }
}

/// Ids of the materials that a key's record calls present, or of those that it calls absent. A key for imported
/// material may have none.
fn materials(key: &Value, there: bool) -> impl Iterator<Item = &str> {
    let listed = key.get("materials").and_then(Value::as_array);
    let present = |material: &Value| match material.get("import") {
        None | Some(Value::Null) => true,
        Some(import) => import.get("present").and_then(Value::as_bool).unwrap_or(true),
    };
    let ids = listed
        .into_iter()
        .flatten()
        .filter(move |material| present(material) == there)
        .filter_map(|material| material.get("id"));
    // Records of the first version have one material, without a list.
    let only = key.get("material_id").filter(|_| there && listed.is_none());
    ids.chain(only).filter_map(Value::as_str).filter(|id| !id.is_empty())
}
