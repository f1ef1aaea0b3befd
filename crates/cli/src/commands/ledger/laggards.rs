//! `outlast ledger laggards`.

use outlast_ledger::known::Ability;
use outlast_ledger::report::{self, Laggard};

use super::{Column, Columns, EMPTY, Source, number, text, whole, wide};
use crate::failure::Failure;
use crate::output::Output;
use crate::tables::{moment, plural, wrapped};

/// Arguments of `laggards`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    columns: Columns,
}

const COLUMNS: &[Column] = &[
    number("connections"),
    text("principal"),
    text("client"),
    wide(whole("JA4 or HASSH")),
    text("best"),
    whole("where"),
    wide(whole("first seen")),
    whole("last seen"),
];

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let (tally, _) = arguments.source.tally()?;
    let laggards = report::laggards(&tally);
    let text = if tally.total.connections == 0 {
        EMPTY.to_owned()
    } else {
        render(&laggards, &arguments.columns)
    };
    output.result(&text, &laggards);
    let beyond = tally.unseen.beyond_limits;
    if laggards.is_empty() && beyond == 0 {
        return Ok(());
    }
    if laggards.is_empty() {
        return Err(Failure::finding(format!(
            "{} of clients beyond those that a report can list: their offers were not checked",
            plural(beyond, "connection is", "connections are"),
        ))
        .hint("select fewer connections with --since, --until or --listener"));
    }
    let is_unserved = |one: &&Laggard| one.client.fingerprint.ability == Ability::Unserved;
    let unserved = laggards.iter().filter(is_unserved).count() as u64;
    let never = laggards.len() as u64 - unserved;
    let mut found = Vec::new();
    if never > 0 {
        found.push(plural(
            never,
            "client never offers a post-quantum group",
            "clients never offer a post-quantum group",
        ));
    }
    if unserved > 0 {
        found.push(plural(
            unserved,
            "client only offers post-quantum groups that are not supported here",
            "clients only offer post-quantum groups that are not supported here",
        ));
    }
    Err(Failure::finding(found.join("; ")))
}

fn render(laggards: &[Laggard], columns: &Columns) -> String {
    if laggards.is_empty() {
        return "every client offers a post-quantum group that is supported here".into();
    }
    let mut table = columns.table(COLUMNS);
    let mut hints: Vec<(&str, Vec<String>)> = Vec::new();
    // Named clients first: there is somebody to ask about them.
    let is_named = |laggard: &&Laggard| laggard.client.principal.is_some();
    let (named, others): (Vec<_>, Vec<_>) = laggards.iter().partition(is_named);
    for laggard in named.into_iter().chain(others) {
        let row = &laggard.client;
        let best = serde_json::to_value(row.fingerprint.ability).unwrap_or_default();
        let cells = vec![
            row.counts.connections.to_string(),
            columns.principal(row.principal.as_deref()),
            row.fingerprint.label(),
            row.fingerprint.hash().unwrap_or("-").to_owned(),
            best.as_str().unwrap_or_default().to_owned(),
            columns.networks(row),
            moment(row.counts.first_ms),
            moment(row.counts.last_ms),
        ];
        table.row(columns.cells(COLUMNS, cells));
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
        out.push_str(&wrapped(&format!("{}: {hint}", labels.join(", ")), 2));
    }
    out
}
