//! Turns at inspections of uploads: those of one user leave some to others, whose uploads would wait for them all, and all together
//! leave threads to what is not inspected.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_sftp::arrival::Inspector;
use outlast_sftp::error::{Error, Result};

use crate::limits;

/// The inspections of all users.
#[derive(Default)]
pub(super) struct Inspections {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct State {
    users: HashMap<String, Number>,
    /// Those that run or wait, of all users.
    here: usize,
}

/// How many a user has.
#[derive(Debug, Default, PartialEq, Eq)]
struct Number {
    /// Those that run or wait.
    here: usize,
    running: usize,
}

/// Why an upload has no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Crowded {
    /// Others of its user take too long.
    User,
    /// Too many wait.
    All,
}

/// One that runs.
struct Turn<'a>(Place<'a>);

/// One that runs or waits.
struct Place<'a> {
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

    /// A turn of a user, unless others of the same user take longer than `wait`, or too many are here. As soon as half of the places are
    /// taken, a user has places for those that run and none for more to wait: nobody's waiting uploads keep out those of others.
    fn enter<'a>(
        &'a self,
        user: &'a str,
        wait: Duration,
    ) -> std::result::Result<Turn<'a>, Crowded> {
        let mut state = self.state();
        let mine = state.users.get(user).map_or(0, |number| number.here);
        let is_crowded = state.here >= limits::SFTP_INSPECTIONS / 2;
        if state.here >= limits::SFTP_INSPECTIONS
            || (is_crowded && mine >= limits::SFTP_INSPECTIONS_OF_USER)
        {
            return Err(Crowded::All);
        }
        state.here += 1;
        state.of(user).here += 1;
        // Outlives the lock, which its drop needs.
        let place = Place { all: self, user };
        let is_full =
            |state: &mut State| state.of(user).running >= limits::SFTP_INSPECTIONS_OF_USER;
        let waited = self.ended.wait_timeout_while(state, wait, is_full);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        let has_turn = !waited.timed_out();
        if has_turn {
            state.of(user).running += 1;
        }
        drop(state);
        if has_turn { Ok(Turn(place)) } else { Err(Crowded::User) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn of(&mut self, user: &str) -> &mut Number {
        self.users.entry(user.to_owned()).or_default()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.all.state();
        state.here -= 1;
        let number = state.of(self.user);
        number.here -= 1;
        if number.here == 0 {
            state.users.remove(self.user);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Place { all, user } = self.0;
        all.state().of(user).running -= 1;
        all.ended.notify_all();
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
        assert_eq!(*all.state(), State::default());
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

    /// Users whose uploads wait leave places to those whose uploads could run.
    #[test]
    fn who_waits_leaves_places_to_others() {
        let all = Inspections::default();
        let of_user = limits::SFTP_INSPECTIONS_OF_USER;
        let half = limits::SFTP_INSPECTIONS / 2;
        // So many as one user's operations can be, more than run.
        let waiting = |user: &'static str| {
            let enter = || all.enter(user, Duration::ZERO).ok();
            (0..limits::SFTP_THREADS_OF_USER).filter_map(move |_| enter()).collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let turns = waiting("a");
            assert_eq!(turns.len(), of_user);
            let waits: Vec<_> = (of_user..half)
                .map(|_| scope.spawn(|| all.enter("a", Duration::from_secs(60)).is_ok()))
                .collect();
            while all.state().here < half {
                std::thread::yield_now();
            }
            assert_eq!(all.enter("a", Duration::ZERO).err(), Some(Crowded::All));
            let others = ["b", "c"].map(waiting);
            assert!(others.iter().all(|turns| turns.len() == of_user));
            assert_eq!(all.enter("b", Duration::from_secs(60)).err(), Some(Crowded::All));
            drop((turns, others));
            assert!(waits.into_iter().all(|one| one.join().unwrap()));
        });
        assert_eq!(*all.state(), State::default());
    }

    /// Wants the turn of its user to last while it inspects.
    struct Wants(Arc<Inspections>);

    impl Inspector for Wants {
        fn inspect(&self, _: &[u8], _: OwnedFd) -> Result<()> {
            assert_eq!(self.0.state().of("a"), &Number { here: 1, running: 1 });
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
        assert_eq!(*all.state(), State::default());
    }
}
