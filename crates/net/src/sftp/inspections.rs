//! Turns at inspections of uploads: those of one user leave some to others, whose uploads would wait for them all, and all together
//! leave threads to what is not inspected.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// Those that run or wait.
    here: AtomicUsize,
}

/// Why an upload has no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Crowded {
    /// Others of its user take too long.
    User,
    /// Too many wait.
    All,
}

/// One of them.
struct Turn<'a> {
    all: &'a Inspections,
    user: &'a str,
    _place: Place<'a>,
}

/// The place of one that runs or waits.
struct Place<'a>(&'a AtomicUsize);

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

    /// A turn of a user, unless others of the same user take longer than `wait`.
    fn enter<'a>(
        &'a self,
        user: &'a str,
        wait: Duration,
    ) -> std::result::Result<Turn<'a>, Crowded> {
        let more = |here| (here < limits::SFTP_INSPECTIONS).then_some(here + 1);
        self.here
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .map_err(|_| Crowded::All)?;
        let place = Place(&self.here);
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |running: &mut HashMap<String, usize>| {
            running.get(user).is_some_and(|count| *count >= limits::SFTP_INSPECTIONS_OF_USER)
        };
        let waited = self.ended.wait_timeout_while(running, wait, is_full);
        let (mut running, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(Crowded::User);
        }
        *running.entry(user.to_owned()).or_default() += 1;
        Ok(Turn { all: self, user, _place: place })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
        let text = match self.all.enter(&self.user, limits::SFTP_INSPECTION_WAIT) {
            Ok(_turn) => return self.inspector.inspect(name, content),
            Err(Crowded::User) => {
                tracing::warn!(user = self.user, "an upload waits too long for others of its user");
                "too many of your uploads are being scanned; send the file again later"
            }
            Err(Crowded::All) => {
                tracing::warn!(user = self.user, "too many uploads wait for their scan");
                "too many uploads are being scanned; send the file again later"
            }
        };
        Err(Error::failure(text))
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
        assert_eq!(enter("a").err(), Some(Crowded::User));
        assert!(enter("b").is_ok());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| all.enter("a", Duration::from_secs(60)).is_ok());
            drop(turns.pop());
            assert!(waiting.join().unwrap(), "it waits for one to end");
        });
        drop(turns);
        assert!(all.running.lock().unwrap().is_empty());
        assert_eq!(all.here.load(Ordering::Relaxed), 0);
    }

    /// However many users there are, threads are left to what is not inspected.
    #[test]
    fn all_inspections_leave_threads_to_others() {
        let all = Inspections::default();
        let users: Vec<_> = (0..limits::SFTP_THREADS).map(|number| number.to_string()).collect();
        let turns: Vec<_> =
            users.iter().filter_map(|user| all.enter(user, Duration::ZERO).ok()).collect();
        assert_eq!(turns.len(), limits::SFTP_THREADS / 2);
        assert_eq!(all.enter("a", Duration::ZERO).err(), Some(Crowded::All));
        drop(turns);
        assert!(all.enter("a", Duration::ZERO).is_ok());
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
