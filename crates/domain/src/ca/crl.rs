//! Certificate revocation lists: their URLs, when they are due, and making them.
//!
//! An authority has one complete CRL, or [`PARTITIONS`] of them by serial number. Each is a record that all servers
//! on the store serve, under a unique name: the authority's id, or a UUID made from it and the partition.

pub(in crate::ca) mod record;

use outlast_crypto::digests::sha256;
use outlast_crypto::signatures::Message;
use outlast_pki::certificate::{Certificate, Extension, key_identifier};
use outlast_pki::crl::reason::UNSPECIFIED;
use outlast_pki::crl::{Content, Entry, Reason, Scope as About};
use outlast_pki::extensions;
pub(crate) use record::DER;
pub use record::{Made, der, made};
use record::{der_record_key, made_record_key};
use serde::{Deserialize, Serialize};

use super::authority::{Authority, Status, authority_by_id};
use super::revocation::{Crl, Revoked, parts, revoked_prefix};
use super::{CaError, publish, told};
use crate::arn::Scope;
use crate::keyring::KeyRing;
use crate::settings::Settings;
use crate::work::{Sweep, Swept, Work};
use crate::{Fault, events, ids, limits};

/// Number of partitions of a partitioned CRL. Certificates contain the URL of theirs, so this can never change.
pub const PARTITIONS: u8 = 64;

/// One CRL of an authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The complete CRL.
    Complete,
    /// One of [`PARTITIONS`].
    Partition(u8),
}

impl Part {
    /// The CRL that lists the certificate with this serial number (big-endian).
    fn of(crl: &Crl, serial: &[u8]) -> Self {
        if crl.partitioned { Self::partition_of(serial) } else { Self::Complete }
    }

    fn partition_of(serial: &[u8]) -> Self {
        Self::Partition(serial.first().copied().unwrap_or_default() % PARTITIONS)
    }

    /// Whether certificates that are issued now contain its URL.
    fn is_current(self, crl: &Crl) -> bool {
        matches!(self, Self::Partition(_)) == crl.partitioned
    }

    /// Name of the CRL: its file name without the extension.
    fn name(self, authority_id: &str) -> String {
        match self {
            Self::Complete => authority_id.to_owned(),
            Self::Partition(number) => {
                let digest =
                    sha256(format!("outlast CRL partition {authority_id}/{number}").as_bytes());
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&digest[..16]);
                // RFC 9562, section 5.8: a UUID of the application's own making.
                bytes[6] = (bytes[6] & 0x0f) | 0x80;
                bytes[8] = (bytes[8] & 0x3f) | 0x80;
                ids::uuid_text(bytes)
            }
        }
    }

    /// The partitions, and the complete CRL.
    fn all() -> impl Iterator<Item = Self> {
        (0..PARTITIONS).map(Self::Partition).chain([Self::Complete])
    }

    /// Suffix of the record key of its mark.
    fn label(self) -> String {
        match self {
            Self::Complete => "complete".to_owned(),
            Self::Partition(number) => number.to_string(),
        }
    }

    fn by_label(label: &str) -> Option<Self> {
        Self::all().find(|part| part.label() == label)
    }

    /// Prefixes of the serial numbers that are listed here, in hexadecimal.
    fn prefixes(self) -> Vec<String> {
        match self {
            Self::Complete => vec![String::new()],
            Self::Partition(number) => (0..=u8::MAX)
                .filter(|first| first % PARTITIONS == number)
                .map(|first| hex::encode([first]))
                .collect(),
        }
    }

    /// Path of its file below [`Crl::base_url`].
    fn path(self, authority_id: &str, crl: &Crl) -> String {
        let name = self.name(authority_id);
        match self {
            // As AWS documents CustomPath: `http://<CustomName>/<CustomPath>/<CrlPartition_GUID>.crl`.
            Self::Partition(_) if crl.custom_path.is_none() => format!("{authority_id}/{name}.crl"),
            _ => format!("{name}.crl"),
        }
    }

    fn url(self, authority_id: &str, crl: &Crl) -> String {
        format!("{}/{}", crl.base_url, self.path(authority_id, crl))
    }
}

/// The value of [`Crl::base_url`] for these `CustomCname` and `CustomPath`. `None` if there is no name and the server
/// has no listener for plain HTTP.
pub fn base_url(
    settings: &Settings,
    custom_cname: Option<&str>,
    custom_path: Option<&str>,
) -> Option<String> {
    let host = match custom_cname {
        Some(name) => format!("http://{name}"),
        None => settings.revocation_url.clone()?,
    };
    Some(match custom_path.unwrap_or("crl").trim_matches('/') {
        "" => host,
        path => format!("{host}/{path}"),
    })
}

/// The extension with the URL of the CRL for a certificate with this serial number (big-endian), by the authority's
/// configuration.
pub fn distribution_point(
    authority: &Authority,
    serial: &[u8],
) -> Result<Option<Extension>, CaError> {
    let Some(crl) = &authority.revocation().crl else { return Ok(None) };
    if crl.omit_extension {
        return Ok(None);
    }
    let url = Part::of(crl, serial).url(authority.id(), crl);
    let extension = extensions::crl_distribution_points(&[&url]).map_err(Fault::from)?;
    Ok(Some(extension))
}

/// When an authority's CRLs are due if nothing is revoked before.
#[derive(Serialize, Deserialize)]
struct Due {
    /// Milliseconds since 1970.
    due_ms: i64,
    /// The configuration that they were made for.
    crl: Crl,
}

/// Marks a CRL as due.
#[derive(Serialize, Deserialize)]
struct Mark {
    /// Milliseconds since 1970.
    since_ms: i64,
}

/// Marks the CRLs that may list the certificate with this serial number (big-endian) as due. Reads nothing.
pub(super) fn mark_revoked(
    work: &mut Work<'_>,
    authority: &Authority,
    serial: &[u8],
) -> Result<(), Fault> {
    mark(work, authority, Part::Complete)?;
    mark(work, authority, Part::partition_of(serial))
}

fn mark(work: &mut Work<'_>, authority: &Authority, part: Part) -> Result<(), Fault> {
    let record_key = mark_record_key(authority.scope(), authority.id(), part);
    let mark = Mark { since_ms: work.now_ms() };
    work.put(&record_key, &mark)
}

/// Marks the CRLs of an authority as due, if it has any.
pub fn schedule(work: &mut Work<'_>, authority: &Authority) -> Result<(), CaError> {
    if let Some(crl) = &authority.revocation().crl {
        let due = Due { due_ms: work.now_ms(), crl: crl.clone() };
        work.put(&due_record_key(authority.scope(), authority.id()), &due)?;
    }
    Ok(())
}

/// Starts or stops making CRLs, as `wanted` says: whether there are any, or were until now.
pub(super) fn follow(
    work: &mut Work<'_>,
    authority: &Authority,
    wanted: Option<&Crl>,
) -> Result<bool, Fault> {
    let record_key = due_record_key(authority.scope(), authority.id());
    let due = work.get::<Due>(&record_key)?;
    let had = due.is_some();
    if let Some(crl) = wanted {
        if due.is_none_or(|due| due.crl != *crl) {
            work.put(&record_key, &Due { due_ms: work.now_ms(), crl: crl.clone() })?;
        }
    } else if had {
        work.delete(&record_key);
    }
    Ok(had || wanted.is_some())
}

/// Marks the CRLs of authorities whose time has come.
pub const MARK_DUE: Sweep = Sweep {
    find: |work, after, limit| {
        work.due("ca/crl-due/", after, limit, |due: &Due, now_ms| due.due_ms <= now_ms)
    },
    handle: mark_due,
};

fn mark_due(work: &mut Work<'_>, record_key: &str, _: &mut Swept) -> Result<(), Fault> {
    let Some(due) = work.get::<Due>(record_key)?.filter(|due| due.due_ms <= work.now_ms()) else {
        return Ok(());
    };
    let (scope, id, _) = parts(record_key, "ca/crl-due/").ok_or_else(|| damaged(record_key))?;
    let found = authority_by_id(work, &scope, id)?;
    let Some((authority, crl, _)) = found.as_ref().and_then(working) else {
        work.delete(record_key);
        return Ok(());
    };
    for part in Part::all() {
        // While certificates exist that contain its URL, the CRL of the other type is still made.
        if part.is_current(crl) || work.exists(&made_record_key(&part.name(id)))? {
            mark(work, authority, part)?;
        }
    }
    let due_ms = work.now_ms() + lifetime(crl) * 1000 / 2;
    work.put(record_key, &Due { due_ms, ..due })
}

/// Record keys of the marks of CRLs that are due, after one of them.
pub fn marked(work: &Work<'_>, after: &str, limit: usize) -> Result<Vec<String>, Fault> {
    Ok(work
        .store()
        .scan(MARKS, after, limit)?
        .into_iter()
        .map(|(record_key, _)| record_key)
        .collect())
}

/// How to make a CRL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Only if its signature is quick.
    Quickly,
    /// Even if its signature is slow.
    Patiently,
    /// The same, ignoring changes of the mark, which stays: a CRL that is marked again and again would otherwise
    /// never be made.
    Meanwhile,
}

/// Makes the CRL with this mark, and removes the mark. Returns whether it was made, or did not need to be.
pub fn make(
    work: &mut Work<'_>,
    ring: &KeyRing,
    record_key: &str,
    how: How,
    swept: &mut Swept,
) -> Result<bool, Fault> {
    if how != How::Meanwhile && !work.exists(record_key)? {
        return Ok(true);
    }
    let (scope, id, label) = parts(record_key, MARKS).ok_or_else(|| damaged(record_key))?;
    let part = Part::by_label(label).ok_or_else(|| damaged(record_key))?;
    let found = authority_by_id(work, &scope, id)?;
    let Some((authority, crl, certificate)) = found.as_ref().and_then(working) else {
        work.delete(record_key);
        return Ok(true);
    };
    let name = part.name(id);
    let before = work.get::<Made>(&made_record_key(&name))?;
    if before.is_none() && !part.is_current(crl) {
        work.delete(record_key);
        return Ok(true);
    }
    if how == How::Quickly && authority.algorithm().slow {
        return Ok(false);
    }
    let now = work.now();
    let entries =
        entries(work, authority, part, before.as_ref().map_or(now, |made| made.regular_at))?;
    let lifetime = lifetime(crl);
    let mut made = Made {
        account: scope.account.clone(),
        region: scope.region.clone(),
        authority: id.to_owned(),
        digest: String::new(),
        path: path_of(&part.url(id, crl)).to_owned(),
        urls: before.as_ref().map(|made| made.urls.clone()).unwrap_or_default(),
        // Above every earlier number, also those after the backup that this store may have been restored from.
        number: u64::try_from(work.now_ms())
            .unwrap_or_default()
            .max(before.as_ref().map_or(0, |made| made.number + 1)),
        this_update: now,
        next_update: now + lifetime,
        regular_at: match &before {
            // Checking every few seconds, it can only be due for its time.
            Some(made) if now - made.regular_at < lifetime / 2 - 3600 => made.regular_at,
            _ => now,
        },
        entries: entries.len(),
    };
    let url = part.url(id, crl);
    made.urls.retain(|known| *known != url);
    made.urls.push(url);
    let excess = made.urls.len().saturating_sub(limits::MAX_CRL_URLS);
    made.urls.drain(..excess);
    let key = authority.load_key(work, ring)?;
    let unsigned = Content {
        issuer: certificate.subject().clone(),
        issuer_key_id: issuer_key_id(certificate)?,
        number: made.number,
        this_update: made.this_update,
        next_update: made.next_update,
        distribution_points: match part {
            Part::Complete => Vec::new(),
            Part::Partition(_) => made.urls.clone(),
        },
        scope: About::All,
    }
    .prepare(authority.algorithm(), entries)?;
    let signature = key.sign(authority.algorithm(), Message::Raw(&unsigned.to_be_signed))?;
    let der = unsigned.assemble(&signature)?;
    made.digest = hex::encode(sha256(&der));
    work.put(&made_record_key(&name), &made)?;
    work.put_bytes(&der_record_key(&name), der);
    if crl.bucket.is_some() {
        publish::crl_pending(work, &name)?;
    }
    if how != How::Meanwhile {
        work.delete(record_key);
    }
    told::tell_success(work, &events::CRL_GENERATED, &authority.arn(), None)?;
    swept.done(&scope, authority.arn(), "GenerateCRL");
    Ok(true)
}

/// The certificates on the CRL. RFC 5280, section 3.3: an expired one stays until it has been on a regularly
/// scheduled CRL after its end.
fn entries(
    work: &Work<'_>,
    authority: &Authority,
    part: Part,
    listed_until: i64,
) -> Result<Vec<Entry<Vec<u8>>>, Fault> {
    let all = revoked_prefix(authority.scope(), authority.id());
    let mut entries = Vec::new();
    for first in part.prefixes() {
        let prefix = format!("{all}{first}");
        let mut after = String::new();
        loop {
            let found = work.scan::<Revoked>(&prefix, &after, PAGE)?;
            let last = found
                .last()
                .filter(|_| found.len() == PAGE)
                .map(|(record_key, _)| record_key.clone());
            for (record_key, revoked) in found {
                if revoked.not_after < listed_until {
                    continue;
                }
                let serial =
                    record_key.get(all.len()..).and_then(|serial| hex::decode(serial).ok());
                entries.push(Entry {
                    serial: serial.ok_or_else(|| damaged(&record_key))?,
                    revoked_at: revoked.revoked_ms.div_euclid(1000),
                    reason: Reason::by_aws_name(&revoked.reason).unwrap_or(UNSPECIFIED),
                });
            }
            match last {
                Some(last) => after = last,
                None => break,
            }
        }
    }
    Ok(entries)
}

/// Records that one read returns.
const PAGE: usize = 5000;

/// Deletes all CRLs of an authority.
pub(super) fn forget(work: &mut Work<'_>, scope: &Scope, id: &str) {
    work.delete(&due_record_key(scope, id));
    for part in Part::all() {
        let name = part.name(id);
        work.delete(&mark_record_key(scope, id, part));
        work.delete(&made_record_key(&name));
        work.delete(&der_record_key(&name));
        publish::forget_crl(work, &name);
    }
}

/// Whether an authority makes CRLs: a disabled one does, a deleted or expired one does not.
fn working(authority: &Authority) -> Option<(&Authority, &Crl, &Certificate)> {
    match authority.status() {
        Status::Active | Status::Disabled => {
            Some((authority, authority.revocation().crl.as_ref()?, authority.certificate()?))
        }
        _ => None,
    }
}

/// Subject key identifier of the issuer.
pub(super) fn issuer_key_id(certificate: &Certificate) -> Result<Vec<u8>, Fault> {
    match certificate.subject_key_identifier() {
        Some(id) => Ok(id),
        None => Ok(key_identifier(&certificate.public_key()?)?),
    }
}

/// The path of a URL, without the leading slash.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_once('/').map_or("", |(_, path)| path)
}

/// Validity of a CRL, in seconds.
fn lifetime(crl: &Crl) -> i64 {
    crl.expiration_days.clamp(1, limits::MAX_CRL_DAYS) * 86_400
}

fn damaged(record_key: &str) -> Fault {
    Fault::Damaged(record_key.to_owned())
}

fn due_record_key(scope: &Scope, id: &str) -> String {
    format!("ca/crl-due/{}/{}/{id}", scope.account, scope.region)
}

fn mark_record_key(scope: &Scope, id: &str, part: Part) -> String {
    format!("{MARKS}{}/{}/{id}/{}", scope.account, scope.region, part.label())
}

/// Prefix of the marks of CRLs that revocations must be added to.
pub(crate) const MARKS: &str = "ca/crl-mark/";
