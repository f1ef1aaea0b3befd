//! The register: the newest version of each record that decides something, according to the audit events.
//!
//! A tag proves that the service wrote a record, but not that it has written no newer one since ([`crate::seal`]). So
//! the transaction that changes such a record notes its stamps in an audit event, in the member [`MEMBER`]: the
//! record's key, its stamp before and its stamp after, null where there is none. Events are append-only;
//! they show for each record whether it is the newest, was put back after it was deleted, or was removed.
//!
//! So that a server need not read all events when it starts, a sealed record ([`HEAD`]) has a digest of all such
//! records and their stamps as of one event. The digest is the exclusive or of one HMAC for each record, so that
//! later events update it in any order, and none of them has to write it. An old copy of the head is harmless: the
//! events since bring it up to date. Only the events must not go back.

pub(crate) mod changes;

use std::collections::BTreeMap;

use outlast_crypto::{Secret, hmac, random};
use outlast_store::{Event, Store};
use serde::{Deserialize, Serialize};

pub use changes::MEMBER;
use changes::{Change, PAGE, each_event, is_registered, registered};

use crate::Fault;
use crate::records;
use crate::seal::layout;
use crate::work::Work;

/// Key of the sealed record with the digest. A store has one from the beginning.
pub const HEAD: &str = "audit/records";

/// The digest of the registered records as of an event.
#[derive(Serialize, Deserialize)]
struct Head {
    /// Key of the digest's HMACs.
    key: [u8; KEY_LEN],
    digest: [u8; DIGEST_LEN],
    /// Sequence of the event.
    sequence: u64,
}

const KEY_LEN: usize = 32;
const DIGEST_LEN: usize = 32;

impl Head {
    fn new(sequence: u64) -> Result<Self, Fault> {
        let mut key = [0; KEY_LEN];
        key.copy_from_slice(random::secret(KEY_LEN)?.expose());
        Ok(Self { key, digest: [0; DIGEST_LEN], sequence })
    }

    fn parse(secret: &Secret) -> Result<Self, Fault> {
        serde_json::from_slice(secret.expose()).map_err(|_| Fault::Damaged(HEAD.to_owned()))
    }

    fn read(work: &mut Work<'_>) -> Result<Self, Fault> {
        let secret = work.secret(HEAD)?.ok_or_else(|| Fault::Damaged(HEAD.to_owned()))?;
        Self::parse(&secret)
    }

    fn write(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        let json = serde_json::to_vec(self).map_err(|error| Fault::Encoding(error.to_string()))?;
        work.put_secret(HEAD, &Secret::new(json))
    }

    /// Adds or removes a record.
    fn toggle(&mut self, key: &hmac::Key, record_key: &str, stamp: u64) {
        let one = key.sign(&[&stamp.to_be_bytes(), record_key.as_bytes()]);
        self.digest.iter_mut().zip(one).for_each(|(sum, byte)| *sum ^= byte);
    }

    fn add_all<'a>(&mut self, records: impl IntoIterator<Item = (&'a String, &'a u64)>) {
        let key = hmac::Key::new(&self.key);
        for (record_key, stamp) in records {
            self.toggle(&key, record_key, *stamp);
        }
    }

    /// Applies the events up to `last`, and passes each change to `each`.
    fn follow(
        &mut self,
        store: &dyn Store,
        last: u64,
        mut each: impl FnMut(&Change),
    ) -> Result<(), Fault> {
        let key = hmac::Key::new(&self.key);
        each_event(store, self.sequence, last, |event| {
            for change in registered(&event.body) {
                for stamp in [change.was, change.is].into_iter().flatten() {
                    self.toggle(&key, &change.record_key, stamp);
                }
                each(&change);
            }
            self.sequence = event.sequence;
        })
    }
}

/// The stamps of the registered records, not verified.
fn stored(store: &dyn Store) -> Result<BTreeMap<String, u64>, Fault> {
    let mut all = BTreeMap::new();
    for kind in records::KINDS.iter().filter(|kind| kind.is_registered) {
        let mut after = String::new();
        loop {
            let page = store.scan(kind.key, &after, PAGE)?;
            let Some((last, _)) = page.last() else { break };
            after.clone_from(last);
            let stamped = page.into_iter().filter_map(|(record_key, record)| {
                layout::stamp(&record.value).map(|stamp| (record_key, stamp))
            });
            all.extend(stamped);
        }
    }
    Ok(all)
}

/// Writes the head of a new store: over the records of this work, and those in the store, which must not change any
/// more.
pub fn begin(work: &mut Work<'_>) -> Result<(), Fault> {
    let mut records = stored(work.store())?;
    for (record_key, stamp) in
        work.written_stamps().filter(|(record_key, _)| is_registered(record_key))
    {
        match stamp {
            Some(stamp) => records.insert(record_key.clone(), stamp),
            None => records.remove(record_key),
        };
    }
    let mut head = Head::new(work.store().last_event()?)?;
    head.add_all(&records);
    head.write(work)
}

/// Brings the head up to date with the events, if there is one. Remembers the stamps in them, so that an older record
/// is refused even if another process wrote the newest.
pub fn follow(work: &mut Work<'_>) -> Result<(), Fault> {
    let last = work.store().last_event()?;
    let Some(secret) = work.secret(HEAD)? else { return Ok(()) };
    let mut head = Head::parse(&secret)?;
    let (from, mut changed) = (head.sequence, false);
    let stamps = work.root().stamps();
    head.follow(work.store(), last, |change| {
        stamps.told(&change.record_key, change.was, change.is);
        changed = true;
    })?;
    stamps.followed(head.sequence);
    // From time to time it is updated without a change, so that few events are left to read.
    if changed || head.sequence - from >= PAGE as u64 {
        head.write(work)?;
    }
    Ok(())
}

/// The first event that is still needed: those before may be pruned.
pub(crate) fn first_needed(work: &mut Work<'_>) -> Result<u64, Fault> {
    let Some(secret) = work.secret(HEAD)? else { return Ok(u64::MAX) };
    Ok(Head::parse(&secret)?.sequence)
}

/// Checks that the registered records are those of head and events. Other processes may be writing. Remembers their
/// stamps, so that an older record is refused from now on.
pub fn holds(work: &mut Work<'_>) -> Result<bool, Fault> {
    let store = work.store();
    let mut told = Head::read(work)?;
    let before = store.last_event()?;
    let mut records = stored(store)?;
    let last = store.last_event()?;
    // A record that changed while the records were read counts as changed.
    each_event(store, before, last, |event| {
        for change in registered(&event.body) {
            match change.is {
                Some(stamp) => records.insert(change.record_key, stamp),
                None => records.remove(&change.record_key),
            };
        }
    })?;
    let mut found = Head { digest: [0; DIGEST_LEN], ..told };
    found.add_all(&records);
    told.follow(store, last, |_| {})?;
    if !hmac::equal(&told.digest, &found.digest) {
        return Ok(false);
    }
    let stamps = work.root().stamps();
    // Before the records are seen: if there are too many, the first are forgotten, and this with them.
    stamps.saw_all(last);
    for (record_key, stamp) in &records {
        stamps.saw(record_key, *stamp);
    }
    Ok(true)
}

/// Compares the records with the events.
#[derive(Default)]
pub(crate) struct Register {
    /// Stamps in the records, and whether each record verifies; others report those that do not.
    stored: BTreeMap<String, (Option<u64>, bool)>,
    /// The last stamps in the events.
    told: BTreeMap<String, Option<u64>>,
    /// The head, brought up to date.
    head: Option<Head>,
}

impl Register {
    /// Takes a record, and whether it verifies.
    pub fn record(&mut self, record_key: &str, value: &[u8], verifies: bool) {
        if is_registered(record_key) {
            self.stored.insert(record_key.to_owned(), (layout::stamp(value), verifies));
        }
    }

    /// Takes a secret, if it is the head.
    pub fn secret(&mut self, record_key: &str, secret: &Secret) -> bool {
        if record_key == HEAD {
            self.head = Head::parse(secret).ok();
        }
        record_key == HEAD
    }

    /// Takes the next event.
    pub fn event(&mut self, event: &Event) {
        let head = self.head.as_mut().filter(|head| head.sequence < event.sequence);
        let mut head = head.map(|head| (hmac::Key::new(&head.key), head));
        for change in registered(&event.body) {
            if let Some((key, head)) = &mut head {
                for stamp in [change.was, change.is].into_iter().flatten() {
                    head.toggle(key, &change.record_key, stamp);
                }
            }
            self.told.insert(change.record_key, change.is);
        }
    }

    /// Records that differ from the events, after all of both were taken. Whether a head must exist is checked
    /// elsewhere.
    pub fn end(&self, has_head: bool) -> Vec<(String, &'static str)> {
        let differs = |(record_key, told): (&String, &Option<u64>)| {
            let stored = self.stored.get(record_key);
            if stored.is_some_and(|(_, verifies)| !verifies) {
                return None;
            }
            let what = match (stored.and_then(|(stamp, _)| *stamp), told) {
                (None, Some(_)) => "it is missing: the audit events do not say that it was deleted",
                (Some(_), None) => "it was put back: the audit events say that it was deleted",
                (Some(stored), Some(told)) if stored < *told => {
                    "it is older than the audit events say: an earlier state was put back"
                }
                (Some(stored), Some(told)) if stored > *told => {
                    "the audit events do not record its last change"
                }
                _ => return None,
            };
            Some((record_key.clone(), what))
        };
        let mut found: Vec<_> = self.told.iter().filter_map(differs).collect();
        let total = self.head.as_ref().map(|head| {
            let mut total = Head { digest: [0; DIGEST_LEN], ..*head };
            let stamps = self.stored.iter();
            total.add_all(
                stamps.filter_map(|(record_key, (stamp, _))| Some((record_key, stamp.as_ref()?))),
            );
            (total.digest, head.digest)
        });
        let what = match total {
            None if has_head => "it is missing, or cannot be read",
            // Problems that are listed already are not repeated.
            Some((total, told)) if total != told && found.is_empty() => {
                "the records that decide who may do what are not those that it was computed from: some were added, put \
                 back or removed"
            }
            _ => return found,
        };
        found.push((HEAD.to_owned(), what));
        found
    }
}
