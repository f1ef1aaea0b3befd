//! The program that decides whether an upload appears.
//!
//! It gets the content as its standard input, which has no name yet. `{path}` in its words is a path at which it can open the
//! content itself. What it prints is not read, so that it may print anything. A program that fails, is killed or takes too
//! long refuses.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_sftp::arrival::Inspector;
use outlast_sftp::error::{Error, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::child;
use crate::failure::Failure;
use crate::settings::SftpUploads;

/// Programs that run at the same time, at most; others wait.
const AT_A_TIME: usize = 16;
/// Seconds that a program may take at most.
const MAX_SECONDS: u32 = 3600;
/// Where a program finds its standard input as a file.
const CONTENT: &str = "/proc/self/fd/0";

/// A program that scans uploads.
pub(crate) struct Scan {
    program: String,
    words: Vec<String>,
    limit: Duration,
    state: Mutex<State>,
    ended: Condvar,
}

/// What is going on.
#[derive(Default)]
struct State {
    scans: usize,
    /// The groups of the programs' processes.
    groups: Vec<Pid>,
    is_stopped: bool,
}

/// Checks the settings; `None` if uploads are not scanned.
pub(crate) fn choose(said: &SftpUploads) -> std::result::Result<Option<Scan>, Failure> {
    let seconds = said.scan_timeout_seconds();
    let Some(words) = &said.scan else { return Ok(None) };
    let Some((program, words)) = words.split_first() else {
        return Err(Failure::new("scan names no program")
            .hint("name it with its words, such as [\"/usr/bin/clamdscan\", \"-\"]")
            .about("sftp_uploads.scan"));
    };
    if !Path::new(program).is_absolute() || !Path::new(program).is_file() {
        return Err(Failure::new(format!("scan: there is no program {program}"))
            .hint("name the program by its absolute path")
            .about("sftp_uploads.scan"));
    }
    if !(1..=MAX_SECONDS).contains(&seconds) {
        return Err(Failure::new(format!(
            "scan_timeout_seconds is not between 1 and {MAX_SECONDS}"
        ))
        .about("sftp_uploads.scan_timeout_seconds"));
    }
    Ok(Some(Scan {
        program: program.clone(),
        words: words.iter().map(|word| word.replace("{path}", CONTENT)).collect(),
        limit: Duration::from_secs(seconds.into()),
        state: Mutex::default(),
        ended: Condvar::new(),
    }))
}

impl Scan {
    fn run(&self, content: OwnedFd) -> std::io::Result<Option<std::process::ExitStatus>> {
        let mut child = Command::new(&self.program)
            .args(&self.words)
            // Not the server's own environment, which may have a passphrase.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::from(content))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A group of its own, so that what it has started ends with it.
            .process_group(0)
            .spawn()?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let Some(group) = group else { return child::wait(&mut child, self.limit) };
        let mut state = self.state();
        state.groups.push(group);
        if state.is_stopped {
            let _ = kill_process_group(group, Signal::KILL);
        }
        drop(state);
        let status = child::wait(&mut child, self.limit);
        self.state().groups.retain(|running| *running != group);
        // Also after it has ended: nothing of it may go on.
        let _ = kill_process_group(group, Signal::KILL);
        status
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inspector for Scan {
    fn inspect(&self, name: &[u8], content: OwnedFd) -> Result<()> {
        let mut state = self.state();
        while state.scans >= AT_A_TIME && !state.is_stopped {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_stopped {
            return Err(Error::denied("the server is stopping"));
        }
        state.scans += 1;
        drop(state);
        let ran = self.run(content);
        self.state().scans -= 1;
        self.ended.notify_one();
        let name = String::from_utf8_lossy(name);
        match ran {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(status)) => {
                tracing::warn!(%name, %status, "an upload was refused by the program that scans");
                Err(Error::denied("the file was refused when it was scanned"))
            }
            Ok(None) => {
                tracing::error!(%name, "the program that scans uploads takes too long");
                Err(Error::denied("the file could not be scanned in time"))
            }
            Err(error) => {
                tracing::error!(%name, %error, "the program that scans uploads cannot be run");
                Err(Error::denied("the file could not be scanned"))
            }
        }
    }

    fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        for group in &state.groups {
            let _ = kill_process_group(*group, Signal::KILL);
        }
        self.ended.notify_all();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn content() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    #[test]
    fn a_server_that_stops_waits_for_no_scan() {
        let words = ["/bin/sh", "-c", "sleep 1000; sleep 1000"].map(str::to_owned);
        let said = SftpUploads { scan: Some(words.to_vec()), ..SftpUploads::default() };
        let scan = Arc::new(choose(&said).unwrap().unwrap());
        let running: Vec<_> = (0..=AT_A_TIME)
            .map(|_| {
                let scan = scan.clone();
                std::thread::spawn(move || scan.inspect(b"file", content()))
            })
            .collect();
        outlast_testing::until("programs run", || scan.state().groups.len() == AT_A_TIME);
        scan.stop();
        for thread in running {
            assert!(thread.join().unwrap().is_err());
        }
        assert!(scan.inspect(b"late", content()).is_err());
    }
}
