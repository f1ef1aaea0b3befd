//! `outlast lab baseline`: learns from equal runs how much figures differ between runs on this machine.

use std::path::{Path, PathBuf};

use outlast_lab::compare::baseline::Baseline;
use serde_json::json;

use super::{failure, results_folder};
use outlast_terminal::failure::Failure;
use outlast_terminal::output::Output;

/// Arguments of `lab baseline`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Results folders of three or more equal runs, made at different times.
    #[arg(required = true, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// File to write, for `outlast lab run --baseline` and `outlast lab compare --baseline`.
    #[arg(long, value_name = "FILE", default_value = "lab-baseline.json")]
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let folders: Result<Vec<&Path>, Failure> =
        arguments.runs.iter().map(|folder| results_folder(folder)).collect();
    let baseline = Baseline::learn(&folders?).map_err(|error| {
        failure(&error).hint("make equal runs: the same command with another --out, hours apart")
    })?;
    baseline.write(&arguments.out).map_err(|error| failure(&error))?;
    let file = arguments.out.display();
    let (runs, columns) = (baseline.passes.len(), baseline.columns.len());
    output.result(
        &format!("{file}: {columns} columns of {runs} runs"),
        &json!({ "file": arguments.out, "runs": runs, "columns": columns }),
    );
    Ok(())
}
