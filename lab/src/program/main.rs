//! `outlast-lab`: measures what post-quantum cryptography costs. `outlast lab` and `outlast siege` start it.

mod agent;
mod archive;
mod baseline;
mod calibrate;
mod compare;
mod list;
mod progress;
mod report;
mod run;
mod selftest;
mod siege;
mod validate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{CommandFactory, Parser, Subcommand};
use outlast_lab::error::LabError;
use outlast_lab::plan::Plan;
use outlast_lab::run::Settings;
use outlast_terminal::completions;
use outlast_terminal::failure::Failure;
use outlast_terminal::output::Output;

/// Measure what post-quantum cryptography costs: handshakes, bytes, requests, over links of your choice; and lay
/// siege to a server.
///
/// Exit codes: 0 done; 1 failed; 2 wrong usage; 4 some of several experiments failed; 5 a siege found a limit missed;
/// 130 a run was interrupted.
#[derive(Parser)]
#[command(name = "outlast-lab", version, propagate_version = true)]
struct Arguments {
    /// How to print results.
    #[arg(long, global = true, value_enum, default_value_t = Output::Text, env = "OUTLAST_OUTPUT")]
    output: Output,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run one experiment, several, or all; an interrupted run continues where it stopped.
    Run(run::Arguments),
    /// List the experiments, what they reproduce, and how long they take.
    List(list::Arguments),
    /// Make the report of a results folder again: report.html, CSV, SVG and PNG.
    Report(report::Arguments),
    /// Compare two results folders: first the machines, then the results.
    Compare(compare::Arguments),
    /// Put the results of a run into one file, which `report` and `compare` read on any machine.
    Archive(archive::Arguments),
    /// Learn from equal runs how much figures differ between runs on this machine, for `compare`.
    Baseline(baseline::Arguments),
    /// Print the running kernel as a profile for plans.
    Calibrate(calibrate::Arguments),
    /// Check the promised accuracy on this machine; exits with 1 if a check fails.
    Selftest(selftest::Arguments),
    /// Score the model against published measurements, or your own.
    Validate(validate::Arguments),
    /// Attack a server on this machine in every way that is known here, beside a client that must not notice.
    Siege(siege::Arguments),
    /// Print a completion script for a shell.
    Completions(completions::Arguments),
    /// A helper process of the lab itself.
    #[command(hide = true)]
    Agent(agent::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = run(&arguments.action, arguments.output);
    match outcome.and_then(|()| Failure::of_lost_output()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(action: &Action, output: Output) -> Result<(), Failure> {
    #[cfg(feature = "legacy")]
    look_for_pqmagic();
    match action {
        Action::Run(arguments) => run::run(arguments, output),
        Action::List(arguments) => list::run(arguments, output),
        Action::Report(arguments) => report::run(arguments, output),
        Action::Calibrate(arguments) => calibrate::run(arguments, output),
        Action::Compare(arguments) => compare::run(arguments, output),
        Action::Archive(arguments) => archive::run(arguments, output),
        Action::Baseline(arguments) => baseline::run(arguments, output),
        Action::Selftest(arguments) => selftest::run(arguments, output),
        Action::Validate(arguments) => validate::run(arguments, output),
        Action::Siege(arguments) => siege::run(arguments, output),
        Action::Completions(arguments) => {
            completions::print(arguments, Arguments::command());
            Ok(())
        }
        Action::Agent(arguments) => agent::run(arguments),
    }
}

/// PQMagic's library is where `OUTLAST_PQMAGIC` says, where pip installs it, or where `cargo xtask peers` does;
/// `none` means to do without.
#[cfg(feature = "legacy")]
fn look_for_pqmagic() {
    use outlast_lab::legacy::pqmagic::{look_in, look_nowhere, usual_places};
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from);
    if from("OUTLAST_PQMAGIC").is_some_and(|place| place.as_os_str() == "none") {
        return look_nowhere();
    }
    let of_pip: Vec<PathBuf> = from("VIRTUAL_ENV")
        .into_iter()
        .chain(from("HOME").map(|home| home.join(".local")))
        .collect();
    let mut places: Vec<PathBuf> = from("OUTLAST_PQMAGIC").into_iter().collect();
    places.extend(outlast_lab::trusted::own_peers().map(|peers| peers.join("pqmagic/lib")));
    places.extend(usual_places(&of_pip));
    look_in(places);
}

/// Exit code after Ctrl-C, as shells use it.
const INTERRUPTED: u8 = 130;

/// Settings of this program.
fn settings(quick: bool, seed: u64, plan: Option<Plan>) -> Result<Settings, Failure> {
    let executable = std::env::current_exe()
        .map_err(|error| Failure::new(format!("the program does not know where it is: {error}")))?;
    // With the algorithms from the literature, an experiment has other points.
    let feature = if cfg!(feature = "legacy") { "+legacy" } else { "" };
    let version = format!("{}{feature}", env!("CARGO_PKG_VERSION"));
    Ok(Settings { quick, seed, plan, version, executable })
}

/// A flag that Ctrl-C sets. A second Ctrl-C ends the program at once; the next start cleans up after it.
fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(INTERRUPTED));
        }
    })
    .map_err(|error| Failure::new(format!("Ctrl-C cannot be handled: {error}")))?;
    Ok(stop)
}

/// The number of results and what they lack is always printed; hints about an error are for people.
fn failure(error: &LabError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        LabError::Interrupted => failure.code(INTERRUPTED),
        LabError::Unavailable { .. } => {
            failure.hint("the other experiments run without it: outlast lab list")
        }
        LabError::File { error, .. } if error.kind() == std::io::ErrorKind::StorageFull => failure
            .hint("the measurements so far are kept: make room, and the same command continues from there"),
        LabError::File { error, .. } if error.kind() == std::io::ErrorKind::InvalidData => {
            failure.hint(RESULTS_HINT)
        }
        LabError::Peer { .. } => {
            failure.hint("the measurements so far are kept, and the same command continues from there")
        }
        _ => failure,
    }
}

/// The default folder for results.
fn default_folder() -> PathBuf {
    PathBuf::from("lab-results")
}

const RESULTS_HINT: &str = "name the folder that \"outlast lab run --out DIR\" wrote";

/// The folder, if it has results of a run.
fn results_folder(folder: &Path) -> Result<&Path, Failure> {
    if !folder.is_dir() {
        let what = if folder.exists() { "not a folder" } else { "no such folder" };
        return Err(Failure::new(format!("{}: {what}", folder.display())).hint(RESULTS_HINT));
    }
    if !folder.join("run.json").is_file() {
        let what = "has no run.json, so it is not a results folder";
        return Err(Failure::new(format!("{} {what}", folder.display())).hint(RESULTS_HINT));
    }
    Ok(folder)
}
