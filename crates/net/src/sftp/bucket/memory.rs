//! Memory that all open files of S3 share.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_sftp::error::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits;

/// Bytes are counted in units of this size.
const UNIT: usize = 64 * 1024;
/// All units.
const ALL: usize = limits::S3_MEMORY / UNIT;
/// Those that one user has for uploads in any case.
const OF_USER: usize = limits::S3_MEMORY_OF_USER / UNIT;

/// Those that may be held by what can do without.
const SPARE: usize = ALL / 2;

/// Units that the uploads of each user hold.
type Users = Arc<Mutex<HashMap<Arc<str>, usize>>>;

/// Units that are held by what can do without.
#[derive(Debug, Default)]
struct Spare {
    all: usize,
    /// Those of each user.
    users: HashMap<Option<Arc<str>>, usize>,
}

/// How many units of these are one user's, and whose.
type SpareOfUser = (Arc<Mutex<Spare>>, Option<Arc<str>>);

#[derive(Clone)]
pub(super) struct Memory {
    all: Arc<Semaphore>,
    spare: Arc<Mutex<Spare>>,
    users: Users,
    /// Whose files it is for; nobody's in particular if there is none.
    user: Option<Arc<str>>,
}

/// A share of it, given back when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Share {
    held: Option<OwnedSemaphorePermit>,
    /// Whose units they are.
    user: Option<(Users, Arc<str>)>,
    /// Where they are counted if they are spare.
    spare: Option<SpareOfUser>,
}

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Full {
    /// All of it is in use.
    Server,
    /// The user has as much as one user may.
    User,
}

impl Default for Memory {
    fn default() -> Self {
        let all = Arc::new(Semaphore::new(ALL));
        Self { all, spare: Arc::default(), users: Users::default(), user: None }
    }
}

impl Memory {
    /// The same memory for the files of one user.
    pub(super) fn of_user(&self, user: &str) -> Self {
        Self { user: Some(user.into()), ..self.clone() }
    }

    /// Makes a share large enough for so many bytes. The uploads of a user have [`limits::S3_MEMORY_OF_USER`]; they get more
    /// while half of all memory stays free of uploads, because a single part of a very large file is larger. What is read ahead does not
    /// count for that half: otherwise some downloads would end the largest uploads.
    pub(super) fn grow(&self, share: &mut Share, bytes: usize) -> Result<(), Full> {
        let more = share.missing(bytes);
        let Some(user) = self.user.as_ref().filter(|_| more > 0) else {
            return self.add(share, more);
        };
        // It is held until the units are taken: two uploads of the user must not both get the last ones.
        let mut users = lock(&self.users);
        let after = users.get(user).copied().unwrap_or(0).saturating_add(more);
        // Together, so that what becomes spare or is given back in between does not count twice.
        let (free, spare) = {
            let spare = lock(&self.spare);
            (self.all.available_permits(), spare.all)
        };
        let is_half_free = (free + spare).saturating_sub(more) * 2 >= ALL;
        // Each user's own share stays free for another one, whatever is read ahead.
        if after > OF_USER && (!is_half_free || free.saturating_sub(more) < OF_USER) {
            return Err(Full::User);
        }
        self.add(share, more)?;
        users.insert(user.clone(), after);
        share.user = Some((self.users.clone(), user.clone()));
        Ok(())
    }

    /// The same for what can do without; false if there is no room. Half of the memory is for uploads alone, and this does not count as
    /// what the user's uploads hold. A user may have as much of the other half as for uploads, and more while half of it stays free.
    pub(super) fn grow_spare(&self, share: &mut Share, bytes: usize) -> bool {
        let more = share.missing(bytes);
        let mut spare = lock(&self.spare);
        let after = spare.users.get(&self.user).copied().unwrap_or(0).saturating_add(more);
        let is_half_free = spare.all.saturating_add(more) * 2 <= SPARE;
        if (after > OF_USER && !is_half_free)
            || self.all.available_permits() * 2 <= ALL
            || self.add(share, more).is_err()
        {
            return false;
        }
        spare.all += more;
        spare.users.insert(self.user.clone(), after);
        share.spare = Some((self.spare.clone(), self.user.clone()));
        true
    }

    fn add(&self, share: &mut Share, more: usize) -> Result<(), Full> {
        if more == 0 {
            return Ok(());
        }
        let Ok(more) = u32::try_from(more) else { return Err(Full::Server) };
        let taken = self.all.clone().try_acquire_many_owned(more);
        let permit = taken.map_err(|_| Full::Server)?;
        match &mut share.held {
            Some(held) => held.merge(permit),
            None => share.held = Some(permit),
        }
        Ok(())
    }
}

impl Share {
    fn units(&self) -> usize {
        self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Units that it lacks for so many bytes.
    fn missing(&self, bytes: usize) -> usize {
        bytes.div_ceil(UNIT).saturating_sub(self.units())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let units = self.units();
        if let Some((spare, user)) = self.spare.take() {
            let mut spare = lock(&spare);
            spare.all -= units;
            give(&mut spare.users, &user, units);
            // Before somebody else counts.
            drop(self.held.take());
        }
        if let Some((users, user)) = self.user.take() {
            give(&mut lock(&users), &user, units);
        }
    }
}

/// Takes units from what a user holds.
fn give<K: Eq + Hash>(users: &mut HashMap<K, usize>, user: &K, units: usize) {
    if let Some(held) = users.get_mut(user) {
        *held = held.saturating_sub(units);
        if *held == 0 {
            users.remove(user);
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<Full> for Error {
    fn from(full: Full) -> Self {
        Self::failure(match full {
            Full::Server => {
                "the server holds too much of unfinished uploads and open folders; try again later"
                    .to_owned()
            }
            Full::User => format!(
                "your unfinished uploads and open folders hold your share of the server's memory, {} MiB: finish some of them first",
                limits::S3_MEMORY_OF_USER >> 20
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_end_with_the_memory_and_come_back() {
        let memory = Memory::default();
        let (mut one, mut other) = (Share::default(), Share::default());
        assert_eq!(memory.grow(&mut one, 1), Ok(()));
        assert_eq!(memory.grow(&mut one, limits::S3_MEMORY - UNIT), Ok(()));
        assert_eq!(memory.grow(&mut other, UNIT), Ok(()));
        assert_eq!(memory.grow(&mut other, 1), Ok(()));
        assert_eq!(memory.grow(&mut other, UNIT + 1), Err(Full::Server));
        drop(one);
        assert_eq!(memory.grow(&mut other, limits::S3_MEMORY), Ok(()));
        assert_eq!(memory.grow(&mut other, usize::MAX), Err(Full::Server));
    }

    /// 320 MiB is a part of the largest files.
    #[test]
    fn what_is_read_ahead_ends_no_large_upload() {
        let memory = Memory::default();
        let user = memory.of_user("alice");
        let readers = ["a", "b", "c", "d"].map(|name| memory.of_user(name));
        let blocks: Vec<_> = readers.iter().flat_map(read_ahead).collect();
        assert_eq!(blocks.len(), limits::S3_MEMORY / 2 / BLOCK);
        let mut part = Share::default();
        assert_eq!(user.grow(&mut part, 320 << 20), Ok(()));
        // What is left is for other users.
        let mut more = Share::default();
        assert_eq!(user.grow(&mut more, 128 << 20), Err(Full::User));
        let other = memory.of_user("bob");
        assert_eq!(other.grow(&mut more, 128 << 20), Ok(()));
        drop((blocks, more));
        assert_eq!(lock(&memory.spare).all, 0);
        assert!(lock(&memory.spare).users.is_empty());
        let mut others = Share::default();
        assert_eq!(user.grow(&mut others, 320 << 20), Err(Full::User));
    }

    const BLOCK: usize = 4 << 20;

    /// As many blocks as a user gets.
    fn read_ahead(memory: &Memory) -> Vec<Share> {
        let block = || {
            let mut block = Share::default();
            memory.grow_spare(&mut block, BLOCK).then_some(block)
        };
        std::iter::from_fn(block).collect()
    }

    /// However many files a user reads, others have blocks of theirs.
    #[test]
    fn what_one_user_reads_ahead_leaves_blocks_to_others() {
        let memory = Memory::default();
        let (greedy, other) = (memory.of_user("greedy"), memory.of_user("other"));
        let most = limits::S3_MEMORY / 4 / BLOCK;
        let mut blocks = read_ahead(&greedy);
        assert_eq!(blocks.len(), most);
        assert!(read_ahead(&memory.of_user("greedy")).is_empty(), "in whichever session");
        let others = read_ahead(&other);
        assert_eq!(others.len(), limits::S3_MEMORY_OF_USER / BLOCK);
        // The user's own share is all that it gets again.
        blocks.clear();
        assert_eq!(read_ahead(&greedy).len(), most - others.len());
    }

    #[test]
    fn one_user_leaves_memory_to_others() {
        let memory = Memory::default();
        let (greedy, other) = (memory.of_user("greedy"), memory.of_user("other"));
        let mut shares: Vec<_> = (0..8).map(|_| Share::default()).collect();
        let part = limits::S3_MEMORY_OF_USER / 2;
        // Beyond the user's own as long as half of all stays free.
        for share in &mut shares {
            assert_eq!(greedy.grow(share, part), Ok(()));
        }
        let mut more = Share::default();
        assert_eq!(greedy.grow(&mut more, 1), Err(Full::User));
        // It counts for the user, whichever bucket it is and whichever session.
        assert_eq!(memory.of_user("greedy").grow(&mut more, 1), Err(Full::User));
        let mut others = Share::default();
        assert_eq!(other.grow(&mut others, limits::S3_MEMORY_OF_USER), Ok(()));
        assert_eq!(other.grow(&mut others, limits::S3_MEMORY_OF_USER + 1), Err(Full::User));
        // What is given back can be taken again, up to the user's own while others hold the rest.
        shares.truncate(1);
        let mut rest = Share::default();
        assert_eq!(memory.grow(&mut rest, limits::S3_MEMORY / 2), Ok(()));
        assert_eq!(greedy.grow(&mut more, part), Ok(()));
        assert_eq!(greedy.grow(&mut more, part + 1), Err(Full::User));
        drop((shares, more, others));
        assert!(lock(&memory.users).is_empty());
    }

    #[test]
    fn the_message_names_the_users_share() {
        let told = Error::from(Full::User).text;
        assert!(told.contains("your share of the server's memory, 128 MiB"), "{told}");
    }
}
