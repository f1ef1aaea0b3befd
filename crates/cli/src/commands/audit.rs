//! `outlast audit`: verifies, proves, shows, exports and prunes the audit events.

mod clear_alarm;
mod export;
mod file;
mod policy;
mod prove;
pub(crate) mod prune;
mod tail;
mod verify;
mod witness;

use outlast_domain::audit::{LogKey, cosigned};
use outlast_domain::work::Work;
use outlast_tlog::SignedCheckpoint;

use crate::data::{Data, StoreArguments};
use crate::failure::{Failure, USAGE};
use crate::output::Output;

/// Events that one read returns.
const PAGE: usize = 1000;

/// Arguments of `audit`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Verify the audit log of a store, an export of it, or a proof of one event. Events after the last signed head,
    /// which is at most a minute old while a server runs, are not signed yet.
    Verify(verify::Arguments),
    /// Prove that an event is in the log: write a file that anybody can verify with the log's policy.
    Prove(prove::Arguments),
    /// Print the policy for verifying proofs and exports: the log's key and the configured witnesses.
    Policy(policy::Arguments),
    /// Show the last events.
    Tail(tail::Arguments),
    /// Export events to a file, with a proof that they are those of the log.
    Export(export::Arguments),
    /// Export old events to a file, and then delete them. Later events can still be proved.
    Prune(prune::Arguments),
    /// Let servers start again after an alarm that you have investigated.
    ClearAlarm(clear_alarm::Arguments),
    /// Be a witness for others' logs: cosign a head only if it continues the previous one.
    Witness(witness::Arguments),
}

impl Arguments {
    /// Whether the command handles signals itself.
    pub(crate) fn handles_signals(&self) -> bool {
        matches!(self.command, Command::Witness(_))
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        Command::Verify(arguments) => verify::run(arguments, output),
        Command::Prove(arguments) => prove::run(arguments, output),
        Command::Policy(arguments) => policy::run(arguments, output),
        Command::Tail(arguments) => tail::run(arguments, output),
        Command::Export(arguments) => export::run(arguments, output),
        Command::Prune(arguments) => prune::run(arguments, output),
        Command::ClearAlarm(arguments) => clear_alarm::run(arguments, output),
        Command::Witness(arguments) => witness::run(arguments, output),
    }
}

fn open(arguments: &StoreArguments) -> Result<Data, Failure> {
    Data::open_read_only(&arguments.location()?, &arguments.provider()?)
}

/// Refuses a range that ends before it begins.
fn in_order(from: Option<u64>, to: Option<u64>) -> Result<(), Failure> {
    match (from, to) {
        (Some(from), Some(to)) if from > to => {
            Err(Failure::new(format!("--from {from} is after --to {to}"))
                .hint("events are counted from 1; --from names the first one, --to the last one")
                .code(USAGE))
        }
        _ => Ok(()),
    }
}

/// The log's keys, and the head to prove events by: a cosigned one if it covers `size` events.
fn head(work: &mut Work<'_>, size: u64) -> Result<(LogKey, SignedCheckpoint), Failure> {
    let key = LogKey::read(work)?;
    let head = cosigned::best_head(work, &key, size)?.map_err(|signed| {
        Failure::new(format!("the signed head covers {signed} events, but {size} were requested"))
            .hint("a running server signs the rest within a minute, or when it stops")
    })?;
    Ok((key, head))
}
