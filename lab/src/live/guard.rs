//! One emulation at a time, and no remains of a dead one: a locked file says which process emulates, which processes
//! belong to it and what it changed in the initial namespace.
//!
//! Namespaces and devices need no cleaning up: file descriptors hold them, and they end with their process, however
//! it dies.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, getpriority_process, kill_process};
use serde::{Deserialize, Serialize};

use super::kernel;
use crate::error::{ANOTHER_EMULATION, LabError};

/// The process that emulates.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Held {
    /// Process id.
    pid: u32,
    /// A token in the environment of its children.
    token: String,
    /// The previous value of the initial namespace's setting, while it is changed.
    allowed_before: Option<String>,
}

/// The right to emulate. Given back when dropped; a process that dies loses it.
#[derive(Debug)]
pub(super) struct Guard {
    file: File,
    held: Held,
}

/// Name of the token's variable.
pub(super) const TOKEN: &str = "OUTLAST_LAB_EMULATION";

impl Guard {
    /// Takes the right, and cleans up after a dead process.
    pub fn take() -> Result<Self, LabError> {
        let path = path();
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            // In a folder that everybody may write to, a link could lead anywhere.
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(|error| LabError::file(&path, error))?;
        let mut text = String::new();
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let _ = file.read_to_string(&mut text);
                let who = serde_json::from_str::<Held>(&text)
                    .map_or_else(|_| "a process".into(), |held| format!("process {}", held.pid));
                return Err(LabError::unavailable(
                    "the live engine",
                    format!("{ANOTHER_EMULATION} ({who}): wait for it, or end it"),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(LabError::file(&path, error)),
        }
        let _ = file.read_to_string(&mut text);
        if let Ok(dead) = serde_json::from_str::<Held>(&text) {
            dead.sweep();
        }
        let token = format!("{}-{:016x}", std::process::id(), rand::random::<u64>());
        let held = Held { pid: std::process::id(), token, allowed_before: None };
        let mut guard = Self { file, held };
        guard.write()?;
        Ok(guard)
    }

    /// The token.
    pub fn token(&self) -> &str {
        &self.held.token
    }

    /// Runs a closure that needs the congestion control to be allowed, and restores the initial namespace's setting.
    pub fn with_congestion_control<T>(
        &mut self,
        work: impl FnOnce() -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let Some((wider, before)) = kernel::to_allow() else { return work() };
        self.held.allowed_before = Some(before.clone());
        self.write()?;
        let allowed = Path::new(kernel::ALLOWED);
        fs::write(allowed, wider).map_err(|error| LabError::file(allowed, error))?;
        let outcome = work();
        fs::write(allowed, before).map_err(|error| LabError::file(allowed, error))?;
        self.held.allowed_before = None;
        self.write()?;
        outcome
    }

    fn write(&mut self) -> Result<(), LabError> {
        let text = serde_json::to_vec(&self.held).map_err(LabError::failed)?;
        self.file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .and_then(|_| self.file.write_all(&text))
            .map_err(|error| LabError::file(&path(), error))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.held.sweep();
        let _ = self.file.set_len(0);
    }
}

impl Held {
    /// Ends the processes of this emulation and restores what it changed.
    fn sweep(&self) {
        if let Some(before) = &self.allowed_before {
            let _ = fs::write(kernel::ALLOWED, before);
        }
        for pid in processes(&self.token) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// What is left of an emulation that has ended, in words.
pub(super) fn remains(token: &str, namespaces: &[u64]) -> Vec<String> {
    let mut left: Vec<String> =
        processes(token).iter().map(|pid| format!("process {pid}")).collect();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let number = fs::metadata(entry.path().join("ns/net")).map_or(0, |one| one.ino());
        if namespaces.contains(&number) {
            left.push(format!("namespace {number} of process {}", entry.file_name().display()));
        }
        // A file descriptor holds a namespace, too.
        let held = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        for descriptor in held {
            let leads_to = fs::read_link(descriptor.path()).unwrap_or_default();
            let leads_to = leads_to.to_string_lossy();
            if namespaces.iter().any(|number| leads_to == format!("net:[{number}]")) {
                left.push(format!("{leads_to}, open in process {}", entry.file_name().display()));
            }
        }
    }
    let devices = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    left.extend(
        devices
            .map(|device| device.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("outlast-lab"))
            .map(|name| format!("device {name}")),
    );
    if let Ok(text) = fs::read_to_string(path())
        && serde_json::from_str::<Held>(&text).is_ok_and(|held| held.token == token)
    {
        left.push("the lock".into());
    }
    left
}

/// The niceness of each process of this emulation, by its name.
pub(super) fn niceness(token: &str) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = processes(token)
        .into_iter()
        .filter_map(|pid| {
            let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).ok()?;
            let niceness = getpriority_process(Some(pid)).ok()?;
            Some((format!("niceness of {}", name.trim()), niceness.to_string()))
        })
        .collect();
    rows.sort();
    rows.dedup();
    rows
}

/// The processes that have this token in their environment.
fn processes(token: &str) -> Vec<Pid> {
    let wanted = format!("{TOKEN}={token}");
    let Ok(folder) = fs::read_dir("/proc") else { return Vec::new() };
    folder
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
                environment.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes())
            })
        })
        .filter_map(Pid::from_raw)
        .filter(|pid| *pid != rustix::process::getpid())
        .collect()
}

/// The locked file.
fn path() -> PathBuf {
    let run = Path::new("/run");
    let folder = if run.is_dir() { run.to_path_buf() } else { std::env::temp_dir() };
    folder.join("outlast-lab.lock")
}
