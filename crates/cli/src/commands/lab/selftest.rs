//! `outlast lab selftest`: the accuracy that is promised, checked on this machine.

use std::time::Duration;

use outlast_lab::error::LabError;
use outlast_lab::selftest::checks;
use outlast_lab::state;
use serde_json::json;

use super::progress::length;
use crate::failure::Failure;
use crate::output::{self, Output};

/// Arguments of `lab selftest`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Fewer samples.
    #[arg(long)]
    short: bool,
    /// Only checks whose name has this in it.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Where all randomness of the lab's own comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
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
    let (mut missed, mut unchecked) = (0, 0);
    for check in checks {
        let spinner = output::spinner(check.name);
        let outcome = (check.run)(&settings, arguments.short, &stop);
        spinner.finish_and_clear();
        if stop.load(std::sync::atomic::Ordering::Relaxed) {
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
                    missed += usize::from(!checked.met);
                    row(
                        &checked.measured,
                        &checked.limit,
                        if checked.met { "met" } else { "MISSED" },
                    );
                }
            }
            Err(error @ LabError::Unavailable { .. }) => {
                unchecked += 1;
                row(&error.to_string(), "", "unchecked");
            }
            Err(error) => {
                missed += 1;
                row(&error.to_string(), "", "FAILED");
            }
        }
    }
    let met = rows.len() - missed - unchecked;
    let text = format!("{met} met, {missed} missed, {unchecked} not checked");
    match output {
        Output::Text => output::line(&text),
        Output::Json => output.result(
            "",
            &json!({"checks": rows, "met": met, "missed": missed, "unchecked": unchecked}),
        ),
    }
    if missed > 0 {
        return Err(
            Failure::new(text).hint("a busy machine disturbs timing: try again when it is idle")
        );
    }
    Ok(())
}

fn of(limit: &str) -> String {
    if limit.is_empty() { String::new() } else { format!(" (limit: {limit})") }
}
