//! A run: a folder in which experiments store their measurements, and from which an interrupted run continues.
//!
//! `DIR/run.json` has the settings; `DIR/EXPERIMENT/points.ndjson` has one line for each point with its raw samples,
//! synced when it is written; `DIR/EXPERIMENT/result.json` has the experiment's results. All other files can be made
//! again.

pub mod all;
pub mod folder;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::LabError;
use crate::plan::Plan;
use crate::result::{Chart, Control, Finding, Findings, Table};
use crate::state::{State, at_ms};

/// Settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Fewer and smaller points: minutes instead of hours.
    pub quick: bool,
    /// Seed of all randomness of the lab.
    pub seed: u64,
    /// The user's plan.
    pub plan: Option<Plan>,
    /// Version of the program; a run does not mix several.
    pub version: String,
    /// The program itself, for helper processes and servers.
    #[serde(skip)]
    pub executable: PathBuf,
}

/// Receives progress reports.
pub trait Progress: Sync {
    /// The experiment with this name begins; its estimated duration.
    fn begin(&self, experiment: &'static str, estimate: Duration);
    /// A point is being measured.
    fn measuring(&self, key: &str);
    /// A point with this estimated duration is finished; `reused` if it was stored already.
    fn done(&self, cost: Duration, reused: bool);
    /// A message.
    fn say(&self, text: &str);
    /// The experiment has ended.
    fn end(&self, experiment: &'static str, outcome: &Result<(), LabError>);
}

/// An experiment's access to the run, and its results.
pub struct Run<'a> {
    settings: &'a Settings,
    folder: PathBuf,
    known: HashMap<String, Known>,
    /// Seconds that the points took which were there already.
    reused: f64,
    /// Whether a point was measured.
    is_new: bool,
    points: File,
    findings: Findings,
    progress: &'a dyn Progress,
    stop: &'a AtomicBool,
}

/// A point that is there.
struct Known {
    value: Box<RawValue>,
    /// How long it took.
    seconds: f64,
}

/// A line of `points.ndjson`.
#[derive(Serialize, Deserialize)]
struct Point<'a> {
    key: std::borrow::Cow<'a, str>,
    at_ms: u64,
    seconds: f64,
    cpu_pressure: Option<f64>,
    value: Box<RawValue>,
}

impl<'a> Run<'a> {
    /// Opens an experiment's folder in a results folder, with its stored points.
    pub fn open(
        results: &Path,
        experiment: &str,
        settings: &'a Settings,
        progress: &'a dyn Progress,
        stop: &'a AtomicBool,
    ) -> Result<Self, LabError> {
        let folder = results.join(experiment);
        fs::create_dir_all(&folder).map_err(|error| LabError::file(&folder, error))?;
        let path = folder.join("points.ndjson");
        let (known, whole) = match fs::read_to_string(&path) {
            Ok(text) => read_points(&text).map_err(|line| {
                LabError::Plan(format!(
                    "{}: line {line} is damaged: remove the line to have it measured again",
                    path.display()
                ))
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (HashMap::new(), 0),
            Err(error) => return Err(LabError::file(&path, error)),
        };
        let points = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|file| file.set_len(whole).map(|()| file))
            .map_err(|error| LabError::file(&path, error))?;
        let findings = Findings::default();
        let (reused, is_new) = (0.0, false);
        Ok(Self { settings, folder, known, reused, is_new, points, findings, progress, stop })
    }

    /// Settings of the run.
    pub fn settings(&self) -> &'a Settings {
        self.settings
    }

    /// Whether to take minutes instead of hours.
    pub fn quick(&self) -> bool {
        self.settings.quick
    }

    /// Seed of all randomness of the lab.
    pub fn seed(&self) -> u64 {
        self.settings.seed
    }

    /// The folder of this experiment, for pictures and other files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether to stop as soon as possible.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The flag itself, for long work inside a point.
    pub fn stop_flag(&self) -> &'a AtomicBool {
        self.stop
    }

    /// A point: measured, unless an earlier run of this folder has it. The key contains everything that it depends
    /// on; the value has the raw samples. `cost` is its estimated duration.
    pub fn point<T: Serialize + DeserializeOwned>(
        &mut self,
        key: &str,
        cost: Duration,
        measure: impl FnOnce() -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        if let Some(known) = self.known.get(key)
            && let Ok(value) = serde_json::from_str(known.value.get())
        {
            self.reused += known.seconds;
            self.progress.done(cost, true);
            return Ok(value);
        }
        if self.stopped() {
            return Err(LabError::Interrupted);
        }
        self.progress.measuring(key);
        let begun = Instant::now();
        let value = measure()?;
        let raw = serde_json::value::to_raw_value(&value).map_err(LabError::failed)?;
        let point = Point {
            key: key.into(),
            at_ms: at_ms(),
            seconds: begun.elapsed().as_secs_f64(),
            cpu_pressure: State::pressure().cpu_pressure,
            value: raw,
        };
        let mut line = serde_json::to_vec(&point).map_err(LabError::failed)?;
        line.push(b'\n');
        self.points
            .write_all(&line)
            .and_then(|()| self.points.sync_data())
            .map_err(|error| LabError::file(&self.folder.join("points.ndjson"), error))?;
        // Asked for again, it is the same.
        let known = Known { value: point.value, seconds: 0.0 };
        self.known.insert(key.to_owned(), known);
        self.is_new = true;
        self.progress.done(cost, false);
        Ok(value)
    }

    /// Whether a point is there that was measured before.
    pub fn has_point(&self, key: &str) -> bool {
        self.known.contains_key(key)
    }

    /// Seconds that those points took which were measured before; and whether any was measured now.
    pub fn reused(&self) -> (f64, bool) {
        (self.reused, self.is_new)
    }

    /// The receiver of progress reports, for code that cannot borrow the run.
    pub fn progress(&self) -> &'a dyn Progress {
        self.progress
    }

    /// Reports what was left out and why: immediately, and as a note.
    pub fn left_out(&mut self, text: &str) {
        self.say(text);
        self.note(text);
    }

    /// Reports a message.
    pub fn say(&self, text: &str) {
        self.progress.say(text);
    }

    /// Adds a note that is not there yet.
    pub fn note_once(&mut self, text: &str) {
        if !self.findings.notes.iter().any(|note| note == text) {
            self.note(text);
        }
    }

    /// Adds a conclusion for the hurried reader.
    pub fn summary(&mut self, text: impl Into<String>) {
        self.findings.summary.push(text.into());
    }

    /// Adds a claim, and what was measured.
    pub fn finding(&mut self, finding: Finding) {
        self.findings.findings.push(finding);
    }

    /// Adds an A/A control.
    pub fn control(&mut self, control: Control) {
        self.findings.controls.push(control);
    }

    /// Adds a chart.
    pub fn chart(&mut self, chart: Chart) {
        self.findings.charts.push(chart);
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        debug_assert!(
            table.columns.iter().enumerate().all(|(place, name)| {
                !table.columns.iter().take(place).any(|other| other == name)
            }),
            "two columns of {} have one name",
            table.name
        );
        self.findings.tables.push(table);
    }

    /// Adds a picture that is in the folder already.
    pub fn picture(&mut self, file: impl Into<String>, caption: impl Into<String>) {
        self.findings.pictures.push((file.into(), caption.into()));
    }

    /// Adds a note on what was left out and why, or on the limits of the figures.
    pub fn note(&mut self, text: impl Into<String>) {
        self.findings.notes.push(text.into());
    }

    /// The results so far.
    pub fn into_findings(self) -> Findings {
        self.findings
    }
}

/// The points of a file by their keys, and the length in bytes of its valid part: a last line that a kill or a full
/// disk cut short is measured again. Any other damage is an error with the line number.
fn read_points(text: &str) -> Result<(HashMap<String, Known>, u64), usize> {
    let mut known = HashMap::new();
    let mut whole = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if !line.ends_with('\n') {
            break;
        }
        let point: Point<'_> = serde_json::from_str(line).map_err(|_| index + 1)?;
        let Point { key, value, seconds, .. } = point;
        known.insert(key.into_owned(), Known { value, seconds });
        whole += line.len() as u64;
    }
    Ok((known, whole))
}
