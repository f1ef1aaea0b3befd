//! `outlast credentials`: temporary credentials of Roles Anywhere, for any program that uses an AWS SDK.

mod enroll;
mod process;
mod serve;
mod update;

use std::path::PathBuf;

use crate::anywhere::{self, Link, Sessions};
use crate::dumps;
use crate::failure::Failure;
use crate::output::Output;
use crate::profile::{Connection, Reach};
use crate::runtime::runtime;

/// Arguments of `credentials`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make an ML-DSA key, get a certificate for it by ACME, and renew it before it ends.
    Enroll(Box<enroll::Arguments>),
    /// Print credentials as AWS's credential_process does; for a line in a profile.
    Process(Box<Machine>),
    /// Serve credentials as the metadata service of EC2 does, to programs on this machine.
    Serve(Box<serve::Arguments>),
    /// Write credentials into AWS's credentials file, and renew them before they end.
    Update(Box<update::Arguments>),
}

/// The machine, and the service that it calls.
#[derive(clap::Args)]
pub(crate) struct Machine {
    #[command(flatten)]
    options: anywhere::Options,
    /// Security policy: see `outlast policy list` [default: 2026-11].
    #[arg(long, env = "OUTLAST_POLICY", value_name = "NAME", value_parser = crate::values::tls_policies(), hide_possible_values = true)]
    policy: Option<String>,
    /// Whether the service must do post-quantum key exchange: require, or prefer [default: require].
    #[arg(long, env = "OUTLAST_MODE", value_parser = ["require", "prefer"])]
    mode: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

impl Machine {
    fn reach(&self) -> Result<Reach, Failure> {
        self.connection.reach()
    }

    /// Sessions; mistakes in files are reported now.
    fn sessions(&self) -> Result<Sessions, Failure> {
        self.options.wanted()?;
        let base = PathBuf::new();
        self.options.identity(&base)?;
        let link = Link::new(&self.reach()?, self.policy.as_deref(), self.mode.as_deref())?;
        Ok(Sessions::new(self.options.clone(), base, link))
    }
}

impl Arguments {
    /// Whether the command handles signals itself.
    pub(crate) fn handles_signals(&self) -> bool {
        !matches!(self.command, Command::Process(_))
    }
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments, _: Output) -> Result<(), Failure> {
    // Before the machine's private key is read.
    dumps::refuse();
    let runtime = runtime()?;
    runtime.block_on(async {
        match arguments.command {
            Command::Enroll(arguments) => enroll::run(&arguments).await,
            Command::Process(machine) => process::run(&machine).await,
            Command::Serve(arguments) => serve::run(&arguments).await,
            Command::Update(arguments) => update::run(&arguments).await,
        }
    })
}
