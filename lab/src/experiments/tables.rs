//! Tables and charts of handshakes over links, shared by several experiments.

use crate::effect::{self, Effect};
use crate::experiments::play::{Row, Seen, Spread, percent};
use crate::link::{ClockStart, Link};
use crate::model::validated::{self, Outside};
use crate::result::{Axis, Chart, Fan, Marks, Series, Table, Value};
use crate::statistics::Estimate;

/// Quantiles of a fan, in per cent.
const FAN: [usize; 5] = [5, 25, 50, 75, 95];

/// Column that says which of a row's times are outside the model's validated range.
pub const OUTSIDE: &str = validated::COLUMN;

fn outside(point: &Seen, row: &Row) -> Value {
    point.outside(row).map_or("-", Outside::words).into()
}

/// A note or caption with the sentence on what is outside, if any of these points is.
fn with_sentence<'a>(text: &str, seen: impl IntoIterator<Item = &'a Seen>) -> String {
    if seen.into_iter().any(Seen::has_outside) {
        format!("{text} {}", validated::SENTENCE)
    } else {
        text.to_owned()
    }
}

/// Names of the columns of [`table`].
fn columns() -> Vec<String> {
    let mut columns: Vec<String> = ["RTT (ms)", "loss (%)", "answer (bytes)", "TCP of", "who"]
        .iter()
        .map(|&name| name.to_owned())
        .collect();
    for clock in ["since SYN", "since connect"] {
        for statistic in ["median", "p75", "p95", "p99", "mean"] {
            columns.push(format!("{statistic} {clock} (ms)"));
        }
    }
    for name in [
        "with retransmission (%)",
        "paired difference, mean (ms)",
        "paired low (ms)",
        "paired high (ms)",
        "paired difference, median (ms)",
        "unpaired difference, mean (ms)",
        "unpaired low (ms)",
        "unpaired high (ms)",
        OUTSIDE,
    ] {
        columns.push(name.to_owned());
    }
    columns
}

/// One row for each point and contender.
pub fn table(name: &str, title: &str, note: &str, seen: &[Seen]) -> Table {
    let rows = seen
        .iter()
        .flat_map(|point| point.played.rows.iter().map(move |row| cells(point, row)))
        .collect();
    Table {
        name: name.to_owned(),
        title: title.to_owned(),
        columns: columns(),
        rows,
        note: with_sentence(note, seen),
    }
}

fn cells(point: &Seen, row: &Row) -> Vec<Value> {
    let mut cells: Vec<Value> = vec![
        rtt_ms(&point.link).into(),
        hundred(point.link.loss).into(),
        f64::from(point.transfer.body).into(),
        point.profile.into(),
        row.name.as_str().into(),
    ];
    for spread in [&row.syn, &row.connected] {
        cells.extend([50, 75, 95, 99].map(|percent| Value::from(spread.at(percent))));
        cells.push(spread.mean.into());
    }
    cells.push(hundred(row.retransmitted).into());
    cells.extend([row.paired.value, row.paired.low, row.paired.high].map(Value::from));
    cells.push(row.differences.at(50).into());
    cells.extend([row.unpaired.value, row.unpaired.low, row.unpaired.high].map(Value::from));
    cells.push(outside(point, row));
    cells
}

/// Times to first and last byte, one row for each point and contender.
pub fn bytes_table(name: &str, title: &str, note: &str, seen: &[Seen]) -> Table {
    let mut rows = Vec::new();
    for point in seen {
        let Some(base) = point.played.rows.first() else { continue };
        for row in &point.played.rows {
            let (Some(first), Some(last), Some(base_last)) =
                (&row.first_byte, &row.last_byte, &base.last_byte)
            else {
                continue;
            };
            let paired = row
                .paired_last
                .as_ref()
                .map_or_else(|| Value::from("-"), |estimate| interval_words(estimate, "ms").into());
            rows.push(vec![
                rtt_ms(&point.link).into(),
                hundred(point.link.loss).into(),
                point
                    .link
                    .rate_bps
                    .map_or_else(|| Value::from("no limit"), |rate| megabits(rate).into()),
                f64::from(point.transfer.body).into(),
                row.name.as_str().into(),
                row.syn.at(50).into(),
                first.at(50).into(),
                first.at(95).into(),
                last.at(50).into(),
                last.at(95).into(),
                last.at(99).into(),
                short(above(&row.syn, &base.syn, 50)).into(),
                short(above(last, base_last, 50)).into(),
                paired,
                outside(point, row),
            ]);
        }
    }
    Table {
        name: name.to_owned(),
        title: title.to_owned(),
        columns: [
            "RTT (ms)",
            "loss (%)",
            "rate (Mbit/s)",
            "answer (bytes)",
            "who",
            "handshake, median (ms)",
            "first byte, median (ms)",
            "first byte, p95 (ms)",
            "last byte, median (ms)",
            "last byte, p95 (ms)",
            "last byte, p99 (ms)",
            "handshake over baseline (%)",
            "last byte over baseline (%)",
            "last byte, paired difference, mean",
            OUTSIDE,
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        note: with_sentence(note, seen),
    }
}

/// Quantile fans against loss, one panel for each RTT.
pub fn fans(name: &str, title: &str, seen: &[Seen], names: &[&str], start: ClockStart) -> Chart {
    let mut panels: Vec<Fan> = Vec::new();
    for rtt in distinct(seen, |point| point.link.rtt_us) {
        let points: Vec<&Seen> =
            seen.iter().filter(|point| point.link.rtt_us == rtt && has(point, names)).collect();
        let Some(first) = points.first() else { continue };
        panels.push(Fan {
            title: format!("RTT {} ms{}", rtt_ms(&first.link), marked(&points, names)),
            names: names.iter().map(|&name| name.to_owned()).collect(),
            x: points.iter().map(|point| hundred(point.link.loss)).collect(),
            shares: FAN.iter().map(|&percent| share(percent)).collect(),
            values: names.iter().map(|name| fan(&points, name, start)).collect(),
        });
    }
    let clock = match start {
        ClockStart::Syn => "since the SYN",
        ClockStart::Connected => "since TCP was connected",
    };
    Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::linear("loss in each direction (%)"),
        y: Axis::log(format!("handshake {clock} (ms)")),
        marks: Marks::Fans { panels },
        rules: Vec::new(),
        caption: with_sentence(
            "The line is the median; the inner band holds half of the handshakes (p25 to p75), the outer one nine of ten (p5 to p95). All \
             contenders meet the same losses, flow by flow.",
            seen,
        ),
    }
}

/// Which points of a panel are outside the model's validated range, for its title.
fn marked(points: &[&Seen], names: &[&str]) -> String {
    let at = |wanted: Outside| -> Vec<String> {
        let is = |point: &Seen| {
            let rows = names.iter().filter_map(|name| point.played.row(name));
            rows.into_iter().any(|row| point.outside(row) == Some(wanted))
        };
        points.iter().filter(|point| is(point)).map(|point| percent(point.link.loss)).collect()
    };
    [(Outside::Tails, "p95"), (Outside::Times, "long ClientHellos")]
        .into_iter()
        .map(|(outside, what)| (what, at(outside)))
        .filter(|(_, losses)| !losses.is_empty())
        .map(|(what, losses)| format!("; not validated: {what} at {}", losses.join(", ")))
        .collect()
}

fn fan(points: &[&Seen], name: &str, start: ClockStart) -> Vec<Vec<f64>> {
    points
        .iter()
        .filter_map(|point| point.played.row(name))
        .map(|row| FAN.iter().map(|&percent| row.handshake(start).at(percent)).collect())
        .collect()
}

/// Mean extra milliseconds over the baseline: contenders x RTT at one loss.
pub fn heat(name: &str, seen: &[Seen], loss: f64) -> Chart {
    let at: Vec<&Seen> =
        seen.iter().filter(|point| point.link.loss.to_bits() == loss.to_bits()).collect();
    let mut rows: Vec<String> = Vec::new();
    for point in &at {
        for row in point.played.rows.iter().skip(1) {
            if !rows.contains(&row.name) {
                rows.push(row.name.clone());
            }
        }
    }
    let values = rows
        .iter()
        .map(|row| {
            at.iter()
                .map(|point| {
                    // A value whose interval contains zero has no colour.
                    let paired = &point.played.row(row)?.paired;
                    let shown = effect::decide(paired, 0.0, 0.0) == Effect::Shown;
                    shown.then(|| round2(paired.value))
                })
                .collect()
        })
        .collect();
    let baseline = at
        .first()
        .and_then(|point| point.played.rows.first())
        .map_or_else(String::new, |row| row.name.clone());
    Chart {
        name: name.to_owned(),
        title: format!("Extra milliseconds over {baseline} at {} loss", percent(loss)),
        x: Axis::linear("RTT"),
        y: Axis::linear("extra mean time of a handshake (ms)"),
        marks: Marks::Heat {
            rows: rows.iter().map(|row| starred(row, &at)).collect(),
            columns: at.iter().map(|point| format!("{} ms", rtt_ms(&point.link))).collect(),
            values,
        },
        rules: Vec::new(),
        caption: {
            let text = "Mean of the differences flow by flow: both met the same losses. A cell with a dash has a difference whose 95 % interval \
                        contains 0; the table has its figures.";
            // Means are not tails: only rows with a star are outside.
            if rows.iter().any(|row| starred(row, &at) != *row) {
                format!("{text} *: {}", validated::SENTENCE)
            } else {
                text.to_owned()
            }
        },
    }
}

/// A name with a star, if its means at one of these points are outside the model's validated range.
fn starred(name: &str, points: &[&Seen]) -> String {
    let is_outside = points.iter().any(|point| {
        point.played.row(name).is_some_and(|row| point.outside(row) == Some(Outside::Times))
    });
    if is_outside { format!("{name} *") } else { name.to_owned() }
}

/// The distribution of paired differences at one point.
pub fn difference_ecdf(name: &str, point: &Seen, names: &[&str]) -> Chart {
    let series = names
        .iter()
        .filter_map(|name| point.played.row(name))
        .map(|row| Series {
            name: row.name.clone(),
            points: row
                .differences
                .percent
                .iter()
                .enumerate()
                .map(|(percent, difference)| [*difference, 100.0 * share(percent)])
                .collect(),
            band: Vec::new(),
        })
        .collect();
    let baseline = point.played.rows.first().map_or("", |row| row.name.as_str());
    Chart {
        name: name.to_owned(),
        title: format!("What the same flow would have taken with {baseline}"),
        x: Axis::linear(format!("handshake less that of {baseline} in the same flow (ms)")),
        y: Axis::linear("flows (%)"),
        marks: Marks::Steps { series },
        rules: Vec::new(),
        caption: with_sentence(
            &format!(
                "{}: most flows differ by the cost of the algorithm alone; the tails are flows in which one of the two lost a \
             packet that the other did not send, or lost it where it could be repaired sooner.",
                place_words(&point.link)
            ),
            [point],
        ),
    }
}

/// A link in words.
pub fn place_words(link: &Link) -> String {
    let mut words = format!("RTT {} ms, loss {}", rtt_ms(link), percent(link.loss));
    if let Some(rate) = link.rate_bps {
        words += &format!(", {} Mbit/s", megabits(rate));
    }
    words
}

/// An interval in words.
pub fn interval_words(estimate: &Estimate, unit: &str) -> String {
    format!(
        "{:+} {unit} [{:+}, {:+}]",
        short(estimate.value),
        short(estimate.low),
        short(estimate.high)
    )
}

/// The same, as far as it shows a difference from zero.
pub fn told(estimate: &Estimate, unit: &str) -> String {
    effect::decide(estimate, 0.0, 0.0).words(&interval_words(estimate, unit))
}

/// A value with three significant digits.
pub fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let magnitude = value.abs().log10().floor();
    let scale = 10_f64.powf((2.0 - magnitude).clamp(-300.0, 6.0));
    (value * scale).round() / scale
}

/// The round-trip time in milliseconds.
pub fn rtt_ms(link: &Link) -> f64 {
    link.rtt().as_secs_f64() * 1e3
}

/// Rate in megabits a second.
pub fn megabits(rate: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = rate as f64;
    rate / 1e6
}

/// A share in per cent.
pub fn hundred(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// A value with two digits after the point.
pub fn round2(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Distinct values, in their order.
pub fn distinct<V: PartialEq>(seen: &[Seen], of: impl Fn(&Seen) -> V) -> Vec<V> {
    let mut values = Vec::new();
    for point in seen {
        let value = of(point);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// By how much a quantile of one distribution exceeds another's, in per cent.
pub fn above(one: &Spread, other: &Spread, percent: usize) -> f64 {
    100.0 * (one.at(percent) / other.at(percent).max(f64::MIN_POSITIVE) - 1.0)
}

fn has(point: &Seen, names: &[&str]) -> bool {
    names.iter().all(|name| point.played.row(name).is_some())
}

fn share(percent: usize) -> f64 {
    f64::from(u32::try_from(percent).unwrap_or_default()) / 100.0
}
