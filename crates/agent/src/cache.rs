//! Secrets that were read, for as long as they may be served: fresh for a while, and then only while Secrets Manager is
//! away, up to a limit. The caller passes the time in, in milliseconds of a clock that never goes back.

use std::num::NonZeroUsize;

use lru::LruCache;
use zeroize::Zeroizing;

use crate::interface::Ask;
use crate::memory::{Kept, Locking, MemoryError, Vault};
use crate::upstream::{Scope, SecretValue};

/// Limits of a cache.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Secrets, at most; for a further one, the one that was not read for longest goes.
    pub secrets: NonZeroUsize,
    /// Bytes of memory for them.
    pub bytes: usize,
    /// Time for which a secret is served without asking, in milliseconds. 0 keeps nothing.
    pub ttl_ms: u64,
    /// Time after that for which it is served while the service is away.
    pub stale_ms: u64,
    /// Whether the memory must be locked.
    pub locking: Locking,
}

/// The cache.
pub struct Cache {
    entries: LruCache<Ask, Entry>,
    vault: Vault,
    limits: Limits,
}

struct Entry {
    name: String,
    arn: String,
    version_id: String,
    body: Kept,
    fetched_ms: u64,
}

/// A copy of a secret from the cache. There is no `Debug`.
pub struct Held {
    /// Name.
    pub name: String,
    /// ARN.
    pub arn: String,
    /// Version.
    pub version_id: String,
    /// JSON for clients of AWS's agent.
    pub body: Zeroizing<Vec<u8>>,
}

impl Cache {
    /// An empty cache.
    pub fn new(limits: Limits) -> Result<Self, MemoryError> {
        let vault = Vault::new(limits.bytes, limits.locking)?;
        Ok(Self { entries: LruCache::new(limits.secrets), vault, limits })
    }

    /// The secret, if it need not be asked for.
    pub fn fresh(&mut self, ask: &Ask, now_ms: u64) -> Option<Held> {
        self.held(ask, now_ms, self.limits.ttl_ms)
    }

    /// The secret, if it may be served while the service is away.
    pub fn stale(&mut self, ask: &Ask, now_ms: u64) -> Option<Held> {
        self.held(ask, now_ms, self.limits.ttl_ms.saturating_add(self.limits.stale_ms))
    }

    fn held(&mut self, ask: &Ask, now_ms: u64, max_ms: u64) -> Option<Held> {
        let entry = self.entries.get(ask)?;
        // A clock that went back makes nothing younger.
        let age = now_ms.checked_sub(entry.fetched_ms)?;
        (age < max_ms).then(|| Held {
            name: entry.name.clone(),
            arn: entry.arn.clone(),
            version_id: entry.version_id.clone(),
            body: entry.body.read(|bytes| Zeroizing::new(bytes.to_vec())),
        })
    }

    /// Keeps an answer. Others make room for it; an error means that it is not kept.
    pub fn keep(&mut self, ask: &Ask, value: &SecretValue, now_ms: u64) -> Result<(), MemoryError> {
        // Before room is sought: the old value is not needed any more, even if the new one has no room.
        self.entries.pop(ask);
        if self.limits.ttl_ms == 0 {
            return Ok(());
        }
        let body = loop {
            match self.vault.keep(&value.body) {
                Ok(body) => break body,
                // No number of others makes room for it.
                Err(error @ MemoryError::TooLong { .. }) => return Err(error),
                Err(error) => {
                    if self.entries.pop_lru().is_none() {
                        return Err(error);
                    }
                }
            }
        };
        let SecretValue { name, arn, version_id, .. } = value;
        let entry = Entry {
            name: name.clone(),
            arn: arn.clone(),
            version_id: version_id.clone(),
            body,
            fetched_ms: now_ms,
        };
        self.entries.push(ask.clone(), entry);
        Ok(())
    }

    /// The service refused: forgets what the refusal concerns. Returns how many secrets were forgotten.
    pub fn forget(&mut self, ask: &Ask, scope: Scope) -> usize {
        let before = self.entries.len();
        match scope {
            Scope::Everything => self.entries.clear(),
            Scope::Version => {
                self.entries.pop(ask);
            }
            Scope::Role => self.remove(|known, _| known.role_arn == ask.role_arn),
            Scope::Secret => {
                let arn = self.entries.peek(ask).map(|entry| entry.arn.clone());
                self.remove(|known, entry| {
                    let id = &ask.secret_id;
                    // What one role may not read, another one may.
                    known.role_arn == ask.role_arn
                        && (known.secret_id == *id
                            || entry.name == *id
                            || entry.arn == *id
                            || arn.as_ref().is_some_and(|arn| entry.arn == *arn))
                });
            }
        }
        before - self.entries.len()
    }

    /// Forgets what may not be served any more.
    pub fn purge(&mut self, now_ms: u64) -> usize {
        let before = self.entries.len();
        let max = self.limits.ttl_ms.saturating_add(self.limits.stale_ms);
        self.remove(|_, entry| now_ms.checked_sub(entry.fetched_ms).is_none_or(|age| age >= max));
        before - self.entries.len()
    }

    fn remove(&mut self, is_gone: impl Fn(&Ask, &Entry) -> bool) {
        let gone: Vec<Ask> = self
            .entries
            .iter()
            .filter(|(ask, entry)| is_gone(ask, entry))
            .map(|(ask, _)| ask.clone())
            .collect();
        for ask in gone {
            self.entries.pop(&ask);
        }
    }

    /// How many secrets are kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Where they are kept.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }
}
