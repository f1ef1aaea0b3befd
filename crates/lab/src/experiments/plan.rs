//! `plan`: A plan.

use std::time::Duration;

use crate::error::LabError;
use crate::experiment::{Engine, Experiment};
use crate::run::{Run, Settings};

/// The row.
pub const EXPERIMENT: Experiment = Experiment {
    name: "plan",
    title: "A plan",
    question: "",
    source: "",
    engines: &[Engine::Cpu],
    estimate,
    run,
};

fn estimate(_: &Settings) -> Duration {
    Duration::ZERO
}

fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    run.note("nothing is measured");
    Ok(())
}
