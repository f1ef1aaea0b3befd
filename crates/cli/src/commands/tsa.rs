//! `outlast tsa`: makes a time-stamping authority, asks one for timestamps, and verifies timestamps (RFC 3161).

mod request;
mod setup;
mod shared;
mod verify;

use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `tsa`.
#[derive(clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make the key of a time-stamping authority with its certificate, or renew the certificate.
    Setup(Box<setup::Arguments>),
    /// Ask an authority for a timestamp of a file; writes FILE.tsr.
    Request(request::Arguments),
    /// Verify the timestamp of a file against a trust store, without a service.
    Verify(verify::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        Command::Setup(setup) => setup::run(setup, output),
        Command::Request(request) => request::run(request, output),
        Command::Verify(verify) => verify::run(verify, output),
    }
}
