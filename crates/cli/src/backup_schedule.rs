//! `[backup]` of the settings: a server makes backups of itself regularly, and removes its older ones.
//!
//! Does what `outlast backup` does without a key of its own, in the background. Removes nothing before a newer backup
//! is on disk, and only files that this store wrote.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outlast_domain::Fault;
use outlast_domain::audit::LogKey;
use outlast_domain::backup::{self, Counts, NewBackup};
use outlast_domain::seal::{self, Kek};
use outlast_net::server::system_clock;
use outlast_pki::time::{from_rfc3339, rfc3339};

use crate::commands::backup::{describe, failure};
use crate::data::Data;
use crate::failure::Failure;
use crate::files::io_failure;
use crate::settings::Backup;

/// Interval between checks whether a backup is due, and between attempts after a failure.
const PERIOD: Duration = Duration::from_secs(60);
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const ENDING: &str = ".backup";

/// The section's values, checked.
#[derive(Clone)]
pub(crate) struct Schedule {
    folder: PathBuf,
    every_ms: i64,
    keep: usize,
    keep_ms: i64,
    failed: Arc<AtomicU64>,
}

/// Checks the settings; `None` without such a section.
pub(crate) fn choose(said: Backup) -> Result<Option<Schedule>, Failure> {
    let every = said.every_hours();
    let Some(folder) = said.folder else { return Ok(None) };
    let wrong = |name: &'static str| Failure::new(format!("{name} must be at least 1")).about(name);
    if every == 0 {
        return Err(wrong("backup.every_hours").hint("set it to 24 for one backup a day"));
    }
    if said.keep == Some(0) {
        return Err(wrong("backup.keep").hint("leave it out to keep all backups"));
    }
    if said.keep_days == Some(0) {
        return Err(wrong("backup.keep_days").hint("leave it out to keep backups of any age"));
    }
    Ok(Some(Schedule {
        folder,
        every_ms: i64::from(every) * HOUR_MS,
        keep: said.keep.unwrap_or(usize::MAX),
        keep_ms: said.keep_days.map_or(i64::MAX, |days| i64::from(days) * DAY_MS),
        failed: Arc::default(),
    }))
}

impl Schedule {
    /// Number of failed attempts since the server started.
    pub(crate) fn failures(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        let failed = self.failed.clone();
        move || failed.load(Ordering::Relaxed)
    }

    /// Never ends.
    pub(crate) async fn run(self, data: Arc<Data>) {
        let mut has_new = false;
        loop {
            tokio::task::block_in_place(|| {
                if let Err(failure) = self.round(&data, system_clock(), &mut has_new) {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(
                        error = failure.message(),
                        folder = %self.folder.display(),
                        "no backup was made; the server tries again in a minute"
                    );
                }
            });
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Makes a backup if one is due, and then removes the ones that are no longer needed, if the clock can be
    /// trusted: `has_new` says that a backup was made since they were last removed.
    fn round(&self, data: &Data, now_ms: i64, has_new: &mut bool) -> Result<(), Failure> {
        // The folder may be the mount point of a disk: it is not created in the disk's absence.
        if !self.folder.is_dir() {
            return Err(Failure::file(&self.folder, &"there is no such folder"));
        }
        let key = LogKey::read(&mut data.service.work(now_ms))?;
        let [first, _] = key.verifiers();
        let prefix = format!("outlast-{}-", hex::encode(first.id()));
        let newest = self.backups(&prefix)?.into_iter().next_back();
        // One from the future does not count: a clock was wrong.
        let is_due = newest.is_none_or(|(made_ms, _)| {
            !(made_ms..made_ms.saturating_add(self.every_ms)).contains(&now_ms)
        });
        if is_due {
            self.write(data, &prefix, now_ms)?;
            *has_new = true;
        }
        if !*has_new {
            return Ok(());
        }
        match data.service.may_sweep(now_ms) {
            Ok(true) => {
                self.remove_old(&prefix, now_ms)?;
                *has_new = false;
            }
            Ok(false) if is_due => {
                tracing::info!("no old backup is removed until the clock has been checked");
            }
            Err(Fault::Clock(problem)) if is_due => {
                tracing::warn!(problem, "no old backup is removed while the clock is wrong");
            }
            Ok(false) | Err(Fault::Clock(_)) => {}
            Err(fault) => return Err(fault.into()),
        }
        Ok(())
    }

    /// The backups of this store, oldest first: time of each, in milliseconds since 1970, and its file.
    fn backups(&self, prefix: &str) -> Result<Vec<(i64, PathBuf)>, Failure> {
        let failed = |error: std::io::Error| io_failure(&self.folder, &error);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let time = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(ENDING));
            if let Some(seconds) = time.and_then(seconds_of) {
                found.push((seconds * 1000, path));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Writes a backup. The file gets its name once it is on disk; the remains of an earlier attempt are overwritten.
    fn write(&self, data: &Data, prefix: &str, now_ms: i64) -> Result<(), Failure> {
        let path = self.folder.join(format!("{prefix}{}{ENDING}", name_of(now_ms / 1000)));
        let part = self.folder.join(format!(".{prefix}part"));
        let failed = |error: std::io::Error| io_failure(&part, &error);
        let root = data.service.root();
        let record = seal::read_record(data.store())?;
        let new = NewBackup {
            created_ms: now_ms,
            created_by: format!("outlast {}", env!("CARGO_PKG_VERSION")),
            kek: root.kek(),
            parameters: record.map(|record| record.parameters).unwrap_or_default(),
            by_store: true,
            include_root_keys: false,
        };
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)
            .map_err(failed)?;
        let mut out = BufWriter::with_capacity(1 << 17, file);
        let counts = backup::write(data.store(), root, new, &mut out, &mut |_| {})
            .map_err(|error| failure(&part, error))?;
        out.flush().map_err(failed)?;
        out.get_ref().sync_all().map_err(failed)?;
        read_back(&part, root.kek(), counts)?;
        std::fs::rename(&part, &path)
            .and_then(|()| File::open(&self.folder)?.sync_all())
            .map_err(|error| io_failure(&path, &error))?;
        tracing::info!(file = %path.display(), "wrote a backup, and read it back: {}", describe(counts));
        Ok(())
    }

    /// Removes backups that are too many or too old, but never the newest.
    fn remove_old(&self, prefix: &str, now_ms: i64) -> Result<(), Failure> {
        let all = self.backups(prefix)?;
        for (number, (made_ms, path)) in all.iter().rev().enumerate().skip(1) {
            let is_old = now_ms.saturating_sub(*made_ms) > self.keep_ms;
            if number < self.keep && !is_old {
                continue;
            }
            // Any file could have such a name: only one whose header says that it is that backup is removed.
            if made_at(path).is_none_or(|found_ms| found_ms / 1000 != made_ms / 1000) {
                tracing::warn!(file = %path.display(), "not removed: its name does not match the backup in it");
                continue;
            }
            std::fs::remove_file(path).map_err(|error| io_failure(path, &error))?;
            tracing::info!(file = %path.display(), "removed an old backup");
        }
        Ok(())
    }
}

/// Checks that the backup can be restored: a disk may accept data and lose it.
fn read_back(path: &Path, kek: &dyn Kek, written: Counts) -> Result<(), Failure> {
    let file = File::open(path).map_err(|error| io_failure(path, &error))?;
    // Read from the disk and not from the page cache, where the file system supports that.
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    let mut file = BufReader::with_capacity(1 << 17, file);
    let refused = |error| failure(path, error);
    let (header, head) = backup::header(&mut file).map_err(refused)?;
    let found = backup::read_through(&header, &head, kek, &mut file).map_err(refused)?;
    if found == written {
        return Ok(());
    }
    Err(Failure::file(path, &"the backup on disk is not what was written")
        .hint("check the disk that backups are written to"))
}

/// When a backup was made, in milliseconds since 1970, according to its header.
fn made_at(path: &Path) -> Option<i64> {
    let mut file = BufReader::new(File::open(path).ok()?);
    backup::header(&mut file).ok().map(|(header, _)| header.created_ms)
}

/// `2026-11-22T17-31-00Z`, for a time in seconds since 1970.
fn name_of(seconds: i64) -> String {
    rfc3339(seconds).replace(':', "-")
}

/// Reverses [`name_of`].
fn seconds_of(name: &str) -> Option<i64> {
    let (day, time) = name.split_once('T')?;
    let seconds = from_rfc3339(&format!("{day}T{}", time.replace('-', ":")))?;
    (name_of(seconds) == name).then_some(seconds)
}

#[cfg(test)]
mod tests;
