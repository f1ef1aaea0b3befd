//! `outlast log show`: shows entries.

use outlast_domain::artifacts::LogEntry;
use outlast_net::policy::Policy;
use outlast_pki::time::rfc3339;
use serde_json::{Value, json};

use super::follow::entries;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::output::Output;
use crate::profile::Connection;

/// Arguments of `log show`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Index of the first entry, from 0 [default: the last --lines].
    #[arg(long)]
    from: Option<u64>,
    /// Number of entries.
    #[arg(short = 'n', long, default_value_t = 10)]
    lines: u64,
    #[command(flatten)]
    connection: Connection,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
    let (first, found) = crate::runtime::small()?.block_on(async {
        let first = match arguments.from {
            Some(first) => first,
            None => {
                let (_, size) = entries(&mut endpoint, 0, 1).await?;
                size.saturating_sub(arguments.lines)
            }
        };
        let mut found = Vec::new();
        while (found.len() as u64) < arguments.lines {
            let left = arguments.lines - found.len() as u64;
            let (page, _) = entries(&mut endpoint, first + found.len() as u64, left).await?;
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        Ok::<_, Failure>((first, found))
    })?;
    let mut text = String::new();
    let mut list = Vec::new();
    for (index, bytes) in (first..).zip(&found) {
        let entry = LogEntry::parse(bytes.as_bytes())
            .map_err(|error| Failure::new(format!("entry {index}: {error}")))?;
        text.push_str(&line(index, &entry));
        let entry: Value = serde_json::from_str(bytes).unwrap_or_default();
        list.push(json!({ "index": index, "entry": entry }));
    }
    if found.is_empty() {
        text.push_str("no entry\n");
    }
    output.result(text.trim_end(), &list);
    Ok(())
}

/// One line for each signer of an entry.
fn line(index: u64, entry: &LogEntry) -> String {
    let name = entry.name().unwrap_or("-");
    let at = rfc3339(entry.time());
    let one = |signer: &outlast_domain::artifacts::entry::LoggedSigner| {
        format!(
            "{index:>8} {at} {} {}:{} key {} {name}\n",
            signer.signature_algorithm,
            signer.digest_algorithm,
            signer.digest,
            signer.public_key_sha256
        )
    };
    entry.signers().iter().map(one).collect()
}
