//! `outlast store`: checks the store, and shows its limits.

mod limits;

use outlast_domain::check::{self, Report};
use outlast_domain::seal::{self, RootKey};

use crate::data::{self, StoreArguments};
use crate::failure::Failure;
use crate::output::{self, Output};

/// Arguments of `store`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check that everything in the store can be opened, matches and works; changes nothing, and a server may run
    /// meanwhile. Exits with 1 if something is wrong.
    Check(StoreArguments),
    /// Show the quotas of accounts ([limits] of outlast.toml) and their use; a server may run meanwhile.
    Limits(StoreArguments),
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        Command::Check(arguments) => check(arguments, output),
        Command::Limits(arguments) => limits::run(arguments, output),
    }
}

fn check(arguments: &StoreArguments, output: Output) -> Result<(), Failure> {
    let location = arguments.location()?;
    location.require_initialised()?;
    let provider = arguments.provider()?;
    let store = location.open_read_only()?;
    let store = store.as_ref();
    // The record that detects a wrong root key may itself be damaged: the check goes on as long as other records can
    // be opened.
    let (root, wrong_key) = match data::unlock(store, &provider) {
        Ok((root, _)) => (root, None),
        Err(failure) => {
            let record = seal::read_record(store)?;
            (RootKey::new(provider.open(record.as_ref())?), Some(failure))
        }
    };
    let bar = output::spinner("checking");
    let report = check::check(store, &root, &mut |report| {
        bar.set_message(format!("{} records, {} events", report.records, report.events));
    })?;
    bar.finish_and_clear();
    if let Some(wrong_key) = wrong_key
        && report.opened == 0
    {
        return Err(wrong_key);
    }
    output.result(&describe(&report), &report);
    match report.problem_count {
        0 => Ok(()),
        1 => Err(Failure::new("the store has a problem").hint(HINT)),
        count => Err(Failure::new(format!("the store has {count} problems")).hint(HINT)),
    }
}

const HINT: &str = "keep the folder as it is, and restore the newest good backup elsewhere: outlast restore BACKUP --data NEW";

fn describe(report: &Report) -> String {
    let mut text = format!(
        "records:      {} ({} sealed ones open)\nkeys:         {} ({} aliases)\n\
         authorities:  {} ({} certificates)\naudit events: {}\nproblems:     {}\n",
        report.records,
        report.opened,
        report.keys,
        report.aliases,
        report.authorities,
        report.certificates,
        report.events,
        report.problem_count,
    );
    for problem in &report.problems {
        text += &format!("  {}: {} ({})\n", problem.record_key, problem.what, problem.title);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_printed() {
        let report = Report {
            records: 11,
            opened: 12,
            keys: 13,
            aliases: 14,
            authorities: 15,
            certificates: 16,
            events: 17,
            problem_count: 18,
            problems: Vec::new(),
        };
        let text = describe(&report);
        for count in 11..=18 {
            assert!(text.contains(&count.to_string()), "{count}: {text}");
        }
    }
}
