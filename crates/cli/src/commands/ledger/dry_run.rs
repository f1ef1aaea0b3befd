//! `outlast ledger dry-run`.

use outlast_ledger::dry_run::{self, ClientChange, DryRun, Future};
use outlast_negotiate::decide::CertificateFacts;

use super::{Column, Columns, EMPTY, Source, number, text, whole, wide};
use crate::failure::Failure;
use crate::output::Output;
use crate::tables::{Table, plural};
use crate::{tls, values};

/// Arguments of `dry-run`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// The policy to replay under: see `outlast policy list`.
    #[arg(long, value_name = "NAME", value_parser = values::tls_policies(), hide_possible_values = true)]
    policy: Option<String>,
    /// How to apply its post-quantum groups: require, prefer, allow or off [default: prefer].
    #[arg(long, value_parser = values::modes(), hide_possible_values = true)]
    mode: Option<String>,
    /// Kinds of certificates to replay with, the preferred first, such as ml-dsa-87,ecdsa-p256 [default: those that
    /// were shown].
    #[arg(long, value_delimiter = ',', value_name = "KINDS", value_parser = kind)]
    certificates: Vec<CertificateFacts>,
    /// Maximum number of rows in the table; JSON has all.
    #[arg(long, default_value_t = 40)]
    rows: usize,
    #[command(flatten)]
    columns: Columns,
}

const CLIENTS: &[Column] = &[
    whole("what"),
    number("connections"),
    text("principal"),
    text("client"),
    wide(text("before")),
    text("after"),
    whole("from"),
];

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let rules = tls::rules(arguments.policy.as_deref(), arguments.mode.as_deref())?;
    let (tally, _) = arguments.source.tally()?;
    let outcome = dry_run::dry_run(&tally, &rules, &arguments.certificates);
    let empty = tally.total.connections == 0;
    let text =
        if empty { EMPTY.to_owned() } else { render(&outcome, arguments.rows, &arguments.columns) };
    output.result(&text, &outcome);
    if outcome.breaks == 0 && outcome.unknown == 0 {
        return Ok(());
    }
    if outcome.breaks == 0 {
        return Err(Failure::finding(format!(
            "no client is known to break, but {} not replayed: there are more clients than a report can list, or an offer is missing",
            plural(outcome.unknown, "connection was", "connections were"),
        ))
        .hint("select fewer connections with --since, --until or --listener"));
    }
    let clients = outcome.clients.iter().filter(|client| client.breaks > 0).count() as u64;
    Err(Failure::finding(format!(
        "{} would break under {} in mode {}: {} of {}",
        plural(clients, "client", "clients"),
        outcome.policy,
        outcome.mode,
        outcome.breaks,
        plural(outcome.recorded.connections, "connection", "connections"),
    )))
}

fn kind(name: &str) -> Result<CertificateFacts, String> {
    dry_run::certificate(name).ok_or_else(|| {
        let known: Vec<_> = dry_run::certificate_kinds().collect();
        format!("not a kind of TLS certificate: choose one of {}", known.join(", "))
    })
}

fn render(outcome: &DryRun, rows: usize, columns: &Columns) -> String {
    let mut out = format!(
        "{} replayed under {} in mode {}\n",
        plural(outcome.recorded.connections - outcome.not_replayed, "connection", "connections"),
        outcome.policy,
        outcome.mode
    );
    for (listener, kinds) in &outcome.certificates {
        out.push_str(&format!("certificates at {listener}: {}\n", kinds.join(", ")));
    }
    for (listener, kinds) in &outcome.unknown_certificates {
        out.push_str(&format!(
            "unknown certificates at {listener}, not replayed: {}; name the most similar kinds with --certificates\n",
            kinds.join(", ")
        ));
    }
    let mut counts = Table::new(&["what", "connections"], &[1]);
    for (what, count) in [
        ("would break", outcome.breaks),
        ("were refused and would be served", outcome.mends),
        ("would change group", outcome.changes_group),
        ("would need one more round trip", outcome.more_round_trips),
        ("would need one round trip less", outcome.fewer_round_trips),
        ("would be hybrid", outcome.hybrid),
        ("are not replayed: no offer is known", outcome.not_replayed),
    ] {
        counts.row(vec![what.into(), count.to_string()]);
    }
    out.push('\n');
    out.push_str(&counts.render(2));
    let mut clients = columns.table(CLIENTS);
    for change in outcome.clients.iter().take(rows) {
        clients.row(columns.cells(CLIENTS, cells(change, columns)));
    }
    if !clients.is_empty() {
        out.push_str("\nClients\n");
        out.push_str(&clients.render(2));
        if outcome.clients.len() > rows {
            out.push_str(&format!("  and {} more: see --rows\n", outcome.clients.len() - rows));
        }
    }
    out
}

fn cells(change: &ClientChange, columns: &Columns) -> Vec<String> {
    let row = &change.client;
    let what = if change.breaks > 0 {
        "breaks"
    } else if change.mends > 0 {
        "mends"
    } else if change.changes_group > 0 {
        "changes group"
    } else if change.more_round_trips > 0 {
        "one more round trip"
    } else if change.fewer_round_trips > 0 {
        "one round trip less"
    } else if matches!(change.future, Future::Refused { .. }) {
        "stays refused"
    } else {
        "stays"
    };
    let before: Vec<_> =
        row.groups.iter().map(|(group, count)| format!("{group} ({count})")).collect();
    let after = match &change.future {
        Future::Served { group, hello_retry: true, .. } => format!("{group} by HelloRetryRequest"),
        Future::Served { group, .. } => (*group).to_owned(),
        Future::Refused { explanation, .. } => explanation.clone(),
    };
    vec![
        what.to_owned(),
        row.counts.connections.to_string(),
        columns.principal(row.principal.as_deref()),
        row.fingerprint.label(),
        if before.is_empty() { "-".into() } else { before.join(", ") },
        after,
        columns.networks(row),
    ]
}
