//! `outlast audit prune`: exports old events and then deletes them.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use outlast_domain::audit::{self, Head, LogKey};
use outlast_net::server::system_clock;
use serde_json::{Value, json};

use super::{export, file};
use crate::data::{Data, StoreArguments, store_event, store_failure};
use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Milliseconds in a day.
pub(crate) const DAY_MS: i64 = 86_400_000;

/// Arguments of `audit prune`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Delete events that are older than this many days.
    #[arg(long, value_name = "DAYS")]
    older_than: u32,
    /// File to create, with the deleted events.
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    store: StoreArguments,
}

/// Exports, reads the export back, and deletes.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let location = arguments.store.location()?;
    let data = Data::open_beside(&location, &arguments.store.provider()?)?;
    let before_ms = system_clock() - i64::from(arguments.older_than) * DAY_MS;
    let pruned = export_and_prune(&data, before_ms, |_, _| arguments.out.clone())?;
    let Some(Pruned { first, last, file }) = pruned else {
        let text = "no events are old enough: events are pruned in blocks of 256";
        output.result(text, &json!({ "pruned": 0 }));
        return Ok(());
    };
    let text = format!("exported events {first} to {last} to {} and deleted them", file.display());
    output.result(
        &text,
        &json!({ "pruned": last + 1 - first, "file": files::json_path(&file), "last": last }),
    );
    Ok(())
}

/// Events that have moved from the store to a file; numbers count from 1.
pub(crate) struct Pruned {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) file: PathBuf,
}

/// Exports the events from before `before_ms`, in whole tiles and as far as a head covers them, to the file that
/// `name` gives for the first and the last number; reads the file back, verifies it, and only then deletes them.
/// `None` if there are none. An existing file, left by an export whose events could not be deleted, is used if it
/// verifies.
pub(crate) fn export_and_prune(
    data: &Data,
    before_ms: i64,
    name: impl FnOnce(u64, u64) -> PathBuf,
) -> Result<Option<Pruned>, Failure> {
    let mut work = data.service.work(system_clock());
    let (begin, prunable) = (Head::read(&mut work)?.pruned, audit::prune::prunable(&mut work)?);
    // Whole tiles are deleted. Events that must stay are not exported either: the next export begins with them.
    let end = first_since(data, begin, prunable, before_ms)? / 256 * 256;
    if end <= begin {
        return Ok(None);
    }
    let path = name(begin + 1, end);
    match holds(data, &path, begin, end) {
        Ok(()) => {}
        Err(failure) if path.exists() => return Err(failure),
        Err(_) => {
            export::write(data, &path, begin, Some(end))?;
            holds(data, &path, begin, end)?;
        }
    }
    // A server may sign a head in the meantime.
    data.change(|work| {
        let last = audit::prune::prune(work, end)?;
        if !work.writes_anything() {
            // Another server was first.
            return Ok((None, Vec::new()));
        }
        let parameters = json!({ "first": begin + 1, "last": last });
        let event = store_event(work.now_ms(), "PruneAuditEvents", &parameters)?;
        Ok((Some(Pruned { first: begin + 1, last, file: path.clone() }), vec![event]))
    })
}

/// Whether the file is an export of exactly these events of this log.
fn holds(data: &Data, path: &Path, begin: u64, end: u64) -> Result<(), Failure> {
    let read = std::fs::File::open(path).map_err(|error| Failure::file(path, &error))?;
    let not_pruned = |what: &str| {
        Failure::file(path, &format!("nothing was pruned: {what}")).hint(
            "move the file away and try again; to see what is wrong, run: outlast audit verify",
        )
    };
    let found = file::read(&mut BufReader::new(read))
        .map_err(|what| not_pruned(&format!("the events in it do not verify: {what}")))?;
    let key = LogKey::read(&mut data.service.work(system_clock()))?;
    if (found.begin, found.end) != (begin, end) || found.head.verify_log(&key.verifiers()).is_err()
    {
        return Err(not_pruned("it does not contain the events"));
    }
    Ok(())
}

/// The first entry at or after `before_ms`; events are stored almost in order of time.
fn first_since(data: &Data, from: u64, size: u64, before_ms: i64) -> Result<u64, Failure> {
    let limit = outlast_pki::time::rfc3339(before_ms.div_euclid(1000));
    let (mut low, mut high) = (from, size);
    while low < high {
        let middle = low + (high - low) / 2;
        let event = data.store().events(middle, 1).map_err(store_failure)?.into_iter().next();
        let value: Value =
            event.and_then(|event| serde_json::from_slice(&event.body).ok()).unwrap_or_default();
        // RFC 3339 in UTC sorts as text.
        if value["eventTime"].as_str().is_some_and(|time| time < limit.as_str()) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
