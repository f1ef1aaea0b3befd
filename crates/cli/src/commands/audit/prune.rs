//! `outlast audit prune`: exports old events and deletes them then.

use std::io::BufReader;
use std::path::PathBuf;

use outlast_domain::audit::{self, Head, LogKey};
use outlast_net::server::system_clock;
use serde_json::{Value, json};

use super::{export, file};
use crate::data::{Data, StoreArguments, store_event, store_failure};
use crate::failure::Failure;
use crate::output::Output;

const DAY_MS: i64 = 86_400_000;
/// How often it is tried while a server signs.
const MAX_TRIES: usize = 16;

/// Arguments of `audit prune`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Delete events that are older than this many days.
    #[arg(long, value_name = "DAYS")]
    older_than: u32,
    /// File to make, which the events are exported to first.
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    store: StoreArguments,
}

/// Exports, reads the export back, and deletes.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let place = arguments.store.place()?;
    let data = Data::open_beside(&place, &arguments.store.provider()?)?;
    let before_ms = system_clock() - i64::from(arguments.older_than) * DAY_MS;
    let head = Head::read(&mut data.service.work(system_clock()))?;
    // Whole tiles go, and the last event stays.
    let end = first_since(&data, head.pruned, head.size, before_ms)? / 256 * 256;
    if end <= head.pruned {
        let text = "no events are old enough: they go in blocks of 256";
        output.result(text, &json!({ "pruned": 0 }));
        return Ok(());
    }
    let path = &arguments.out;
    let (written, _) = export::write(&data, path, head.pruned, Some(end))?;
    let read = std::fs::File::open(path).map_err(|error| Failure::file(path, &error))?;
    let found = file::read(&mut BufReader::new(read)).map_err(|what| {
        Failure::new(format!("nothing was pruned: the events do not verify: {what}"))
    })?;
    let key = LogKey::read(&mut data.service.work(system_clock()))?;
    if (found.begin, found.end) != (written.begin, written.end)
        || found.head.verify_log(&key.verifiers()).is_err()
    {
        return Err(Failure::new("nothing was pruned: the export does not hold the events"));
    }
    for _ in 0..MAX_TRIES {
        let mut work = data.service.work(system_clock());
        let pruned = audit::prune::prune(&mut work, end)?;
        let parameters = json!({ "first": written.begin + 1, "last": pruned });
        let event = store_event(work.now_ms(), "PruneAuditEvents", &parameters)?;
        match data.service.store().commit_and_wait(work.into_transaction(vec![event])) {
            Ok(()) => {
                let text = format!(
                    "exported events {} to {pruned} to {} and deleted them",
                    written.begin + 1,
                    path.display()
                );
                output.result(
                    &text,
                    &json!({ "pruned": pruned - written.begin, "file": path, "last": pruned }),
                );
                return Ok(());
            }
            // A server has signed a head just now.
            Err(outlast_store::StoreError::Conflict) => {}
            Err(error) => return Err(store_failure(error)),
        }
    }
    Err(store_failure(outlast_store::StoreError::Conflict))
}

/// The first entry of a time not before `before_ms`; events are stored almost in the order of their times.
fn first_since(data: &Data, from: u64, size: u64, before_ms: i64) -> Result<u64, Failure> {
    let limit = outlast_pki::time::rfc3339(before_ms.div_euclid(1000));
    let (mut low, mut high) = (from, size);
    while low < high {
        let middle = low + (high - low) / 2;
        let event = data.store().events(middle, 1).map_err(store_failure)?.into_iter().next();
        let value: Value =
            event.and_then(|event| serde_json::from_slice(&event.body).ok()).unwrap_or_default();
        // RFC 3339 in UTC: in order of text.
        if value["eventTime"].as_str().is_some_and(|time| time < limit.as_str()) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
