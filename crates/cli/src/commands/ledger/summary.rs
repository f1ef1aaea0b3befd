//! `outlast ledger summary`.

use std::path::PathBuf;

use outlast_ledger::plot;
use outlast_ledger::read::Skipped;
use outlast_ledger::report::{self, ClientRow, Summary};
use outlast_ledger::tally::Counts;
use outlast_ledger::verdict::Verdict;
use serde::Serialize;

use super::{Column, Columns, EMPTY, Source, number, text, whole, wide};
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::tables::{Table, bytes, moment, percent, plural};

/// Arguments of `summary`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Draw the share of each verdict over time into this file, as SVG.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Maximum number of rows in each table; JSON has all.
    #[arg(long, default_value_t = 40)]
    rows: usize,
    #[command(flatten)]
    columns: Columns,
}

const CLIENTS: &[Column] = &[
    text("verdict"),
    number("connections"),
    number("hybrid of served"),
    wide(number("retry")),
    wide(number("resumed")),
    number("failed"),
    text("principal"),
    text("client"),
    wide(whole("JA4 or HASSH")),
    whole("where"),
    wide(whole("last seen")),
    wide(number("bytes")),
];

/// Columns after the name.
const COUNTS: &[Column] = &[
    number("connections"),
    number("hybrid of served"),
    wide(number("retry")),
    wide(number("resumed")),
    number("failed"),
    whole("first seen"),
    whole("last seen"),
    wide(number("bytes")),
];

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    skipped: Skipped,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let (tally, skipped) = arguments.source.tally()?;
    if let Some(path) = &arguments.plot {
        let picture =
            plot::svg(&tally).ok_or_else(|| Failure::new("there are no connections to draw"))?;
        files::write(path, picture.as_bytes(), 0o644)?;
    }
    let summary = report::summary(&tally);
    let empty = tally.total.connections == 0;
    let text =
        if empty { EMPTY.to_owned() } else { render(&summary, arguments.rows, &arguments.columns) };
    output.result(&text, &Shown { summary: &summary, skipped });
    if summary.defects > 0 {
        let what = plural(
            summary.defects,
            "connection advertised post-quantum but got classical",
            "connections advertised post-quantum but got classical",
        );
        return Err(Failure::finding(what).hint(causes(&summary)));
    }
    Ok(())
}

fn causes(summary: &Summary) -> String {
    let texts: Vec<_> =
        summary.causes.iter().map(|(cause, count)| format!("{count}: {}", cause.label())).collect();
    texts.join("; ")
}

fn render(summary: &Summary, rows: usize, columns: &Columns) -> String {
    let total = &summary.total;
    let mut out = format!(
        "{}; {}\n\
         {} to {} UTC; by HelloRetryRequest {}, resumed {}, refused {}, failed {}\n",
        shares(total),
        match summary.missed {
            0 => "no client that offered post-quantum got classical".to_owned(),
            count => plural(
                count,
                "connection offered post-quantum and got classical",
                "connections offered post-quantum and got classical",
            ),
        },
        moment(total.first_ms),
        moment(total.last_ms),
        total.hello_retry,
        total.resumed,
        total.refused,
        total.failed,
    );
    if let Some(newest) = &summary.newest {
        out.push_str(&format!(
            "newest record: listener {}, policy {} in mode {}\n",
            newest.listener, newest.policy, newest.mode
        ));
    }
    let mut verdicts = Table::new(&["verdict", "connections"], &[1]);
    for verdict in Verdict::ALL {
        let count = total.verdicts.get(&verdict).copied().unwrap_or_default();
        // A zero in this row is what every reader looks for.
        if count > 0 || verdict == Verdict::Missed {
            verdicts.row(vec![verdict.label().into(), count.to_string()]);
        }
    }
    section(&mut out, "Verdicts", &verdicts, 0);
    if summary.missed > 0 {
        out.push_str(&format!("  advertised but classical, by cause: {}\n", causes(summary)));
    }
    let mut clients = columns.table(CLIENTS);
    // Named clients first: there is somebody to ask about them.
    let is_named = |row: &&ClientRow| row.principal.is_some();
    let (named, others): (Vec<_>, Vec<_>) = summary.clients.iter().partition(is_named);
    for row in named.into_iter().chain(others).take(rows) {
        clients.row(columns.cells(CLIENTS, client_cells(row, columns)));
    }
    section(&mut out, "Clients", &clients, summary.clients.len().saturating_sub(rows));
    let by = |title: &'static str, list: &[(String, Counts)]| {
        let all: Vec<_> = std::iter::once(text(title)).chain(COUNTS.iter().copied()).collect();
        let mut table = columns.table(&all);
        for (name, counts) in list.iter().take(rows) {
            table.row(columns.cells(&all, cells(name, counts)));
        }
        table
    };
    let more = |len: usize| len.saturating_sub(rows);
    let principals: Vec<_> = summary
        .principals
        .iter()
        .map(|(name, counts)| (columns.principal(Some(name)), counts.clone()))
        .collect();
    let principals = by("principal", &principals);
    section(&mut out, "Principals", &principals, more(summary.principals.len()));
    let software: Vec<_> = summary
        .fingerprints
        .iter()
        .map(|(fingerprint, counts)| (fingerprint.label(), counts.clone()))
        .collect();
    section(&mut out, "Fingerprints", &by("client", &software), more(software.len()));
    section(&mut out, "Listeners", &by("listener", &summary.listeners), 0);
    section(&mut out, "Groups", &by("group", &summary.groups), 0);
    let mut reasons = Table::new(&["reason", "connections"], &[1]);
    for (reason, count) in summary.reasons.iter().take(rows) {
        reasons.row(vec![reason.clone(), count.to_string()]);
    }
    section(&mut out, "Refusals and failures", &reasons, more(summary.reasons.len()));
    out
}

/// How many connections were post-quantum, of those that were served, and how many were not served.
fn shares(total: &Counts) -> String {
    let others = match total.refused + total.failed {
        0 => String::new(),
        1 => "; 1 more was refused or failed".to_owned(),
        others => format!("; {others} more were refused or failed"),
    };
    if total.served() == 0 {
        return format!("no connection was served{others}");
    }
    format!(
        "{} of {} ({}) {} post-quantum{others}",
        total.hybrid,
        plural(total.served(), "served connection", "served connections"),
        percent(total.hybrid_percent()),
        if total.hybrid == 1 { "was" } else { "were" },
    )
}

fn section(out: &mut String, title: &str, table: &Table, more: usize) {
    if table.is_empty() {
        return;
    }
    out.push('\n');
    out.push_str(title);
    out.push('\n');
    out.push_str(&table.render(2));
    if more > 0 {
        out.push_str(&format!("  and {more} more: see --rows\n"));
    }
}

fn cells(name: &str, counts: &Counts) -> Vec<String> {
    vec![
        name.to_owned(),
        counts.connections.to_string(),
        percent(counts.hybrid_percent()),
        counts.hello_retry.to_string(),
        counts.resumed.to_string(),
        (counts.refused + counts.failed).to_string(),
        moment(counts.first_ms),
        moment(counts.last_ms),
        bytes(counts.received.saturating_add(counts.sent)),
    ]
}

fn client_cells(row: &ClientRow, columns: &Columns) -> Vec<String> {
    let counts = &row.counts;
    vec![
        row.verdict.label().to_owned(),
        counts.connections.to_string(),
        percent(counts.hybrid_percent()),
        counts.hello_retry.to_string(),
        counts.resumed.to_string(),
        (counts.refused + counts.failed).to_string(),
        columns.principal(row.principal.as_deref()),
        row.fingerprint.label(),
        row.fingerprint.hash().unwrap_or("-").to_owned(),
        columns.networks(row),
        moment(counts.last_ms),
        bytes(counts.received.saturating_add(counts.sent)),
    ]
}
