//! `outlast lab report`: makes the report of a results folder again.

use std::path::PathBuf;

use serde_json::json;

use super::results_folder;
use outlast_terminal::failure::Failure;
use outlast_terminal::output::Output;

/// Arguments of `lab report`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Results folder of a run.
    dir: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let folder = results_folder(&arguments.dir)?;
    let page = outlast_lab::report::write(folder).map_err(|error| super::failure(&error))?;
    output.result(&page.display().to_string(), &json!({ "page": page }));
    Ok(())
}
