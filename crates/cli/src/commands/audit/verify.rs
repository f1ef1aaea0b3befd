//! `outlast audit verify`: verifies a store, part of it, an export, a proof, or heads that somebody has kept.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use outlast_domain::audit::prove::verify_continues;
use outlast_domain::audit::{self, Head, LogKey, prove};
use outlast_domain::check::{self, TrailReport};
use outlast_net::server::system_clock;
use outlast_tlog::policy::{Accepted, Policy, verify_proof};
use outlast_tlog::proof_file::{MAX_FILE, ProofFile};
use outlast_tlog::{SignedCheckpoint, hash};
use serde_json::{Value, json};

use super::{PAGE, file, in_order, open};
use crate::data::{Data, StoreArguments, StoreOptions, store_failure};
use crate::failure::{Failure, REFUSED};
use crate::output::{self, Output};
use crate::{files, values};

/// Problems that are shown, at most.
const MAX_SHOWN: usize = 20;
/// Longest policy or head file, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// Arguments of `audit verify`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Verify this export, instead of a store.
    #[arg(long, conflicts_with_all = ["proof", "checkpoint", "from", "to"])]
    file: Option<PathBuf>,
    /// Verify this proof of one event, instead of a store.
    #[arg(long, requires = "policy", conflicts_with_all = ["checkpoint", "from", "to"])]
    proof: Option<PathBuf>,
    /// Policy with the log and the witnesses to trust (C2SP tlog-policy), as printed by outlast audit policy.
    #[arg(long = "policy-file", alias = "policy", value_name = "FILE")]
    policy: Option<PathBuf>,
    /// File with a head of the log that you have kept; may be repeated. Verifies that the store, and each later head,
    /// continues it.
    #[arg(long, requires = "data")]
    checkpoint: Vec<PathBuf>,
    /// Verify only events from this one on, counted from 1.
    #[arg(long, requires = "data", value_parser = values::event)]
    from: Option<u64>,
    /// Verify only events up to this one.
    #[arg(long, requires = "data", value_parser = values::event)]
    to: Option<u64>,
    /// Data folder, made by `outlast init`.
    #[arg(long, env = "OUTLAST_DATA", required_unless_present_any = ["file", "proof"])]
    data: Option<PathBuf>,
    #[command(flatten)]
    options: StoreOptions,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    in_order(arguments.from, arguments.to)?;
    let policy = arguments.policy.as_deref().map(read_policy).transpose()?;
    if let (Some(path), Some(policy)) = (&arguments.proof, &policy) {
        return proof(path, policy, output);
    }
    if let Some(path) = &arguments.file {
        return export(path, policy.as_ref(), output);
    }
    let Some(data) = &arguments.data else {
        return Err(
            Failure::new("there is nothing to verify").hint("give --data, --file or --proof")
        );
    };
    let data = open(&StoreArguments::new(data.clone(), arguments.options.clone()))?;
    if !arguments.checkpoint.is_empty() {
        return heads(&data, &arguments.checkpoint, policy.as_ref(), output);
    }
    if arguments.from.is_some() || arguments.to.is_some() {
        return range(&data, arguments.from, arguments.to, policy.as_ref(), output);
    }
    store(&data, policy.as_ref(), output)
}

fn read_policy(path: &Path) -> Result<Policy, Failure> {
    let bytes = files::read(path, MAX_TEXT)?;
    Policy::parse(&bytes).map_err(|error| {
        Failure::file(path, &error).hint("make one with: outlast audit policy --data DIR")
    })
}

/// The log and witnesses of a head that a policy accepts.
fn by(accepted: &Accepted) -> Value {
    let witnesses: Vec<_> = accepted
        .cosigned_by
        .iter()
        .map(|by| json!({ "witness": by.witness, "key": by.key_name, "time": by.time }))
        .collect();
    json!({ "log": accepted.log.to_string(), "time": accepted.time, "cosignedBy": witnesses })
}

fn refused(what: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("refused: {what}")).code(REFUSED)
}

fn proof(path: &Path, policy: &Policy, output: Output) -> Result<(), Failure> {
    let bytes = files::read(path, MAX_FILE)?;
    let proof = ProofFile::parse(&bytes).map_err(|error| Failure::file(path, &error))?;
    let entry = proof.extra.as_deref().ok_or_else(|| {
        Failure::file(path, &"the proof does not contain its event")
            .hint("make it with: outlast audit prove")
    })?;
    verify_proof(policy, &proof, entry).map_err(|error| refused(&error))?;
    let accepted = policy.evaluate(&proof.checkpoint).map_err(|error| refused(&error))?;
    let event: Value = serde_json::from_slice(entry).unwrap_or_default();
    let head = proof.checkpoint.checkpoint();
    let names: Vec<_> = accepted.cosigned_by.iter().map(|by| by.witness.clone()).collect();
    let text = format!(
        "event {} of {} in the log {}\ncosigned by: {}\n{}",
        proof.index + 1,
        head.size(),
        head.origin(),
        if names.is_empty() { "nobody".to_owned() } else { names.join(", ") },
        serde_json::to_string_pretty(&event).unwrap_or_default()
    );
    output.result(
        &text,
        &json!({
            "origin": head.origin(),
            "index": proof.index,
            "size": head.size(),
            "root": hex::encode(head.root()),
            "by": by(&accepted),
            "event": event,
        }),
    );
    Ok(())
}

fn export(path: &Path, policy: Option<&Policy>, output: Output) -> Result<(), Failure> {
    let input = File::open(path).map_err(|error| Failure::file(path, &error))?;
    let bar = output::spinner("verifying");
    let found = file::read(&mut BufReader::new(input))
        .map_err(|what| refused(&format!("{}: {what}", path.display())))?;
    bar.finish_and_clear();
    let accepted = match policy {
        Some(policy) => Some(policy.evaluate(&found.head).map_err(|error| refused(&error))?),
        None => {
            found.head.verify_log(&found.keys).map_err(|error| refused(&error))?;
            output::warning(
                "the export's own keys were trusted; give the log's policy with --policy-file (from: outlast audit policy)",
            );
            None
        }
    };
    let head = found.head.checkpoint();
    let text = format!(
        "events {} to {} of the log {}, which had {} when it was signed\nroot: {}",
        found.begin + 1,
        found.end,
        head.origin(),
        head.size(),
        hex::encode(head.root())
    );
    output.result(
        &text,
        &json!({
            "origin": head.origin(),
            "first": found.begin + 1,
            "last": found.end,
            "events": found.end - found.begin,
            "size": head.size(),
            "root": hex::encode(head.root()),
            "by": accepted.as_ref().map(by),
            "problems": [],
        }),
    );
    Ok(())
}

/// The head that the log signed last; with a policy, the last cosigned one, which must satisfy it.
fn signed(
    data: &Data,
    policy: Option<&Policy>,
    size: u64,
) -> Result<(LogKey, SignedCheckpoint), Failure> {
    let mut work = data.service.work(system_clock());
    let (key, head) = super::head(&mut work, size)?;
    if let Some(policy) = policy {
        policy.evaluate(&head).map_err(|error| refused(&error))?;
        return Ok((key, head));
    }
    let head = audit::signed_head(&mut work, &key)?;
    Ok((key, head))
}

fn store(data: &Data, policy: Option<&Policy>, output: Output) -> Result<(), Failure> {
    let bar = output::spinner("verifying");
    let root = data.service.root();
    let report = check::check_trail(data.store(), root, &mut |events| {
        bar.set_message(format!("{events} events"));
    })?;
    bar.finish_and_clear();
    let keys = super::policy::keys(data);
    if policy.is_some() && report.problem_count == 0 {
        signed(data, policy, 0)?;
    }
    if report.unsigned > audit::INTERVAL {
        output::warning(&format!(
            "no event after {} is signed: later events prove nothing",
            report.size
        ));
    }
    let origin = keys.as_ref().map_or("-", |keys| keys.origin.as_str());
    output.result(&describe(&report, origin), &described(&report, origin));
    match report.problem_count {
        0 => Ok(()),
        count => Err(Failure::new(format!("the audit log has {count} problems"))
            .hint("compare it with an export, a proof or a head that was kept elsewhere, or with a backup")),
    }
}

fn describe(report: &TrailReport, origin: &str) -> String {
    let mut text = format!(
        "{} events in the log {origin}, {} signed, {} after the signed head, {} pruned\nroot: {}",
        report.events, report.size, report.unsigned, report.pruned, report.root
    );
    for problem in report.problems.iter().take(MAX_SHOWN) {
        text.push_str(&format!("\nproblem: {}: {}", problem.record_key, problem.what));
    }
    text
}

fn described(report: &TrailReport, origin: &str) -> Value {
    json!({
        "origin": origin,
        "events": report.events,
        "size": report.size,
        "unsigned": report.unsigned,
        "pruned": report.pruned,
        "root": report.root,
        "problems": report.problems,
    })
}

/// Verifies heads that somebody has kept: each must be the log's, and continued by the next larger one and by the
/// store.
fn heads(
    data: &Data,
    paths: &[PathBuf],
    policy: Option<&Policy>,
    output: Output,
) -> Result<(), Failure> {
    let (key, now) = signed(data, None, 0)?;
    let mut kept = Vec::new();
    for path in paths {
        let head = SignedCheckpoint::parse(&files::read(path, MAX_TEXT)?)
            .map_err(|error| Failure::file(path, &error))?;
        match policy {
            Some(policy) => drop(policy.evaluate(&head).map_err(|error| refused(&error))?),
            None => drop(head.verify_log(&key.verifiers()).map_err(|error| refused(&error))?),
        }
        if head.checkpoint().origin() != key.origin {
            return Err(refused(&format!("{} is a head of another log", path.display())));
        }
        kept.push(head);
    }
    kept.push(now);
    kept.sort_by_key(|head| head.checkpoint().size());
    let mut work = data.service.work(system_clock());
    for (old, new) in kept.iter().zip(kept.iter().skip(1)) {
        verify_continues(&mut work, old, new).map_err(|fault| refused(&fault))?;
    }
    // A kept head may be larger than the store's own.
    let own = Head::read(&mut work)?.size;
    if let Some(larger) = kept.last().filter(|head| head.checkpoint().size() > own) {
        return Err(refused(&format!(
            "the store's log has {own} signed events, but had {} when a head was kept: it was rolled back",
            larger.checkpoint().size()
        )));
    }
    let sizes: Vec<_> = kept.iter().map(|head| head.checkpoint().size()).collect();
    let text = format!(
        "each of these heads continues the one before: {}",
        sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    );
    output.result(&text, &json!({ "origin": key.origin, "sizes": sizes, "problems": [] }));
    Ok(())
}

/// Verifies the events of a range, by their own bytes and the tiles around them.
fn range(
    data: &Data,
    from: Option<u64>,
    to: Option<u64>,
    policy: Option<&Policy>,
    output: Output,
) -> Result<(), Failure> {
    let (key, head) = signed(data, policy, to.unwrap_or(0))?;
    let size = head.checkpoint().size();
    let (begin, end) = (from.unwrap_or(1).saturating_sub(1), to.unwrap_or(size));
    if begin >= end || end > size {
        return Err(Failure::new(format!(
            "events {} to {end} are not a range of signed events",
            begin + 1
        ))
        .hint(format!("the signed head covers events 1 to {size}")));
    }
    let mut work = data.service.work(system_clock());
    let (mut computed, after) = prove::around(&mut work, &head, begin, end)?;
    let bar = output::spinner("verifying");
    while computed.end() < end {
        let at = computed.end();
        let limit = PAGE.min(usize::try_from(end - at).unwrap_or(PAGE));
        let page = data.store().events(at, limit).map_err(store_failure)?;
        if page.is_empty() {
            return Err(refused(&format!("event {} is missing", at + 1)));
        }
        for (expected, event) in (at + 1..).zip(page) {
            if event.sequence != expected {
                return Err(refused(&format!("event {expected} is missing")));
            }
            let leaf = hash::leaf(&event.body);
            computed.append(&leaf).map_err(|error| Failure::new(error.to_string()))?;
        }
        bar.set_message(format!("{} events", computed.end() - begin));
    }
    bar.finish_and_clear();
    computed.extend(&after).map_err(|error| Failure::new(error.to_string()))?;
    if computed.root() != Some(*head.checkpoint().root()) {
        return Err(refused(&format!(
            "events {} to {end} are not those that were signed",
            begin + 1
        )));
    }
    let text = format!("events {} to {end} are those of the log {}", begin + 1, key.origin);
    output.result(
        &text,
        &json!({ "origin": key.origin, "first": begin + 1, "last": end, "problems": [] }),
    );
    Ok(())
}
