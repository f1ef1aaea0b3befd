//! Files with secrets for programs that read files: written whole, with owner and mode, and renewed.

mod folder;

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use outlast_agent::callers::Granted;
use outlast_agent::interface::Ask;
use outlast_agent::template::{self, Content, MAX_SECRETS, Round};
use outlast_agent::upstream::Problem;
use rustix::process::{Pid, Signal, kill_process};
use zeroize::Zeroizing;

use super::serve::{Agent, Missing};
use crate::child;

pub(super) use folder::remove_leftovers;

/// File systems in memory: their magic numbers in the kernel's `magic.h`.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];
/// Longest wait for a command.
const COMMAND: Duration = Duration::from_secs(60);
/// Longest file with the number of a process, in bytes.
const MAX_PID_FILE: u64 = 64;
/// Time to the next attempt when a secret could not be read.
const AGAIN: Duration = Duration::from_secs(5);

/// A file, by the configuration.
pub(crate) struct FileSettings {
    pub(super) path: PathBuf,
    pub(super) source: Source,
    pub(super) mode: u32,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) allow_disk: bool,
    pub(super) keep_when_revoked: bool,
    pub(super) refresh: Duration,
    /// How long it stays after it was last found right, while Secrets Manager is away.
    pub(super) keep: Duration,
    pub(super) notify: Option<Notify>,
}

/// What the file contains.
pub(super) enum Source {
    /// The value of this secret.
    Secret(String),
    /// The result of a template.
    Template { name: PathBuf, text: String },
}

/// How to tell a program that the file has changed.
#[derive(Clone)]
pub(super) enum Notify {
    /// A signal to the process whose number is in a file.
    Signal { signal: Signal, pid_file: PathBuf },
    /// A command.
    Command(Vec<String>),
}

/// A file that is kept up to date.
pub(super) struct Rendered {
    settings: FileSettings,
    is_sound: bool,
}

/// Why there is no content.
enum NoContent {
    /// A secret was refused.
    Refused(String),
    /// Secrets Manager is away, and the cache has nothing that may be served.
    Away(String),
    /// Something else: the old file stays.
    Failed(String),
}

impl Rendered {
    pub(super) fn new(settings: FileSettings) -> Self {
        Self { settings, is_sound: false }
    }

    /// Renews the file for ever, and at once when `again` changes.
    pub(super) async fn run(
        mut self,
        agent: Arc<Agent>,
        mut again: tokio::sync::watch::Receiver<u64>,
    ) {
        loop {
            let pause = if self.is_sound { self.settings.refresh } else { AGAIN };
            tokio::select! {
                () = tokio::time::sleep(pause.min(self.settings.refresh)) => {}
                _ = again.changed() => {}
            }
            self.refresh(&agent).await;
        }
    }

    /// Renders the file and writes it if it has changed.
    pub(super) async fn refresh(&mut self, agent: &Arc<Agent>) {
        let path = self.settings.path.display().to_string();
        let outcome = match self.content(agent).await {
            Ok(content) => self.write(&content).map_err(NoContent::Failed),
            Err(problem) => Err(problem),
        };
        self.is_sound = outcome.is_ok();
        match outcome {
            Ok(false) => agent.counts().file("unchanged"),
            Ok(true) => {
                agent.counts().file("written");
                tracing::info!(path, "a file was written");
                self.notify().await;
            }
            Err(NoContent::Failed(reason)) => {
                agent.counts().file("failed");
                tracing::error!(path, reason, "a file cannot be rendered: the old one stays");
            }
            // Also after a restart, when the cache is empty: the file says how old it is.
            Err(NoContent::Away(reason)) if self.age() < self.settings.keep => {
                agent.counts().file("failed");
                tracing::warn!(path, reason, "a file cannot be renewed: it stays for a while");
            }
            Err(NoContent::Refused(reason) | NoContent::Away(reason))
                if self.settings.keep_when_revoked =>
            {
                agent.counts().file("failed");
                tracing::error!(
                    path,
                    reason,
                    "a file has no secret any more, and stays as configured"
                );
            }
            Err(NoContent::Refused(reason) | NoContent::Away(reason)) => {
                agent.counts().file("removed");
                match std::fs::remove_file(&self.settings.path) {
                    Ok(()) => tracing::error!(path, reason, "a file was removed"),
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        tracing::error!(path, reason, "a file has no secret");
                    }
                    Err(error) => tracing::error!(path, reason, %error, "a file cannot be removed"),
                }
            }
        }
    }

    async fn content(&self, agent: &Agent) -> Result<Zeroizing<Vec<u8>>, NoContent> {
        let (name, text) = match &self.settings.source {
            Source::Secret(id) => {
                let ask = Ask { secret_id: id.clone(), ..Ask::default() };
                return Ok(Zeroizing::new(secret(agent, &ask).await?.bytes().to_vec()));
            }
            Source::Template { name, text } => (name.display().to_string(), text),
        };
        let mut known: HashMap<Ask, Content> = HashMap::new();
        // Each round but the last needs a secret more.
        for _ in 0..=MAX_SECRETS {
            let round = template::render(&name, text, &known);
            match round.map_err(|error| NoContent::Failed(error.to_string()))? {
                Round::Done(bytes) => return Ok(bytes),
                Round::Needs(needs) => {
                    for ask in needs {
                        let content = secret(agent, &ask).await?;
                        known.insert(ask, content);
                    }
                }
            }
        }
        Err(NoContent::Failed("it needs ever more secrets".to_owned()))
    }

    /// Replaces the file, unless it is as it should be. Returns whether it was replaced.
    fn write(&self, content: &[u8]) -> Result<bool, String> {
        let FileSettings { path, mode, uid, gid, .. } = &self.settings;
        if let Some(file) = self.current(content) {
            // Its time says when it was last found right.
            let touched = file.set_modified(SystemTime::now());
            return touched.map(|()| false).map_err(|error| error.to_string());
        }
        let folder = folder::of(path);
        if !self.settings.allow_disk && !is_in_memory(folder)? {
            return Err(format!(
                "{} is on a disk, which may keep what is deleted: use a tmpfs such as /run, or say allow_disk = true",
                folder.display()
            ));
        }
        let replace = || -> std::io::Result<()> {
            // Only this process can read it until it is complete.
            let mut file = folder::temporary(folder)?;
            file.write_all(content)?;
            // The owner first: a change of owner takes bits off the mode.
            fchown(file.as_file(), *uid, *gid)?;
            file.as_file().set_permissions(std::fs::Permissions::from_mode(*mode))?;
            file.as_file().sync_all()?;
            file.persist(path).map_err(|error| error.error)?;
            Ok(())
        };
        replace().map_err(|error| error.to_string())?;
        Ok(true)
    }

    /// Time since the file was last found right.
    fn age(&self) -> Duration {
        let found = std::fs::symlink_metadata(&self.settings.path);
        let modified = found.ok().filter(std::fs::Metadata::is_file).map(|found| found.modified());
        let time = modified.and_then(Result::ok);
        time.and_then(|time| time.elapsed().ok()).unwrap_or(Duration::MAX)
    }

    /// The file, if it is as it should be. All is asked of one descriptor: what is at the path may change meanwhile.
    fn current(&self, content: &[u8]) -> Option<std::fs::File> {
        let FileSettings { path, mode, uid, gid, .. } = &self.settings;
        let (file, found) = folder::open(path).ok()?;
        let len = u64::try_from(content.len()).ok()?;
        let fits = found.len() == len
            && found.mode() & 0o7777 == *mode
            && uid.is_none_or(|uid| uid == found.uid())
            && gid.is_none_or(|gid| gid == found.gid());
        // One byte more shows that it has grown; with the room from the start, nothing is copied.
        let mut old = Zeroizing::new(Vec::with_capacity(content.len() + 1));
        let is_same =
            fits && (&file).take(len + 1).read_to_end(&mut old).is_ok() && *old == content;
        is_same.then_some(file)
    }

    async fn notify(&self) {
        let Some(notify) = self.settings.notify.clone() else { return };
        let outcome = tokio::task::spawn_blocking(move || notify.run()).await;
        if let Ok(Err(reason)) = outcome {
            let path = self.settings.path.display().to_string();
            tracing::error!(path, reason, "the program was not told of the change");
        }
    }
}

impl Notify {
    fn run(&self) -> Result<(), String> {
        match self {
            Self::Signal { signal, pid_file } => {
                // The program that writes it may be another user's.
                let (file, _) =
                    folder::open(pid_file).map_err(|error| format!("pid_file: {error}"))?;
                let mut text = String::new();
                let read = file.take(MAX_PID_FILE).read_to_string(&mut text);
                read.map_err(|error| format!("pid_file: {error}"))?;
                let number = text.trim().parse::<i32>().ok().filter(|number| *number > 1);
                let pid =
                    number.and_then(Pid::from_raw).ok_or("there is no process id in pid_file")?;
                kill_process(pid, *signal).map_err(|error| error.to_string())
            }
            Self::Command(words) => {
                let (program, rest) = words.split_first().ok_or("there is no command")?;
                // The command gets neither the token nor credentials.
                let mut command = Command::new(program);
                command
                    .args(rest)
                    .env_clear()
                    .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                let mut child = command.spawn().map_err(|error| error.to_string())?;
                match child::wait(&mut child, COMMAND).map_err(|error| error.to_string())? {
                    Some(status) if status.success() => Ok(()),
                    Some(status) => Err(format!("the command failed: {status}")),
                    None => Err(format!("the command took longer than {} s", COMMAND.as_secs())),
                }
            }
        }
    }
}

async fn secret(agent: &Agent, ask: &Ask) -> Result<Content, NoContent> {
    let id = &ask.secret_id;
    match agent.get(ask, false, &Granted::everything(), "file").await {
        Ok(held) => template::content(&held.body)
            .map_err(|error| NoContent::Failed(format!("{id}: {error}"))),
        Err(Missing::Denied) => Err(NoContent::Failed(format!("{id}: denied"))),
        Err(Missing::Problem(Problem::Refused { code, .. })) => {
            Err(NoContent::Refused(format!("{id}: {code}")))
        }
        Err(Missing::Problem(problem)) => {
            Err(NoContent::Away(format!("{id}: {}", problem.reason())))
        }
    }
}

/// Whether files in a folder are in memory only.
fn is_in_memory(folder: &Path) -> Result<bool, String> {
    let found = rustix::fs::statfs(folder).map_err(|error| error.to_string())?;
    // The type's width differs between machines.
    #[allow(clippy::unnecessary_cast, reason = "the type differs between machines")]
    let kind = found.f_type as i64;
    Ok(IN_MEMORY.contains(&kind))
}

#[cfg(test)]
mod tests;
