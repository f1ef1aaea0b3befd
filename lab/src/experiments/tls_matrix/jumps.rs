//! Sorted handshake times jump where packets were lost: the jumps, and the timer that explains each.

use crate::experiments::play::share;
use crate::experiments::tables::short;
use crate::result::{Axis, Chart, ClaimKind, Finding, Marks, Rule, Series, Table, Verdict};

/// A step of the sorted times: handshakes that took about the same time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Level {
    /// Median in milliseconds.
    pub(super) at_ms: f64,
    /// Milliseconds above the first level.
    pub(super) excess_ms: f64,
    /// Share of all handshakes.
    pub(super) share: f64,
    /// What repaired the loss, judging by the time.
    pub(super) reason: String,
}

/// Levels with a smaller share than this cannot be told from chance.
const SMALLEST: f64 = 0.004;

/// Linux's retransmission timers, in milliseconds beyond a handshake without loss.
pub(super) fn timers(rtt_ms: f64) -> Vec<(&'static str, f64)> {
    // RFC 8985, section 6.2: the window for reordering is a quarter of the smallest RTT. A tail loss probe waits two smoothed RTTs
    // (RFC 8985, section 7.2) and two jiffies. The first sample sets the deviation to half of it (RFC 6298, section 2.2), Linux waits at
    // least 200 ms beyond the smoothed RTT; a SYN waits one second (RFC 6298, section 2.1).
    vec![
        ("repaired at once (SACK, RACK)", 1.25 * rtt_ms),
        ("tail loss probe (2 RTT)", 2.0 * rtt_ms + 4.0),
        ("retransmission timeout", rtt_ms + (2.0 * rtt_ms).max(200.0)),
        ("SYN sent again (1 s)", 1000.0),
    ]
}

/// The levels of sorted times: a new one begins wherever two neighbours are further apart than a sixth of a round
/// trip.
pub(super) fn levels(sorted_ms: &[f64], rtt_ms: f64) -> Vec<Level> {
    let gap = rtt_ms / 6.0;
    let mut groups: Vec<&[f64]> = Vec::new();
    let mut begin = 0;
    for (index, pair) in sorted_ms.windows(2).enumerate() {
        if let [low, high] = pair
            && high - low > gap
        {
            groups.extend(sorted_ms.get(begin..=index));
            begin = index + 1;
        }
    }
    groups.extend(sorted_ms.get(begin..).filter(|rest| !rest.is_empty()));
    let middle = |group: &[f64]| group.get(group.len() / 2).copied().unwrap_or_default();
    let base = groups.first().map_or(0.0, |group| middle(group));
    let timers = timers(rtt_ms);
    groups
        .iter()
        .map(|group| (middle(group), share(group.len(), sorted_ms.len())))
        .filter(|(_, share)| *share >= SMALLEST)
        .map(|(at_ms, share)| {
            let excess_ms = at_ms - base;
            Level { at_ms, excess_ms, share, reason: reason(excess_ms, &timers) }
        })
        .collect()
}

fn reason(excess: f64, timers: &[(&'static str, f64)]) -> String {
    if excess == 0.0 {
        return "nothing lost that mattered".to_owned();
    }
    if timers.first().is_some_and(|(_, least)| excess < 0.8 * least) {
        return "repaired while it had to wait for a window anyway".to_owned();
    }
    let mut all: Vec<(String, f64)> =
        timers.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect();
    for (one, first) in timers {
        for (two, second) in timers {
            if second <= first {
                all.push((format!("{one}, and {two}"), first + second));
            }
        }
    }
    let near =
        all.iter().min_by(|one, other| (one.1 - excess).abs().total_cmp(&(other.1 - excess).abs()));
    match near {
        Some((name, at)) if (at - excess).abs() <= 0.15 * at + 2.0 => name.clone(),
        _ => "several losses together".to_owned(),
    }
}

/// Sorted times of several contenders, with the timers as lines.
pub(super) fn chart(times: &[(String, Vec<f64>)], rtt_ms: f64, place: &str) -> Chart {
    let base = times.first().and_then(|(_, list)| list.first()).copied().unwrap_or_default();
    let series = times
        .iter()
        .map(|(name, list)| Series {
            name: name.clone(),
            points: list
                .iter()
                .enumerate()
                .map(|(index, time)| [100.0 * share(index, list.len()), *time])
                .collect(),
            band: Vec::new(),
        })
        .collect();
    Chart {
        name: "jumps".to_owned(),
        title: format!("Sorted handshake times ({place})"),
        x: Axis::linear("handshakes, sorted (%)"),
        y: Axis::log("handshake since the SYN (ms)"),
        marks: Marks::Steps { series },
        rules: timers(rtt_ms)
            .into_iter()
            .map(|(label, after)| Rule { label: label.to_owned(), at: base + after })
            .collect(),
        caption: "Each step is one way in which TCP notices a loss. The lines are where Linux's timers put them for \
                  the fastest of the contenders: pairs that send more packets reach each step earlier."
            .to_owned(),
    }
}

/// The levels as a table.
pub(super) fn table(levels: &[(String, Vec<Level>)], place: &str) -> Table {
    let rows = levels
        .iter()
        .flat_map(|(name, list)| list.iter().map(move |level| (name, level)))
        .map(|(name, level)| {
            vec![
                name.as_str().into(),
                short(level.at_ms).into(),
                short(level.excess_ms).into(),
                short(100.0 * level.share).into(),
                level.reason.as_str().into(),
            ]
        })
        .collect();
    Table {
        name: "jumps".to_owned(),
        title: format!("Steps of the sorted handshake times ({place})"),
        columns: [
            "who",
            "handshake (ms)",
            "later than the first (ms)",
            "handshakes (%)",
            "by its time",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        note: format!(
            "Steps with less than {} % of the handshakes are left out.",
            100.0 * SMALLEST
        ),
    }
}

/// The lab's reading of the study's claim, by one contender's times and its share of handshakes with a retransmission. It
/// compares the model's steps with the timers of the same TCP, so that it says what the steps are, and confirms nothing
/// that was published: the study has plots of its times, and no figures of them.
pub(super) fn finding(levels: &[Level], retransmitted: f64, source: &str, place: &str) -> Finding {
    let first = levels.first().map_or(0.0, |level| level.share);
    let named = levels
        .iter()
        .skip(1)
        .filter(|level| level.reason != "several losses together")
        .map(|level| level.share)
        .sum::<f64>();
    let later = 1.0 - first;
    let verdict = if levels.len() < 2 {
        Verdict::Undecided
    } else if later <= retransmitted + 0.02 && named >= 0.6 * later {
        Verdict::Holds
    } else if named > 0.0 {
        Verdict::Partly
    } else {
        Verdict::Differs
    };
    let steps: Vec<String> = levels
        .iter()
        .skip(1)
        .take(4)
        .map(|level| {
            format!(
                "+{} ms ({}: {} %)",
                short(level.excess_ms),
                level.reason,
                short(100.0 * level.share)
            )
        })
        .collect();
    Finding {
        kind: ClaimKind::Own,
        source: format!("Outlast's lab, a reading of plots in: {source}"),
        claim: "Sorted handshake times jump where a packet was lost.".to_owned(),
        published: "plots of 6000 sorted times with steps; no figures to compare with".to_owned(),
        measured: format!(
            "{place}: {} % of the handshakes are later than the first step, {} % had a retransmission; steps at {}",
            short(100.0 * later),
            short(100.0 * retransmitted),
            if steps.is_empty() { "none".to_owned() } else { steps.join(", ") }
        ),
        verdict,
        why: "Model against model: that its steps are at its timers is how it works, and no confirmation by the study. The steps are TCP's timers, not \
              the algorithms': a probe after two round trips, the timeout of at least 200 ms, and \
              one second for a SYN. A retransmission beside the critical path, such as one of a ticket, delays nobody."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up() -> Vec<f64> {
        let mut times = vec![60.0; 800];
        times.extend(vec![60.0 + 64.0; 80]);
        times.extend(vec![60.0 + 230.0; 100]);
        times.extend(vec![1060.0; 20]);
        times
    }

    #[test]
    fn steps_are_found_and_named_by_their_timer() {
        let levels = levels(&made_up(), 30.0);
        let reasons: Vec<&str> = levels.iter().map(|level| level.reason.as_str()).collect();
        assert_eq!(
            reasons,
            [
                "nothing lost that mattered",
                "tail loss probe (2 RTT)",
                "retransmission timeout",
                "SYN sent again (1 s)"
            ]
        );
        assert_eq!(levels.iter().map(|level| level.share).sum::<f64>(), 1.0);
    }

    #[test]
    fn the_finding_reaches_each_verdict() {
        let verdict = |times: &[f64], retransmitted| {
            finding(&levels(times, 30.0), retransmitted, "", "").verdict
        };
        assert_eq!(verdict(&made_up(), 0.2), Verdict::Holds);
        assert_eq!(verdict(&made_up(), 0.0), Verdict::Partly);
        assert_eq!(verdict(&[60.0; 100], 0.0), Verdict::Undecided);
        let mut odd = vec![60.0; 90];
        odd.extend([230.0; 10]);
        assert_eq!(verdict(&odd, 0.1), Verdict::Differs);
        assert_eq!(verdict(&[], 0.1), Verdict::Undecided);
        // It can hardly fail, and so does not count among the published claims.
        assert_eq!(finding(&levels(&made_up(), 30.0), 0.2, "", "").kind, ClaimKind::Own);
    }
}
