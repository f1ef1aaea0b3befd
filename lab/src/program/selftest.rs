//! `outlast lab selftest`: checks the promised accuracy on this machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_lab::error::LabError;
use outlast_lab::run::Settings;
use outlast_lab::selftest::{Check, Checked, checks};
use outlast_lab::state;
use serde_json::json;

use super::progress::length;
use outlast_terminal::failure::Failure;
use outlast_terminal::output::{self, Output};

/// Arguments of `lab selftest`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Take fewer samples.
    #[arg(long)]
    short: bool,
    /// Count checks that this machine cannot make as failed.
    #[arg(long)]
    require_all: bool,
    /// Only checks whose name contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Seed of all randomness.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let settings = super::settings(arguments.short, arguments.seed, None)?;
    if state::is_debug_build() {
        output::warning("this is a build without optimisation: its CPU times mean nothing");
    }
    let wanted = |name: &str| arguments.only.as_deref().is_none_or(|text| name.contains(text));
    let checks: Vec<_> = checks().into_iter().filter(|check| wanted(check.name)).collect();
    if checks.is_empty() {
        return Err(Failure::new("no check has that in its name").code(2));
    }
    let total: Duration = checks.iter().map(|check| (check.estimate)(arguments.short)).sum();
    output::notice(&format!("{} checks: about {}", checks.len(), length(total)));
    let stop = super::stop_flag()?;
    let mut rows = Vec::new();
    let mut tally = Tally::default();
    for check in checks {
        let spinner = output::spinner(check.name);
        let outcome = measure(check, &settings, arguments.short, &stop);
        spinner.finish_and_clear();
        if stop.load(Ordering::Relaxed) {
            return Err(super::failure(&LabError::Interrupted));
        }
        let mut row = |measured: &str, limit: &str, verdict: &'static str| {
            if output == Output::Text {
                output::line(&format!("{verdict:9}  {}: {measured}{}", check.name, of(limit)));
            }
            rows.push(json!({"check": check.name, "measured": measured, "limit": limit, "verdict": verdict}));
        };
        match outcome {
            Ok(all) => {
                for checked in all {
                    row(&checked.measured, &checked.limit, tally.count(checked.met));
                }
            }
            Err(error @ LabError::Unavailable { .. }) => {
                tally.unchecked += 1;
                row(&error.to_string(), "", "unchecked");
            }
            Err(error) => {
                tally.missed += 1;
                row(&error.to_string(), "", "FAILED");
            }
        }
    }
    let text = tally.words();
    let Tally { met, missed, unchecked, reported } = tally;
    match output {
        Output::Text => output::line(&text),
        Output::Json => output.result(
            "",
            &json!({"checks": rows, "met": met, "missed": missed, "unchecked": unchecked, "reported": reported}),
        ),
    }
    if missed > 0 {
        return Err(
            Failure::new(text).hint("a busy machine disturbs timing: try again when it is idle")
        );
    }
    if unchecked > 0 && arguments.require_all {
        return Err(Failure::new(text).hint("--require-all requires every check to run"));
    }
    Ok(())
}

/// How many results there are of each verdict.
#[derive(Debug, Default)]
struct Tally {
    met: usize,
    missed: usize,
    unchecked: usize,
    /// Those that have no limit, and so cannot fail.
    reported: usize,
}

impl Tally {
    /// Counts a result, and returns its verdict.
    fn count(&mut self, met: Option<bool>) -> &'static str {
        let (count, verdict) = match met {
            Some(true) => (&mut self.met, "met"),
            Some(false) => (&mut self.missed, "MISSED"),
            None => (&mut self.reported, "reported"),
        };
        *count += 1;
        verdict
    }

    fn words(&self) -> String {
        let Self { met, missed, unchecked, reported } = self;
        format!("{met} met, {missed} missed, {unchecked} not checked, {reported} reported only")
    }
}

/// Runs a check, and repeats one that measures time and failed: other work on the machine may have disturbed it. Both
/// results are reported.
fn measure(
    check: &Check,
    settings: &Settings,
    short: bool,
    stop: &AtomicBool,
) -> Result<Vec<Checked>, LabError> {
    let first = (check.run)(settings, short, stop)?;
    if !check.timed || first.iter().all(|checked| checked.met != Some(false)) {
        return Ok(first);
    }
    let again = (check.run)(settings, short, stop)?;
    Ok(first.into_iter().zip(again).map(|(first, again)| better(first, again)).collect())
}

/// Only a result that was missed is tried again, and it stays missed if the second try gives no verdict.
fn better(first: Checked, again: Checked) -> Checked {
    if first.met != Some(false) || again.met.is_none() {
        return first;
    }
    let measured = format!("missed {}, again: {}", first.measured, again.measured);
    Checked { measured, ..again }
}

fn of(limit: &str) -> String {
    if limit.is_empty() { String::new() } else { format!(" (limit: {limit})") }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    static CALLS: AtomicU32 = AtomicU32::new(0);

    /// A check that is met at the first try only, one at the second only, one never, one that has a verdict at the
    /// first try only, and one that is only reported.
    fn run(_: &Settings, _: bool, _: &AtomicBool) -> Result<Vec<Checked>, LabError> {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let checked = |met| Checked { measured: format!("call {call}"), limit: String::new(), met };
        let first = call.is_multiple_of(2);
        let once = first.then_some(false);
        Ok([Some(first), Some(!first), Some(false), once, None].map(checked).into())
    }

    #[test]
    fn only_timed_checks_are_repeated() {
        let settings = Settings {
            quick: true,
            seed: 1,
            plan: None,
            version: String::new(),
            executable: std::path::PathBuf::new(),
        };
        let tried = |timed| {
            CALLS.store(0, Ordering::Relaxed);
            let check = Check { name: "", estimate: |_| Duration::ZERO, timed, run };
            let all = measure(&check, &settings, true, &AtomicBool::new(false)).unwrap();
            all.into_iter().map(|one| (one.measured, one.met)).collect::<Vec<_>>()
        };
        let told = |text: &str, met| (text.to_owned(), met);
        let (yes, no) = (Some(true), Some(false));
        let (one, both) = ("call 0", "missed call 0, again: call 1");
        let (never, told_only) = (told(one, no), told(one, None));
        let twice = [told(one, yes), told(both, yes), told(both, no), never, told_only];
        assert_eq!(tried(true), twice);
        let once = [told(one, yes), told(one, no), told(one, no), told(one, no), told(one, None)];
        assert_eq!(tried(false), once);
    }

    #[test]
    fn what_cannot_fail_is_not_counted_as_met() {
        let mut tally = Tally::default();
        let verdicts = [Some(true), None, Some(false), None].map(|met| tally.count(met));
        assert_eq!(verdicts, ["met", "reported", "MISSED", "reported"]);
        assert_eq!(tally.words(), "1 met, 1 missed, 0 not checked, 2 reported only");
    }
}
