//! `outlast lab compare`: compares two results folders.

use std::path::PathBuf;

use outlast_lab::compare::{compare, text, write_page};

use super::{failure, results_folder};
use outlast_terminal::failure::Failure;
use outlast_terminal::output::Output;

/// Arguments of `lab compare`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Results folder of a run.
    a: PathBuf,
    /// Results folder of another run.
    b: PathBuf,
    /// Write the comparison as a page, too, with the charts of both runs.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Changed figures to print, the biggest first; JSON has all.
    #[arg(long, default_value_t = 30)]
    most: usize,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let (a, b) = (results_folder(&arguments.a)?, results_folder(&arguments.b)?);
    let comparison = compare(a, b).map_err(|error| failure(&error))?;
    if let Some(file) = &arguments.html {
        write_page(&comparison, a, b, file).map_err(|error| failure(&error))?;
    }
    output.result(&text(&comparison, arguments.most), &comparison);
    Ok(())
}
