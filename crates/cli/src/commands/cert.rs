//! `outlast cert`: works with certificates, requests, CRLs and keys from any source. Needs no service.

mod convert;
mod lint;
mod request;
mod verify;
mod whatif;

use std::path::Path;

use crate::commands::inspect;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Arguments of `cert`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// The same as `outlast inspect`.
    #[command(hide = true)]
    Inspect(inspect::Arguments),
    /// Make a certificate request for a KMS key.
    Request(request::Arguments),
    /// Validate a certificate: path, purpose, name and revocation.
    Verify(verify::Arguments),
    /// Check certificates against the rules of RFC 5280 and the post-quantum profiles.
    Lint(lint::Arguments),
    /// Show what a chain costs: bytes in the handshake, round trips, and headers behind proxies.
    Whatif(whatif::Arguments),
    /// Convert certificates, requests, CRLs and keys to another form.
    Convert(convert::Arguments),
}

/// Refuses to replace a file without --force.
fn may_write(out: &Path, force: bool) -> Result<(), Failure> {
    if out.exists() && !force {
        return Err(files::exists_already(out));
    }
    Ok(())
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments, output: Output) -> Result<(), Failure> {
    match arguments.command {
        Command::Inspect(arguments) => inspect::run(&arguments, output),
        Command::Request(arguments) => request::run(&arguments, output),
        Command::Verify(arguments) => verify::run(&arguments, output),
        Command::Lint(arguments) => lint::run(&arguments, output),
        Command::Whatif(arguments) => whatif::run(&arguments, output),
        Command::Convert(arguments) => convert::run(&arguments, output),
    }
}
