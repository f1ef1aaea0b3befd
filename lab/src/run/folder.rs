//! A results folder: its settings, the process that works in it, and files that are complete or absent.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Settings;
use crate::error::LabError;
use crate::state::{State, at_ms};

/// `run.json`: the settings of the folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Start of the run, milliseconds since 1970, UTC.
    pub begun_ms: u64,
    /// The settings.
    pub settings: Settings,
}

/// Folder for the second and later passes of a run that repeats its measurements.
pub fn repetition(folder: &Path, number: u32) -> PathBuf {
    match number {
        0 | 1 => folder.to_path_buf(),
        _ => folder.join(format!("repetition-{number}")),
    }
}

/// A results folder that is locked against other processes.
pub struct Folder {
    /// Path.
    pub path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder, or opens one with the same settings to continue.
    pub fn open(path: &Path, settings: &Settings) -> Result<Self, LabError> {
        fs::create_dir_all(path).map_err(|error| LabError::file(path, error))?;
        let lock = lock(path)?;
        let asked = path.join("run.json");
        match read_json::<Asked>(&asked)? {
            Some(before) => {
                if let Some(what) = before.settings.difference(settings) {
                    return Err(LabError::Plan(format!(
                        "{} has results of a run with {what}: choose another folder with --out, or --fresh to move them aside",
                        path.display()
                    )));
                }
                if let Some(what) = read_json::<State>(&path.join("state.json"))?
                    .and_then(|before| other_machine(&before, &State::now()))
                {
                    return Err(LabError::Plan(format!(
                        "{} has results of another machine ({what}): choose another folder with --out, or --fresh to move them aside",
                        path.display()
                    )));
                }
            }
            None => {
                let strangers = fs::read_dir(path)
                    .map_err(|error| LabError::file(path, error))?
                    .filter_map(Result::ok)
                    .any(|entry| entry.file_name() != LOCK);
                if strangers {
                    return Err(LabError::Plan(format!(
                        "{} is not empty and has no run.json: choose another folder with --out",
                        path.display()
                    )));
                }
                write_json(&path.join("state.json"), &State::now())?;
                // Last, since this file marks the folder as ours.
                write_json(&asked, &Asked { begun_ms: at_ms(), settings: settings.clone() })?;
            }
        }
        Ok(Self { path: path.to_path_buf(), _lock: lock })
    }

    /// Moves an existing folder to the first free `DIR.N`; returns the new path.
    pub fn set_aside(path: &Path) -> Result<Option<PathBuf>, LabError> {
        if !path.join("run.json").exists() {
            return Ok(None);
        }
        let held = lock(path)?;
        for number in 1..10_000_u32 {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            let aside = PathBuf::from(name);
            if !aside.exists() {
                fs::rename(path, &aside).map_err(|error| LabError::file(path, error))?;
                drop(held);
                return Ok(Some(aside));
            }
        }
        Err(LabError::Plan(format!("there are too many folders next to {}", path.display())))
    }
}

const LOCK: &str = ".lock";

fn lock(path: &Path) -> Result<File, LabError> {
    let place = path.join(LOCK);
    let file = File::create(&place).map_err(|error| LabError::file(&place, error))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        LabError::Plan(format!(
            "another run is using {}: wait for it, or choose another folder with --out",
            path.display()
        ))
    })?;
    Ok(file)
}

/// Facts that identify a machine, as far as figures depend on it.
const MACHINE: [&str; 5] = ["architecture", "kernel", "processor", "processors", "build"];

/// How this machine differs from the earlier one, in words. Unknown facts do not count.
pub(crate) fn other_machine(before: &State, now: &State) -> Option<String> {
    let fact = |state: &State, name: &str| {
        state.facts.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    };
    MACHINE.iter().find_map(|name| {
        let (before, now) = (fact(before, name)?, fact(now, name)?);
        (before != now).then(|| format!("{name}: {before}, and now {now}"))
    })
}

impl Settings {
    /// How these settings differ from another run's, in words; `None` if their points may be in one folder.
    fn difference(&self, other: &Self) -> Option<String> {
        let form = |quick| if quick { "--quick" } else { "full length" };
        if self.quick != other.quick {
            return Some(form(self.quick).to_owned());
        }
        if self.seed != other.seed {
            return Some(format!("seed {}", self.seed));
        }
        if self.version != other.version {
            return Some(format!("version {}", self.version));
        }
        (self.plan != other.plan).then(|| "another plan".to_owned())
    }
}

/// Reads a JSON file; `None` if it does not exist.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, LabError> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| LabError::Plan(format!("{} is damaged: {error}", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LabError::file(path, error)),
    }
}

/// Writes a JSON file, whole or not at all.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), LabError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(LabError::failed)?;
    bytes.push(b'\n');
    write(path, &bytes)
}

/// Writes a file, whole or not at all: to a temporary one next to it, which then replaces it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(bytes)?;
        // Unlike temporary files, results may be read by anybody.
        fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)
    });
    written.map(|_| ()).map_err(|error| LabError::file(path, error))
}
