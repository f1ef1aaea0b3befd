//! `plan`: a user's own grid and endpoint. `all` does not include it: it runs if a plan is given.

mod client;
mod endpoint;
#[cfg(test)]
mod examples;
mod grid;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::error::LabError;
use crate::experiment::{Engine, Experiment};
use crate::model::validation::agreement::LEAST_FLOWS;
use crate::plan::{Plan, PlanEngine};
use crate::run::{Run, Settings};

/// The experiment's row.
pub const EXPERIMENT: Experiment = Experiment {
    name: "plan",
    title: "Your own plan",
    question: "What does it cost us, on our links, for our requests?",
    source: "your plan",
    engines: &[Engine::Cpu, Engine::Model, Engine::Live],
    estimate,
    run,
};

fn estimate(settings: &Settings) -> Duration {
    settings.plan.as_ref().map_or(Duration::ZERO, |plan| plan.estimate(settings.quick))
}

/// What the plan's author may want to change before the run, if there is anything: live points with loss that are too small
/// for a verdict.
pub fn hint(plan: &Plan, quick: bool) -> Option<String> {
    let count = plan.live_connections(quick);
    let lossy = plan.loss.iter().any(|loss| *loss > 0.0);
    let live = plan.engines.contains(&PlanEngine::Live) && !plan.rtt_us.is_empty();
    if !live || !lossy || count >= LEAST_FLOWS as u64 {
        return None;
    }
    let more = if quick { "leave `--quick` out, and set `live_count`" } else { "set `live_count`" };
    Some(format!(
        "no live point with loss will have a verdict: it needs {LEAST_FLOWS} connections, and this run makes {count}; for \
         verdicts {more} to {LEAST_FLOWS} or more"
    ))
}

fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let Some(plan) = run.settings().plan.clone() else {
        return Err(LabError::Plan("there is no plan: give one by --plan FILE".to_owned()));
    };
    let seed = plan.seed.unwrap_or(run.seed());
    run.summary(format!("{}: {}; seed {seed}.", plan.title, told(&plan, run.quick())));
    let mut parts = Vec::new();
    if !plan.rtt_us.is_empty() && !plan.engines.is_empty() {
        let part = grid::run(run, &plan, seed);
        parts.push(kept(run, "The grid", part)?);
    }
    if let Some(endpoint) = &plan.endpoint {
        let part = endpoint::run(run, &plan, endpoint, seed);
        parts.push(kept(run, "The endpoint", part)?);
    }
    judge(parts)
}

/// Result of a part of the plan.
#[derive(Debug, Default)]
struct Part {
    /// Whether anything was measured.
    measured: bool,
    /// Why it is incomplete.
    trouble: Option<LabError>,
}

/// A part that fails does not affect the others, unless none can go on.
fn kept(run: &mut Run<'_>, what: &str, part: Result<Part, LabError>) -> Result<Part, LabError> {
    match part {
        Err(error @ (LabError::Interrupted | LabError::File { .. })) => Err(error),
        Err(error) if run.stopped() => Err(error),
        Err(error) => {
            run.left_out(&format!("{what} is incomplete: {error}."));
            Ok(Part { measured: false, trouble: Some(error) })
        }
        part => part,
    }
}

/// A plan has failed if any part has failed; if the machine lacks something, that is only reported, unless nothing is
/// left of the plan.
fn judge(parts: Vec<Part>) -> Result<(), LabError> {
    let measured = parts.iter().any(|part| part.measured);
    let (lacking, failed): (Vec<LabError>, Vec<LabError>) = parts
        .into_iter()
        .filter_map(|part| part.trouble)
        .partition(|error| matches!(error, LabError::Unavailable { .. }));
    if let Some(error) = failed.into_iter().next() {
        return Err(error);
    }
    match lacking.into_iter().next() {
        Some(error) if !measured => Err(error),
        None if !measured => Err(LabError::unavailable(
            "anything of this plan",
            "none of its subjects could be measured; the notes say why",
        )),
        _ => Ok(()),
    }
}

/// What a plan asks for, in words.
fn told(plan: &Plan, quick: bool) -> String {
    let mut words = Vec::new();
    if !plan.rtt_us.is_empty() {
        let counts: Vec<String> = plan
            .engines
            .iter()
            .map(|engine| match engine {
                PlanEngine::Model => {
                    format!("{} connections a point in the model", plan.connections(quick))
                }
                PlanEngine::Live => format!("{} live", plan.live_connections(quick)),
            })
            .collect();
        words.push(format!("a grid of {}, {}", plan.shape(), counts.join(", ")));
    }
    if let Some(endpoint) = &plan.endpoint {
        words.push(format!("the endpoint {}", endpoint.server_name));
    }
    words.join("; ")
}
