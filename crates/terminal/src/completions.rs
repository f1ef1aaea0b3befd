//! `PROGRAM completions`: scripts for shells.

use clap::Command;
use clap_complete::Shell;

use crate::output;

/// Arguments of `completions`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Shell to complete for.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the completion script of a program under its command's name.
pub fn print(arguments: &Arguments, mut program: Command) {
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut program, name, &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end());
}
