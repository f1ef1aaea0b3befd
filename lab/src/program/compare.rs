//! `outlast lab compare`: compares two results folders.

use std::path::PathBuf;

use outlast_lab::compare::baseline::Baseline;
use outlast_lab::compare::{compare, text, write_page};

use super::archive::open;
use super::failure;
use outlast_terminal::failure::Failure;
use outlast_terminal::output::Output;

/// Arguments of `lab compare`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Results folder of a run, or its archive.
    a: PathBuf,
    /// Results folder of another run, or its archive.
    b: PathBuf,
    /// Write the comparison as a page, too, with the charts of both runs.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Baseline of the machine, which says how much runs differ [default: that of the results, if they have one].
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Changed figures to print, the biggest first; JSON has all.
    #[arg(long, default_value_t = 30)]
    most: usize,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let (opened_a, opened_b) = (open(&arguments.a)?, open(&arguments.b)?);
    let (a, b) = (opened_a.folder.as_path(), opened_b.folder.as_path());
    let baseline = arguments.baseline.as_deref().map(Baseline::read).transpose();
    let baseline = baseline.map_err(|error| failure(&error))?;
    let mut comparison = compare(a, b, baseline.as_ref()).map_err(|error| failure(&error))?;
    comparison.a.folder = arguments.a.display().to_string();
    comparison.b.folder = arguments.b.display().to_string();
    if let Some(file) = &arguments.html {
        write_page(&comparison, a, b, file).map_err(|error| failure(&error))?;
    }
    output.result(&text(&comparison, arguments.most), &comparison);
    Ok(())
}
