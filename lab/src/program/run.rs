//! `outlast lab run`: measures, and writes the report.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use outlast_lab::error::LabError;
use outlast_lab::experiment::{EXPERIMENTS, Experiment};
use outlast_lab::plan::Plan;
use outlast_lab::run::Settings;
use outlast_lab::run::all::{self, Outcomes};
use outlast_lab::run::folder::{Folder, repetition};
use outlast_lab::state;
use serde_json::json;

use super::progress::{Shown, length};
use outlast_terminal::failure::{Failure, PARTIAL};
use outlast_terminal::output::{self, Output};

/// Arguments of `lab run`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Experiments by name, or `all`; see `outlast lab list`.
    #[arg(value_name = "EXPERIMENT", required_unless_present = "plan")]
    experiments: Vec<String>,
    /// Fewer and smaller points: minutes instead of hours.
    #[arg(long)]
    quick: bool,
    /// Folder for the results; a folder with results of the same settings is continued.
    #[arg(long, value_name = "DIR", default_value_os_t = super::default_folder())]
    out: PathBuf,
    /// Seed of all randomness: the same seed loses the same packets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Plan with your own grid or endpoint, in TOML.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Repeat all measurements so many times, one pass after the other: their spread shows what a difference from
    /// another run means (`outlast lab compare`). The same command with a larger number adds passes.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Measure everything again: existing results move to DIR.1 and so on.
    #[arg(long)]
    fresh: bool,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let plan =
        arguments.plan.as_deref().map(|path| read_plan(path, arguments.quick)).transpose()?;
    let experiments = choose(&arguments.experiments, plan.is_some())?;
    let settings = super::settings(arguments.quick, arguments.seed, plan)?;
    if state::is_debug_build() {
        output::warning("this is a build without optimisation: its CPU times mean nothing");
    }
    if arguments.fresh
        && let Some(aside) =
            Folder::set_aside(&arguments.out).map_err(|error| super::failure(&error))?
    {
        output::notice(&format!("earlier results are in {}", aside.display()));
    }
    let pass: Duration = experiments.iter().map(|row| (row.estimate)(&settings)).sum();
    let total = pass * arguments.repeat;
    output::notice(&format!(
        "{} into {}: about {}",
        experiments.iter().map(|row| row.name).collect::<Vec<_>>().join(", "),
        arguments.out.display(),
        length(total),
    ));
    let stop = super::stop_flag()?;
    let progress = Shown::new(total);
    let passes = passes(arguments, &settings, &experiments, &progress, &stop);
    progress.finish();
    let outcomes = passes.map_err(|error| super::failure(&error))?;
    tell(&outcomes, output);
    judge(&outcomes, experiments.len())
}

/// All passes; the results of the first, and the failures of any.
fn passes(
    arguments: &Arguments,
    settings: &Settings,
    experiments: &[&'static Experiment],
    progress: &Shown,
    stop: &AtomicBool,
) -> Result<Outcomes, LabError> {
    let mut outcomes = all::run(&arguments.out, settings, experiments, progress, stop)?;
    for number in 2..=arguments.repeat {
        if outcomes.interrupted {
            break;
        }
        progress.line(&format!("pass {number} of {}", arguments.repeat));
        let folder = repetition(&arguments.out, number);
        let again = all::run(&folder, settings, experiments, progress, stop)?;
        outcomes.failed.extend(again.failed);
        outcomes.interrupted = again.interrupted;
    }
    Ok(outcomes)
}

/// The experiments with these names, each once, in the table's order.
fn choose(names: &[String], planned: bool) -> Result<Vec<&'static Experiment>, Failure> {
    for name in names {
        if name != "all" && Experiment::by_name(name).is_none() {
            let known: Vec<&str> = EXPERIMENTS.iter().map(|row| row.name).collect();
            return Err(Failure::new(format!("no experiment is named {name}"))
                .hint(format!("all, {}", known.join(", ")))
                .code(2));
        }
    }
    let all = names.iter().any(|name| name == "all");
    let mut chosen: Vec<&'static Experiment> =
        EXPERIMENTS.iter().filter(|row| all || names.iter().any(|name| name == row.name)).collect();
    if planned {
        chosen.push(&outlast_lab::experiments::plan::EXPERIMENT);
    }
    Ok(chosen)
}

fn read_plan(path: &std::path::Path, quick: bool) -> Result<Plan, Failure> {
    Plan::load(path, quick).map_err(|error| super::failure(&error).code(2))
}

/// Prints where the page is, and what is missing.
fn tell(outcomes: &Outcomes, output: Output) {
    let report = outcomes.report.as_deref().map(|path| path.display().to_string());
    let mut text = String::new();
    if let Some(report) = &report {
        text = format!("report: {report}");
    }
    let reasons = |of: &[(&str, LabError)]| {
        of.iter()
            .map(|(name, error)| json!({"experiment": name, "reason": error.to_string()}))
            .collect::<Vec<_>>()
    };
    output.result(
        &text,
        &json!({
            "report": report,
            "measured": outcomes.measured,
            "skipped": reasons(&outcomes.skipped),
            "failed": reasons(&outcomes.failed),
            "interrupted": outcomes.interrupted,
        }),
    );
}

/// The exit code.
fn judge(outcomes: &Outcomes, asked: usize) -> Result<(), Failure> {
    if outcomes.interrupted {
        return Err(super::failure(&LabError::Interrupted));
    }
    if let Some((name, error)) = outcomes.failed.first() {
        let failure = super::failure(error).prefixed(name);
        return Err(if outcomes.failed.len() < asked { failure.code(PARTIAL) } else { failure });
    }
    // Somebody who asked for one by name needs the reason; with `all` it has been printed.
    match outcomes.skipped.first() {
        Some((name, error)) if outcomes.skipped.len() == asked => {
            Err(super::failure(error).prefixed(name))
        }
        _ => Ok(()),
    }
}
