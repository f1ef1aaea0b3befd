//! Runs experiments one after the other; one that cannot run does not stop the others.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::folder::{Folder, read_json, write_json};
use super::{Progress, Run, Settings};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::report;
use crate::result::{Findings, Told};
use crate::state::State;

/// Outcome of a run.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// Experiments that ran.
    pub measured: Vec<&'static str>,
    /// Experiments that this machine lacks something for, with the reason.
    pub skipped: Vec<(&'static str, LabError)>,
    /// Experiments that failed.
    pub failed: Vec<(&'static str, LabError)>,
    /// Whether it was interrupted; what was measured is stored.
    pub interrupted: bool,
    /// The report on what was measured.
    pub report: Option<std::path::PathBuf>,
}

/// Runs experiments into a folder and writes its report.
pub fn run(
    path: &Path,
    settings: &Settings,
    experiments: &[&'static Experiment],
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Outcomes, LabError> {
    let folder = Folder::open(path, settings)?;
    let mut outcomes = Outcomes::default();
    for experiment in experiments {
        if stop.load(Ordering::Relaxed) {
            outcomes.interrupted = true;
            break;
        }
        progress.begin(experiment.name, (experiment.estimate)(settings));
        let outcome = one(&folder, settings, experiment, progress, stop);
        progress.end(experiment.name, &outcome);
        match outcome {
            Ok(()) => outcomes.measured.push(experiment.name),
            // A helper that Ctrl-C ended, too, reports its own end.
            Err(_) if stop.load(Ordering::Relaxed) => {
                outcomes.interrupted = true;
                break;
            }
            Err(error @ LabError::Unavailable { .. }) => {
                outcomes.skipped.push((experiment.name, error));
            }
            // Going on would be useless: the disk is full.
            Err(error @ LabError::File { .. }) => return Err(error),
            Err(error) => outcomes.failed.push((experiment.name, error)),
        }
    }
    outcomes.report = Some(report::write(&folder.path)?);
    Ok(outcomes)
}

fn one(
    folder: &Folder,
    settings: &Settings,
    experiment: &Experiment,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<(), LabError> {
    let begun = Instant::now();
    let before = State::pressure();
    let (findings, (reused, is_new), outcome) =
        match Run::open(&folder.path, experiment.name, settings, progress, stop) {
            Ok(mut run) => {
                let outcome = (experiment.run)(&mut run);
                let reused = run.reused();
                (run.into_findings(), reused, outcome)
            }
            Err(error) => (Findings::default(), (0.0, true), Err(error)),
        };
    let path = folder.path.join(experiment.name).join("result.json");
    let mut told = Told {
        after: Some(State::pressure()),
        seconds: reused + begun.elapsed().as_secs_f64(),
        ..experiment.told(before, findings)
    };
    // The state that counts is the one in which it was measured.
    if !is_new && let Ok(Some(earlier)) = read_json::<Told>(&path) {
        (told.state, told.after) = (earlier.state, earlier.after);
    }
    match &outcome {
        Ok(()) => {}
        // The last complete result stays: it comes from the same settings, and the same command continues.
        Err(LabError::Interrupted | LabError::File { .. }) => return outcome,
        Err(_) if stop.load(Ordering::Relaxed) => return outcome,
        Err(error @ LabError::Unavailable { .. }) => told.skipped = Some(error.to_string()),
        // What was found before the failure is reported, as incomplete.
        Err(error) => told.failed = Some(error.to_string()),
    }
    write_json(&path, &told)?;
    outcome
}
