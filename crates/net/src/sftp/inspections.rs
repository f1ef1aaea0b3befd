//! Turns at inspections of uploads: those of one user leave some to others, whose uploads would wait for them all.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use outlast_sftp::arrival::Inspector;
use outlast_sftp::error::{Error, Result};

use crate::limits;

/// How many inspections of each user run.
#[derive(Default)]
pub(super) struct Inspections {
    running: Mutex<HashMap<String, usize>>,
    ended: Condvar,
}

/// One of them.
struct Turn<'a> {
    all: &'a Inspections,
    user: &'a str,
}

/// Inspects the uploads of a user.
struct OfUser {
    all: Arc<Inspections>,
    inspector: Arc<dyn Inspector>,
    user: String,
}

impl Inspections {
    /// The inspector of a user's uploads, in all sessions of the user.
    pub(super) fn of_user(
        self: &Arc<Self>,
        inspector: Arc<dyn Inspector>,
        user: &str,
    ) -> Arc<dyn Inspector> {
        Arc::new(OfUser { all: self.clone(), inspector, user: user.to_owned() })
    }

    /// A turn of a user; none if others of the same user take longer than `wait`.
    fn enter<'a>(&'a self, user: &'a str, wait: Duration) -> Option<Turn<'a>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |running: &mut HashMap<String, usize>| {
            running.get(user).is_some_and(|count| *count >= limits::SFTP_INSPECTIONS_OF_USER)
        };
        let waited = self.ended.wait_timeout_while(running, wait, is_full);
        let (mut running, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        *running.entry(user.to_owned()).or_default() += 1;
        Some(Turn { all: self, user })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut running = self.all.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = running.get_mut(self.user) {
            *count -= 1;
            if *count == 0 {
                running.remove(self.user);
            }
        }
        self.all.ended.notify_all();
    }
}

impl Inspector for OfUser {
    fn inspect(&self, name: &[u8], content: OwnedFd) -> Result<()> {
        let Some(_turn) = self.all.enter(&self.user, limits::SFTP_INSPECTION_WAIT) else {
            tracing::warn!(user = self.user, "an upload waits too long for others of its user");
            return Err(Error::failure(
                "too many of your uploads are being scanned; send the file again later",
            ));
        };
        self.inspector.inspect(name, content)
    }

    fn stop(&self) {
        self.inspector.stop();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn the_inspections_of_a_user_leave_some_to_others() {
        let all = Inspections::default();
        let enter = |user| all.enter(user, Duration::ZERO);
        let mut turns: Vec<_> =
            (0..limits::SFTP_INSPECTIONS_OF_USER).map(|_| enter("a").unwrap()).collect();
        assert!(enter("a").is_none());
        assert!(enter("b").is_some());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| all.enter("a", Duration::from_secs(60)).is_some());
            drop(turns.pop());
            assert!(waiting.join().unwrap(), "it waits for one to end");
        });
        drop(turns);
        assert!(all.running.lock().unwrap().is_empty());
    }

    /// Wants the turn of its user to last while it inspects.
    struct Wants(Arc<Inspections>);

    impl Inspector for Wants {
        fn inspect(&self, _: &[u8], _: OwnedFd) -> Result<()> {
            assert_eq!(self.0.running.lock().unwrap().get("a"), Some(&1));
            Err(Error::denied("it is refused"))
        }
    }

    #[test]
    fn an_upload_is_inspected_in_its_users_turn() {
        let all = Arc::new(Inspections::default());
        let inspector = all.of_user(Arc::new(Wants(all.clone())), "a");
        let content = std::fs::File::open("/dev/null").unwrap();
        let refused = inspector.inspect(b"file", content.into()).unwrap_err();
        assert_eq!(refused.text, "it is refused");
        assert!(all.running.lock().unwrap().is_empty());
    }
}
