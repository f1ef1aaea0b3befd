//! The `outlast` program: post-quantum trust services that you run yourself.
//!
//! This crate reads arguments, environment, files and the clock, prints, and exits. The libraries do everything else.

mod acme;
mod agent;
mod anywhere;
mod artifact_log;
mod artifact_log_options;
mod attesting;
mod audit_options;
mod audit_retention;
mod authorities;
mod backup_schedule;
mod buckets;
mod child;
mod client_ca;
mod commands;
mod connectors;
mod cosigner;
mod data;
mod described;
mod digest;
mod dumps;
mod endpoint;
mod events;
mod evidence;
mod function_file;
mod git;
mod heartbeat;
mod help;
mod http3;
mod ledger_options;
mod limits_options;
mod listeners;
mod location;
mod log_witnesses;
mod login_functions;
mod metrics_options;
mod objects;
mod oci;
mod program;
mod proxy_config;
mod public_certificates;
mod reload;
mod renewing;
mod root_key;
mod rotation;
mod running;
mod runtime;
mod sarif;
mod settings;
mod sftp;
mod sftp_authorities;
mod sftp_scan;
mod sftp_users;
mod signing;
mod signing_policy;
mod tables;
mod timestamping;
mod tls;
mod trust;
mod tsa_options;
mod values;
mod verifying;
mod workflow_functions;
mod workflows;

use std::error::Error as _;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use outlast_terminal::{
    completions, credentials_file, failure, files, output, profile, shell, temporary,
};

use clap::{ArgMatches, Args as _, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::failure::Failure;
use crate::output::Output;

/// Post-quantum trust services that you run yourself.
///
/// Exit codes: 0 done; 1 failed; 2 wrong usage; 3 a signature, certificate or proof was refused; 4 some of several
/// files failed; 5 the command found what it searched for, such as clients that would break; 130 interrupted.
#[derive(Parser)]
#[command(name = "outlast", version, propagate_version = true)]
struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// The options of all commands.
#[derive(clap::Args)]
struct Common {
    /// How to print results.
    #[arg(long, global = true, value_enum, default_value_t = Output::Text, env = "OUTLAST_OUTPUT")]
    output: Output,
}

#[derive(Subcommand)]
enum Command {
    /// Make a data folder: store, root key, TLS chain, administrator and AWS profile.
    Init(commands::init::Arguments),
    /// Serve the AWS APIs, ACME, CRLs and OCSP of a data folder.
    Server(Box<commands::server::Arguments>),
    /// Show the settings that a server would start with, and where each comes from.
    Settings(Box<commands::server::Arguments>),
    /// Serve an echo endpoint over TLS and QUIC, for measuring handshakes.
    ServeEcho(commands::serve_echo::Arguments),
    /// Put post-quantum TLS in front of another server: TCP, HTTP or PostgreSQL.
    Proxy(Box<commands::proxy::Arguments>),
    /// Carry local clients' connections to a remote server over post-quantum TLS.
    Forward(commands::forward::Arguments),
    /// Check the users of an SFTP listener that are in a file.
    Sftp(commands::sftp::Arguments),
    /// Serve a folder over SFTP on standard input and output, for OpenSSH's sshd.
    SftpServer(commands::sftp_server::Arguments),
    /// Serve secrets to this machine's programs, from a cache in locked memory.
    Agent(Box<commands::agent::Arguments>),
    /// Get temporary credentials of Roles Anywhere with this machine's certificate.
    Credentials(Box<commands::credentials::Arguments>),
    /// Rotate the root key, which seals the store's secrets, or show its state.
    RootKey(commands::root_key::Arguments),
    /// Copy the whole store into one sealed file, even while a server runs.
    Backup(commands::backup::Arguments),
    /// Make a data folder from a backup.
    Restore(commands::restore::Arguments),
    /// Check a store, or show its limits.
    Store(commands::store::Arguments),
    /// Set up a post-quantum PKI, sign a file with it and verify everything.
    Quickstart(commands::quickstart::Arguments),
    /// Verify, prove, show and export the audit log.
    Audit(commands::audit::Arguments),
    /// Read the artifact log, the log of signatures, and watch the signatures of a key.
    Log(commands::log::Arguments),
    /// Show, compare and explain security policies, and what a client would get.
    Policy(commands::policy::Arguments),
    /// Report how clients connect, which lag behind, and which another policy would break.
    Ledger(commands::ledger::Arguments),
    /// Measure what post-quantum costs over links of your choice; starts outlast-lab.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Lab(commands::lab::Arguments),
    /// Attack a new server while an honest client measures the effect; starts outlast-lab.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Siege(commands::lab::Arguments),
    /// Try the targets of events.
    Events(commands::events::Arguments),
    /// Manage users, roles, their policies and access keys.
    Principal(commands::principal::Arguments),
    /// Sign files with a KMS key; writes a detached CMS signature next to each.
    Sign(Box<commands::sign::Arguments>),
    /// Verify detached CMS signatures against a trust store, without a service.
    Verify(commands::verify::Arguments),
    /// Make a time-stamping authority, ask one for a timestamp, and verify timestamps.
    Tsa(commands::tsa::Arguments),
    /// Make signed statements about files: provenance, bills of materials.
    Attest(Box<commands::attest::Arguments>),
    /// Sign and verify commits and tags, as the program that git calls.
    Git(commands::git::Arguments),
    /// Show what certificates, requests, CRLs, OCSP responses, keys and signatures contain.
    Inspect(commands::inspect::Arguments),
    /// Issue and revoke SSH certificates, and log in with short-lived ones.
    Ssh(commands::ssh::Arguments),
    /// Request, verify, lint and convert certificates and keys, and compute sizes of chains.
    Cert(commands::cert::Arguments),
    /// Print a completion script for a shell.
    Completions(completions::Arguments),
    /// Print or write the manual pages.
    Man(commands::man::Arguments),
}

impl Command {
    /// Whether the command handles signals itself: servers let open requests finish, the lab keeps its measurements.
    fn handles_signals(&self) -> bool {
        match self {
            Self::Server(_) | Self::ServeEcho(_) | Self::Proxy(_) | Self::Forward(_) => true,
            Self::Agent(_) | Self::SftpServer(_) => true,
            Self::Credentials(arguments) => arguments.handles_signals(),
            Self::Lab(_) | Self::Siege(_) => true,
            Self::Audit(arguments) => arguments.handles_signals(),
            _ => false,
        }
    }
}

/// The command line. What it refuses, all commands together explain.
fn matches() -> Result<ArgMatches, clap::Error> {
    // The agent stays in the memory of every machine, and to describe the options of all commands touches more of the
    // program than the agent's work does.
    let is_agent = std::env::args_os().nth(1).is_some_and(|word| word == "agent");
    if is_agent && let Ok(matches) = agent_alone().try_get_matches() {
        return Ok(matches);
    }
    let words: Vec<_> = std::env::args_os().collect();
    let words = git::call(&words).unwrap_or(words);
    help::grouped(Arguments::command()).try_get_matches_from(words)
}

/// The program as if `agent` were its only command: what it accepts, the whole program accepts with the same meaning.
fn agent_alone() -> clap::Command {
    let agent = commands::agent::Arguments::augment_args(clap::Command::new("agent"));
    Common::augment_args(clap::Command::new("outlast"))
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .subcommand(agent.disable_help_flag(true))
}

fn main() -> ExitCode {
    let matches = match matches() {
        Ok(matches) => matches,
        Err(mut error) => {
            settings::name_variable(&mut error);
            help::plain_usage(&mut error);
            return parsed(&error);
        }
    };
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => return parsed(&error),
    };
    let output = arguments.common.output;
    if !arguments.command.handles_signals() {
        temporary::remove_when_interrupted();
    }
    // Servers say on stdout where they listen; that is no result which could be lost.
    let serves = matches!(
        arguments.command,
        Command::Server(_)
            | Command::ServeEcho(_)
            | Command::Proxy(_)
            | Command::Forward(_)
            | Command::SftpServer(_)
    );
    let outcome = match arguments.command {
        Command::Init(arguments) => commands::init::run(&arguments, output),
        Command::Server(arguments) => commands::server::run(&arguments),
        Command::Settings(arguments) => {
            commands::settings::run(&arguments, matches.subcommand().map(|(_, own)| own), output)
        }
        Command::ServeEcho(arguments) => commands::serve_echo::run(arguments),
        Command::Proxy(arguments) => commands::proxy::run(*arguments),
        Command::Forward(arguments) => commands::forward::run(&arguments),
        Command::Sftp(arguments) => commands::sftp::run(&arguments, output),
        Command::SftpServer(arguments) => commands::sftp_server::run(arguments),
        Command::Agent(arguments) => commands::agent::run(&arguments),
        Command::Credentials(arguments) => commands::credentials::run(*arguments, output),
        Command::RootKey(arguments) => commands::root_key::run(&arguments, output),
        Command::Backup(arguments) => commands::backup::run(&arguments, output),
        Command::Restore(arguments) => commands::restore::run(&arguments, output),
        Command::Store(arguments) => commands::store::run(&arguments, output),
        Command::Quickstart(arguments) => commands::quickstart::run(&arguments, output),
        Command::Audit(arguments) => commands::audit::run(&arguments, output),
        Command::Log(arguments) => commands::log::run(&arguments, output),
        Command::Policy(arguments) => commands::policy::run(&arguments, output),
        Command::Ledger(arguments) => commands::ledger::run(&arguments, output),
        Command::Lab(arguments) => commands::lab::run(&[], &arguments, output),
        Command::Siege(arguments) => commands::lab::run(&["siege"], &arguments, output),
        Command::Events(arguments) => commands::events::run(&arguments, output),
        Command::Principal(arguments) => commands::principal::run(&arguments, output),
        Command::Sign(arguments) => commands::sign::run(&arguments, output),
        Command::Verify(arguments) => commands::verify::run(&arguments, output),
        Command::Tsa(arguments) => commands::tsa::run(&arguments, output),
        Command::Attest(arguments) => commands::attest::run(&arguments, output),
        Command::Git(arguments) => commands::git::run(&arguments, output),
        Command::Inspect(arguments) => commands::inspect::run(&arguments, output),
        Command::Ssh(arguments) => commands::ssh::run(&arguments, output),
        Command::Cert(arguments) => commands::cert::run(arguments, output),
        Command::Completions(arguments) => {
            completions::print(&arguments, Arguments::command());
            Ok(())
        }
        Command::Man(arguments) => commands::man::run(&arguments, output),
    };
    let lost = if serves { Ok(()) } else { Failure::of_lost_output() };
    match outcome.and(lost) {
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

/// Prints what the command line parser says: help, or an error. The texts of Rust's parsers of numbers are for programmers.
fn parsed(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() && !std::io::stdout().is_terminal() {
        output::data(error.render().to_string().as_bytes());
        return Failure::of_lost_output()
            .map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS);
    }
    let of_a_number = error.source().filter(|source| {
        source.is::<std::num::ParseIntError>() || source.is::<std::num::ParseFloatError>()
    });
    let Some(text) = of_a_number.map(ToString::to_string) else { error.exit() };
    let said = error.render().to_string().replace(&text, "not a number of the expected kind");
    output::notice(said.trim_end());
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The data folder in the options or the environment, for hints.
fn data_folder(matches: &ArgMatches) -> Option<PathBuf> {
    let (_, inner) = matches.subcommand()?;
    let here = inner.try_get_one::<PathBuf>("data").ok().flatten();
    here.cloned().or_else(|| data_folder(inner))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// The agent's own parser has the same options, and gives the same arguments.
    #[test]
    fn the_agent_alone_is_parsed_as_in_the_whole_program() {
        use clap::FromArgMatches as _;
        super::agent_alone().debug_assert();
        let words = [
            "outlast",
            "agent",
            "-c",
            "a.toml",
            "--output",
            "json",
            "--mode=prefer",
            "--log",
            "warn",
        ];
        let ours = super::agent_alone().try_get_matches_from(words).unwrap();
        let whole = super::Arguments::command().try_get_matches_from(words).unwrap();
        let ids = |matches: &clap::ArgMatches| {
            let (name, own) = matches.subcommand().unwrap();
            let ids = own.ids().map(|id| (id.to_string(), own.value_source(id.as_str())));
            (name.to_owned(), ids.collect::<Vec<_>>())
        };
        assert_eq!(ids(&ours), ids(&whole));
        let arguments = super::Arguments::from_arg_matches(&ours).unwrap();
        assert!(matches!(arguments.command, super::Command::Agent(_)));
        assert!(matches!(arguments.common.output, crate::output::Output::Json));
        for refused in
            [&["outlast", "agent", "--help"][..], &["outlast", "agent", "--listen"], &["outlast"]]
        {
            assert!(super::agent_alone().try_get_matches_from(refused).is_err(), "{refused:?}");
        }
    }

    /// Options or groups with the same name only fail when the command is used.
    #[test]
    fn every_command_can_be_parsed() {
        super::Arguments::command().debug_assert();
    }
}
