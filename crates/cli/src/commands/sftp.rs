//! `outlast sftp`: files of SFTP users.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::output::Output;
use crate::sftp_users;

/// Arguments of `sftp`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check a file of users (--sftp-users), and show what each user may do where.
    Check {
        /// The file.
        file: PathBuf,
    },
}

/// Checks a file of users.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let Command::Check { file } = &arguments.command;
    let (text, value) = sftp_users::described(file)?;
    output.result(&text, &value);
    Ok(())
}
