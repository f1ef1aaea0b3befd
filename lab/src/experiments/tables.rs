//! Tables and charts of handshakes over links, shared by several experiments.

use crate::effect::{self, Effect};
use crate::experiments::play::{Row, Seen, Spread, percent};
use crate::link::{ClockStart, Link};
use crate::model::validated::{self, Outside};
use crate::result::{Axis, Chart, Fan, Marks, Series, Table, Value};
use crate::statistics::Estimate;

/// Quantiles of a fan, in per cent.
const FAN: [usize; 5] = [5, 25, 50, 75, 95];
/// Percentiles of a table.
const PERCENTILES: [usize; 4] = [50, 75, 95, 99];
/// Beside a difference without an interval.
const COMPUTED: &str = "no interval";
/// What that means, for notes and captions.
pub const NO_INTERVAL: &str = "Where all flows have one difference, as without loss, it has no interval: the spread of the CPU times is left out.";

/// Column that says which of a row's times are outside the model's validated range.
pub const OUTSIDE: &str = validated::COLUMN;

fn outside(point: &Seen) -> Value {
    point.outside().map_or("-", Outside::words).into()
}

/// A note or caption with the sentence on what is outside, if any of these points is.
fn with_sentence<'a>(text: &str, seen: impl IntoIterator<Item = &'a Seen>) -> String {
    if seen.into_iter().any(|point| point.outside().is_some()) {
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
        columns.extend(PERCENTILES.map(|percent| percentile_column(percent, clock)));
        columns.push(format!("mean {clock} (ms)"));
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

/// Name of the column of a percentile, which says where it was compared with nothing.
fn percentile_column(percent: usize, clock: &str) -> String {
    let name = if percent == 50 { "median".to_owned() } else { format!("p{percent}") };
    let mark = if Outside::of_percentile(percent).is_some() { ", not validated" } else { "" };
    format!("{name} {clock}{mark} (ms)")
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
        cells.extend(PERCENTILES.map(|percent| Value::from(spread.at(percent))));
        cells.push(spread.mean.into());
    }
    cells.push(hundred(row.retransmitted).into());
    cells.push(row.paired.value.into());
    if has_width(&row.paired) {
        cells.extend([row.paired.low, row.paired.high].map(Value::from));
    } else {
        cells.extend(["-", "-"].map(Value::from));
    }
    cells.push(row.differences.at(50).into());
    cells.extend([row.unpaired.value, row.unpaired.low, row.unpaired.high].map(Value::from));
    cells.push(outside(point));
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
                outside(point),
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
            "last byte, p99, not validated (ms)",
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
            title: format!("RTT {} ms{}", rtt_ms(&first.link), marked(&points)),
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
fn marked(points: &[&Seen]) -> String {
    if points.first().is_some_and(|point| Outside::of_rtt(&point.link).is_some()) {
        return "; not validated".to_owned();
    }
    let tails = points.iter().filter(|point| point.outside() == Some(Outside::Tails));
    let losses: Vec<String> = tails.map(|point| percent(point.link.loss)).collect();
    if losses.is_empty() {
        return String::new();
    }
    format!("; not validated: p95 at {}", losses.join(", "))
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
    let is_outside = |point: &Seen| Outside::of_rtt(&point.link).is_some();
    let columns = at
        .iter()
        .map(|point| {
            format!("{} ms{}", rtt_ms(&point.link), if is_outside(point) { " *" } else { "" })
        })
        .collect();
    Chart {
        name: name.to_owned(),
        title: format!("Extra milliseconds over {baseline} at {} loss", percent(loss)),
        x: Axis::linear("RTT"),
        y: Axis::linear("extra mean time of a handshake (ms)"),
        marks: Marks::Heat { rows, columns, values },
        rules: Vec::new(),
        caption: {
            let text = format!(
                "Mean of the differences flow by flow: both met the same losses. A cell with a dash has a difference whose 95 % interval \
                 contains 0; the table has its figures. {NO_INTERVAL}"
            );
            // Means are not tails: only columns with a star are outside.
            if at.iter().any(|point| is_outside(point)) {
                format!("{text} *: {}", validated::SENTENCE)
            } else {
                text
            }
        },
    }
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

/// An interval in words. Where every flow has the same difference there is none: it would say that nothing varies, and the
/// CPU times, which the traces hold as constants, do.
pub fn interval_words(estimate: &Estimate, unit: &str) -> String {
    if !has_width(estimate) {
        return format!("{:+} {unit} ({COMPUTED})", short(estimate.value));
    }
    format!(
        "{:+} {unit} [{:+}, {:+}]",
        short(estimate.value),
        short(estimate.low),
        short(estimate.high)
    )
}

/// The same, as far as it shows a difference from zero. Without an interval nothing is shown or absent.
pub fn told(estimate: &Estimate, unit: &str) -> String {
    if !has_width(estimate) {
        return interval_words(estimate, unit);
    }
    effect::decide(estimate, 0.0, 0.0).words(&interval_words(estimate, unit))
}

/// Whether an estimate has an interval. A figure that is missing has no known width, and is shown as it is.
fn has_width(estimate: &Estimate) -> bool {
    estimate.low.is_nan() || estimate.high.is_nan() || estimate.low < estimate.high
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::experiments::play::{Contender, GridPoint, measure};
    use crate::link::Transfer;
    use crate::model::PROFILES;
    use crate::trace::{Side, Step, Trace};

    fn seen(rtt_ms: u64) -> Seen {
        let contender = |name: &str, flight: u32| Contender {
            name: name.to_owned(),
            trace: Trace {
                steps: vec![
                    Step { from: Side::Client, bytes: 300, cpu_ns: 0 },
                    Step { from: Side::Server, bytes: flight, cpu_ns: 0 },
                    Step { from: Side::Client, bytes: 74, cpu_ns: 0 },
                ],
                client_done: 2,
                server_after_ns: 0,
                hello_retry: false,
                resumed: false,
                cpu_spread: Vec::new(),
            },
        };
        let (link, transfer) =
            (Link::new(Duration::from_millis(rtt_ms), 0.0), Transfer { request: 1, body: 1 });
        let point = GridPoint {
            part: "",
            profile: &PROFILES[0],
            link,
            transfer,
            count: 20,
            seed: None,
            raw: false,
            bytes: true,
        };
        let contenders = [contender("small", 1_000), contender("large", 17_000)];
        let played = measure(&point, &contenders, 1, &|| false).unwrap();
        Seen { profile: PROFILES[0].name, link, transfer, played }
    }

    /// The published points have round trips of 5.5 to 197 ms, and percentiles up to the 95th.
    #[test]
    fn times_without_published_data_are_marked() {
        let points = [seen(1), seen(30), seen(300)];
        let marks = ["all times: RTT below 5 ms", "-", "all times: RTT above 200 ms"];
        for table in [table("t", "T", "A note.", &points), bytes_table("t", "T", "", &points)] {
            let column = table.columns.iter().position(|name| name == OUTSIDE).unwrap();
            assert_eq!(table.rows.len(), 2 * marks.len());
            for (index, row) in table.rows.iter().enumerate() {
                assert_eq!(row[column], marks[index / 2].into(), "row {index}");
            }
            for name in table.columns.iter().filter(|name| name.contains("p99")) {
                assert!(name.contains(", not validated"), "{name}");
            }
            assert!(table.columns.iter().any(|name| name.contains("p99")));
            assert!(!table.columns.iter().any(|name| name.contains("p95") && name.contains("not")));
            assert!(table.note.contains("RTTs below 5 ms and above 200 ms"), "{}", table.note);
        }
        let fans = fans("f", "F", &points, &["small", "large"], ClockStart::Syn);
        let Marks::Fans { panels } = fans.marks else { panic!("no fans") };
        let titles: Vec<&str> = panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["RTT 1 ms; not validated", "RTT 30 ms", "RTT 300 ms; not validated"]);
        let heat = heat("h", &points, 0.0);
        assert!(heat.caption.contains("validated range"), "{}", heat.caption);
        let Marks::Heat { columns, .. } = heat.marks else { panic!("no heat map") };
        assert_eq!(columns, ["1 ms *", "30 ms", "300 ms *"]);
    }

    /// Without loss all flows have one difference: that is not certainty.
    #[test]
    fn a_difference_without_width_has_no_interval() {
        let flat = Estimate { value: 0.06, low: 0.06, high: 0.06 };
        assert_eq!(interval_words(&flat, "ms"), format!("+0.06 ms ({COMPUTED})"));
        assert_eq!(told(&flat, "ms"), interval_words(&flat, "ms"));
        let wide = Estimate { value: 0.06, low: 0.05, high: 0.07 };
        assert_eq!(told(&wide, "ms"), "+0.06 ms [+0.05, +0.07]");
        let table = table("t", "T", "", &[seen(30)]);
        let low = table.columns.iter().position(|name| name == "paired low (ms)").unwrap();
        assert_eq!(table.rows[1][low], "-".into());
        assert!(matches!(table.rows[1][low - 1], Value::Number(more) if more > 20.0));
    }
}
