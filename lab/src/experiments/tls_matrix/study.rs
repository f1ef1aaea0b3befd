//! The 2022 study's grid, and its findings one by one.

mod crossing;
mod errors;

use self::crossing::{
    Crossing, Less, crossing, crossing_chart, crossing_words, ours, reversal, theirs,
};
use super::grid;
use super::sizes::{self, KEMS, SIGNATURES, compose};
use crate::effect::{self, Effect};
use crate::error::LabError;
use crate::experiments::play::{self, Contender, GridPoint, Seen, Spread};
use crate::experiments::tables::{self, interval_words, place_words, rtt_ms, short};
use crate::link::ClockStart;
use crate::model::Profile;
use crate::published;
use crate::result::{ClaimKind, Finding, Table, Value, Verdict};
use crate::run::Run;
use crate::statistics::Estimate;
use crate::subject::Subject;

/// Its publication.
pub(super) const SOURCE: &str = published::FUDAN_STUDY;
/// Its clock.
const CLOCK: ClockStart = ClockStart::Connected;
/// Two handshakes count as distinguishable if their medians differ by this share.
const TELLING: f64 = 0.02;
/// Percentiles that enclose a median, at 95 % or more from this many handshakes on: the rank of a median has a standard
/// error of half the root of their number.
const AROUND: [usize; 2] = [48, 52];
const FEWEST: u64 = 2_401;
/// Widest bracket that places a reversal, in per cent of loss: half of the study's range. Almost any crossing is within a
/// wider one.
const NARROW: f64 = 5.0;

/// A published point; times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    /// Loss in each direction, as a share.
    pub(super) loss: f64,
    /// Median, where it is quoted.
    pub(super) p50_ms: Option<f64>,
    /// 95th percentile, where it is quoted.
    pub(super) p95_ms: Option<f64>,
    /// Mean.
    pub(super) mean_ms: f64,
    /// Means of its two passes, where they are quoted.
    pub(super) passes_ms: Option<[f64; 2]>,
}

/// A published curve.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    /// As in [`KEMS`].
    pub(super) kem: String,
    /// As in [`SIGNATURES`].
    pub(super) signature: String,
    /// Round-trip time in microseconds.
    pub(super) rtt_us: u64,
    /// The points, by loss.
    pub(super) points: Vec<Point>,
}

impl Curve {
    /// Time without loss in milliseconds: the median, or the mean where no median is quoted.
    pub(super) fn calm(&self) -> Option<f64> {
        let first = self.points.first().filter(|point| point.loss == 0.0)?;
        Some(first.p50_ms.unwrap_or(first.mean_ms))
    }
}

/// Names of the columns in the study's data, as far as it published them.
const NAMES: ([&str; 3], [&str; 2]) =
    (["p256_kyber512", "p256_lightsaber", "p256_ntru509"], ["p256_dilithium2", "p256_falcon512"]);
/// Its networks, in microseconds: `half_delay_time` of 2.5, 14.5 and 98.5 ms in each direction, and a rest of a round
/// trip of 0.5, 1 and 0 ms, which the lab chose with the loss-free medians of the first two in sight: those differ by
/// 25.5 ms, these round-trip times by 24.5 ms. What a rest leaves of a median counts as processor time.
const NETWORKS: [(&str, u64); 3] =
    [("near", 5_500), ("medium", 30_000), ("worst", grid::LONGEST_RTT_US)];
/// The kernel that stands for the study's: netem at both ends, as in the study of 2019. The study names no kernel: that it
/// was like this one is an assumption, and its data were compared with today's, too (table `study-errors`).
const KERNEL: &str = "linux-5.0-netem-fresh";

/// The published curves of hybrid pairs at level 1.
pub(super) fn curves() -> Result<Vec<Curve>, LabError> {
    let mut all: Vec<(String, String, String, Point)> = Vec::new();
    for point in published::fudan()? {
        let row = Point {
            loss: point.loss_each_direction_percent / 100.0,
            p50_ms: Some(point.p50_ms),
            p95_ms: Some(point.p95_ms),
            mean_ms: point.mean_ms,
            passes_ms: None,
        };
        all.push((point.network, point.kem, point.signature, row));
    }
    for point in published::fudan_worst()? {
        let [rising, falling] = point.pass_means_ms;
        let row = Point {
            loss: point.loss_each_direction_percent / 100.0,
            p50_ms: None,
            p95_ms: None,
            mean_ms: f64::midpoint(rising, falling),
            passes_ms: Some(point.pass_means_ms),
        };
        all.push(("worst".to_owned(), point.kem, point.signature, row));
    }
    let mut curves = Vec::new();
    for (kem, kem_name) in KEMS.iter().zip(NAMES.0) {
        for (signature, signature_name) in SIGNATURES.iter().zip(NAMES.1) {
            for (network, rtt_us) in NETWORKS {
                let points: Vec<Point> = all
                    .iter()
                    .filter(|(at, with, by, _)| {
                        (at.as_str(), with.as_str(), by.as_str())
                            == (network, kem_name, signature_name)
                    })
                    .map(|(.., point)| *point)
                    .collect();
                if !points.is_empty() {
                    let (kem, signature) = (kem.name.to_owned(), signature.name.to_owned());
                    curves.push(Curve { kem, signature, rtt_us, points });
                }
            }
        }
    }
    Ok(curves)
}

/// What was played.
pub(super) struct Study {
    contenders: Vec<Contender>,
    /// Every contender over the study's grid.
    seen: Vec<Seen>,
    /// Dilithium2 and Falcon-512 with the study's own processor times, TCP of the study's kernel.
    shapes: Vec<Seen>,
    /// The same with the TCP of today's kernel.
    today: Vec<Seen>,
    /// Classical and hybrid with one certificate, where the hybrid sends one packet more.
    short: Seen,
    published: Vec<Curve>,
    measured: bool,
}

/// Plays the study's grid: classical and hybrid as measured; its own algorithms as measured if they are compiled in,
/// and by their sizes.
pub(super) fn measure(
    run: &mut Run<'_>,
    profile: &'static Profile,
    all: &[(Subject, Contender)],
    legacy: &[Contender],
    one_certificate: &[Contender],
) -> Result<Study, LabError> {
    let published = curves()?;
    let find = |name: String| all.iter().find(|(_, contender)| contender.name == name);
    let (subject, classical) = find(grid::name(grid::CLASSICAL))
        .ok_or_else(|| LabError::failed("the classical handshake was not measured"))?;
    let mut contenders = vec![classical.clone()];
    contenders.extend(find(grid::name(grid::HYBRID)).map(|(_, contender)| contender.clone()));
    let composed: Vec<Contender> = SIGNATURES
        .iter()
        .take(2)
        .flat_map(|signature| KEMS.iter().take(3).map(move |kem| (kem, signature)))
        .filter_map(|(kem, signature)| compose(&classical.trace, subject, kem, signature))
        .collect();
    contenders.extend(composed.iter().cloned());
    contenders.extend(legacy.iter().cloned());
    let kernel = Profile::by_name(KERNEL).map_or_else(grid::kernel, Ok)?;
    let shape = grid::study(run.quick());
    let places = grid::places("study", &shape, kernel, grid::HANDSHAKE);
    let seen = play::over(run, &places, &contenders)?;
    let (mut shapes, mut today) = (Vec::new(), Vec::new());
    for (_, rtt_us) in NETWORKS {
        let Some(pair) = pair(&composed, &published, rtt_us) else { continue };
        let part = format!("study-shape-{rtt_us}");
        let shape = grid::study(run.quick());
        for (profile, list) in [(kernel, &mut shapes), (profile, &mut today)] {
            let places: Vec<GridPoint<'_>> = grid::places(&part, &shape, profile, grid::HANDSHAKE)
                .into_iter()
                .filter(|place| place.link.rtt_us == rtt_us)
                .collect();
            list.extend(play::over(run, &places, &pair)?);
        }
    }
    // Ours, not the study's: under netem with pieces lost whole, a second packet costs nothing.
    let shape = grid::Shape {
        rtt_us: &[grid::CLOSE_RTT_US],
        loss: &[grid::CLOSE_LOSS],
        ..grid::study(run.quick())
    };
    let places = grid::places("study-pairing", &shape, profile, grid::HANDSHAKE);
    let short = play::over(run, &places, one_certificate)?
        .pop()
        .ok_or_else(|| LabError::failed("nothing was played"))?;
    let measured = !legacy.is_empty();
    Ok(Study { contenders, seen, shapes, today, short, published, measured })
}

/// Dilithium2 and Falcon-512 with the study's processor times on this network, the first as the baseline.
fn pair(composed: &[Contender], published: &[Curve], rtt_us: u64) -> Option<Vec<Contender>> {
    SIGNATURES
        .iter()
        .take(2)
        .map(|signature| {
            let name = sizes::pair(KEMS[0].name, signature.name);
            let calm = curve(published, KEMS[0].name, signature.name, rtt_us)?.calm()?;
            let made = composed.iter().find(|one| one.name == format!("{name} (sizes)"))?;
            Some(sizes::with_cpu(made, &name, cpu(calm, rtt_us)))
        })
        .collect()
}

/// The rest of a loss-free median after one round trip, as nanoseconds of processor time.
fn cpu(median_ms: f64, rtt_us: u64) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a link")]
    let rtt_ms = rtt_us as f64 / 1e3;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
    let nanoseconds = ((median_ms - rtt_ms).max(0.0) * 1e6) as u64;
    nanoseconds
}

fn curve<'a>(curves: &'a [Curve], kem: &str, signature: &str, rtt_us: u64) -> Option<&'a Curve> {
    curves.iter().find(|row| row.kem == kem && row.signature == signature && row.rtt_us == rtt_us)
}

/// Tables, charts, findings.
pub(super) fn tell(run: &mut Run<'_>, study: &Study) {
    run.table(tables::table(
        "study",
        "The 2022 study's grid",
        "Chain root, intermediate, leaf; 6000 handshakes of each at each point, as in the study, its losses in each direction, TCP of a \
         kernel like that of its set-up, and its clock, which starts when TCP is connected. (sizes): composed from the published sizes of the study's algorithms; \
         their processor time was not measured and is left out.",
        &study.seen,
    ));
    let rows = study
        .contenders
        .iter()
        .map(|contender| {
            vec![
                contender.name.as_str().into(),
                bytes(contender, crate::trace::Side::Client).into(),
                bytes(contender, crate::trace::Side::Server).into(),
                count(sizes::packets(&contender.trace)).into(),
            ]
        })
        .collect();
    run.table(Table {
        name: "study-flights".to_owned(),
        title: "Flights of the study's pairs".to_owned(),
        columns: ["who", "client (bytes)", "server (bytes)", "server's flight (packets of 1448)"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        note: "Up to the client's Finished; without TCP and IP.".to_owned(),
    });
    if !study.shapes.is_empty() {
        run.table(beside(study));
        let (table, sentence) = errors::table(&study.published, &[&study.shapes, &study.today]);
        run.table(table);
        run.note(sentence);
        run.chart(crossing_chart(study));
    }
    run.finding(kems(study));
    run.finding(signatures(study));
    run.finding(pairing(&study.short));
}

fn bytes(contender: &Contender, side: crate::trace::Side) -> f64 {
    count(contender.trace.bytes(side))
}

fn count(number: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "bytes of a handshake")]
    let number = number as f64;
    number
}

/// The study's curves next to ours: the same sizes, the same processor times without loss; the effect of losses is
/// the model's.
fn beside(study: &Study) -> Table {
    let mut rows = Vec::new();
    for point in &study.shapes {
        for signature in SIGNATURES.iter().take(2) {
            let name = sizes::pair(KEMS[0].name, signature.name);
            let published =
                curve(&study.published, KEMS[0].name, signature.name, point.link.rtt_us)
                    .and_then(|curve| at_loss(curve, point.link.loss));
            let (Some(row), Some(theirs)) = (point.played.row(&name), published) else {
                continue;
            };
            let quoted = |time: Option<f64>| {
                time.map_or_else(|| Value::from("not quoted"), |time| short(time).into())
            };
            let spread = row.handshake(CLOCK);
            rows.push(vec![
                rtt_ms(&point.link).into(),
                tables::hundred(point.link.loss).into(),
                signature.name.into(),
                quoted(theirs.p50_ms),
                short(spread.at(50)).into(),
                quoted(theirs.p95_ms),
                short(spread.at(95)).into(),
                short(theirs.mean_ms).into(),
                short(spread.mean).into(),
            ]);
        }
    }
    Table {
        name: "study-beside".to_owned(),
        title: "The study's published curves beside the model's: P256_Kyber512".to_owned(),
        columns: [
            "RTT (ms)",
            "loss in each direction (%)",
            "signature",
            "published median (ms)",
            "median (ms)",
            "published p95 (ms)",
            "p95 (ms)",
            "published mean (ms)",
            "mean (ms)",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        note: format!(
            "TCP of {KERNEL}. Absolute times are of the study's machine and year: its processor time (loss-free median, or mean where no median is \
             quoted, less one RTT) is put into the server's flight. So without loss the medians agree by construction (on the longest link, the means); the \
             means of the network near do not, since its published means are below its medians. The other rows show whether losses act alike."
        ),
    }
}

fn at_loss(curve: &Curve, loss: f64) -> Option<Point> {
    curve.points.iter().find(|point| (point.loss - loss).abs() < 1e-6).copied()
}

/// "KEMs indistinguishable but NTRU."
fn kems(study: &Study) -> Finding {
    let suffix = if study.measured { "" } else { " (sizes)" };
    let far = |kem: &str| -> Vec<Estimate> {
        let name = |kem: &str| format!("{}{suffix}", sizes::pair(kem, SIGNATURES[0].name));
        study
            .seen
            .iter()
            .filter(|point| point.played.count >= FEWEST)
            .filter_map(|point| {
                let kyber = point.played.row(&name(KEMS[0].name))?.handshake(CLOCK);
                Some(distance(point.played.row(&name(kem))?.handshake(CLOCK), kyber))
            })
            .collect()
    };
    let (saber, ntru) = (far(KEMS[1].name), far(KEMS[2].name));
    let published = |kem: usize| {
        let calm = |kem: usize| {
            curve(&study.published, KEMS[kem].name, SIGNATURES[0].name, grid::CLOSE_RTT_US)?.calm()
        };
        Some(calm(kem)? / calm(0)? - 1.0)
    };
    let percent = |share: Option<f64>| {
        share.map_or("not published".to_owned(), |share| format!("{:+} %", short(100.0 * share)))
    };
    let ours = |distances: &[Estimate]| {
        let size = |one: &Estimate| one.value.abs();
        let largest = distances.iter().max_by(|one, other| size(one).total_cmp(&size(other)));
        largest.map_or("not measured".to_owned(), |one| {
            let [value, low, high] = [one.value, one.low, one.high].map(|share| 100.0 * share);
            interval_words(&Estimate { value, low, high }, "%")
        })
    };
    Finding {
        kind: ClaimKind::Published,
        source: SOURCE.to_owned(),
        claim: "The KEMs cannot be told apart, except NTRU.".to_owned(),
        published: format!(
            "loss-free medians against Kyber512 at RTT 30 ms: LightSaber {}, NTRU {}",
            percent(published(1)),
            percent(published(2))
        ),
        measured: format!(
            "largest distance of medians from Kyber512 over the grid{}: LightSaber {}, NTRU {}",
            if study.measured { "" } else { ", by sizes alone" },
            ours(&saber),
            ours(&ntru)
        ),
        verdict: judge_kems(told_apart(&saber), told_apart(&ntru), study.measured),
        why: if study.measured {
            "NTRU's keys take long to make, the others' do not: its distance is processor time, which weighs more the shorter the RTT, and \
             is a matter of the implementation and the machine. A KEM is told apart where the interval of a median's distance is beyond 2 % at one \
             point or more, and cannot be where all intervals are within 2 %. The intervals are those of the losses: the processor times, \
             measured once, have theirs in the experiment cpu."
        } else {
            "By their sizes alone no KEM stands out, NTRU neither: what set NTRU apart in the study was the processor time of its key \
             generation, which is not measured here without the algorithms of the literature (feature legacy of outlast-lab)."
        }
        .to_owned(),
    }
}

/// The one's median over Kyber512's, less one, with an interval by the ranks of both.
fn distance(one: &Spread, kyber: &Spread) -> Estimate {
    let [low, high] = AROUND;
    Estimate {
        value: one.at(50) / kyber.at(50) - 1.0,
        low: one.at(low) / kyber.at(high) - 1.0,
        high: one.at(high) / kyber.at(low) - 1.0,
    }
}

/// Whether medians are further apart than [`TELLING`] at some point, or at none. An interval that reaches across the
/// limit decides nothing.
fn told_apart(distances: &[Estimate]) -> Option<bool> {
    let is_far = |one: &Estimate| one.low > TELLING || one.high < -TELLING;
    let is_near = |one: &Estimate| one.low >= -TELLING && one.high <= TELLING;
    if distances.iter().any(is_far) {
        Some(true)
    } else if !distances.is_empty() && distances.iter().all(is_near) {
        Some(false)
    } else {
        None
    }
}

fn judge_kems(saber: Option<bool>, ntru: Option<bool>, measured: bool) -> Verdict {
    match (saber, ntru) {
        // Sizes alone say nothing about the processor time that set NTRU apart.
        (Some(saber), Some(ntru)) if measured => match (saber, ntru) {
            (false, true) => Verdict::Holds,
            (true, false) => Verdict::Differs,
            _ => Verdict::Partly,
        },
        _ => Verdict::Undecided,
    }
}

/// "Dilithium2 is faster than Falcon-512 until about 10 % loss, then slower." `sizes` counts their packets.
fn signatures(study: &Study) -> Finding {
    let [dilithium, falcon] = [0, 1].map(|index: usize| {
        let name = format!("{} (sizes)", sizes::pair(KEMS[0].name, SIGNATURES[index].name));
        let found = study.contenders.iter().find(|one| one.name == name);
        found.map_or(0, |contender| sizes::packets(&contender.trace))
    });
    let links = [grid::CLOSE_RTT_US, grid::LONGEST_RTT_US];
    let [model, longest] = links.map(|rtt_us| {
        let points = ours(&study.shapes, rtt_us);
        (!points.is_empty()).then(|| crossing(&points))
    });
    let quoted = links.map(|rtt_us| theirs(&study.published, KEMS[0].name, rtt_us));
    let shown = |points: &[Less]| {
        let parts: Vec<String> = points
            .iter()
            .map(|point| {
                let passes = point.passes_ms.map_or_else(String::new, |[rising, falling]| {
                    format!(" (passes {:+} and {:+})", short(rising), short(falling))
                });
                format!("{:+} ms at {} %{passes}", short(point.mean_ms), point.loss)
            })
            .collect();
        let turn = reversal(points).map_or_else(
            || "no reversal".to_owned(),
            |(from, to)| format!("reversed between {from} and {to} %"),
        );
        format!("{} ({turn})", parts.join(", "))
    };
    let neither = reversal(&quoted[0]).is_none() && model == Some(Crossing::Never);
    let told = |model: Option<Crossing>| {
        model.map_or_else(|| "not played".to_owned(), |model| crossing_words(&model))
    };
    Finding {
        kind: ClaimKind::Published,
        source: SOURCE.to_owned(),
        claim: format!(
            "Dilithium2 is faster than Falcon-512 until about {} % loss, then slower.",
            published::STUDY_CROSSING.value
        ),
        published: format!(
            "about {} % in the text; the means of its data, Dilithium2 less Falcon-512 with Kyber512, by the loss in each direction: at RTT 30 ms \
             {}; at RTT 197 ms {}",
            published::STUDY_CROSSING.value,
            shown(&quoted[0]),
            shown(&quoted[1])
        ),
        measured: format!(
            "model, with the study's loss-free times, TCP of {KERNEL}, and {dilithium} packets against {falcon}: at RTT 30 ms {}; at RTT 197 ms {}",
            told(model),
            told(longest)
        ),
        verdict: judge_signatures(
            judge_link(model, reversal(&quoted[0])),
            judge_link(longest, reversal(&quoted[1])),
        ),
        why: format!(
            "Which is faster without loss is a matter of signing time, here the study's own; what losses add is a matter of packets, and of round \
             trips: the longer the RTT, the less of the difference is signing time. {}Of the published means those count at which both passes of \
             the study agree in sign. A reversal is found again where the model's bracket lies within the published one; a bracket that reaches \
             beyond it, or is wider than {NARROW} % of loss, decides nothing. The claim names no link: it holds if that is so on both links, and in part \
             if it is on the longest alone. No point with loss was used to make the profile. The losses are those of each direction; 5 % in each \
             direction are about 10 % of the round trips.",
            if neither {
                "At RTT 30 ms, a link of the study, neither its data nor the model reverse. "
            } else {
                ""
            }
        ),
    }
}

/// Whether the model crosses on a link where the published means are reversed (`theirs`, loss in per cent).
fn judge_link(model: Option<Crossing>, theirs: Option<(f64, f64)>) -> Verdict {
    let Some((low, high)) = theirs.filter(|(low, high)| high - low <= NARROW) else {
        return Verdict::Undecided;
    };
    match model {
        None | Some(Crossing::Unresolved) => Verdict::Undecided,
        Some(Crossing::Never) => Verdict::Differs,
        Some(Crossing::Between(from, to)) if from >= low && to <= high => Verdict::Holds,
        // The crossing may be within the published bracket, or beside it.
        Some(Crossing::Between(from, to)) if from < high && to > low => Verdict::Undecided,
        Some(Crossing::Between(..)) => Verdict::Partly,
    }
}

/// The claim, from [`judge_link`] at RTT 30 ms and on the longest link. It names no link: a reversal on one of them alone
/// is a part of it.
fn judge_signatures(close: Verdict, longest: Verdict) -> Verdict {
    if longest == Verdict::Holds && close != Verdict::Holds { Verdict::Partly } else { longest }
}

/// Our own finding: what pairing tells that 6000 unpaired handshakes do not.
fn pairing(point: &Seen) -> Finding {
    let (measured, verdict) = match point.played.rows.get(1) {
        Some(row) => {
            let half = |low: f64, high: f64| (high - low) / 2.0;
            let paired = half(row.paired.low, row.paired.high);
            let unpaired = half(row.unpaired_connected.low, row.unpaired_connected.high);
            (
                format!(
                    "{} at {}, {} handshakes: paired {}, unpaired {} ({} times as wide)",
                    row.name,
                    place_words(&point.link),
                    point.played.count,
                    interval_words(&row.paired, "ms"),
                    interval_words(&row.unpaired_connected, "ms"),
                    short(unpaired / paired.max(f64::MIN_POSITIVE))
                ),
                judge_pairing(row.paired.value, paired, unpaired),
            )
        }
        None => ("not measured".to_owned(), Verdict::Undecided),
    };
    Finding {
        kind: ClaimKind::Own,
        source: "Outlast's lab; an earlier trial on a real link".to_owned(),
        claim: "Under loss, handshakes that meet the same losses tell what a hybrid adds to the mean; as many with losses of their own do not."
            .to_owned(),
        published: "earlier trial at 5 % loss: 4.95 ms +- 1.88 paired, +- 13.2 unpaired".to_owned(),
        measured,
        verdict,
        why: "A retransmission timeout of 200 ms in one handshake of ten hides an effect of a few milliseconds. Where both meet the same \
              losses, most of that falls out of the difference. It holds where the paired interval excludes 0 and the unpaired one is wider \
              than the effect. With one certificate the hybrid's server flight takes a second packet; with two, both take two, and loss \
              treats them alike."
            .to_owned(),
    }
}

fn judge_pairing(effect: f64, paired: f64, unpaired: f64) -> Verdict {
    let estimate = Estimate { value: effect, low: effect - paired, high: effect + paired };
    if effect::decide(&estimate, 0.0, 0.0) != Effect::Shown {
        Verdict::Undecided
    } else if unpaired > effect.abs() {
        Verdict::Holds
    } else if unpaired > 2.0 * paired {
        Verdict::Partly
    } else {
        Verdict::Differs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_reach_each_verdict() {
        let between = |from, to| Some(Crossing::Between(from, to));
        let theirs = Some((2.5, 7.5));
        assert_eq!(judge_link(between(2.5, 5.0), theirs), Verdict::Holds);
        assert_eq!(judge_link(between(1.0, 5.0), theirs), Verdict::Undecided);
        assert_eq!(judge_link(between(7.5, 10.0), theirs), Verdict::Partly);
        assert_eq!(judge_link(between(0.0, 1.0), theirs), Verdict::Partly);
        assert_eq!(judge_link(Some(Crossing::Never), theirs), Verdict::Differs);
        assert_eq!(judge_link(Some(Crossing::Unresolved), theirs), Verdict::Undecided);
        assert_eq!(judge_link(None, theirs), Verdict::Undecided);
        assert_eq!(judge_link(between(1.0, 2.5), None), Verdict::Undecided);
        // A reversal on the longest link alone is a part of the claim.
        let (holds, no) = (Verdict::Holds, Verdict::Undecided);
        assert_eq!(judge_signatures(holds, holds), Verdict::Holds);
        assert_eq!(judge_signatures(no, holds), Verdict::Partly);
        assert_eq!(judge_signatures(holds, no), Verdict::Undecided);
        assert_eq!(judge_signatures(no, Verdict::Differs), Verdict::Differs);
        assert_eq!(judge_kems(Some(false), Some(true), true), Verdict::Holds);
        assert_eq!(judge_kems(Some(false), Some(false), true), Verdict::Partly);
        assert_eq!(judge_kems(Some(true), Some(false), true), Verdict::Differs);
        assert_eq!(judge_kems(Some(false), Some(true), false), Verdict::Undecided);
        assert_eq!(judge_kems(None, Some(true), true), Verdict::Undecided);
        assert_eq!(judge_kems(None, None, true), Verdict::Undecided);
        assert_eq!(judge_pairing(5.0, 2.0, 13.0), Verdict::Holds);
        assert_eq!(judge_pairing(5.0, 1.0, 4.0), Verdict::Partly);
        assert_eq!(judge_pairing(5.0, 3.0, 4.0), Verdict::Differs);
        assert_eq!(judge_pairing(1.0, 2.0, 13.0), Verdict::Undecided);
    }

    /// What is told less exactly agrees no better: neither a wider bracket of the model, nor a wide one of the data.
    #[test]
    fn a_wider_bracket_never_holds() {
        let losses = [0.0, 1.0, 2.5, 5.0, 7.5, 10.0];
        let brackets: Vec<(f64, f64)> = losses
            .iter()
            .flat_map(|from| losses.iter().map(move |to| (*from, *to)))
            .filter(|(from, to)| from < to)
            .collect();
        let judge =
            |(from, to), theirs| judge_link(Some(Crossing::Between(from, to)), Some(theirs));
        for theirs in &brackets {
            for narrow in &brackets {
                for wide in brackets.iter().filter(|one| one.0 <= narrow.0 && one.1 >= narrow.1) {
                    let gains = judge(*narrow, *theirs) != Verdict::Holds
                        && judge(*wide, *theirs) == Verdict::Holds;
                    assert!(!gains, "{narrow:?} {wide:?} {theirs:?}");
                }
                let all = judge(*narrow, (0.0, 10.0));
                assert_eq!(all, Verdict::Undecided, "{narrow:?} in the whole range");
            }
        }
        assert_eq!(judge((0.0, 10.0), (2.5, 7.5)), Verdict::Undecided);
    }

    #[test]
    fn medians_are_told_apart_by_their_intervals() {
        let around =
            |value: f64, half: f64| Estimate { value, low: value - half, high: value + half };
        let near = around(0.001, 0.005);
        assert_eq!(told_apart(&[near, around(-0.01, 0.005)]), Some(false));
        assert_eq!(told_apart(&[near, around(0.1, 0.01)]), Some(true));
        assert_eq!(told_apart(&[near, around(-0.1, 0.01)]), Some(true));
        // Within 2 % or beyond, but not by its interval.
        assert_eq!(told_apart(&[near, around(0.015, 0.01)]), None);
        assert_eq!(told_apart(&[near, around(0.025, 0.01)]), None);
        assert_eq!(told_apart(&[]), None);
        let spread = |scale: f64| {
            let values: Vec<f64> =
                (0..6000).map(|index| scale * (100.0 + f64::from(index))).collect();
            Spread::of(&values)
        };
        let (one, half_more) = (spread(1.0), spread(1.5));
        assert!(distance(&one, &one).contains(0.0));
        assert!(distance(&half_more, &one).contains(0.5) && distance(&half_more, &one).low > 0.3);
    }

    #[test]
    fn processor_time_is_what_the_round_trip_leaves() {
        assert_eq!(cpu(48.5, 30_000), 18_500_000);
        assert_eq!(cpu(20.0, 30_000), 0);
    }
}
