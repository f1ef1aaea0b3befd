//! The rotation of the root key, as steps that are each one unit of work.
//!
//! [`begin`] makes the new key current; from then on nothing can be committed that is sealed under the one
//! before, since every sealing relies on the record that says which key is current. [`reseal`] walks over
//! the store until nothing is left under the key before, and [`finish`] removes it. Whoever stops in between
//! goes on with [`reseal`] from the start.

use serde_json::{Map, Value};

use super::authentic::{Protection, protection};
use super::{
    Id, Kek, ROOT, RootRecord, SealedUnder, fingerprint, new_key, parse_id, protected_under,
    sealed_under, wrapped_place,
};
use crate::Fault;
use crate::work::Work;
use outlast_crypto::Secret;

/// Another key-encryption key, under which the root keys shall be from now on.
pub struct NewKek<'a> {
    /// The key.
    pub kek: &'a dyn Kek,
    /// What its provider needs to find or derive it again.
    pub parameters: Map<String, Value>,
}

/// What one step over the store has done.
#[derive(Debug, Default)]
pub struct Step {
    /// Where to go on; `None` at the end.
    pub next: Option<String>,
    /// Records looked at.
    pub seen: usize,
    /// Records that were sealed again.
    pub resealed: usize,
    /// Records that should be sealed and do not open.
    pub unreadable: Vec<String>,
}

/// Makes a new root key the current one. A rotation that is under way must be finished first.
pub fn begin(work: &mut Work<'_>, new_kek: Option<&NewKek<'_>>) -> Result<RootRecord, Fault> {
    let root = work.root();
    let record = work.get::<RootRecord>(ROOT)?;
    if record.as_ref().is_some_and(|record| record.previous.is_some()) {
        return Err(Fault::RootKey("a rotation is under way".into()));
    }
    let (provider, parameters) = match (new_kek, &record) {
        (Some(new), _) => (new.kek.provider(), new.parameters.clone()),
        (None, Some(record)) => (root.kek().provider(), record.parameters.clone()),
        (None, None) => (root.kek().provider(), Map::new()),
    };
    let kek = new_kek.map_or(root.kek(), |new| new.kek);
    let (previous_id, previous) = match &record {
        Some(record) => {
            let id = parse_id(&record.current)?;
            (id, Secret::new(root.key(work.store(), id)?.expose().to_vec()))
        }
        // The first layout: the key in the file becomes an ordinary root key, which is replaced now.
        None => {
            let direct = root.kek().direct().ok_or_else(|| Fault::Damaged(ROOT.to_owned()))?;
            (fingerprint(direct), Secret::new(direct.expose().to_vec()))
        }
    };
    if new_kek.is_some() || record.is_none() {
        keep(work, kek, previous_id, &previous)?;
    }
    let (id, key) = new_key()?;
    keep(work, kek, id, &key)?;
    root.remember(previous_id, previous);
    root.remember(id, key);
    let record = RootRecord {
        current: hex::encode(id),
        previous: Some(hex::encode(previous_id)),
        provider: provider.to_owned(),
        parameters,
        created_ms: work.now_ms(),
    };
    work.put_root(&record)?;
    Ok(record)
}

/// Seals or authenticates what is not yet under the current root key: looks at up to `limit` records after `after`.
pub fn reseal(work: &mut Work<'_>, after: &str, limit: usize) -> Result<Step, Fault> {
    let record = work.get::<RootRecord>(ROOT)?.ok_or_else(|| Fault::Damaged(ROOT.to_owned()))?;
    let current = SealedUnder::Id(record.current);
    let found = work.store().scan("", after, limit)?;
    let mut step = Step { seen: found.len(), ..Step::default() };
    step.next = (found.len() == limit).then(|| found.last().map(|(key, _)| key.clone())).flatten();
    for (key, stored) in found {
        match protected_under(&key, &stored.value) {
            Some(under) if under == current => {}
            Some(_) if sealed_under(&key, &stored.value).is_none() => {
                match work.authenticate_again(&key) {
                    Ok(()) => step.resealed += 1,
                    Err(Fault::Forged(_)) => step.unreadable.push(key),
                    Err(fault) => return Err(fault),
                }
            }
            Some(_) => match work.secret(&key) {
                Ok(Some(secret)) => {
                    work.put_secret(&key, &secret)?;
                    step.resealed += 1;
                }
                Ok(None) => {}
                Err(Fault::Damaged(_)) => step.unreadable.push(key),
                Err(fault) => return Err(fault),
            },
            None if protection(&key) == Protection::Plain => {}
            None => step.unreadable.push(key),
        }
    }
    Ok(step)
}

/// Ends the rotation: removes the key before. Only after a walk over the whole store that left nothing under
/// it.
pub fn finish(work: &mut Work<'_>) -> Result<RootRecord, Fault> {
    let mut record =
        work.get::<RootRecord>(ROOT)?.ok_or_else(|| Fault::Damaged(ROOT.to_owned()))?;
    if let Some(previous) = record.previous.take() {
        work.delete(&wrapped_place(&previous));
        work.put_root(&record)?;
    }
    Ok(record)
}

fn keep(work: &mut Work<'_>, kek: &dyn Kek, id: Id, key: &Secret) -> Result<(), Fault> {
    let place = wrapped_place(&hex::encode(id));
    let wrapped = kek.wrap(&place, key)?;
    work.put_bytes(&place, wrapped);
    Ok(())
}
