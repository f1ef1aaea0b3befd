//! `outlast ssh`: an SSH certificate authority: certificates, its public key, what is revoked, and logins.

mod ca_key;
mod certificate;
mod krl;
mod login;
mod sign;
mod validity;

use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `ssh`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Get a short-lived certificate for a new key, and give both to the SSH agent; no file is written.
    Login(Box<login::Arguments>),
    /// Issue certificates for public keys of users or hosts.
    Sign(Box<sign::Arguments>),
    /// Print an authority's public key, for TrustedUserCAKeys or known_hosts.
    CaKey(ca_key::Arguments),
    /// Make, change and show key revocation lists, and test keys and certificates against them.
    Krl(krl::Arguments),
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        Command::Login(arguments) => login::run(arguments, output),
        Command::Sign(arguments) => sign::run(arguments, output),
        Command::CaKey(arguments) => ca_key::run(arguments, output),
        Command::Krl(arguments) => krl::run(arguments, output),
    }
}
