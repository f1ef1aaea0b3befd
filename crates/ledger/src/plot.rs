//! A chart of a ledger: the verdicts over time, as SVG.
//!
//! Above, the share of each verdict; below, the number of connections; by hour, or by day if there are many hours.

use std::collections::BTreeMap;
use std::fmt::Display;

use outlast_svg::Picture;
use time::OffsetDateTime;

use crate::tally::Tally;
use crate::verdict::Verdict;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 76.0;
const SHARES: f64 = 260.0;
const GAP: f64 = 34.0;
const COUNTS: f64 = 90.0;
const BOTTOM: f64 = 44.0;
/// With more hours than this, days are shown.
const MAX_BARS: i64 = 96;
/// Most days; older ones are left out.
const MAX_DAYS: i64 = 400;

/// The verdicts from the bottom up: label, colour (from Okabe and Ito, whose colours also colour-blind people tell
/// apart).
const BANDS: &[(&str, &str, &[Verdict])] = &[
    ("hybrid", "#009e73", &[Verdict::Hybrid]),
    ("hybrid after retry", "#56b4e9", &[Verdict::HybridAfterRetry]),
    ("never offers it", "#e69f00", &[Verdict::NeverOffers, Verdict::Unserved, Verdict::OldDraft]),
    ("TLS 1.2 only", "#d55e00", &[Verdict::Tls12]),
    ("refused or failed", "#999999", &[Verdict::Refused, Verdict::Failed]),
    ("advertised, got classical", "#cc00aa", &[Verdict::Missed]),
];

/// The chart; `None` without connections.
#[expect(clippy::cast_precision_loss, reason = "a picture has no more than some thousand points")]
pub fn svg(tally: &Tally) -> Option<String> {
    let (first, last) = (*tally.hours.keys().next()?, *tally.hours.keys().next_back()?);
    let hours_per_bar = if last - first < MAX_BARS { 1 } else { 24 };
    let last = last.div_euclid(hours_per_bar);
    let first = first.div_euclid(hours_per_bar).max(last - MAX_DAYS);
    let mut bars: BTreeMap<i64, BTreeMap<Verdict, u64>> = BTreeMap::new();
    for (hour, verdicts) in &tally.hours {
        let bar = bars.entry(hour.div_euclid(hours_per_bar)).or_default();
        for (verdict, count) in verdicts {
            *bar.entry(*verdict).or_default() += count;
        }
    }
    let total = |bar: &BTreeMap<Verdict, u64>| bar.values().sum::<u64>();
    let most = bars.values().map(total).max()?.max(1);
    let count = (last - first + 1) as f64;
    let step = (WIDTH - LEFT - RIGHT) / count;
    // A single bar would fill the chart.
    let width = (step * 0.86).min(64.0);
    let x_of = |at: i64| LEFT + step * (at - first) as f64 + (step - width) / 2.0;
    let height = TOP + SHARES + GAP + COUNTS + BOTTOM;
    let counts_end = TOP + SHARES + GAP + COUNTS;
    let mut picture = Picture::default();
    picture.shape("rect", &[("width", &WIDTH), ("height", &height), ("fill", &"#fff")]);
    let heading = format!(
        "Key exchange of {} connections, by {} (UTC)",
        tally.total.connections,
        if hours_per_bar == 1 { "hour" } else { "day" }
    );
    let at: [(&str, &dyn Display); 4] =
        [("x", &LEFT), ("y", &22), ("font-size", &16), ("font-weight", &"bold")];
    picture.text(&at, &heading);
    let mut x = LEFT;
    for (label, colour, verdicts) in BANDS {
        let any = verdicts.iter().any(|verdict| tally.total.verdicts.contains_key(verdict));
        if any {
            bar_of(&mut picture, [x, 38.0, 12.0, 12.0], colour, None);
            picture.text(&[("x", &(x + 17.0)), ("y", &48)], label);
            x += 34.0 + label.len() as f64 * 6.6;
        }
    }
    for percent in [0, 25, 50, 75, 100] {
        let y = TOP + SHARES * (1.0 - f64::from(percent) / 100.0);
        rule(&mut picture, y, &format!("{percent} %"));
    }
    rule(&mut picture, counts_end, "0");
    rule(&mut picture, counts_end - COUNTS, &most.to_string());
    for (at, bar) in bars.range(first..) {
        let all = total(bar).max(1) as f64;
        let x = x_of(*at);
        let mut y = TOP + SHARES;
        for (label, colour, verdicts) in BANDS {
            let part: u64 = verdicts.iter().filter_map(|verdict| bar.get(verdict)).sum();
            if part == 0 {
                continue;
            }
            let tall = SHARES * part as f64 / all;
            y -= tall;
            let title = format!("{}: {label} {part}", moment(*at, hours_per_bar));
            bar_of(&mut picture, [x, y, width, tall], colour, Some(&title));
        }
        let tall = COUNTS * total(bar) as f64 / most as f64;
        bar_of(&mut picture, [x, counts_end - tall, width, tall], "#555", None);
    }
    // As many labels as there is room for.
    let every = (((last - first + 1) as f64 * 112.0 / (WIDTH - LEFT - RIGHT)).ceil() as i64).max(1);
    for at in (first..=last).step_by(usize::try_from(every).unwrap_or(1)) {
        let (x, y) = (format!("{:.2}", x_of(at) + width / 2.0), counts_end + 20.0);
        let place: [(&str, &dyn Display); 3] = [("x", &x), ("y", &y), ("text-anchor", &"middle")];
        picture.text(&place, &moment(at, hours_per_bar));
    }
    for (y, name) in [(TOP, "share of connections"), (counts_end - COUNTS, "connections")] {
        let at: [(&str, &dyn Display); 4] =
            [("x", &LEFT), ("y", &(y - 8.0)), ("font-size", &11), ("fill", &"#555")];
        picture.text(&at, name);
    }
    Some(picture.finish(&[
        ("viewBox", &format!("0 0 {WIDTH} {height}")),
        ("font-family", &"sans-serif"),
        ("font-size", &12),
        ("fill", &"#222"),
    ]))
}

/// A filled rectangle: left, top, width, height.
fn bar_of(picture: &mut Picture, place: [f64; 4], colour: &str, title: Option<&str>) {
    let [x, y, width, height] = place.map(|length| format!("{length:.2}"));
    let attributes: [(&str, &dyn Display); 5] =
        [("x", &x), ("y", &y), ("width", &width), ("height", &height), ("fill", &colour)];
    match title {
        Some(title) => picture.titled("rect", &attributes, title),
        None => picture.shape("rect", &attributes),
    }
}

fn rule(picture: &mut Picture, y: f64, label: &str) {
    let end = WIDTH - RIGHT;
    picture
        .shape("line", &[("x1", &LEFT), ("x2", &end), ("y1", &y), ("y2", &y), ("stroke", &"#ddd")]);
    let at: [(&str, &dyn Display); 3] =
        [("x", &(LEFT - 6.0)), ("y", &(y + 4.0)), ("text-anchor", &"end")];
    picture.text(&at, label);
}

fn moment(at: i64, hours_per_bar: i64) -> String {
    let seconds = at.saturating_mul(hours_per_bar * 3600);
    let Ok(time) = OffsetDateTime::from_unix_timestamp(seconds) else { return String::new() };
    let (month, day) = (u8::from(time.month()), time.day());
    if hours_per_bar == 1 {
        format!("{month:02}-{day:02} {:02}:00", time.hour())
    } else {
        format!("{:04}-{month:02}-{day:02}", time.year())
    }
}
