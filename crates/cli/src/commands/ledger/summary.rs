//! `outlast ledger summary`.

use std::path::PathBuf;

use outlast_ledger::plot;
use outlast_ledger::read::Skipped;
use outlast_ledger::report::{self, ClientRow, Summary};
use outlast_ledger::tally::Counts;
use outlast_ledger::verdict::Verdict;
use serde::Serialize;

use super::{EMPTY, Source};
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::tables::{Table, bytes, moment, percent, plural};

/// Arguments of `summary`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Draw the share of each verdict over time to this file, as SVG.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Rows of each table at most; JSON has all of them.
    #[arg(long, default_value_t = 40)]
    rows: usize,
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    skipped: Skipped,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let (tally, skipped) = arguments.source.tally()?;
    if let Some(path) = &arguments.plot {
        let picture = plot::svg(&tally)
            .ok_or_else(|| Failure::new("there is no connection to draw a picture of"))?;
        files::write(path, picture.as_bytes(), 0o644)?;
    }
    let summary = report::summary(&tally);
    let empty = tally.total.connections == 0;
    let text = if empty { EMPTY.to_owned() } else { render(&summary, arguments.rows) };
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

fn render(summary: &Summary, rows: usize) -> String {
    let total = &summary.total;
    let mut out = format!(
        "{}, {} to {} UTC\n\
         hybrid {} of those served, by HelloRetryRequest {}, resumed {}, refused {}, failed {}\n",
        plural(total.connections, "connection", "connections"),
        moment(total.first_ms),
        moment(total.last_ms),
        percent(total.hybrid_percent()),
        total.hello_retry,
        total.resumed,
        total.refused,
        total.failed,
    );
    let mut verdicts = Table::new(&["verdict", "connections"], &[1]);
    for verdict in Verdict::ALL {
        let count = total.verdicts.get(&verdict).copied().unwrap_or_default();
        // That there is none of these is what everybody wants to read.
        if count > 0 || verdict == Verdict::Missed {
            verdicts.row(vec![verdict.label().into(), count.to_string()]);
        }
    }
    section(&mut out, "Verdicts", &verdicts, 0);
    if summary.missed > 0 {
        out.push_str(&format!("  advertised but classical, by cause: {}\n", causes(summary)));
    }
    let mut clients = Table::new(
        &[
            "verdict",
            "connections",
            "hybrid",
            "retry",
            "resumed",
            "failed",
            "principal",
            "client",
            "JA4",
            "from",
            "last seen",
            "bytes",
        ],
        &[1, 2, 3, 4, 5, 11],
    );
    for row in summary.clients.iter().take(rows) {
        clients.row(client_cells(row));
    }
    section(&mut out, "Clients", &clients, summary.clients.len().saturating_sub(rows));
    let by = |title: &str, list: &[(String, Counts)]| {
        let mut table = Table::new(
            &[
                title,
                "connections",
                "hybrid",
                "retry",
                "resumed",
                "failed",
                "first seen",
                "last seen",
                "bytes",
            ],
            &[1, 2, 3, 4, 5, 8],
        );
        for (name, counts) in list.iter().take(rows) {
            table.row(cells(name, counts));
        }
        table
    };
    let more = |len: usize| len.saturating_sub(rows);
    let principals = by("principal", &summary.principals);
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

fn client_cells(row: &ClientRow) -> Vec<String> {
    let counts = &row.counts;
    vec![
        row.verdict.label().to_owned(),
        counts.connections.to_string(),
        percent(counts.hybrid_percent()),
        counts.hello_retry.to_string(),
        counts.resumed.to_string(),
        (counts.refused + counts.failed).to_string(),
        row.principal.clone().unwrap_or_else(|| "-".into()),
        row.fingerprint.label(),
        row.fingerprint.ja4.clone().unwrap_or_else(|| "-".into()),
        networks(row),
        moment(counts.last_ms),
        bytes(counts.received.saturating_add(counts.sent)),
    ]
}

/// The networks that a client comes from.
pub(super) fn networks(row: &ClientRow) -> String {
    let mut out = row.networks.join(" ");
    if row.more_networks {
        out.push_str(" ...");
    }
    if out.is_empty() { "-".into() } else { out }
}
