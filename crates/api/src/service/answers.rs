//! A cache of signed OCSP responses in memory, found by the certificates they are about, or by the path of a GET,
//! which then need not be parsed.
//!
//! No response is used without checking the epoch of its authority: see [`super::plain`].

use std::hash::Hash;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::HeaderValue;
use lru::LruCache;
use outlast_domain::ca::ocsp::Answer;
use outlast_domain::limits;
use outlast_pki::ocsp::{CertId, Status};

/// A cache limited by its number of bytes; the least recently used entries go first.
pub(super) struct Bounded<K: Hash + Eq, V> {
    entries: LruCache<K, (V, usize)>,
    used: usize,
    limit: usize,
}

impl<K: Hash + Eq, V> Bounded<K, V> {
    pub(super) fn new(limit: usize) -> Self {
        Self { entries: LruCache::unbounded(), used: 0, limit }
    }

    pub(super) fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.entries.get(key).map(|(value, _)| value)
    }

    /// Keeps `value`, which takes `size` bytes. The newest entry is kept however large it is.
    pub(super) fn put(&mut self, key: K, value: V, bytes: usize) {
        self.used += bytes;
        if let Some((_, (_, before))) = self.entries.push(key, (value, bytes)) {
            self.used -= before;
        }
        while self.used > self.limit && self.entries.len() > 1 {
            let Some((_, (_, freed))) = self.entries.pop_lru() else { break };
            self.used -= freed;
        }
    }

    fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, (value, _))| value)
    }
}

/// A response in the cache, with what is sent along with it.
pub struct Kept {
    /// The certificates asked about.
    pub(super) ids: Vec<CertId>,
    /// The status of each.
    pub(super) statuses: Vec<Status>,
    pub(super) this_update: i64,
    pub(super) next_update: i64,
    pub(super) epoch_record_key: String,
    /// Never 0, except for a record that does not exist.
    epoch: AtomicU64,
    /// The count of changes at which the epoch was read; 0 if it has not been read.
    seen_at: AtomicU64,
    uses: AtomicU32,
    pub(super) body: Bytes,
    pub(super) etag: HeaderValue,
    pub(super) last_modified: HeaderValue,
    pub(super) expires: HeaderValue,
}

impl Kept {
    pub(super) fn new(ids: Vec<CertId>, answer: Answer) -> Self {
        let digest = outlast_crypto::digests::sha256(&answer.der);
        let text = |text: String| {
            HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
        };
        Self {
            ids,
            statuses: answer.statuses,
            this_update: answer.this_update,
            next_update: answer.next_update,
            epoch_record_key: answer.epoch_record_key,
            epoch: AtomicU64::new(answer.epoch.unwrap_or_default()),
            seen_at: AtomicU64::new(0),
            uses: AtomicU32::new(0),
            etag: text(format!("\"{}\"", hex::encode(digest))),
            last_modified: text(super::shared::http_date(answer.this_update)),
            expires: text(super::shared::http_date(answer.next_update)),
            body: Bytes::from(answer.der),
        }
    }

    pub(super) fn epoch(&self) -> Option<u64> {
        Some(self.epoch.load(Ordering::Relaxed)).filter(|epoch| *epoch != 0)
    }

    pub(super) fn set_epoch(&self, epoch: Option<u64>) {
        self.epoch.store(epoch.unwrap_or_default(), Ordering::Relaxed);
    }

    pub(super) fn seen_at(&self) -> u64 {
        self.seen_at.load(Ordering::SeqCst)
    }

    pub(super) fn set_seen_at(&self, changes: u64) {
        self.seen_at.store(changes, Ordering::SeqCst);
    }

    pub(super) fn used(&self) {
        self.uses.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the response can be sent at this time: one that is about to expire is of no use.
    pub(super) fn is_fresh(&self, now: i64) -> bool {
        now >= self.this_update
            && now < self.next_update - (self.next_update - self.this_update) / 8
    }

    fn is_due(&self, now: i64) -> bool {
        self.uses.load(Ordering::Relaxed) > 0
            && now > self.this_update + (self.next_update - self.this_update) / 2
    }

    fn bytes(&self) -> usize {
        self.body.len() + 160 * self.ids.len() + OVERHEAD
    }
}

/// Approximate overhead of an entry, in bytes.
const OVERHEAD: usize = 800;

/// Cache key of all certificates of a request.
pub(super) fn key(ids: &[CertId]) -> Arc<[u8]> {
    ids.iter().flat_map(|id| id.der().iter().copied()).collect()
}

/// The cache.
pub(super) struct Answers(Mutex<Inner>);

struct Inner {
    answers: Bounded<Arc<[u8]>, Arc<Kept>>,
    paths: Bounded<Box<[u8]>, Arc<[u8]>>,
}

impl Default for Answers {
    fn default() -> Self {
        Self(Mutex::new(Inner {
            answers: Bounded::new(limits::MAX_KEPT_ANSWERS_BYTES),
            paths: Bounded::new(limits::MAX_KEPT_PATHS_BYTES),
        }))
    }
}

impl Answers {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic cannot leave an entry half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn by_path(&self, path: &[u8]) -> Option<Arc<Kept>> {
        let mut inner = self.lock();
        let key = inner.paths.get(path)?.clone();
        inner.answers.get(&key).cloned()
    }

    pub(super) fn by_key(&self, key: &[u8]) -> Option<Arc<Kept>> {
        self.lock().answers.get(key).cloned()
    }

    pub(super) fn put(&self, key: Arc<[u8]>, kept: Arc<Kept>) {
        let bytes = kept.bytes() + key.len();
        self.lock().answers.put(key, kept, bytes);
    }

    /// Remembers which response belongs to a path.
    pub(super) fn put_path(&self, path: &[u8], key: Arc<[u8]>) {
        let bytes = path.len() + key.len() + OVERHEAD / 4;
        self.lock().paths.put(path.into(), key, bytes);
    }

    /// Up to `limit` responses that were asked for and are past half of their validity. Each is returned once, unless
    /// it is asked for again.
    pub(super) fn due(&self, now: i64, limit: usize) -> Vec<Arc<Kept>> {
        let inner = self.lock();
        let found = inner.answers.values().filter(|kept| kept.is_due(now)).take(limit);
        found.inspect(|kept| kept.uses.store(0, Ordering::Relaxed)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_answer_is_dropped_first() {
        let mut bounded = Bounded::new(10);
        for (key, bytes) in [("a", 4), ("b", 4)] {
            bounded.put(key, key, bytes);
        }
        assert_eq!(bounded.get("a"), Some(&"a"));
        bounded.put("c", "c", 4);
        assert_eq!(bounded.get("b"), None);
        assert_eq!(bounded.used, 8);
        bounded.put("c", "d", 6);
        assert_eq!(bounded.get("c"), Some(&"d"));
        assert_eq!(bounded.used, 10);
        bounded.put("large", "large", 1000);
        assert_eq!((bounded.entries.len(), bounded.used), (1, 1000));
        bounded.put("a", "a", 1);
        assert_eq!((bounded.entries.len(), bounded.used), (1, 1));
    }
}
