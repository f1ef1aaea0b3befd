//! `outlast lab run`: measures, and writes the report.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_lab::compare;
use outlast_lab::compare::baseline::Baseline;
use outlast_lab::error::LabError;
use outlast_lab::experiment::{EXPERIMENTS, Experiment};
use outlast_lab::experiments::plan::hint;
use outlast_lab::plan::Plan;
use outlast_lab::run::Settings;
use outlast_lab::run::all::{self, Outcomes};
use outlast_lab::run::folder::{Folder, repetition};
use outlast_lab::state;
use rustix::process::Signal;
use serde_json::json;

use super::INTERRUPTED;
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
    /// Baseline of the machine by `outlast lab baseline`, which is kept with the results for `outlast lab compare`.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Run this pass alone: for the processes of passes.
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    pass: Option<u32>,
    /// Measure everything again: existing results move to DIR.1 and so on.
    #[arg(long)]
    fresh: bool,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let plan =
        arguments.plan.as_deref().map(|path| read_plan(path, arguments.quick)).transpose()?;
    let experiments = choose(&arguments.experiments, plan.is_some())?;
    let settings = super::settings(arguments.quick, arguments.seed, plan)?;
    let baseline = arguments.baseline.as_deref().map(Baseline::read).transpose();
    let baseline = baseline.map_err(|error| super::failure(&error).code(2))?;
    if let Some(number) = arguments.pass {
        return pass(arguments, &settings, &experiments, number, output);
    }
    if state::is_debug_build() {
        output::warning("this is a build without optimisation: its CPU times mean nothing");
    }
    if arguments.fresh
        && let Some(aside) =
            Folder::set_aside(&arguments.out).map_err(|error| super::failure(&error))?
    {
        output::notice(&format!("earlier results are in {}", aside.display()));
    }
    let one: Duration = experiments.iter().map(|row| (row.estimate)(&settings)).sum();
    let total = one * arguments.repeat;
    output::notice(&format!(
        "{} into {}: about {}",
        experiments.iter().map(|row| row.name).collect::<Vec<_>>().join(", "),
        arguments.out.display(),
        length(total),
    ));
    if let Some(said) = settings.plan.as_ref().and_then(|plan| hint(plan, settings.quick)) {
        output::notice(&format!("hint: {said}"));
    }
    let stop = super::stop_flag()?;
    let progress = Shown::new(one);
    let first = all::run(&arguments.out, &settings, &experiments, &progress, &stop);
    progress.finish();
    let mut outcomes = first.map_err(|error| super::failure(&error))?;
    if let Some(baseline) = baseline {
        let file = arguments.out.join(compare::baseline::FILE);
        baseline.write(&file).map_err(|error| super::failure(&error))?;
    }
    let mut worst = None;
    for number in 2..=arguments.repeat {
        if outcomes.interrupted {
            break;
        }
        output::notice(&format!("pass {number} of {}", arguments.repeat));
        match again(arguments, &settings, number)? {
            0 => {}
            INTERRUPTED => outcomes.interrupted = true,
            code => worst = Some(code),
        }
        outcomes.interrupted |= stop.load(Ordering::Relaxed);
    }
    tell(&outcomes, output);
    judge(&outcomes, experiments.len())?;
    match worst {
        Some(code) => Err(Failure::new("a later pass failed; what it said is above").code(code)),
        None => Ok(()),
    }
}

/// Another pass, in a process of its own: where a process's memory lies changes its speed, and lasts as long as it does.
fn again(arguments: &Arguments, settings: &Settings, number: u32) -> Result<u8, Failure> {
    let mut command = Command::new(&settings.executable);
    command.arg("run").args(&arguments.experiments);
    command.arg("--out").arg(&arguments.out);
    command.args(["--seed", &arguments.seed.to_string(), "--pass", &number.to_string()]);
    if arguments.quick {
        command.arg("--quick");
    }
    if let Some(plan) = &arguments.plan {
        command.arg("--plan").arg(plan);
    }
    // What it prints is told once, by this process.
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command
        .status()
        .map_err(|error| Failure::new(format!("pass {number} did not start: {error}")))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// A pass, in its own process.
fn pass(
    arguments: &Arguments,
    settings: &Settings,
    experiments: &[&'static Experiment],
    number: u32,
    output: Output,
) -> Result<(), Failure> {
    // A pass whose starter was killed would go on measuring while another run does.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Failure::new(format!("the pass cannot be tied to its run: {error}")))?;
    let stop = super::stop_flag()?;
    let progress = Shown::new(experiments.iter().map(|row| (row.estimate)(settings)).sum());
    let folder = repetition(&arguments.out, number);
    let outcomes = all::run(&folder, settings, experiments, &progress, &stop);
    progress.finish();
    let outcomes = outcomes.map_err(|error| super::failure(&error))?;
    tell(&outcomes, output);
    judge(&outcomes, experiments.len())
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
