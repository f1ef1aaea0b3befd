//! `outlast ledger`: who connects how, who is left behind, and whom another policy would break.

mod dry_run;
mod export;
mod laggards;
mod summary;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outlast_ledger::read::{Reader, Skipped};
use outlast_ledger::report::ClientRow;
use outlast_ledger::tally::{Filter, Tally};
use outlast_ledger::{Line, limits};
use outlast_negotiate::names::nearest;
use outlast_net::server::system_clock;
use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{Date, OffsetDateTime};

use crate::failure::{Failure, USAGE};
use crate::ledger_options;
use crate::output::{self, Output};
use crate::settings::Settings;
use crate::tables::Table;

/// The text of a report on no connections.
const EMPTY: &str = "no connection is recorded: the ledger is empty, or has nothing for the given times and listener";

/// Arguments of `ledger`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Summarise connections by client, principal, listener and group. Exits with 5 if a client offered a
    /// post-quantum group and got a classical one, against mode and policy.
    Summary(summary::Arguments),
    /// Show the clients that never offer a post-quantum group that is supported here, and what to do about each.
    /// Exits with 5 if there are any, or if there are more clients than a report can list.
    Laggards(laggards::Arguments),
    /// Export one record per connection, with IANA's names, as JSON lines or CSV.
    Export(export::Arguments),
    /// Replay the clients' offers under another policy: which would break, which would change. Exits with 5 if a client
    /// would break, or if the outcome is not known for all.
    DryRun(dry_run::Arguments),
}

/// The ledger to read, and which lines of it.
#[derive(clap::Args)]
pub(crate) struct Source {
    /// The ledger's folder.
    #[arg(long, value_name = "DIR")]
    ledger: Option<PathBuf>,
    /// Data folder, made by `outlast init`, whose ledger to read.
    #[arg(long, env = "OUTLAST_DATA")]
    data: Option<PathBuf>,
    /// Only handshakes from this time on: 2026-11-21, 2026-11-21T08:00:00Z, or 7d, 12h, 30m ago.
    #[arg(long, value_name = "TIME", value_parser = time_or_age)]
    since: Option<i64>,
    /// Only handshakes before this time.
    #[arg(long, value_name = "TIME", value_parser = time_or_age)]
    until: Option<i64>,
    /// Only handshakes at this listener: api, sftp, or the proxy's name for it; connectors for the servers that SFTP connectors
    /// connect to.
    #[arg(long)]
    listener: Option<String>,
}

/// How much of a report to show.
#[derive(clap::Args)]
pub(super) struct Columns {
    /// Show every column, however wide: JA4 or HASSH, whole ARNs, all networks, retries, resumptions and bytes.
    #[arg(long)]
    wide: bool,
}

impl Columns {
    /// A table with the columns that are shown.
    fn table(&self, columns: &[Column]) -> Table {
        let shown: Vec<_> = self.shown(columns).collect();
        let headings: Vec<_> = shown.iter().map(|column| column.heading).collect();
        let which = |is: fn(&Column) -> bool| -> Vec<usize> {
            shown.iter().enumerate().filter(|(_, column)| is(column)).map(|(at, _)| at).collect()
        };
        let table = Table::new(&headings, &which(|column| column.is_number));
        if self.wide { table } else { table.fitting(&which(|column| column.is_flexible)) }
    }

    fn shown<'a>(&self, columns: &'a [Column]) -> impl Iterator<Item = &'a Column> {
        columns.iter().filter(|column| self.wide || !column.only_wide)
    }

    /// The cells of a row that are shown.
    fn cells(&self, columns: &[Column], cells: Vec<String>) -> Vec<String> {
        let both = columns.iter().zip(cells);
        both.filter(|(column, _)| self.wide || !column.only_wide).map(|(_, cell)| cell).collect()
    }

    /// A principal: its ARN or, in a narrow table, its name.
    fn principal(&self, principal: Option<&str>) -> String {
        match principal {
            None => "-".to_owned(),
            Some(arn) if !self.wide && arn.starts_with("arn:") => {
                arn.rsplit(':').next().unwrap_or(arn).to_owned()
            }
            Some(name) => name.to_owned(),
        }
    }

    /// The networks of a client, or host and port of a server; in a narrow table, the first one and the number of others.
    fn networks(&self, row: &ClientRow) -> String {
        let is_server = !row.destinations.is_empty();
        let more = if row.more_networks && !is_server { " ..." } else { "" };
        let all = if is_server { &row.destinations } else { &row.networks };
        match all.as_slice() {
            [] => "-".to_owned(),
            [first, rest @ ..] if !self.wide && !rest.is_empty() => {
                format!("{first} +{}{more}", rest.len())
            }
            all => format!("{}{more}", all.join(" ")),
        }
    }
}

/// A column of a report.
#[derive(Clone, Copy)]
struct Column {
    heading: &'static str,
    is_number: bool,
    is_flexible: bool,
    only_wide: bool,
}

/// Text that may be shortened.
const fn text(heading: &'static str) -> Column {
    Column { heading, is_number: false, is_flexible: true, only_wide: false }
}

/// Text that stays whole.
const fn whole(heading: &'static str) -> Column {
    Column { heading, is_number: false, is_flexible: false, only_wide: false }
}

/// A number.
const fn number(heading: &'static str) -> Column {
    Column { heading, is_number: true, is_flexible: false, only_wide: false }
}

/// A column that is shown with `--wide` only.
const fn wide(column: Column) -> Column {
    Column { only_wide: true, ..column }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        Command::Summary(arguments) => summary::run(arguments, output),
        Command::Laggards(arguments) => laggards::run(arguments, output),
        Command::Export(arguments) => export::run(arguments, output),
        Command::DryRun(arguments) => dry_run::run(arguments, output),
    }
}

impl Source {
    fn folder(&self) -> Result<PathBuf, Failure> {
        if let Some(folder) = &self.ledger {
            return Ok(folder.clone());
        }
        let Some(data) = &self.data else {
            return Err(Failure::new("no ledger was given")
                .hint("give a data folder with --data, or a ledger's folder with --ledger"));
        };
        let settings = Settings::load(None, data)?.ledger;
        // A ledger that is off now may have been written before.
        let folder = ledger_options::folder(settings.ledger.as_ref(), data);
        Ok(folder.unwrap_or_else(|| ledger_options::default_folder(data)))
    }

    fn filter(&self) -> Filter {
        Filter { since_ms: self.since, until_ms: self.until, listener: self.listener.clone() }
    }

    /// Passes each line to `take`, with progress on a terminal.
    fn read(
        &self,
        filter: &Filter,
        mut take: impl FnMut(Line) -> Result<(), Failure>,
    ) -> Result<Skipped, Failure> {
        self.in_order()?;
        let folder = self.folder()?;
        let mut reader = Reader::open(&folder, filter.since_ms, filter.until_ms)
            .map_err(|error| Failure::file(&folder, &error))?;
        let bar = output::byte_bar(reader.total).with_message("reading the ledger");
        let mut shown = 0;
        let mut listeners = BTreeSet::new();
        while let Some(line) = reader.next() {
            let line = line.map_err(|error| Failure::file(&folder, &error))?;
            note_listener(&mut listeners, &line);
            take(line)?;
            if reader.read - shown > 1 << 20 {
                shown = reader.read;
                bar.set_position(shown);
            }
        }
        bar.finish_and_clear();
        self.is_known(listeners, &folder)?;
        let Skipped { torn, malformed, newer } = reader.skipped;
        if malformed > 0 {
            output::warning(&format!("{malformed} lines are malformed and were skipped"));
        }
        if newer > 0 {
            output::warning(&format!("{newer} lines are of a newer version: upgrade outlast"));
        }
        if torn > 0 {
            output::warning(&format!("{torn} last lines are incomplete and were skipped"));
        }
        Ok(reader.skipped)
    }

    /// Refuses a range that no time is in.
    fn in_order(&self) -> Result<(), Failure> {
        match (self.since, self.until) {
            (Some(since), Some(until)) if since >= until => Err(Failure::new(
                "--since is not before --until: no connection can be between them",
            )
            .hint("30d is longer ago than 7d; a day alone is its first moment, in UTC")
            .code(USAGE)),
            _ => Ok(()),
        }
    }

    /// Refuses the name of a listener that the ledger does not contain: a report on nothing would look like a good one.
    /// `listeners` are those in the lines that were read.
    fn is_known(&self, mut listeners: BTreeSet<String>, folder: &Path) -> Result<(), Failure> {
        let Some(name) = &self.listener else { return Ok(()) };
        if listeners.contains(name) {
            return Ok(());
        }
        if self.since.is_some() || self.until.is_some() {
            // It may have connections at other times.
            let wrong = |error: std::io::Error| Failure::file(folder, &error);
            for line in Reader::open(folder, None, None).map_err(wrong)? {
                note_listener(&mut listeners, &line.map_err(wrong)?);
            }
        }
        if listeners.is_empty() || listeners.contains(name) {
            return Ok(());
        }
        let known: Vec<_> = listeners.iter().map(String::as_str).collect();
        let meant = nearest(name, known.iter().copied());
        let meant = meant.map(|name| format!("did you mean {name}? ")).unwrap_or_default();
        Err(Failure::new(format!(
            "--listener {name}: the ledger has no connection at such a listener"
        ))
        .hint(format!("{meant}it has: {}", known.join(", ")))
        .code(USAGE))
    }

    /// Counts the lines.
    fn tally(&self) -> Result<(Tally, Skipped), Failure> {
        let filter = self.filter();
        let mut tally = Tally::new(filter.clone());
        let skipped = self.read(&filter, |line| {
            tally.add(line);
            Ok(())
        })?;
        let tally = tally.finish();
        if tally.unseen.lost > 0 {
            output::warning(&format!(
                "the ledger has lost {} events: its queue or the disk was full",
                tally.unseen.lost
            ));
        }
        if tally.unseen.beyond_limits > 0 {
            output::warning(&format!(
                "{} connections are in the totals only: there are more than {} clients",
                tally.unseen.beyond_limits,
                limits::MAX_CLIENTS
            ));
        }
        Ok((tally, skipped))
    }
}

/// Adds the listener of a line.
fn note_listener(listeners: &mut BTreeSet<String>, line: &Line) {
    let listener = match line {
        Line::Handshake(handshake) => &handshake.listener,
        Line::Ssh(handshake) => &handshake.listener,
        Line::Open { .. } | Line::End(_) | Line::Dropped { .. } => return,
    };
    if !listeners.contains(listener) {
        listeners.insert(listener.clone());
    }
}

/// A point in time, milliseconds since 1970.
fn time_or_age(text: &str) -> Result<i64, String> {
    parse_time(text, system_clock())
}

fn parse_time(text: &str, now_ms: i64) -> Result<i64, String> {
    let ago = |unit: char, unit_ms: i64| {
        let count: i64 = text.strip_suffix(unit)?.parse().ok().filter(|count| *count >= 0)?;
        now_ms.checked_sub(count.checked_mul(unit_ms)?)
    };
    let day = || {
        // The parser ignores everything after a day, so that is refused here.
        let text = Some(text).filter(|text| !text.contains('T'))?;
        let date = Date::parse(text, &Iso8601::DATE).ok()?;
        Some(date.midnight().assume_utc().unix_timestamp() * 1000)
    };
    let moment = || {
        let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(time.unix_timestamp_nanos() / 1_000_000).ok()
    };
    ago('d', 86_400_000)
        .or_else(|| ago('h', 3_600_000))
        .or_else(|| ago('m', 60_000))
        .or_else(day)
        .or_else(moment)
        .ok_or_else(|| {
            "not a day such as 2026-11-21, a time such as 2026-11-21T08:00:00Z, or an age such as 7d, 12h or 30m"
                .to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::parse_time;

    #[test]
    fn times_are_days_moments_and_ages() {
        let now = 1_763_712_000_000;
        for (text, expected) in [
            ("1970-01-02", 86_400_000),
            ("1970-01-01T00:00:01Z", 1000),
            ("1970-01-01T01:00:01.5+01:00", 1500),
            ("7d", now - 7 * 86_400_000),
            ("12h", now - 12 * 3_600_000),
            ("30m", now - 30 * 60_000),
        ] {
            assert_eq!(parse_time(text, now).unwrap(), expected, "{text}");
        }
        for text in
            ["", "yesterday", "-1d", "99999999999999999999d", "2026-13-01", "5s", "2026-11-21T08"]
        {
            assert!(parse_time(text, now).is_err(), "{text}");
        }
    }
}
