//! Key exchanges x signatures over links: the table, fans, heat maps, the paired differences, and the conclusions.

use super::grid;
use crate::error::LabError;
use crate::experiments::play::Seen;
use crate::experiments::play::{self, Contender, Row, percent};
use crate::experiments::tables::{self, hundred, interval_words, place_words, rtt_ms, short, told};
use crate::link::ClockStart;
use crate::model::Profile;
use crate::result::Table;
use crate::run::Run;
use crate::subject::Subject;
use crate::trace::Side;

/// TCP's first window: ten segments of 1448 bytes (RFC 6928, section 2).
pub(super) const FIRST_WINDOW: u64 = 14_480;

/// Plays every pair over every link.
pub(super) fn measure(
    run: &mut Run<'_>,
    profile: &'static Profile,
    contenders: &[Contender],
) -> Result<Vec<Seen>, LabError> {
    let quick = run.quick();
    let mut places = grid::places("pairs", &grid::pairs(quick), profile, grid::HANDSHAKE);
    for place in &mut places {
        let close = place.link.rtt_us == grid::CLOSE_RTT_US;
        place.raw = close && (quick || place.link.loss.to_bits() == grid::CLOSE_LOSS.to_bits());
    }
    play::over(run, &places, contenders)
}

/// Tables, charts and sentences.
pub(super) fn tell(run: &mut Run<'_>, seen: &[Seen], contenders: &[(Subject, Contender)]) {
    run.table(tables::table(
        "pairs",
        "Handshakes of every pair over every link",
        "Chain of two certificates, full handshake. Differences are to the first row of each link; paired: flow by \
         flow, both with the same losses; unpaired: against a baseline with losses of its own, as in an experiment \
         without pairing. A paired difference does not depend on when the clock starts, since both connect in the same \
         time.",
        seen,
    ));
    let names: Vec<String> = grid::CHOSEN.map(grid::name).to_vec();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    run.chart(tables::fans("fans", "Handshake time against loss", seen, &names, ClockStart::Syn));
    for loss in [0.0, grid::CLOSE_LOSS] {
        let name = format!("heat-{}", hundred(loss));
        run.chart(tables::heat(&name, seen, loss));
    }
    if let Some(point) = close_point(seen) {
        run.chart(tables::difference_ecdf(
            "differences",
            point,
            names.get(1..).unwrap_or_default(),
        ));
    }
    run.table(mean_against_count(seen));
    if let Some(sentence) = packets(contenders) {
        run.summary(sentence);
    }
    for sentence in costs(seen).into_iter().chain(windows(contenders, seen)) {
        run.summary(sentence);
    }
}

/// The point that is examined closely.
pub(super) fn close_point(seen: &[Seen]) -> Option<&Seen> {
    at(seen, grid::CLOSE_RTT_US, grid::CLOSE_LOSS)
}

/// The point with this link.
pub(super) fn at(seen: &[Seen], rtt_us: u64, loss: f64) -> Option<&Seen> {
    seen.iter()
        .find(|point| point.link.rtt_us == rtt_us && point.link.loss.to_bits() == loss.to_bits())
}

/// Whether the hybrid sends more packets than the classical pair: only then does loss affect them differently.
fn packets(contenders: &[(Subject, Contender)]) -> Option<String> {
    let of = |pair: (&str, &str)| {
        let name = grid::name(pair);
        let (_, contender) = contenders.iter().find(|(_, contender)| contender.name == name)?;
        let trace = &contender.trace;
        let until = trace.steps.get(..=trace.client_done)?;
        let packets: u64 =
            until.iter().map(|step| u64::from(step.bytes).div_ceil(super::sizes::MSS)).sum();
        let bytes = trace.bytes(Side::Client) + trace.bytes(Side::Server);
        Some((packets, bytes))
    };
    let ((classical, classical_bytes), (hybrid, hybrid_bytes)) =
        (of(grid::CLASSICAL)?, of(grid::HYBRID)?);
    let meaning = if classical == hybrid {
        "so loss treats both alike, and what is left of the difference is processor time"
    } else {
        "and each more can be lost"
    };
    Some(format!(
        "The hybrid's handshake has {} bytes more than the classical one's ({hybrid_bytes} against {classical_bytes}), in {hybrid} \
         packets with data against {classical}: {meaning}.",
        hybrid_bytes.saturating_sub(classical_bytes)
    ))
}

/// Costs of the chosen pairs, in sentences.
fn costs(seen: &[Seen]) -> Vec<String> {
    let mut sentences = Vec::new();
    let subjects = [
        (grid::HYBRID, "The hybrid key exchange"),
        (grid::HYBRID_44, "The hybrid with ML-DSA-44 certificates"),
        (grid::HYBRID_65, "The hybrid with ML-DSA-65 certificates"),
    ];
    for (pair, words) in subjects {
        let name = grid::name(pair);
        let figure = |loss: f64| {
            let point = at(seen, grid::CLOSE_RTT_US, loss)?;
            let (row, base) = (point.played.row(&name)?, point.played.rows.first()?);
            Some((row.clone(), base.clone()))
        };
        let (Some((calm, calm_base)), Some((lossy, lossy_base))) =
            (figure(0.0), figure(grid::CLOSE_LOSS))
        else {
            continue;
        };
        sentences.push(format!(
            "{words} ({name}) over {}, in the mean at RTT 30 ms: {} without loss, and {} at 5 % loss, where {} % of its \
             handshakes meet a retransmission against {} %; the median there moves by {:+} ms, the 95th percentile by {:+} ms.",
            calm_base.name,
            told(&calm.paired, "ms"),
            told(&lossy.paired, "ms"),
            short(100.0 * lossy.retransmitted),
            short(100.0 * lossy_base.retransmitted),
            short(lossy.syn.at(50) - lossy_base.syn.at(50)),
            short(lossy.syn.at(95) - lossy_base.syn.at(95)),
        ));
    }
    sentences
}

/// Server flights that exceed TCP's first window cost a round trip: a conclusion of its own, with what was measured.
fn windows(contenders: &[(Subject, Contender)], seen: &[Seen]) -> Vec<String> {
    let Some(point) = at(seen, grid::CLOSE_RTT_US, 0.0) else { return Vec::new() };
    let Some(base) = point.played.rows.first() else { return Vec::new() };
    let mut over: Vec<(u64, &Row)> = contenders
        .iter()
        .filter(|(_, contender)| contender.trace.bytes(Side::Server) > FIRST_WINDOW)
        .filter_map(|(_, contender)| {
            Some((contender.trace.bytes(Side::Server), point.played.row(&contender.name)?))
        })
        .collect();
    over.sort_by_key(|(bytes, _)| *bytes);
    let Some((bytes, row)) = over.first() else {
        return vec![format!(
            "No server flight of this grid is larger than TCP's first window of {FIRST_WINDOW} bytes."
        )];
    };
    vec![format!(
        "{} of {} pairs have a server flight over TCP's first window of {FIRST_WINDOW} bytes, and wait a round trip more: the \
         smallest is {} with {bytes} bytes, {} ms instead of {} ms at RTT {} ms.",
        over.len(),
        contenders.len(),
        row.name,
        short(row.syn.at(50)),
        short(base.syn.at(50)),
        rtt_ms(&point.link)
    )]
}

/// Paired and unpaired intervals side by side: what so many handshakes can tell.
fn mean_against_count(seen: &[Seen]) -> Table {
    let name = grid::name(grid::HYBRID);
    let rows = seen
        .iter()
        .filter_map(|point| Some((point, point.played.row(&name)?)))
        .map(|(point, row)| {
            let width = |low: f64, high: f64| short((high - low) / 2.0);
            let paired = width(row.paired.low, row.paired.high);
            let unpaired = width(row.unpaired.low, row.unpaired.high);
            // The variance falls with the count, so an unpaired experiment would need so many times the flows.
            let more =
                if paired > 0.0 { short((unpaired / paired).powi(2)).into() } else { "-".into() };
            vec![
                rtt_ms(&point.link).into(),
                hundred(point.link.loss).into(),
                short(row.paired.value).into(),
                paired.into(),
                short(row.unpaired.value).into(),
                unpaired.into(),
                more,
            ]
        })
        .collect();
    let count = seen.first().map_or(0, |point| point.played.count);
    Table {
        name: "pairing".to_owned(),
        title: format!("The mean cost of {name}: what {count} handshakes of each can tell"),
        columns: [
            "RTT (ms)",
            "loss (%)",
            "paired (ms)",
            "paired, +- (ms)",
            "unpaired (ms)",
            "unpaired, +- (ms)",
            "handshakes that unpaired needs (times)",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        note: "Half of the 95 % interval of the mean. Paired: both meet the same losses; unpaired: each its own.".to_owned(),
    }
}

/// For each RTT, the smallest loss from which on the cost of a pair is more than without loss, by its interval.
pub(super) fn thresholds(run: &mut Run<'_>, seen: &[Seen]) {
    let mut rows = Vec::new();
    for rtt in tables::distinct(seen, |point| point.link.rtt_us) {
        for pair in [grid::HYBRID, grid::HYBRID_44, grid::HYBRID_65] {
            let name = grid::name(pair);
            let points: Vec<(&Seen, &Row)> = seen
                .iter()
                .filter(|point| point.link.rtt_us == rtt)
                .filter_map(|point| Some((point, point.played.row(&name)?)))
                .collect();
            let Some((calm, calm_row)) = points.first() else { continue };
            let from =
                points.iter().find(|(_, row)| row.paired.low > 2.0 * calm_row.paired.high.max(0.0));
            let word = from.map_or_else(
                || "none of this grid".to_owned(),
                |(point, row)| {
                    format!("{}: {}", percent(point.link.loss), interval_words(&row.paired, "ms"))
                },
            );
            rows.push(vec![
                rtt_ms(&calm.link).into(),
                name.as_str().into(),
                interval_words(&calm_row.paired, "ms").into(),
                word.into(),
            ]);
        }
    }
    let example = seen.first().map_or_else(String::new, |point| place_words(&point.link));
    run.table(Table {
        name: "thresholds".to_owned(),
        title: "From which loss on the cost is more than twice that without loss".to_owned(),
        columns: ["RTT (ms)", "who", "cost without loss (ms)", "first loss at which it is more than double"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        note: format!(
            "By the whole interval of the paired mean, not its middle. The first column of losses is {example}."
        ),
    });
}
