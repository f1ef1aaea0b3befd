//! The one binary: post-quantum trust services that you run yourself.
//!
//! This crate reads arguments, environment, files and the clock, prints, and exits. All else is in the
//! libraries.

mod acme;
mod audit_options;
mod audit_retention;
mod backup_schedule;
mod buckets;
mod client_ca;
mod commands;
mod cosigner;
mod data;
mod digest;
mod endpoint;
mod heartbeat;
mod http3;
mod ledger_options;
mod limits_options;
mod listeners;
mod metrics_options;
mod place;
mod proxy_config;
mod reload;
mod root_key;
mod running;
mod settings;
mod signing;
mod tls;
mod trust;

use std::path::PathBuf;
use std::process::ExitCode;

use outlast_terminal::{completions, failure, files, output, profile, shell};

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::output::Output;

/// Post-quantum trust services that you run yourself.
///
/// Exit codes: 0 done; 1 failed; 2 wrong usage; 3 a signature was refused; 4 some of several files failed;
/// 5 a ledger has clients that are left behind, or that would break, or a siege found a limit missed;
/// 130 a run of the lab was interrupted.
#[derive(Parser)]
#[command(name = "outlast", version, propagate_version = true)]
struct Arguments {
    /// How to print results.
    #[arg(long, global = true, value_enum, default_value_t = Output::Text, env = "OUTLAST_OUTPUT")]
    output: Output,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a data folder: store, root key, TLS chain, administrator's access key and AWS profile.
    Init(commands::init::Arguments),
    /// Serve the AWS APIs of a data folder over HTTPS.
    Server(Box<commands::server::Arguments>),
    /// Show what the server would be started with, and where each setting comes from.
    Settings(Box<commands::server::Arguments>),
    /// Send back what comes, over TLS and QUIC: for measuring handshakes and transport; needs no data folder.
    ServeEcho(commands::serve_echo::Arguments),
    /// Put post-quantum TLS in front of another server: TCP, HTTP or PostgreSQL.
    Proxy(Box<commands::proxy::Arguments>),
    /// Give local clients that cannot do post-quantum a port from which all goes on to the far side with it.
    Forward(commands::forward::Arguments),
    /// Replace the root key, under which the store's secrets are sealed, or show how that stands.
    RootKey(commands::root_key::Arguments),
    /// Copy the whole store into one sealed file; a server may go on serving meanwhile.
    Backup(commands::backup::Arguments),
    /// Make a data folder from a backup.
    Restore(commands::restore::Arguments),
    /// Look at the store itself.
    Store(commands::store::Arguments),
    /// Sign a file with a post-quantum PKI over a post-quantum connection, from nothing.
    Quickstart(commands::quickstart::Arguments),
    /// Verify, show and export the audit events.
    Audit(commands::audit::Arguments),
    /// Show, compare and explain the security policies of listeners, and what a client would get; needs no service.
    Policy(commands::policy::Arguments),
    /// Who connects how, who is left behind, and what another policy would break.
    Ledger(commands::ledger::Arguments),
    /// Measure what post-quantum costs: handshakes, bytes, requests, over links of your choice; starts outlast-lab.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Lab(commands::lab::Arguments),
    /// Attack a server on this machine in every way that is known here, beside a client that must not notice; starts outlast-lab.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Siege(commands::lab::Arguments),
    /// Manage users, roles, their policies and access keys.
    Principal(commands::principal::Arguments),
    /// Sign files with a KMS key: detached CMS signatures beside them.
    Sign(commands::sign::Arguments),
    /// Verify detached CMS signatures against a trust store; needs no service.
    Verify(commands::verify::Arguments),
    /// Show what is in a certificate, a certificate request or a CMS signature.
    Inspect(commands::inspect::Arguments),
    /// Show, verify, lint and convert certificates and keys, and tell what a chain costs; needs no service.
    Cert(commands::cert::Arguments),
    /// Print a completion script for a shell.
    Completions(completions::Arguments),
    /// Print or write the manual pages.
    Man(commands::man::Arguments),
}

fn main() -> ExitCode {
    let matches = match Arguments::command().try_get_matches() {
        Ok(matches) => matches,
        Err(mut error) => {
            settings::name_variable(&mut error);
            error.exit();
        }
    };
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    let output = arguments.output;
    let outcome = match arguments.command {
        Command::Init(arguments) => commands::init::run(&arguments, output),
        Command::Server(arguments) => commands::server::run(&arguments),
        Command::Settings(arguments) => {
            commands::settings::run(&arguments, matches.subcommand().map(|(_, own)| own), output)
        }
        Command::ServeEcho(arguments) => commands::serve_echo::run(arguments),
        Command::Proxy(arguments) => commands::proxy::run(*arguments),
        Command::Forward(arguments) => commands::forward::run(&arguments),
        Command::RootKey(arguments) => commands::root_key::run(&arguments, output),
        Command::Backup(arguments) => commands::backup::run(&arguments, output),
        Command::Restore(arguments) => commands::restore::run(&arguments, output),
        Command::Store(arguments) => commands::store::run(&arguments, output),
        Command::Quickstart(arguments) => commands::quickstart::run(&arguments, output),
        Command::Audit(arguments) => commands::audit::run(&arguments, output),
        Command::Policy(arguments) => commands::policy::run(&arguments, output),
        Command::Ledger(arguments) => commands::ledger::run(&arguments, output),
        Command::Lab(arguments) => commands::lab::run(&[], &arguments, output),
        Command::Siege(arguments) => commands::lab::run(&["siege"], &arguments, output),
        Command::Principal(arguments) => commands::principal::run(&arguments, output),
        Command::Sign(arguments) => commands::sign::run(&arguments, output),
        Command::Verify(arguments) => commands::verify::run(&arguments, output),
        Command::Inspect(arguments) => commands::inspect::run(&arguments, output),
        Command::Cert(arguments) => commands::cert::run(arguments, output),
        Command::Completions(arguments) => {
            completions::print(&arguments, Arguments::command());
            Ok(())
        }
        Command::Man(arguments) => commands::man::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let failure = settings::located(failure, &matches);
            match data_folder(&matches) {
                Some(folder) => failure.in_folder(&folder).report(),
                None => failure.report(),
            }
        }
    }
}

/// The data folder that the command was given, by an option or by the environment: hints repeat it.
fn data_folder(matches: &ArgMatches) -> Option<PathBuf> {
    let (_, inner) = matches.subcommand()?;
    let here = inner.try_get_one::<PathBuf>("data").ok().flatten();
    here.cloned().or_else(|| data_folder(inner))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// Two flags or groups of one name only show when the command is used.
    #[test]
    fn every_command_can_be_parsed() {
        super::Arguments::command().debug_assert();
    }
}
