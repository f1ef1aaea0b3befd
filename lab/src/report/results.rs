//! Reads a results folder, also one of another version, or an incomplete one.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::error::LabError;
use crate::experiment::EXPERIMENTS;
use crate::result::Told;
use crate::state::State;

/// Largest file that is read, in bytes.
const MAX_LEN: u64 = 1 << 30;

/// The run's settings, as far as `run.json` has them.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Asked {
    /// Whether it was the quick form.
    pub quick: Option<bool>,
    /// The seed.
    pub seed: Option<u64>,
    /// Version of the program.
    pub version: Option<String>,
    /// Heading of the user's plan.
    pub plan: Option<String>,
    /// Passes in the folder, this one included.
    pub passes: u32,
}

/// A results folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The run's settings.
    pub asked: Asked,
    /// State of the machine at the start of the run.
    pub state: Option<State>,
    /// Results of the experiments, in the order of the table of experiments.
    pub told: Vec<Told>,
    /// Results that cannot be read: experiment, and reason.
    pub unreadable: Vec<(String, String)>,
}

impl Results {
    /// Reads a folder.
    pub fn read(folder: &Path) -> Result<Self, LabError> {
        let path = folder.join("run.json");
        let text = text(&path)?;
        let run: Value = serde_json::from_str(&text).map_err(|error| foreign(&path, error))?;
        if !run.is_object() {
            return Err(foreign(&path, "not an object"));
        }
        let settings = &run["settings"];
        let asked = Asked {
            quick: settings["quick"].as_bool(),
            seed: settings["seed"].as_u64(),
            version: settings["version"].as_str().map(str::to_owned),
            plan: settings["plan"]["title"].as_str().map(str::to_owned),
            passes: passes(folder),
        };
        let state = self::text(&folder.join("state.json"));
        let state = state.ok().and_then(|text| serde_json::from_str(&text).ok());
        let mut results = Self { asked, state, told: Vec::new(), unreadable: Vec::new() };
        let entries = fs::read_dir(folder).map_err(|error| LabError::file(folder, error))?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| folder.join(name).join("result.json").is_file())
            .collect();
        names.sort_by_key(|name| {
            let place = EXPERIMENTS.iter().position(|row| row.name == name);
            (place.unwrap_or(usize::MAX), name.clone())
        });
        for name in names {
            match told(&folder.join(&name).join("result.json")) {
                // Files are written to the folder with this name, whatever the file says.
                Ok(told) => results.told.push(Told { experiment: name, ..told }),
                Err(reason) => results.unreadable.push((name, reason)),
            }
        }
        Ok(results)
    }
}

/// Most passes that a run may have.
const MAX_PASSES: u32 = 100;

/// How many passes are in a run's folder.
fn passes(folder: &Path) -> u32 {
    let exists =
        |number: &u32| folder.join(format!("repetition-{number}")).join("run.json").is_file();
    (2..=MAX_PASSES).take_while(exists).last().unwrap_or(1)
}

fn told(path: &Path) -> Result<Told, String> {
    let text = text(path).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

fn text(path: &Path) -> Result<String, LabError> {
    let error = |error| LabError::file(path, error);
    if fs::metadata(path).map_err(error)?.len() > MAX_LEN {
        return Err(error(std::io::ErrorKind::FileTooLarge.into()));
    }
    fs::read_to_string(path).map_err(error)
}

fn foreign(path: &Path, error: impl std::fmt::Display) -> LabError {
    let text = format!("the file does not belong to a results folder: {error}");
    LabError::file(path, std::io::Error::new(std::io::ErrorKind::InvalidData, text))
}
