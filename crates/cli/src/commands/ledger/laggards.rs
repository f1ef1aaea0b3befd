//! `outlast ledger laggards`.

use outlast_ledger::report::{self, Laggard};

use super::summary::networks;
use super::{EMPTY, Source};
use crate::failure::Failure;
use crate::output::Output;
use crate::tables::{Table, moment, plural};

/// Arguments of `laggards`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    source: Source,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let (tally, _) = arguments.source.tally()?;
    let laggards = report::laggards(&tally);
    let text = if tally.total.connections == 0 { EMPTY.to_owned() } else { render(&laggards) };
    output.result(&text, &laggards);
    let beyond = tally.unseen.beyond_limits;
    if laggards.is_empty() && beyond == 0 {
        return Ok(());
    }
    if laggards.is_empty() {
        return Err(Failure::finding(format!(
            "{} of clients beyond those that a report holds: what they offer is not looked at",
            plural(beyond, "connection is", "connections are"),
        ))
        .hint("choose fewer connections with --since, --until or --listener"));
    }
    let count = laggards.len() as u64;
    let what = plural(
        count,
        "client never offers a post-quantum group",
        "clients never offer a post-quantum group",
    );
    Err(Failure::finding(what))
}

fn render(laggards: &[Laggard]) -> String {
    if laggards.is_empty() {
        return "every client offers a post-quantum group".into();
    }
    let mut table = Table::new(
        &["connections", "principal", "client", "JA4", "best", "from", "first seen", "last seen"],
        &[0],
    );
    let mut hints: Vec<(&str, Vec<String>)> = Vec::new();
    for laggard in laggards {
        let row = &laggard.client;
        let best = serde_json::to_value(row.fingerprint.ability).unwrap_or_default();
        table.row(vec![
            row.counts.connections.to_string(),
            row.principal.clone().unwrap_or_else(|| "-".into()),
            row.fingerprint.label(),
            row.fingerprint.ja4.clone().unwrap_or_else(|| "-".into()),
            best.as_str().unwrap_or_default().to_owned(),
            networks(row),
            moment(row.counts.first_ms),
            moment(row.counts.last_ms),
        ]);
        let label = row.fingerprint.label();
        match hints.iter_mut().find(|(hint, _)| *hint == laggard.hint) {
            Some((_, labels)) if labels.contains(&label) => {}
            Some((_, labels)) => labels.push(label),
            None => hints.push((laggard.hint, vec![label])),
        }
    }
    let mut out = table.render(0);
    out.push_str("\nWhat to do\n");
    for (hint, labels) in hints {
        out.push_str(&format!("  {}: {hint}\n", labels.join(", ")));
    }
    out
}
