//! `outlast audit export`: writes events to a file, with what proves them.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use outlast_domain::audit::{Head, prove};
use outlast_net::server::system_clock;
use outlast_tlog::{CompactRange, SignedCheckpoint};
use serde_json::json;
use serde_json::value::RawValue;

use super::file::Line;
use super::{PAGE, in_order, open};
use crate::data::{Data, StoreArguments, store_failure};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::{files, values};

/// Arguments of `audit export`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// File to create.
    #[arg(long)]
    out: PathBuf,
    /// First event, counted from 1 [default: the first in the store].
    #[arg(long, value_parser = values::event)]
    from: Option<u64>,
    /// Last event [default: the last signed one].
    #[arg(long, value_parser = values::event)]
    to: Option<u64>,
    #[command(flatten)]
    store: StoreArguments,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    in_order(arguments.from, arguments.to)?;
    let data = open(&arguments.store)?;
    let path = &arguments.out;
    let begin = arguments.from.unwrap_or(1).saturating_sub(1);
    let (written, unsigned) = write(&data, path, begin, arguments.to)?;
    let mut text = format!(
        "wrote {} events to {}\nverify it: outlast audit verify --file {} --policy-file FILE (from: outlast audit policy)",
        written.end - written.begin,
        path.display(),
        path.display()
    );
    if unsigned > 0 {
        text.push_str(&format!(
            "\n{unsigned} later events are not signed yet and were left out; a running server signs them within a minute"
        ));
    }
    let events = written.end - written.begin;
    output.result(
        &text,
        &json!({ "file": files::json_path(path), "events": events, "unsigned": unsigned }),
    );
    Ok(())
}

/// The entries in an export.
pub(super) struct Written {
    /// Index of the first entry, from 0.
    pub(super) begin: u64,
    /// Index after the last entry.
    pub(super) end: u64,
}

/// Writes the entries from `begin` to `end`, as far as they are in the store and signed. Reports how many later ones
/// are not signed. Never replaces an earlier export, which may be the evidence that the store was changed.
pub(super) fn write(
    data: &Data,
    path: &Path,
    begin: u64,
    end: Option<u64>,
) -> Result<(Written, u64), Failure> {
    let mut work = data.service.work(system_clock());
    let pruned = Head::read(&mut work)?.pruned;
    let (key, signed) = super::head(&mut work, end.unwrap_or(0))?;
    // The newest head covers most entries; a cosigned one is preferred if it covers enough.
    let signed = match end {
        Some(_) => signed,
        None => outlast_domain::audit::signed_head(&mut work, &key)?,
    };
    let size = signed.checkpoint().size();
    let begin = begin.max(pruned);
    let end = end.unwrap_or(size).min(size);
    if begin > end {
        return Err(Failure::new(format!("there is no signed event {}", begin + 1))
            .hint(format!("signed events are {} to {size}", pruned + 1)));
    }
    let (before, after) = prove::around(&mut work, &signed, begin, end)?;
    let last = data.store().last_event().map_err(store_failure)?;
    let keys = key.verifiers().iter().map(ToString::to_string).collect();
    let first = Line::Log { origin: key.origin.clone(), verifier_keys: keys };
    let range = Line::Range { begin, end, before: hashes(&before), after: hashes(&after) };
    files::write_new(path, |file| {
        let mut out = BufWriter::new(file);
        let failed = |error: std::io::Error| files::io_failure(path, &error);
        first.write(&mut out).map_err(failed)?;
        range.write(&mut out).map_err(failed)?;
        events(data, path, &mut out, begin, end)?;
        finish(&signed, end - begin, &mut out).map_err(failed)
    })?;
    Ok((Written { begin, end }, last.saturating_sub(size)))
}

fn events(
    data: &Data,
    path: &Path,
    out: &mut dyn Write,
    begin: u64,
    end: u64,
) -> Result<(), Failure> {
    let bar = output::spinner("exporting");
    let mut at = begin;
    while at < end {
        let limit = PAGE.min(usize::try_from(end - at).unwrap_or(PAGE));
        let page = data.store().events(at, limit).map_err(store_failure)?;
        if page.is_empty() {
            return Err(missing(at + 1));
        }
        for event in page {
            if event.sequence != at + 1 {
                return Err(missing(at + 1));
            }
            let event = raw(event.body).ok_or_else(|| {
                Failure::new(format!("event {} was changed: it is not JSON on one line", at + 1))
                    .hint("to see what else is wrong, run: outlast audit verify --data DIR")
            })?;
            let line = Line::Event { index: at, event };
            line.write(out).map_err(|error| files::io_failure(path, &error))?;
            at += 1;
        }
        bar.set_message(format!("{} events", at - begin));
    }
    bar.finish_and_clear();
    Ok(())
}

fn missing(number: u64) -> Failure {
    Failure::new(format!("event {number} is missing"))
        .hint("to see what else is wrong, run: outlast audit verify --data DIR")
}

fn finish(signed: &SignedCheckpoint, events: u64, out: &mut dyn Write) -> std::io::Result<()> {
    Line::Head(signed.to_string()).write(out)?;
    Line::End { events }.write(out)?;
    out.flush()
}

fn hashes(range: &CompactRange) -> Vec<String> {
    range.hashes().iter().map(hex::encode).collect()
}

/// The JSON text of an event, unchanged.
fn raw(body: Vec<u8>) -> Option<Box<RawValue>> {
    let text = String::from_utf8(body).ok()?;
    let one_line = !text.contains('\n');
    RawValue::from_string(text).ok().filter(|_| one_line)
}
