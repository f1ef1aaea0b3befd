//! `outlast log`: the artifact log of a service: its entries, its head, its policy, proofs, and whether a key's owner
//! knows all of them.

mod checkpoint;
mod follow;
mod monitor;
mod policy;
mod proof;
mod show;

use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `log`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Tell the owner of a key of each signature that it made: those in the log, those that were made without it, and
    /// those in the log that the audit trail does not have.
    Monitor(Box<monitor::Arguments>),
    /// Print the policy for verifying proofs: the log's key and its witnesses.
    Policy(policy::Arguments),
    /// Show entries, the last ones first to last.
    Show(show::Arguments),
    /// Print the log's newest head, a signed note.
    Checkpoint(checkpoint::Arguments),
    /// Replace a proof by one with the newest cosignatures.
    Proof(proof::Arguments),
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        Command::Monitor(arguments) => monitor::run(arguments, output),
        Command::Policy(arguments) => policy::run(arguments, output),
        Command::Show(arguments) => show::run(arguments, output),
        Command::Checkpoint(arguments) => checkpoint::run(arguments, output),
        Command::Proof(arguments) => proof::run(arguments, output),
    }
}
