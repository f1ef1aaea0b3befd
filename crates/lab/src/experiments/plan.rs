//! `plan`: a user's own grid and own endpoint. Not among those that `all` runs: it is there when a plan is given.

mod client;
mod endpoint;
mod grid;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::error::LabError;
use crate::experiment::{Engine, Experiment};
use crate::plan::{Plan, PlanEngine};
use crate::run::{Run, Settings};

/// The row.
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

fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let Some(plan) = run.settings().plan.clone() else {
        return Err(LabError::Plan("there is no plan: give one by --plan FILE".to_owned()));
    };
    run.note(format!("{}: {}.", plan.title, told(&plan)));
    let seed = plan.seed.unwrap_or(run.seed());
    if !plan.rtt_us.is_empty() && !plan.engines.is_empty() {
        grid::run(run, &plan, seed)?;
    }
    if let Some(endpoint) = &plan.endpoint {
        endpoint::run(run, &plan, endpoint, seed)?;
    }
    Ok(())
}

/// What a plan asks for, in words.
fn told(plan: &Plan) -> String {
    let mut words = Vec::new();
    if !plan.rtt_us.is_empty() {
        let counts: Vec<String> = plan
            .engines
            .iter()
            .map(|engine| match engine {
                PlanEngine::Model => format!("{} connections a point in the model", plan.count),
                PlanEngine::Live => format!("{} live", plan.live_count),
            })
            .collect();
        words.push(format!("a grid of {}, {}", plan.shape(), counts.join(", ")));
    }
    if let Some(endpoint) = &plan.endpoint {
        words.push(format!("the endpoint {}", endpoint.server_name));
    }
    words.join("; ")
}
