//! A unit of work: everything one operation reads and writes, committed as a whole.
//!
//! Each record that was read must still have the same version at commit, so that operations behave as if
//! they ran one after the other. A conflict means: run the operation again.
//!
//! A record that the service did not write ([`crate::seal`]) is refused: [`Fault::Forged`].

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_crypto::Secret;
use outlast_store::tally::Tally;
use outlast_store::{NewEvent, Record, Store, StoreError, Transaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Fault;
use crate::arn::Scope;
use crate::quotas::{Quota, Quotas, Reached};
use crate::records::{self, Protection, protection};
use crate::register::changes::{self, Change, is_registered};
use crate::seal::layout::{self, stamp as stamp_of};
use crate::seal::{self, RootKey, RootRecord};
use crate::settings::Settings;

/// A page of a list.
#[derive(Debug)]
pub struct Page<T> {
    /// The items, in order of their keys.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one: the last key, without the prefix.
    pub next: Option<String>,
}

/// Work that a sweep through the whole store finds and does from time to time.
#[derive(Clone, Copy)]
pub struct Sweep {
    /// Finds what is due among up to so many records after a key. Its reads take no part in conflict detection.
    pub find: fn(&Work<'_>, &str, usize) -> Result<Due, Fault>,
    /// Handles one of those, if it is still due, and notes what it did.
    pub handle: fn(&mut Work<'_>, &str, &mut Swept) -> Result<(), Fault>,
}

/// Result of one step of a sweep.
#[derive(Debug, Default)]
pub struct Due {
    /// The keys of the records that are due.
    pub record_keys: Vec<String>,
    /// The keys of the records that cannot be read.
    pub damaged: Vec<String>,
    /// Key after which to go on, if there is more.
    pub next: Option<String>,
}

/// Notes on what a sweep has done.
#[derive(Debug, Default)]
pub struct Swept {
    /// Items that have an audit event.
    pub done: Vec<Done>,
    /// Materials that are gone once this is committed; until then a call could load them again.
    pub erased: Vec<String>,
}

/// One item that a sweep handled.
#[derive(Debug)]
pub struct Done {
    /// Account and Region of the resource.
    pub scope: Scope,
    /// Its ARN.
    pub arn: String,
    /// CloudTrail's name of the event, such as `DeleteKey`.
    pub event: &'static str,
}

impl Swept {
    /// Notes what was done.
    pub fn done(&mut self, scope: &Scope, arn: String, event: &'static str) {
        self.done.push(Done { scope: scope.clone(), arn, event });
    }
}

/// Version and stamp of a record that was read.
#[derive(Clone, Copy)]
struct Seen {
    version: Option<u64>,
    /// Its stamp, if it is authenticated.
    stamp: Option<u64>,
}

/// One operation's view of the store.
pub struct Work<'a> {
    store: &'a dyn Store,
    root: &'a RootKey,
    now_ms: i64,
    reads: BTreeMap<String, Seen>,
    writes: BTreeMap<String, Option<Vec<u8>>>,
    prune_events: Option<u64>,
    quotas: Option<&'a Quotas>,
    settings: Option<Arc<Settings>>,
    /// Quotas of what this work creates.
    admitted: BTreeMap<String, u64>,
    /// The record [`seal::ROOT`], once it was needed.
    root_record: Option<Option<RootRecord>>,
}

impl<'a> Work<'a> {
    /// Begins at the time `now_ms`, milliseconds since 1970.
    pub fn new(store: &'a dyn Store, root: &'a RootKey, now_ms: i64) -> Self {
        Self {
            store,
            root,
            now_ms,
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            prune_events: None,
            quotas: None,
            settings: None,
            admitted: BTreeMap::new(),
            root_record: None,
        }
    }

    /// With these quotas instead of the defaults.
    pub fn limited(mut self, quotas: &'a Quotas) -> Self {
        self.quotas = Some(quotas);
        self
    }

    /// With these settings of the operator.
    pub fn under(mut self, settings: Arc<Settings>) -> Self {
        self.settings = Some(settings);
        self
    }

    /// The operator's settings.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.clone().unwrap_or_default()
    }

    /// The quotas.
    pub(crate) fn quota(&self, quota: &Quota) -> u64 {
        self.quotas.map_or(quota.default, |quotas| quotas.get(quota))
    }

    /// Checks that the quota admits one more below these parts of its records' keys. The commit checks again, and conflicts if
    /// another one was quicker.
    ///
    /// # Errors
    /// [`Reached`], and the store's errors.
    pub(crate) fn admit<E>(&mut self, quota: &Quota, parts: &[&str]) -> Result<(), E>
    where
        E: From<Fault> + From<Reached>,
    {
        let (prefix, most) = (format!("{}{}/", quota.kind, parts.join("/")), self.quota(quota));
        let there = self.store.count(&prefix).map_err(Fault::from)?;
        let written = self.writes.range(prefix.clone()..);
        let mine = written.take_while(|(record_key, _)| record_key.starts_with(&prefix));
        let (mut made, mut deleted) = (0, 0);
        for (record_key, value) in mine {
            made += u64::from(self.makes(record_key, value.is_some()));
            deleted += u64::from(self.deletes(record_key, value.is_some()));
        }
        let count = (there + made).saturating_sub(deleted);
        self.admitted.insert(prefix, most);
        if count >= most { Err(Reached::new(quota, most).into()) } else { Ok(()) }
    }

    /// The time of the operation, milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// The time of the operation, seconds since 1970.
    pub fn now(&self) -> i64 {
        self.now_ms.div_euclid(1000)
    }

    /// The record with this key, as written earlier in this work or as stored.
    pub fn get<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, Fault> {
        if let Some(written) = self.writes.get(key) {
            return written.as_ref().map(|value| decode(key, value)).transpose();
        }
        self.read(key)?.map(|record| decode(key, &record.value)).transpose()
    }

    /// Whether there is a record with this key.
    pub fn exists(&mut self, key: &str) -> Result<bool, Fault> {
        match self.writes.get(key) {
            Some(written) => Ok(written.is_some()),
            None => {
                let found = self.store.read(key)?;
                match found.filter(|found| seal::sealed_under(key, &found.value).is_some()) {
                    // A caller that relies on the contents must open the sealed record.
                    Some(sealed) => self.note_read(key, Some(&sealed)).map(|()| true),
                    None => Ok(self.read(key)?.is_some()),
                }
            }
        }
    }

    /// Writes a record. The one that it replaces counts as read.
    pub fn put<T: Serialize>(&mut self, key: &str, value: &T) -> Result<(), Fault> {
        let stamp = match protection(key) {
            Protection::Sealed | Protection::Ordered => Some(self.next_stamp(key)?),
            Protection::Unordered | Protection::Plain => None,
        };
        self.write(key, &encode(value)?, stamp)
    }

    /// Deletes the events up to this sequence, except the last.
    pub(crate) fn prune_events(&mut self, upto: u64) {
        self.prune_events = Some(upto);
    }

    /// Writes a record under a random name, which cannot exist yet. Reads nothing.
    pub fn create<T: Serialize>(&mut self, key: &str, value: &T) -> Result<(), Fault> {
        self.write(key, &encode(value)?, None)
    }

    /// Writes a record with this stamp, or with one made from the time.
    fn write(&mut self, key: &str, json: &[u8], stamp: Option<u64>) -> Result<(), Fault> {
        if protection(key) == Protection::Plain {
            self.put_bytes(key, json.to_vec());
            return Ok(());
        }
        let stamp = stamp.unwrap_or_else(|| self.root.stamps().fresh(key, self.now_ms));
        let record = self.root_record()?;
        let value = self.root.authenticate(self.store, record.as_ref(), key, stamp, json)?;
        self.put_bytes(key, value);
        Ok(())
    }

    /// Deletes a record without reading it.
    pub fn delete(&mut self, key: &str) {
        if is_registered(key) && !self.reads.contains_key(key) {
            // The stamp that goes away is noted. If the store cannot be read the commit fails: no version is 0.
            if let Err(Fault::Store(_)) = self.read(key) {
                self.reads.insert(key.to_owned(), Seen { version: Some(0), stamp: None });
            }
        }
        self.writes.insert(key.to_owned(), None);
    }

    /// Up to `limit` stored records below `prefix`, after `after`. Takes no part in conflict detection.
    pub fn scan<T: DeserializeOwned>(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, T)>, Fault> {
        self.store
            .scan(prefix, after, limit)?
            .into_iter()
            .map(|(key, record)| {
                let value = self.scanned(&key, record)?;
                Ok((key, value))
            })
            .collect()
    }

    /// The contents of a record that a scan has found.
    pub(crate) fn scanned<T: DeserializeOwned>(
        &self,
        key: &str,
        mut record: Record,
    ) -> Result<T, Fault> {
        while let Err(fault) = self.verify(key, &record) {
            // It may have changed since, and again while the newer one was verified.
            let fresh = self.store.read_fresh(key)?.ok_or(StoreError::Conflict)?;
            if fresh.version == record.version {
                return Err(fault);
            }
            record = fresh;
        }
        decode(key, &record.value)
    }

    /// The records that are due at this time, among up to `limit` stored records below `prefix`, after `after`. One
    /// that cannot be read hides no others.
    pub(crate) fn due<T: DeserializeOwned>(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
        is_due: fn(&T, i64) -> bool,
    ) -> Result<Due, Fault> {
        let found = self.store.scan(prefix, after, limit)?;
        let last = found.last().filter(|_| found.len() == limit);
        let mut due = Due {
            record_keys: Vec::new(),
            damaged: Vec::new(),
            next: last.map(|(key, _)| key.clone()),
        };
        for (key, record) in found {
            match self.scanned(&key, record) {
                Ok(value) if is_due(&value, self.now_ms) => due.record_keys.push(key),
                Ok(_) | Err(Fault::Store(StoreError::Conflict)) => {}
                Err(Fault::Damaged(_) | Fault::Forged(_)) => due.damaged.push(key),
                Err(fault) => return Err(fault),
            }
        }
        Ok(due)
    }

    /// A page of up to `limit` stored records below `prefix`, after the `next` of the previous page. Takes no part in
    /// conflict detection.
    pub fn page<T: DeserializeOwned>(
        &self,
        prefix: &str,
        marker: Option<&str>,
        limit: usize,
    ) -> Result<Page<T>, Fault> {
        let after = marker.map(|last| format!("{prefix}{last}")).unwrap_or_default();
        let mut found = self.scan(prefix, &after, limit + 1)?;
        let more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().and_then(|(key, _)| key.strip_prefix(prefix)).map(str::to_owned);
        let items = found.into_iter().map(|(_, item)| item).collect();
        Ok(Page { items, next: last.filter(|_| more) })
    }

    /// Writes a secret, sealed for its record key under the current root key. The record that names that root key
    /// counts as read: after a rotation has begun, nothing that is sealed under the previous key can be committed.
    pub fn put_secret(&mut self, key: &str, secret: &Secret) -> Result<(), Fault> {
        let record = self.root_record()?;
        let sealed = self.root.seal(self.store, record.as_ref(), key, secret)?;
        self.put_bytes(key, sealed);
        Ok(())
    }

    /// Reads a secret.
    pub fn secret(&mut self, key: &str) -> Result<Option<Secret>, Fault> {
        let sealed = match self.writes.get(key) {
            Some(written) => written.clone(),
            None => {
                let record = self.store.read(key)?;
                self.note_read(key, record.as_ref())?;
                record.map(|record| record.value)
            }
        };
        let Some(sealed) = sealed else { return Ok(None) };
        let opened = self.root.open(self.store, key, &sealed);
        if opened.is_err() {
            // Its root key may have been replaced and removed since it was read: then the secret has changed, too.
            let version = self.store.read_fresh(key)?.map(|record| record.version);
            if self.reads.get(key).is_some_and(|read| read.version != version) {
                return Err(StoreError::Conflict.into());
            }
        }
        opened.map(Some)
    }

    /// Replaces the record of root keys.
    pub(crate) fn put_root(&mut self, record: &RootRecord) -> Result<(), Fault> {
        let stamp = self.next_stamp(seal::ROOT)?;
        self.write_root(record, stamp)
    }

    fn write_root(&mut self, record: &RootRecord, stamp: u64) -> Result<(), Fault> {
        self.root_record = None;
        let json = encode(record)?;
        let value = self.root.authenticate(self.store, Some(record), seal::ROOT, stamp, &json)?;
        self.put_bytes(seal::ROOT, value);
        Ok(())
    }

    /// The same, whatever the record contains now.
    pub(crate) fn replace_root(&mut self, record: &RootRecord) -> Result<(), Fault> {
        let before = self.store.read(seal::ROOT)?;
        self.note_read(seal::ROOT, before.as_ref())?;
        let stamp = before.and_then(|before| stamp_of(&before.value));
        let stamp = stamp
            .map_or_else(|| self.root.stamps().fresh(seal::ROOT, self.now_ms), |stamp| stamp + 1);
        self.write_root(record, stamp)
    }

    /// Authenticates a record under the current root key, as it is. Its stamp stays.
    pub(crate) fn authenticate_again(&mut self, key: &str) -> Result<(), Fault> {
        let Some(before) = self.read(key)? else { return Ok(()) };
        let Some(stamp) = stamp_of(&before.value) else { return Ok(()) };
        let (record, json) = (self.root_record()?, layout::json(&before.value));
        let value = self.root.authenticate(self.store, record.as_ref(), key, stamp, json)?;
        self.put_bytes(key, value);
        Ok(())
    }

    /// Writes a record that is not JSON: a sealed or wrapped one.
    pub(crate) fn put_bytes(&mut self, key: &str, bytes: Vec<u8>) {
        self.writes.insert(key.to_owned(), Some(bytes));
    }

    /// The root keys.
    pub(crate) fn root(&self) -> &'a RootKey {
        self.root
    }

    /// The store, for reads that take no part in conflict detection.
    pub(crate) fn store(&self) -> &'a dyn Store {
        self.store
    }

    /// Whether anything would be written.
    pub fn writes_anything(&self) -> bool {
        !self.writes.is_empty()
    }

    /// The transaction that records a refusal: it writes nothing but the events, if the records that were read still hold.
    pub fn into_refusal(mut self, events: Vec<Vec<u8>>) -> Transaction {
        self.writes.clear();
        Transaction {
            tallies: self.tallies(),
            expectations: expectations(self.reads),
            events: events.into_iter().map(NewEvent::new).collect(),
            ..Transaction::default()
        }
    }

    /// The same, but keeps one record that this work has written.
    pub fn into_refusal_keeping(mut self, record_key: &str, events: Vec<Vec<u8>>) -> Transaction {
        self.writes.retain(|written, _| written == record_key);
        self.into_transaction(events)
    }

    /// Whether every record that was read is unchanged. If not, a contradiction between records may come from reads
    /// at different times.
    pub fn is_current(&self) -> Result<bool, Fault> {
        for (key, seen) in &self.reads {
            if self.store.read_fresh(key)?.map(|record| record.version) != seen.version {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The transaction, with the events that record it. The first event lists the changes of registered records; if there is
    /// none, one is added.
    pub fn into_transaction(self, mut events: Vec<Vec<u8>>) -> Transaction {
        let change = |(record_key, value): (&String, &Option<Vec<u8>>)| {
            let was = self.reads.get(record_key).and_then(|seen| seen.stamp);
            let is = value.as_deref().and_then(stamp_of);
            let changes = was != is && is_registered(record_key);
            changes.then(|| Change { record_key: record_key.clone(), was, is })
        };
        let changes: Vec<_> = self.writes.iter().filter_map(change).collect();
        changes::note(&mut events, &changes, self.now_ms);
        let events = events.into_iter().map(NewEvent::new).collect();
        Transaction { events, ..self.into_first_transaction() }
    }

    /// The stamps of the records to be written; none where a record is deleted.
    pub(crate) fn written_stamps(&self) -> impl Iterator<Item = (&String, Option<u64>)> {
        self.writes
            .iter()
            .map(|(record_key, value)| (record_key, value.as_deref().and_then(stamp_of)))
    }

    /// The first transaction of a store, which no event records.
    pub fn into_first_transaction(self) -> Transaction {
        Transaction {
            tallies: self.tallies(),
            expectations: expectations(self.reads),
            writes: self.writes.into_iter().collect(),
            prune_events: self.prune_events,
            events: Vec::new(),
        }
    }

    /// Whether a write creates a record.
    fn makes(&self, record_key: &str, is_there: bool) -> bool {
        is_there && self.reads.get(record_key).is_none_or(|seen| seen.version.is_none())
    }

    /// Whether a write deletes a record.
    fn deletes(&self, record_key: &str, is_there: bool) -> bool {
        !is_there && self.reads.get(record_key).is_some_and(|seen| seen.version.is_some())
    }

    /// The counts that the writes may change, and those that a quota was compared with.
    fn tallies(&self) -> Vec<Tally> {
        let mut named: BTreeMap<String, Option<u64>> =
            self.admitted.iter().map(|(prefix, most)| (prefix.clone(), Some(*most))).collect();
        for (record_key, value) in &self.writes {
            // A record that existed and still will changes no count; the commit verifies that it existed.
            let was = self.reads.get(record_key).map(|seen| seen.version.is_some());
            if was != Some(value.is_some())
                && let Some(prefix) =
                    records::kind(record_key).and_then(|kind| kind.tally_of(record_key))
            {
                named.entry(prefix).or_default();
            }
        }
        named.into_iter().map(|(prefix, at_most)| Tally { prefix, at_most }).collect()
    }

    /// Authenticates a record that an earlier version has written.
    pub(crate) fn authenticate_plain(&mut self, key: &str, record: &Record) -> Result<(), Fault> {
        if self.root_record.is_none() {
            // It may be plain itself.
            let stored = self.store.read(seal::ROOT)?;
            self.note_read(seal::ROOT, stored.as_ref())?;
            let said = stored.map(|stored| decode(seal::ROOT, &stored.value)).transpose()?;
            self.root_record = Some(said);
        }
        self.note_read(key, Some(record))?;
        let stamp = self.root.stamps().fresh(key, self.now_ms);
        let root_record = self.root_record()?;
        let (json, root) = (&record.value, root_record.as_ref());
        let value = self.root.authenticate(self.store, root, key, stamp, json)?;
        self.put_bytes(key, value);
        Ok(())
    }

    /// The stored record, verified.
    fn read(&mut self, key: &str) -> Result<Option<Record>, Fault> {
        let mut outcome = Ok(());
        let record = self.store.read_checked(key, &mut |record| {
            outcome = self.verify(key, record).map(|stamp| {
                if let Some(stamp) = stamp {
                    self.root.stamps().saw(key, stamp);
                }
            });
            outcome.is_ok()
        })?;
        self.note_read(key, record.as_ref())?;
        if let (Err(fault), Some(record)) = (outcome, &record) {
            // Its contents must not be relied on.
            self.reads.entry(key.to_owned()).and_modify(|seen| seen.stamp = None);
            // It may have changed since, or its root key may have been replaced.
            let version = self.store.read_fresh(key)?.map(|fresh| fresh.version);
            return Err(match version == Some(record.version) {
                true => fault,
                false => StoreError::Conflict.into(),
            });
        }
        Ok(record)
    }

    /// Checks that the service wrote a record, and that this process has seen no newer one. Returns its stamp, if it is one that
    /// grows.
    fn verify(&self, key: &str, record: &Record) -> Result<Option<u64>, Fault> {
        let stamp = self.root.verify(self.store, key, &record.value)?;
        let stamp = stamp.filter(|_| protection(key) == Protection::Ordered);
        let stamps = self.root.stamps();
        if is_registered(key) && stamps.is_unheard_of(key) {
            // Another process may have just made it; otherwise it was deleted before and put back.
            changes::catch_up(self.store, stamps)?;
            if stamps.is_unheard_of(key) {
                return Err(Fault::Forged(key.to_owned()));
            }
        }
        if stamp.is_some_and(|stamp| stamps.is_older(key, stamp)) {
            return Err(Fault::Forged(key.to_owned()));
        }
        Ok(stamp)
    }

    /// Remembers the version of a record that was read, and its stamp, which was verified or is verified when it counts.
    fn note_read(&mut self, key: &str, record: Option<&Record>) -> Result<(), Fault> {
        let seen = Seen {
            version: record.map(|record| record.version),
            stamp: record.and_then(|record| stamp_of(&record.value)),
        };
        if self.reads.entry(key.to_owned()).or_insert(seen).version != seen.version {
            // It changed between two reads of one operation; the commit would fail anyway.
            return Err(StoreError::Conflict.into());
        }
        Ok(())
    }

    /// The stamp of a record that replaces the stored one.
    fn next_stamp(&mut self, key: &str) -> Result<u64, Fault> {
        // A record whose existence alone was checked is verified now.
        let seen = self.reads.get(key);
        if seen.is_none_or(|seen| seen.version.is_some() && seen.stamp.is_none()) {
            self.read(key)?;
        }
        Ok(match self.reads.get(key).and_then(|seen| seen.stamp) {
            Some(stamp) => stamp + 1,
            None => self.root.stamps().fresh(key, self.now_ms),
        })
    }

    fn root_record(&mut self) -> Result<Option<RootRecord>, Fault> {
        if let Some(known) = &self.root_record {
            return Ok(known.clone());
        }
        let record = self.get::<RootRecord>(seal::ROOT)?;
        self.root_record = Some(record.clone());
        Ok(record)
    }
}

fn expectations(reads: BTreeMap<String, Seen>) -> Vec<(String, Option<u64>)> {
    reads.into_iter().map(|(key, seen)| (key, seen.version)).collect()
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(value).map_err(|error| Fault::Encoding(error.to_string()))
}

fn decode<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(layout::json(value)).map_err(|_| Fault::Damaged(key.to_owned()))
}
