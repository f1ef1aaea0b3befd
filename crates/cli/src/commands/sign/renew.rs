//! `outlast sign renew`: keeps signatures verifiable after their certificates and algorithms have ended, by evidence
//! records (RFC 4998) beside them.

use std::path::PathBuf;

use clap::ValueHint;
use outlast_crypto::digests::Digest;
use outlast_net::server::system_clock;
use outlast_pki::time::rfc3339;
use serde_json::{Value, json};

use super::digest_row;
use crate::failure::{Failure, PARTIAL, REFUSED};
use crate::files;
use crate::output::{self, Output};
use crate::renewing::{self, Done, Item, State};
use crate::signing::jobs;
use crate::timestamping::{Client, Options, Taken};

/// Days before an end from which on a renewal is due, unless the caller says otherwise.
const DUE_DAYS: i64 = 90;

/// Most days that the caller can say.
const MAX_DAYS: i64 = 36_500;

/// Shown at the end of the help, and in the manual page.
const EXIT_STATUS: &str = "\
Exit status: 0 done; 1 failed; 2 wrong usage; 3 an evidence record does not hold any more; 4 some of several failed, the
others are renewed; 5 --check: something is due; 130 interrupted.";

/// Arguments of `sign renew`.
#[derive(clap::Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Arguments {
    /// Signatures FILE.p7s, each beside its FILE, or folders that are searched for them. FILE.ers is written.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Time-stamping authority (RFC 3161), http:// or https://. One timestamp serves all files.
    #[arg(long, value_name = "URL", required_unless_present = "check")]
    timestamp: Option<String>,
    #[command(flatten)]
    options: Options,
    /// Renew only what ends within so many days: a certificate of the newest timestamp, or its algorithm.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i64).range(0..=MAX_DAYS))]
    if_due: Option<i64>,
    /// Say what is due, within --if-due or 90 days, and renew nothing.
    #[arg(long)]
    check: bool,
    /// Digest of new evidence: another one than the record's begins a new hash tree over the files [default: the record's,
    /// or sha512].
    #[arg(long, value_parser = digest_row, value_hint = ValueHint::Other)]
    digest: Option<&'static Digest>,
}

/// What became of a signature.
enum Fate {
    /// It is due; only with `--check`.
    Due(State),
    NotDue(State),
    Failed(Failure),
    Done(Done),
}

/// Renews what is to be renewed; a file that fails does not stop the others.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let items = items(&arguments.paths)?;
    let now = system_clock().div_euclid(1000);
    let urls: Vec<_> = arguments.timestamp.iter().cloned().collect();
    let client = Client::new(&urls, &arguments.options, None)?;
    let progress = output::byte_bar(0);
    let mut fates: Vec<(Item, Fate)> = Vec::new();
    let mut plans = Vec::new();
    for item in items {
        progress.set_message(item.signature.display().to_string());
        let state = match jobs::check_name(&item.signature).and_then(|()| State::read(&item)) {
            Ok(state) => state,
            Err(failure) => {
                fates.push((item, Fate::Failed(failure)));
                continue;
            }
        };
        let days = match (arguments.if_due, arguments.check) {
            (Some(days), _) => days,
            (None, true) => DUE_DAYS,
            // Without a condition everything is renewed.
            (None, false) => i64::from(u32::MAX),
        };
        let is_due = state.is_due(now, days);
        if arguments.check || !is_due {
            let fate = if is_due { Fate::Due(state) } else { Fate::NotDue(state) };
            fates.push((item, fate));
            continue;
        }
        match state.plan(arguments.digest, client.roots(), now, &progress) {
            Ok(plan) => plans.push(plan),
            Err(failure) => fates.push((item, Fate::Failed(failure))),
        }
    }
    progress.finish_and_clear();
    let mut taken = Vec::new();
    if !plans.is_empty() {
        let runtime = crate::runtime::small()?;
        let (done, tokens) = runtime.block_on(renewing::renew(plans, &client))?;
        taken = tokens;
        let outcomes = done.into_iter().map(|(item, outcome)| match outcome {
            Ok(done) => (item, Fate::Done(done)),
            Err(failure) => (item, Fate::Failed(failure)),
        });
        fates.extend(outcomes);
    }
    fates.sort_by(|(one, _), (other, _)| one.signature.cmp(&other.signature));
    report(arguments, fates, &taken, output)
}

/// The signatures that the arguments name.
fn items(paths: &[PathBuf]) -> Result<Vec<Item>, Failure> {
    let mut items = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => {
                for signature in jobs::signatures(path)? {
                    items.push(Item::of(&signature)?);
                }
            }
            false => items.push(Item::of(path)?),
        }
    }
    items.sort_by(|one, other| one.signature.cmp(&other.signature));
    items.dedup();
    Ok(items)
}

fn report(
    arguments: &Arguments,
    fates: Vec<(Item, Fate)>,
    taken: &[Taken],
    output: Output,
) -> Result<(), Failure> {
    let (mut text, mut list) = (String::new(), Vec::new());
    let (mut failures, mut due) = (Vec::new(), 0);
    let count = fates.len();
    for (item, fate) in fates {
        let name = item.signature.display();
        let mut entry = json!({
            "file": files::json_path(&item.file),
            "signature": files::json_path(&item.signature),
            "evidence": files::json_path(&item.record),
        });
        match fate {
            Fate::Due(state) => {
                due += 1;
                text.push_str(&format!("due {name}: {}\n", end_of(&state)));
                set(&mut entry, "due", &state);
            }
            Fate::NotDue(state) => {
                text.push_str(&format!("not due {name}: {}\n", end_of(&state)));
                set(&mut entry, "not-due", &state);
            }
            Fate::Done(done) => {
                text.push_str(&format!(
                    "renewed {}: {}, {} in all, {}\n",
                    item.record.display(),
                    done.word,
                    if done.count == 1 {
                        "1 timestamp".to_owned()
                    } else {
                        format!("{} timestamps", done.count)
                    },
                    done.until()
                ));
                entry["outcome"] = json!("renewed");
                entry["step"] = json!(done.word);
                entry["count"] = json!(done.count);
                entry["ends"] = json!(done.due.as_ref().map(|due| rfc3339(due.at)));
                entry["because"] = json!(done.due.as_ref().map(|due| &due.because));
            }
            Fate::Failed(failure) => {
                entry["outcome"] = json!("failed");
                entry["reason"] = json!(failure.message());
                failures.push(failure);
            }
        }
        list.push(entry);
    }
    for one in taken {
        text.push_str(&format!("{}\n", one.text()));
    }
    let tokens: Vec<_> = taken.iter().map(Taken::json).collect();
    output.result(&text, &json!({ "files": list, "timestamps": tokens }));
    if count == 1
        && let Some(failure) = failures.pop()
    {
        return Err(failure);
    }
    for failure in &failures {
        failure.report();
    }
    if !failures.is_empty() {
        let refused = failures.iter().any(|failure| failure.exit_code() == REFUSED);
        let code = match (refused, failures.len() == count) {
            (true, _) => REFUSED,
            (false, true) => 1,
            (false, false) => PARTIAL,
        };
        let verb = if arguments.check { "could not be read" } else { "were not renewed" };
        return Err(
            Failure::new(format!("{} of {count} signatures {verb}", failures.len())).code(code)
        );
    }
    match due {
        0 => Ok(()),
        due => Err(Failure::finding(format!("{due} of {count} signatures are due for a renewal"))
            .hint("outlast sign renew PATH --timestamp URL --if-due DAYS renews them")),
    }
}

fn end_of(state: &State) -> String {
    let what = if state.has_record() { "evidence" } else { "signature without evidence" };
    match &state.due {
        Some(due) => format!("{what}, until {}: {}", rfc3339(due.at), due.because),
        None => format!("{what}, until an unknown time"),
    }
}

fn set(entry: &mut Value, outcome: &str, state: &State) {
    entry["outcome"] = json!(outcome);
    entry["ends"] = json!(state.due.as_ref().map(|due| rfc3339(due.at)));
    entry["because"] = json!(state.due.as_ref().map(|due| &due.because));
}
