//! `outlast audit prove`: proves that an event is in the log (C2SP tlog-proof).

use std::path::PathBuf;

use outlast_domain::audit::prove;
use outlast_net::server::system_clock;
use serde_json::json;

use super::{head, open};
use crate::data::StoreArguments;
use crate::failure::Failure;
use crate::files;
use crate::output::{self, Output};

/// Arguments of `audit prove`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// File to create [default: EVENT.tlog-proof, or INDEX.tlog-proof].
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArguments,
}

/// The event: one of the two.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The event's eventID, as shown by audit tail --output json.
    #[arg(long)]
    event: Option<String>,
    /// The event's number in the log instead, from 0: one less than the number in audit tail.
    #[arg(long)]
    index: Option<u64>,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let data = open(&arguments.store)?;
    let mut work = data.service.work(system_clock());
    let (index, name) = match (&arguments.which.event, arguments.which.index) {
        (Some(id), _) => {
            let bar = output::spinner("searching for the event");
            let found = prove::find(&work, id, &mut |at| bar.set_message(format!("event {at}")))?;
            bar.finish_and_clear();
            let index = found.ok_or_else(|| {
                Failure::new(format!("no event has the id {id}"))
                    .hint("to see ids, run: outlast audit tail --output json --data DIR; pruned events are in their export")
            })?;
            (index, id.clone())
        }
        (None, index) => (index.unwrap_or_default(), index.unwrap_or_default().to_string()),
    };
    let (_, signed) = head(&mut work, index + 1)?;
    let proof = prove::prove(&mut work, &signed, index)?;
    let path = arguments.out.clone().unwrap_or_else(|| format!("{name}.tlog-proof").into());
    let text = proof.to_string();
    files::write_new(&path, |file| {
        file.write_all(text.as_bytes()).map_err(|error| files::io_failure(&path, &error))
    })?;
    let head = signed.checkpoint();
    let shown = format!(
        "proved event {} of {} in {}\nverify it: outlast audit verify --proof {} --policy-file FILE (from: outlast audit policy)",
        index + 1,
        head.size(),
        path.display(),
        path.display()
    );
    output.result(
        &shown,
        &json!({ "file": files::json_path(&path), "index": index, "size": head.size(), "origin": head.origin(), "hashes": proof.hashes.len() }),
    );
    Ok(())
}
