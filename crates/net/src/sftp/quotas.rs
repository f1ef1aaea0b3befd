//! Quotas of folders, shared by all sessions and users that reach one.
//!
//! A folder is measured when somebody first reaches it, and again by the next server: what a killed server had counted is
//! of no use, because nobody knows which of its last writes are on disk.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

use outlast_sftp::error::Result;
use outlast_sftp::quota::{Quota, Usage};
use outlast_sftp::view::measure;
use outlast_sftp::volume::Volume;
use tokio::sync::OwnedMutexGuard;

use super::roster::{Limit, Mount, Place, Roster, Tree};

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
    /// Held by the login that measures it, so that others wait without a thread.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Kept {
    fn new(limit: Limit) -> Self {
        Self { limit: Mutex::new(limit), quota: Mutex::default(), turn: Arc::default() }
    }

    fn is_measured(&self) -> bool {
        match self.quota.try_lock() {
            Ok(quota) => quota.is_some(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().is_some(),
            Err(TryLockError::WouldBlock) => false,
        }
    }
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
            let kept = all.entry(place.clone()).or_insert_with(|| Arc::new(Kept::new(limit)));
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

    /// Waits for others who measure folders of `tree`; then it is the caller's turn at those that nobody has measured, until what is
    /// returned is dropped. A folder of millions of files takes minutes, and a login that waits here holds no thread.
    pub(super) async fn measuring(&self, tree: &Tree) -> Vec<OwnedMutexGuard<()>> {
        // Everybody takes turns in the same order, so that nobody waits in a circle.
        let places: BTreeSet<_> = tree.mounts.iter().map(|mount| &mount.place).collect();
        let mut turns = Vec::new();
        for place in places {
            let kept = self.all.lock().unwrap_or_else(PoisonError::into_inner).get(place).cloned();
            let Some(kept) = kept.filter(|kept| !kept.is_measured()) else { continue };
            let turn = kept.turn.clone().lock_owned().await;
            if !kept.is_measured() {
                turns.push(turn);
            }
        }
        turns
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use outlast_sftp::local::{Folder, FolderOptions};
    use outlast_sftp::path::RemotePath;

    use super::*;

    /// A tree with these folders, which have quotas.
    fn tree(places: &[&Place]) -> Tree {
        let mounts = places.iter().enumerate().map(|(number, place)| Mount {
            at: RemotePath::root().join(number.to_string().as_bytes()),
            place: (*place).clone(),
            quota: Some(Limit { bytes: Some(1), files: None }),
        });
        Tree { mounts: mounts.collect(), rules: Vec::new(), read_only: false, hidden: Vec::new() }
    }

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Logins that reach a folder which somebody measures wait before they take a thread, in whatever order their trees name folders.
    #[test]
    fn who_waits_for_a_measurement_has_no_thread() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let place = |folder: &tempfile::TempDir| Place::Folder(folder.path().to_owned());
        let mut places = [place(&one), place(&other)];
        // The one for which all wait first, whatever the names of the folders.
        places.sort();
        let [first, second] = places;
        let quotas = Quotas::default();
        for place in [&first, &second] {
            let kept = Arc::new(Kept::new(Limit { bytes: Some(1), files: None }));
            quotas.all.lock().unwrap().insert(place.clone(), kept);
        }
        let (both, reversed) = (tree(&[&first, &second]), tree(&[&second, &first]));
        let (only, neither) = (tree(&[&first]), tree(&[]));
        let Poll::Ready(measuring) = poll(pin!(quotas.measuring(&both))) else { panic!("waits") };
        let (mut waits, mut waits_too) =
            (pin!(quotas.measuring(&reversed)), pin!(quotas.measuring(&only)));
        assert!(poll(waits.as_mut()).is_pending() && poll(waits_too.as_mut()).is_pending());
        assert!(poll(pin!(quotas.measuring(&neither))).is_ready());
        // One that fails leaves the turn to the next.
        drop(measuring);
        let Poll::Ready(measuring) = poll(waits.as_mut()) else { panic!("waits") };
        assert_eq!(measuring.len(), 2);
        for folder in [&one, &other] {
            let volume = Folder::open(folder.path(), FolderOptions::default()).unwrap();
            assert!(quotas.of(&place(folder), &volume).unwrap().is_some());
        }
        drop(measuring);
        let Poll::Ready(measuring) = poll(waits_too.as_mut()) else { panic!("waits") };
        assert!(measuring.is_empty(), "it is measured");
        assert!(poll(pin!(quotas.measuring(&both))).is_ready());
    }
}
