//! Keys that have been unsealed and expanded, cached for the next use.
//!
//! Expanding an ML-DSA seed costs as much as a signature. Material records are written once and never changed, so the
//! record key identifies the material for good.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use outlast_crypto::keys::{Key, KeySpec};

use crate::work::Work;
use crate::{Fault, limits};

/// At most [`limits::MAX_LOADED_KEYS`] loaded keys; the least recently used one goes first.
pub struct KeyRing {
    loaded: Mutex<LruCache<String, Arc<dyn Key>>>,
}

impl Default for KeyRing {
    fn default() -> Self {
        let capacity = NonZeroUsize::new(limits::MAX_LOADED_KEYS).unwrap_or(NonZeroUsize::MIN);
        Self { loaded: Mutex::new(LruCache::new(capacity)) }
    }
}

impl KeyRing {
    /// The key whose material is the record `record_key`.
    pub fn load(
        &self,
        work: &mut Work<'_>,
        record_key: &str,
        spec: &KeySpec,
    ) -> Result<Arc<dyn Key>, Fault> {
        let cached =
            self.loaded.lock().unwrap_or_else(PoisonError::into_inner).get(record_key).cloned();
        if let Some(key) = cached {
            return Ok(key);
        }
        let stored =
            work.secret(record_key)?.ok_or_else(|| Fault::Damaged(record_key.to_owned()))?;
        let key: Arc<dyn Key> = Arc::from(spec.load(&stored)?);
        self.loaded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .put(record_key.to_owned(), key.clone());
        Ok(key)
    }

    /// Drops a key whose material was erased.
    pub fn forget(&self, record_key: &str) {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).pop(record_key);
    }
}
