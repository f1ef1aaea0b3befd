//! `outlast completions`: scripts for shells.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

/// Arguments of `completions`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Shell to complete for.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    let mut command = crate::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "outlast", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end());
    Ok(())
}
