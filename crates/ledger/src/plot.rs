//! A picture of a ledger: what connections came to over time, as SVG.
//!
//! Above the share of each verdict, below the number of connections, by hour, or by day where there are many hours.

use std::collections::BTreeMap;
use std::fmt::Write;

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
/// More hours than this are shown by day.
const MAX_BARS: i64 = 96;
/// Days at most; older ones are left out.
const MAX_DAYS: i64 = 400;

/// What is told apart, from the bottom up: label, colour (of Okabe and Ito, which people tell apart who see few colours).
const BANDS: &[(&str, &str, &[Verdict])] = &[
    ("hybrid", "#009e73", &[Verdict::Hybrid]),
    ("hybrid after retry", "#56b4e9", &[Verdict::HybridAfterRetry]),
    ("never offers it", "#e69f00", &[Verdict::NeverOffers, Verdict::Unserved, Verdict::OldDraft]),
    ("TLS 1.2 only", "#d55e00", &[Verdict::Tls12]),
    ("refused or failed", "#999999", &[Verdict::Refused, Verdict::Failed]),
    ("advertised, got classical", "#cc00aa", &[Verdict::Missed]),
];

/// The picture; none if there was no connection.
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
    // One bar alone would fill the picture.
    let width = (step * 0.86).min(64.0);
    let x_of = |at: i64| LEFT + step * (at - first) as f64 + (step - width) / 2.0;
    let height = TOP + SHARES + GAP + COUNTS + BOTTOM;
    let counts_end = TOP + SHARES + GAP + COUNTS;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"16\" font-weight=\"bold\">Key exchange of {} connections, by {} (UTC)</text>\n",
        tally.total.connections,
        if hours_per_bar == 1 { "hour" } else { "day" }
    );
    let mut x = LEFT;
    for (label, colour, verdicts) in BANDS {
        let any = verdicts.iter().any(|verdict| tally.total.verdicts.contains_key(verdict));
        if any {
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"38\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"48\">{label}</text>",
                x + 17.0
            );
            x += 34.0 + label.len() as f64 * 6.6;
        }
    }
    for percent in [0, 25, 50, 75, 100] {
        let y = TOP + SHARES * (1.0 - f64::from(percent) / 100.0);
        rule(&mut out, y, &format!("{percent} %"));
    }
    rule(&mut out, counts_end, "0");
    rule(&mut out, counts_end - COUNTS, &most.to_string());
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
            let _ = writeln!(
                out,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{tall:.2}\" fill=\"{colour}\">\
                 <title>{}: {label} {part}</title></rect>",
                moment(*at, hours_per_bar)
            );
        }
        let tall = COUNTS * total(bar) as f64 / most as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{x:.2}\" y=\"{:.2}\" width=\"{width:.2}\" height=\"{tall:.2}\" fill=\"#555\"/>",
            counts_end - tall
        );
    }
    // As many labels as there is room for.
    let every = (((last - first + 1) as f64 * 112.0 / (WIDTH - LEFT - RIGHT)).ceil() as i64).max(1);
    for at in (first..=last).step_by(usize::try_from(every).unwrap_or(1)) {
        let _ = writeln!(
            out,
            "<text x=\"{:.2}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x_of(at) + width / 2.0,
            counts_end + 20.0,
            moment(at, hours_per_bar)
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{}\" font-size=\"11\" fill=\"#555\">share of connections</text>\
         <text x=\"{LEFT}\" y=\"{}\" font-size=\"11\" fill=\"#555\">connections</text>\n</svg>",
        TOP - 8.0,
        counts_end - COUNTS - 8.0
    );
    Some(out)
}

fn rule(out: &mut String, y: f64, label: &str) {
    let _ = writeln!(
        out,
        "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#ddd\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{label}</text>",
        WIDTH - RIGHT,
        LEFT - 6.0,
        y + 4.0
    );
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
