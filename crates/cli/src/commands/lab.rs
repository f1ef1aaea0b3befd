//! `outlast lab` and `outlast siege`: start `outlast-lab`, a program of its own, in place of this one.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `lab` and `siege`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Arguments of the lab: see `outlast lab --help`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// File name of the program.
const PROGRAM: &str = "outlast-lab";

/// Replaces this process by the lab, whose exit code becomes this program's: the one in the same folder, as in builds
/// and archives, or else the one in `PATH`.
pub(crate) fn run(first: &[&str], arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let program = beside().unwrap_or_else(|| PathBuf::from(PROGRAM));
    let mut command = Command::new(&program);
    if output == Output::Json {
        command.args(["--output", "json"]);
    }
    Err(failure(&program, &command.args(first).args(&arguments.arguments).exec()))
}

fn beside() -> Option<PathBuf> {
    let place = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    place.is_file().then_some(place)
}

fn failure(program: &Path, error: &std::io::Error) -> Failure {
    if error.kind() != ErrorKind::NotFound {
        return Failure::file(program, error);
    }
    Failure::new("outlast-lab is not installed: it is a separate program").hint(
        "put it next to outlast or into PATH; to build it from source, run: cargo build --release --package outlast-lab",
    )
}
