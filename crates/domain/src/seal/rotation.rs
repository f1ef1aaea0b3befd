//! The rotation of the root key, in steps that are one unit of work each.
//!
//! [`begin`] makes the new key current; from then on nothing that is sealed under the previous one can be committed,
//! because sealing reads the record that names the current key. [`reseal`] walks over the store until nothing is left
//! under the previous key, and [`finish`] removes that key. An interrupted rotation continues with [`reseal`] from
//! the start. [`survey`] tells beforehand whether that walk will meet unreadable records.
//!
//! Another key-encryption key takes over in [`finish`], in one transaction: if anything fails before, the old one
//! still opens everything.

use outlast_crypto::Secret;
use outlast_store::{Record, StoreError};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::{
    Id, Kek, ROOT, RootRecord, SealedUnder, fingerprint, new_key, parse_id, protected_under,
    sealed_under, wrapped_record_key,
};
use crate::Fault;
use crate::records::{self, Protection};
use crate::work::Work;

/// Another key-encryption key for the root keys.
pub struct NewKek<'a> {
    /// The key.
    pub kek: &'a dyn Kek,
    /// What its provider needs to find or derive it again.
    pub parameters: Map<String, Value>,
}

/// The result of one step over the store.
#[derive(Debug, Default)]
pub struct Step {
    /// Where to go on; `None` at the end.
    pub next: Option<String>,
    /// Number of records read.
    pub seen: usize,
    /// Number of records that were sealed again.
    pub resealed: usize,
    /// Keys of records that cannot be opened, or that the service did not write.
    pub unreadable: Vec<String>,
}

/// Makes a new root key and makes it current. A rotation that is under way must be finished first.
pub fn begin(work: &mut Work<'_>) -> Result<RootRecord, Fault> {
    let root = work.root();
    let record = work.get::<RootRecord>(ROOT)?;
    if record.as_ref().is_some_and(|record| record.previous.is_some()) {
        return Err(Fault::RootKey("a rotation is under way".into()));
    }
    let (previous_id, previous) = match &record {
        Some(record) => {
            let id = parse_id(&record.current)?;
            (id, Secret::new(root.key(work.store(), id)?.expose().to_vec()))
        }
        // First layout: the key in the file becomes an ordinary root key, and is replaced now.
        None => {
            let direct = root.kek().direct().ok_or_else(|| Fault::Damaged(ROOT.to_owned()))?;
            let (id, direct) = (fingerprint(direct), Secret::new(direct.expose().to_vec()));
            keep(work, root.kek(), id, &direct)?;
            (id, direct)
        }
    };
    let (id, key) = new_key()?;
    keep(work, root.kek(), id, &key)?;
    root.remember(previous_id, previous);
    root.remember(id, key);
    let record = RootRecord {
        current: hex::encode(id),
        previous: Some(hex::encode(previous_id)),
        provider: root.kek().provider().to_owned(),
        parameters: record.map(|record| record.parameters).unwrap_or_default(),
        created_ms: work.now_ms(),
    };
    work.put_root(&record)?;
    Ok(record)
}

/// Reads up to `limit` records after `after` as [`reseal`] will, and writes nothing.
pub fn survey(work: &mut Work<'_>, after: &str, limit: usize) -> Result<Step, Fault> {
    let (mut step, found) = page(work, after, limit)?;
    for (key, stored) in found {
        let outcome = match found_as(&key, &stored.value) {
            Found::Plain => continue,
            Found::Odd => Err(Fault::Damaged(key.clone())),
            Found::Sealed => work.secret(&key).map(|_| ()),
            Found::Authentic => work.scanned::<IgnoredAny>(&key, stored).map(|_| ()),
        };
        match outcome {
            // A record that has just changed was written under the current key.
            Ok(()) | Err(Fault::Store(StoreError::Conflict)) => {}
            Err(Fault::Damaged(_) | Fault::Forged(_)) => step.unreadable.push(key),
            Err(fault) => return Err(fault),
        }
    }
    Ok(step)
}

/// Seals or authenticates again what is not yet under the current root key, among up to `limit` records after
/// `after`.
pub fn reseal(work: &mut Work<'_>, after: &str, limit: usize) -> Result<Step, Fault> {
    let record = work.get::<RootRecord>(ROOT)?.ok_or_else(|| Fault::Damaged(ROOT.to_owned()))?;
    let current = SealedUnder::Id(record.current);
    let (mut step, found) = page(work, after, limit)?;
    for (key, stored) in found {
        let is_done = protected_under(&key, &stored.value).is_some_and(|under| under == current);
        let outcome = match found_as(&key, &stored.value) {
            Found::Plain => continue,
            Found::Odd => Err(Fault::Damaged(key.clone())),
            Found::Sealed | Found::Authentic if is_done => continue,
            Found::Sealed => match work.secret(&key) {
                Ok(Some(secret)) => work.put_secret(&key, &secret),
                Ok(None) => continue,
                Err(fault) => Err(fault),
            },
            Found::Authentic => work.authenticate_again(&key),
        };
        match outcome {
            Ok(()) => step.resealed += 1,
            Err(Fault::Damaged(_) | Fault::Forged(_)) => step.unreadable.push(key),
            Err(fault) => return Err(fault),
        }
    }
    Ok(step)
}

/// Finishes the rotation: removes the previous key, and wraps the current one with `new_kek` if there is one. Only
/// after a walk over the whole store has left nothing under the previous key.
pub fn finish(work: &mut Work<'_>, new_kek: Option<&NewKek<'_>>) -> Result<RootRecord, Fault> {
    let mut record =
        work.get::<RootRecord>(ROOT)?.ok_or_else(|| Fault::Damaged(ROOT.to_owned()))?;
    let previous = record.previous.take();
    if previous.is_none() && new_kek.is_none() {
        return Ok(record);
    }
    if let Some(new) = new_kek {
        let id = parse_id(&record.current)?;
        let key = work.root().key(work.store(), id)?;
        keep(work, new.kek, id, &key)?;
        new.kek.provider().clone_into(&mut record.provider);
        record.parameters.clone_from(&new.parameters);
    }
    if let Some(previous) = previous {
        work.delete(&wrapped_record_key(&previous));
    }
    work.put_root(&record)?;
    Ok(record)
}

/// Checks that a key-encryption key wraps and unwraps, before anything depends on it.
pub fn try_out(kek: &dyn Kek) -> Result<(), Fault> {
    let (id, key) = new_key()?;
    let record_key = wrapped_record_key(&hex::encode(id));
    let unwrapped = kek.unwrap(&record_key, &kek.wrap(&record_key, &key)?)?;
    if fingerprint(&unwrapped) == id {
        return Ok(());
    }
    Err(Fault::RootKey("it does not unwrap what it has wrapped to the same key".into()))
}

/// What the bytes of a record are, compared with its kind.
enum Found {
    /// Its kind has no protection under a root key.
    Plain,
    Sealed,
    Authentic,
    /// It should be sealed or authenticated, and is neither.
    Odd,
}

fn found_as(key: &str, value: &[u8]) -> Found {
    let kind = records::kind(key).map(|kind| kind.protection);
    let is_sealed = sealed_under(key, value).is_some();
    match kind {
        Some(Protection::Plain) => Found::Plain,
        Some(Protection::Sealed) | None if is_sealed => Found::Sealed,
        Some(Protection::Sealed) => Found::Odd,
        _ if protected_under(key, value).is_some() && !is_sealed => Found::Authentic,
        _ => Found::Odd,
    }
}

/// The next records, and a step that says where to continue.
fn page(
    work: &Work<'_>,
    after: &str,
    limit: usize,
) -> Result<(Step, Vec<(String, Record)>), Fault> {
    let found = work.store().scan("", after, limit)?;
    let last = found.last().filter(|_| found.len() == limit);
    let next = last.map(|(key, _)| key.clone());
    Ok((Step { next, seen: found.len(), ..Step::default() }, found))
}

fn keep(work: &mut Work<'_>, kek: &dyn Kek, id: Id, key: &Secret) -> Result<(), Fault> {
    let record_key = wrapped_record_key(&hex::encode(id));
    let wrapped = kek.wrap(&record_key, key)?;
    work.put_bytes(&record_key, wrapped);
    Ok(())
}
