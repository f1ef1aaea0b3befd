//! What the SFTP sessions of a connection, and those of a user, may hold in memory: input, requests and replies.
//!
//! Nobody waits for a budget: each channel has a small share of its own ([`limits::SFTP_SHARE_OF_CHANNEL`],
//! [`limits::SFTP_REPLIES_OF_CHANNEL`]) with which it goes on. A client that does not read makes its other channels slow, and stops none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits;

/// Bytes of a whole window beyond those that a channel begins with.
pub(super) const WIDE: usize = (limits::SFTP_WINDOW - limits::SFTP_FIRST_WINDOW) as usize;

/// What the channels of one connection hold. It counts as held by the user until this is dropped.
pub(super) struct Budget {
    mine: usize,
    /// What all sessions of the user hold.
    user: Arc<AtomicUsize>,
}

impl Budget {
    pub(super) fn new(user: Arc<AtomicUsize>) -> Self {
        Self { mine: 0, user }
    }

    /// Says that a channel for which `counted` bytes were counted holds `now`.
    pub(super) fn count(&mut self, counted: &mut usize, now: usize) {
        let before = std::mem::replace(counted, now);
        self.mine = self.mine.saturating_sub(before) + now;
        let (more, less) = (now.saturating_sub(before), before.saturating_sub(now));
        if more > 0 {
            self.user.fetch_add(more, Ordering::Relaxed);
        }
        if less > 0 {
            self.user.fetch_sub(less, Ordering::Relaxed);
        }
    }

    /// Whether channels may hold more than their own shares.
    pub(super) fn has_room(&self) -> bool {
        self.mine <= limits::SFTP_MEMORY_OF_CONNECTION
            && self.user.load(Ordering::Relaxed) <= limits::SFTP_MEMORY_OF_USER
    }

    /// Whether a channel may have the whole window. Windows leave half of the budgets to requests and replies.
    pub(super) fn has_room_for_window(&self) -> bool {
        self.mine + WIDE <= limits::SFTP_MEMORY_OF_CONNECTION / 2
            && self.user.load(Ordering::Relaxed) + WIDE <= limits::SFTP_MEMORY_OF_USER / 2
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        self.user.fetch_sub(self.mine, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one connection holds counts for the user's others, and no longer than the connection lasts.
    #[test]
    fn connections_of_a_user_share_a_budget() {
        let user = Arc::new(AtomicUsize::new(0));
        let mut other = Budget::new(user.clone());
        let (mut mine, mut theirs) = (0, 0);
        other.count(&mut theirs, 1000);
        let mut many = Budget::new(user.clone());
        many.count(&mut mine, limits::SFTP_MEMORY_OF_USER);
        assert!(!many.has_room() && !other.has_room());
        assert!(!other.has_room_for_window());
        drop(many);
        assert!(other.has_room() && other.has_room_for_window());
        other.count(&mut theirs, limits::SFTP_MEMORY_OF_CONNECTION / 2);
        assert!(other.has_room() && !other.has_room_for_window());
        other.count(&mut theirs, limits::SFTP_MEMORY_OF_CONNECTION + 1);
        assert!(!other.has_room());
        other.count(&mut theirs, 0);
        assert_eq!((theirs, user.load(Ordering::Relaxed)), (0, 0));
    }
}
