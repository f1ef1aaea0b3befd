//! What a larger first window of TCP buys a flight that is over it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::links::{LOSSES, RTTS_MS, TRANSFER};
use crate::error::LabError;
use crate::experiments::play::{self, Contender};
use crate::experiments::tables::{NO_INTERVAL, OUTSIDE, hundred, interval_words, rtt_ms, short};
use crate::link::{Link, Outcome};
use crate::model::validated::{self, Outside};
use crate::model::{self, Kernel, PROFILES, Profile, Tcp};
use crate::result::{Table, Value};
use crate::run::Run;
use crate::statistics::{Estimate, mean};

/// Name of the table, which the page's first paragraph finds by it.
const TABLE: &str = "first-windows";
/// First windows in packets: RFC 6928's, which is Linux's, and larger ones.
const WINDOWS: [u32; 3] = [10, 20, 30];

/// What a window does to a handshake over one link.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Effect {
    /// The first window in packets.
    window: u32,
    /// How much longer the handshake takes than the baseline with today's window, in milliseconds, flow by flow.
    more: Estimate,
}

/// All windows over one link.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Point {
    /// Mean of the baseline in milliseconds.
    base_ms: f64,
    effects: Vec<Effect>,
}

pub(super) fn cost(count: u64) -> Duration {
    let handshakes = count * (RTTS_MS.len() * LOSSES.len() * (1 + WINDOWS.len())) as u64;
    Duration::from_micros(12 * handshakes)
}

/// Plays the large handshake with each window over each link, beside the baseline, and adds the table.
pub(super) fn run(
    run: &mut Run<'_>,
    baseline: &Contender,
    large: &Contender,
    count: u64,
) -> Result<(), LabError> {
    let today = PROFILES.first().ok_or_else(|| LabError::failed("no profile"))?;
    let mut rows = Vec::new();
    for rtt_ms in RTTS_MS {
        for loss in LOSSES {
            let link = Link::new(Duration::from_millis(rtt_ms), loss);
            rows.push((link, point(run, today, &link, [baseline, large], count)?));
        }
    }
    run.table(table(&rows, &large.name, today));
    Ok(())
}

/// A kernel that differs in its first window alone.
fn with_window(today: &'static Profile, window: u32) -> &'static Profile {
    if window == today.tcp.first_window {
        return today;
    }
    let tcp = Tcp { first_window: window, ..today.tcp };
    let name = format!("{}, first window of {window}", today.name);
    Kernel { tcp, ..Kernel::like(&name, today) }.profile()
}

fn point(
    run: &mut Run<'_>,
    today: &'static Profile,
    link: &Link,
    [baseline, large]: [&Contender; 2],
    count: u64,
) -> Result<Point, LabError> {
    let seed = run.seed();
    let who = play::digest_of(&(&baseline.trace, &large.trace))?;
    let key = format!(
        "first windows/{}/rtt {} ms/loss {}/{WINDOWS:?}/{count}/seed {seed}/{who}",
        play::spelled(today)?,
        rtt_ms(link),
        play::percent(link.loss)
    );
    let each = Duration::from_micros(12 * count * (1 + WINDOWS.len()) as u64);
    run.point(&key, each, || Ok(measure(today, link, [baseline, large], count, seed)))
}

fn measure(
    today: &'static Profile,
    link: &Link,
    [baseline, large]: [&Contender; 2],
    count: u64,
    seed: u64,
) -> Point {
    let times = |profile, contender: &Contender| -> Vec<f64> {
        let outcomes = model::connections(profile, link, &contender.trace, TRANSFER, seed, count);
        outcomes.iter().map(|one: &Outcome| play::milliseconds(one.handshake_ns)).collect()
    };
    let base = times(today, baseline);
    let effects = WINDOWS.map(|window| {
        let own = times(with_window(today, window), large);
        let more: Vec<f64> = own.iter().zip(&base).map(|(own, base)| own - base).collect();
        Effect { window, more: play::interval(&more, seed) }
    });
    Point { base_ms: mean(&base), effects: effects.to_vec() }
}

/// One row for each link: the classical handshake, and how much more the large one takes with each window.
fn table(rows: &[(Link, Point)], large: &str, today: &Profile) -> Table {
    let mut columns: Vec<String> =
        ["RTT (ms)", "loss (%)", "classical, mean (ms)"].map(str::to_owned).to_vec();
    for window in WINDOWS {
        columns.push(format!("window of {window}: more, mean"));
    }
    columns.push(OUTSIDE.to_owned());
    let cells = |(link, point): &(Link, Point)| {
        let mut cells: Vec<Value> =
            vec![rtt_ms(link).into(), hundred(link.loss).into(), short(point.base_ms).into()];
        cells.extend(point.effects.iter().map(|effect| interval_words(&effect.more, "ms").into()));
        cells.push(Outside::of(link).map_or("-", Outside::words).into());
        cells
    };
    Table {
        name: TABLE.to_owned(),
        title: "Does a larger first window help?".to_owned(),
        columns,
        rows: rows.iter().map(cells).collect(),
        note: format!(
            "How much longer a handshake with {large} takes than the classical one with a window of {}, by the model (TCP of {}), paired flow by \
             flow. The window is that of both sides, in packets; the server's is the one that matters here. `ip route change ... initcwnd N` sets it. These links have no rate \
             and no queue: on a slow one a larger window can overflow the queue before it, which this table does not show. {NO_INTERVAL} {}",
            today.tcp.first_window,
            today.name,
            validated::SENTENCE
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Side, Step, Trace};

    fn contender(name: &str, flight: u32) -> Contender {
        let step = |from, bytes| Step { from, bytes, cpu_ns: 0 };
        Contender {
            name: name.to_owned(),
            trace: Trace {
                steps: vec![
                    step(Side::Client, 300),
                    step(Side::Server, flight),
                    step(Side::Client, 74),
                ],
                client_done: 2,
                server_after_ns: 0,
                hello_retry: false,
                resumed: false,
                cpu_spread: Vec::new(),
            },
        }
    }

    /// A flight of 12 packets waits a round trip with a window of 10, and does not with 20; one of 25 needs 30.
    #[test]
    fn a_window_as_large_as_the_flight_saves_a_round_trip() {
        let link = Link::new(Duration::from_millis(30), 0.0);
        let base = contender("classical", 2000);
        for (packets, expected) in [(9, [0.0; 3]), (12, [30.0, 0.0, 0.0]), (25, [30.0, 30.0, 0.0])]
        {
            let large = contender("large", packets * 1448);
            let point = measure(&PROFILES[0], &link, [&base, &large], 50, 1);
            let more: Vec<f64> = point.effects.iter().map(|effect| effect.more.value).collect();
            assert_eq!(more, expected, "{packets}");
            assert_eq!(point.base_ms, 60.0);
            let table = table(&[(link, point)], "large", &PROFILES[0]);
            assert_eq!(table.rows[0].len(), table.columns.len());
        }
    }
}
