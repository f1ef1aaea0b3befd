//! `outlast ledger dry-run`.

use outlast_ledger::dry_run::{self, ClientChange, DryRun, Effect, Future, Reason};
use outlast_negotiate::decide::CertificateFacts;
use outlast_negotiate::ssh::SshRefusal;
use outlast_negotiate::{Mode, Refusal, Rules};

use super::{Column, Columns, EMPTY, Source, number, text, whole, wide};
use crate::failure::Failure;
use crate::output::Output;
use crate::tables::{Table, plural, wrapped};
use crate::{tls, values};

/// Arguments of `dry-run`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// The policy to replay under: see `outlast policy list` [default: 2026-11].
    #[arg(long, value_name = "NAME", value_parser = values::policies(), hide_possible_values = true)]
    policy: Option<String>,
    /// How to apply its post-quantum groups: require, prefer, allow or off [default: the policy's own, which is prefer
    /// for most].
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
    number("affected"),
    text("principal"),
    text("client"),
    wide(text("before")),
    whole("after"),
    text("where"),
];

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let rules = rules(arguments)?;
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
    let found = Failure::finding(format!(
        "{} would break under {} in mode {}: {} of {} would be refused",
        plural(clients, "client", "clients"),
        outcome.policy,
        outcome.mode,
        outcome.breaks,
        plural(
            outcome.replayed_served,
            "replayed connection that was served",
            "replayed connections that were served"
        ),
    ));
    if outcome.useless_certificates.is_empty() {
        return Err(found);
    }
    Err(found.hint(
        "the policy allows none of the recorded certificates: name the kinds that the server will have with --certificates, such as --certificates ml-dsa-87",
    ))
}

/// Policy and mode. A policy for SSH only replays the SSH connections.
fn rules(arguments: &Arguments) -> Result<Rules, Failure> {
    let Some(name) = arguments.policy.as_deref() else {
        return tls::rules(None, arguments.mode.as_deref());
    };
    let policy = tls::policy(name)?;
    if policy.has_tls() {
        return tls::rules(Some(name), arguments.mode.as_deref());
    }
    let mode: Option<Mode> = arguments
        .mode
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: String| Failure::new(error))?;
    Ok(Rules { policy, mode: mode.unwrap_or(policy.mode) })
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
        plural(outcome.replayed, "connection", "connections"),
        outcome.policy,
        outcome.mode
    );
    let others = outcome.replayed - outcome.replayed_served;
    out.push_str(&format!(
        "{} served and can break; {others} {} refused or failed\n",
        plural(outcome.replayed_served, "of them was", "of them were"),
        if others == 1 { "was" } else { "were" },
    ));
    if outcome.uncovered > 0 {
        out.push_str(&format!(
            "{} left out: the policy does not cover their protocol\n",
            plural(outcome.uncovered, "connection is", "connections are"),
        ));
    }
    for (listener, kinds) in &outcome.certificates {
        out.push_str(&format!("certificates at {listener}: {}\n", kinds.join(", ")));
    }
    for (listener, kinds) in &outcome.unknown_certificates {
        out.push_str(&format!(
            "unknown certificates at {listener}, not replayed: {}; name the most similar kinds with --certificates\n",
            kinds.join(", ")
        ));
    }
    for listener in &outcome.useless_certificates {
        let kinds = outcome.certificates.get(listener).map(|kinds| kinds.join(", "));
        out.push_str(&wrapped(
            &format!(
                "every client at {listener} breaks, whatever it offers, because {} does not allow the certificates there ({}): replay with the kinds that the server will have, such as --certificates ml-dsa-87",
                outcome.policy,
                kinds.unwrap_or_default(),
            ),
            0,
        ));
    }
    let mut counts = Table::new(&["what", "connections"], &[1]);
    for (what, count) in [
        ("would break", outcome.breaks),
        ("were refused and would be served", outcome.mends),
        ("would change group", outcome.changes_group),
        ("would need one more round trip", outcome.more_round_trips),
        ("would need one round trip less", outcome.fewer_round_trips),
        ("would be post-quantum", outcome.hybrid),
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
        out.push_str("\nClients, and how many of their connections are affected\n");
        out.push_str(&clients.render(2));
        if !columns.wide {
            out.push_str("  --wide shows whole names, all networks and the groups before\n");
        }
        if outcome.clients.len() > rows {
            out.push_str(&format!("  and {} more: see --rows\n", outcome.clients.len() - rows));
        }
    }
    out
}

fn cells(change: &ClientChange, columns: &Columns) -> Vec<String> {
    let row = &change.client;
    let (effect, affected) = change.affected();
    let what = match effect {
        Effect::Breaks => "breaks",
        Effect::WouldBeServed => "would be served",
        Effect::ChangesGroup => "changes group",
        Effect::MoreRoundTrips => "one more round trip",
        Effect::FewerRoundTrips => "one round trip less",
        Effect::None if matches!(change.future, Future::Refused { .. }) => "refused as before",
        Effect::None => "unchanged",
    };
    let before: Vec<_> =
        row.groups.iter().map(|(group, count)| format!("{group} ({count})")).collect();
    let after = match &change.future {
        Future::Served { group, hello_retry: true, .. } if columns.wide => {
            format!("{group} by HelloRetryRequest")
        }
        Future::Served { group, hello_retry: true, .. } => format!("{group} after retry"),
        Future::Served { group, .. } => (*group).to_owned(),
        Future::Refused { explanation, .. } if columns.wide => explanation.clone(),
        Future::Refused { reason: Reason::Tls(reason), explanation } => match reason {
            Refusal::Version => "no common TLS version",
            Refusal::Group if explanation.contains("not supported") => {
                "unsupported post-quantum groups"
            }
            Refusal::Group => "no common group",
            Refusal::Classical => "no post-quantum group",
            Refusal::Suite => "no common cipher suite",
            Refusal::Scheme => "no common signature scheme",
        }
        .to_owned(),
        Future::Refused { reason: Reason::Ssh(reason), .. } => match reason {
            SshRefusal::KeyExchange => "no common key exchange",
            SshRefusal::Classical => "no post-quantum key exchange",
            SshRefusal::HostKey => "no common host key algorithm",
            SshRefusal::Cipher => "no common cipher",
            SshRefusal::Mac => "no common MAC",
            SshRefusal::Compression => "insists on compression",
            SshRefusal::Order => "list came late",
        }
        .to_owned(),
    };
    vec![
        what.to_owned(),
        format!("{affected} of {}", row.counts.connections),
        columns.principal(row.principal.as_deref()),
        row.fingerprint.label(),
        if before.is_empty() { "-".into() } else { before.join(", ") },
        after,
        columns.networks(row),
    ]
}
