//! Quotas of folders, shared by all sessions and users that reach one.
//!
//! A folder is measured when somebody first reaches it, and again by the next server: what a killed server had counted is
//! of no use, because nobody knows which of its last writes are on disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

use outlast_sftp::error::Result;
use outlast_sftp::quota::{Quota, Usage};
use outlast_sftp::view::measure;
use outlast_sftp::volume::Volume;

use super::roster::{Limit, Mount, Place, Roster};

/// The quotas of a listener.
#[derive(Default)]
pub(super) struct Quotas {
    all: Mutex<HashMap<Place, Arc<Kept>>>,
    /// The roster that they were last taken from.
    followed: Mutex<Weak<Roster>>,
}

struct Kept {
    limit: Mutex<Limit>,
    /// Measured by the first who needs it; others wait for it.
    quota: Mutex<Option<Arc<Quota>>>,
}

impl Quotas {
    /// Takes over what a file says now. A folder whose limit has changed keeps its usage. `now` is called while nobody else follows, so
    /// that a slow thread does not go back to an earlier roster.
    pub(super) fn follow(&self, now: impl FnOnce() -> Arc<Roster>) -> Arc<Roster> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let roster = now();
        if !std::ptr::eq(followed.as_ptr(), Arc::as_ptr(&roster)) {
            self.set(&roster);
            *followed = Arc::downgrade(&roster);
        }
        roster
    }

    fn set(&self, roster: &Roster) {
        let mounts = roster.users.values().flat_map(|user| &user.tree.mounts);
        let limited = mounts.filter_map(|Mount { place, quota, .. }| Some((place, (*quota)?)));
        let limited: HashMap<_, _> = limited.collect();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|place, _| limited.contains_key(place));
        for (place, limit) in limited {
            let kept = all.entry(place.clone()).or_insert_with(|| {
                Arc::new(Kept { limit: Mutex::new(limit), quota: Mutex::default() })
            });
            *kept.limit.lock().unwrap_or_else(PoisonError::into_inner) = limit;
            // The login that measures it takes the limit afterwards: measuring may take long, and other logins wait for this.
            let quota = match kept.quota.try_lock() {
                Ok(quota) => quota,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            if let Some(quota) = &*quota {
                quota.limit(limit.bytes, limit.files);
            }
        }
    }

    /// The quota of a folder, if it has one.
    pub(super) fn of(&self, place: &Place, volume: &dyn Volume) -> Result<Option<Arc<Quota>>> {
        let kept = self.all.lock().unwrap_or_else(PoisonError::into_inner).get(place).cloned();
        let Some(kept) = kept else { return Ok(None) };
        let mut quota = kept.quota.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(quota) = &*quota {
            return Ok(Some(quota.clone()));
        }
        let used: Usage = measure(volume)?;
        let limit = || *kept.limit.lock().unwrap_or_else(PoisonError::into_inner);
        let Limit { bytes, files } = limit();
        let made = quota.insert(Arc::new(Quota::new(bytes, files, used))).clone();
        drop(quota);
        // A new one may have come before the lock was free.
        let Limit { bytes, files } = limit();
        made.limit(bytes, files);
        Ok(Some(made))
    }
}
