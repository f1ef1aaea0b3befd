//! Temporary files and folders that an interrupted command removes: `tempfile` removes them on drop, but a signal
//! drops nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, io, thread};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

static PENDING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Attempts to remove a folder into which another thread still writes.
const ATTEMPTS: usize = 20;

/// A temporary file or folder, which [`remove_when_interrupted`] removes as long as this value exists.
#[must_use]
pub struct Pending(PathBuf);

impl Pending {
    /// Makes a file or folder and registers it, so that no signal comes between the two.
    ///
    /// Drop what was made before its registration: `let (_pending, made) = ...` does.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn create<T: AsRef<Path>>(make: impl FnOnce() -> io::Result<T>) -> io::Result<(Self, T)> {
        let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
        let made = make()?;
        // Absolute, because the working folder may change.
        let path = std::path::absolute(&made).unwrap_or_else(|_| made.as_ref().to_path_buf());
        pending.insert(path.clone());
        Ok((Self(path), made))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        PENDING.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// From now on SIGINT and SIGTERM remove everything [`Pending`] before they end the program as they do by default.
///
/// Not for commands that handle these signals themselves, such as servers.
pub fn remove_when_interrupted() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    thread::spawn(move || {
        for signal in signals.forever() {
            // Held until the end, so that nothing new is registered and nothing complete is removed.
            let pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
            pending.iter().for_each(|path| remove(path));
            let _ = low_level::emulate_default_handler(signal);
        }
    });
}

fn remove(path: &Path) {
    for _ in 0..ATTEMPTS {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        if removed.is_ok() || !path.exists() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};
    use std::time::Duration;
    use std::{env, fs, thread};

    use tempfile::NamedTempFile;

    use super::{Pending, remove_when_interrupted};
    use crate::files;

    const CHILD: &str = "OUTLAST_TEST_INTERRUPTED";

    /// The child process: a file that is never complete, a folder with contents, and a file that the signal meets while
    /// it is being made.
    fn never_completes(folder: &str) {
        remove_when_interrupted();
        let folder = PathBuf::from(folder);
        let (_pending, build) = Pending::create(|| tempfile::tempdir_in(&folder)).unwrap();
        fs::write(build.path().join("a"), "a").unwrap();
        let _ = files::write_new(&folder.join("out"), |_| -> Result<(), _> {
            let _made = Pending::create(|| {
                let made = NamedTempFile::new_in(&folder);
                thread::sleep(Duration::from_secs(1));
                made
            });
            loop {
                thread::sleep(Duration::from_secs(1));
            }
        });
    }

    #[test]
    fn an_interrupted_program_leaves_no_temporary_file() {
        if let Ok(folder) = env::var(CHILD) {
            return never_completes(&folder);
        }
        for (name, number) in [("-INT", 2), ("-TERM", 15)] {
            let folder = tempfile::tempdir().unwrap();
            let count = || fs::read_dir(folder.path()).unwrap().count();
            let mut child = Command::new(env::current_exe().unwrap())
                .args([
                    "--exact",
                    "temporary::tests::an_interrupted_program_leaves_no_temporary_file",
                ])
                .env(CHILD, folder.path())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            while count() < 3 {
                assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
                thread::sleep(Duration::from_millis(10));
            }
            let id = child.id().to_string();
            assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
            assert_eq!(child.wait().unwrap().signal(), Some(number));
            assert_eq!(count(), 0, "{name} left something");
        }
    }
}
