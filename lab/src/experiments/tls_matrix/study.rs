//! The 2022 study's grid, and its findings one by one.

mod crossing;

use self::crossing::{
    Crossing, both, crossing, crossing_chart, crossing_words, disagreement, ours, theirs,
};
use super::grid;
use super::sizes::{self, KEMS, SIGNATURES, compose};
use crate::error::LabError;
use crate::experiments::play::Seen;
use crate::experiments::play::{self, Contender};
use crate::experiments::tables::{self, interval_words, place_words, rtt_ms, short};
use crate::link::ClockStart;
use crate::model::Profile;
use crate::published;
use crate::result::{ClaimKind, Finding, Table, Verdict};
use crate::run::Run;
use crate::subject::Subject;

/// Its publication.
pub(super) const SOURCE: &str = published::FUDAN_STUDY;
/// Its clock.
const CLOCK: ClockStart = ClockStart::Connected;
/// Two handshakes count as distinguishable if their medians differ by this share.
const TELLING: f64 = 0.02;

/// A published curve: one row per loss, in milliseconds.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    /// As in [`KEMS`].
    pub(super) kem: String,
    /// As in [`SIGNATURES`].
    pub(super) signature: String,
    /// Round-trip time in microseconds.
    pub(super) rtt_us: u64,
    /// Loss, median, 95th percentile, mean.
    pub(super) rows: Vec<[f64; 4]>,
}

/// Names of the columns in the study's data, as far as it published them.
const NAMES: ([&str; 3], [&str; 2]) =
    (["p256_kyber512", "p256_lightsaber", "p256_ntru509"], ["p256_dilithium2", "p256_falcon512"]);
/// Its networks, in microseconds: the loss-free medians of the two differ by 25.5 ms, as 30 ms and 5.5 ms do.
const NETWORKS: [(&str, u64); 2] = [("near", 5_500), ("medium", 30_000)];

/// The published curves of hybrid pairs at level 1.
pub(super) fn curves() -> Result<Vec<Curve>, LabError> {
    let points = published::fudan()?;
    let mut curves = Vec::new();
    for (kem, kem_name) in KEMS.iter().zip(NAMES.0) {
        for (signature, signature_name) in SIGNATURES.iter().zip(NAMES.1) {
            for (network, rtt_us) in NETWORKS {
                let rows: Vec<[f64; 4]> = points
                    .iter()
                    .filter(|point| {
                        (point.network.as_str(), point.kem.as_str(), point.signature.as_str())
                            == (network, kem_name, signature_name)
                    })
                    .map(|point| {
                        [point.loss_percent / 100.0, point.p50_ms, point.p95_ms, point.mean_ms]
                    })
                    .collect();
                if !rows.is_empty() {
                    let (kem, signature) = (kem.name.to_owned(), signature.name.to_owned());
                    curves.push(Curve { kem, signature, rtt_us, rows });
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
    /// Dilithium2 and Falcon-512 with the study's own processor times.
    shapes: Vec<Seen>,
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
    let shape = grid::study(run.quick());
    let places = grid::places("study", &shape, profile, grid::HANDSHAKE);
    let seen = play::over(run, &places, &contenders)?;
    let mut shapes = Vec::new();
    for rtt_us in [5_500_u64, 30_000] {
        let pair: Vec<Contender> = [0, 1]
            .iter()
            .filter_map(|&index| {
                let name = sizes::pair(KEMS[0].name, SIGNATURES[index].name);
                let curve = curve(&published, KEMS[0].name, SIGNATURES[index].name, rtt_us)?;
                let calm = curve.rows.first()?[1];
                let made = composed.iter().find(|one| one.name == format!("{name} (sizes)"))?;
                Some(sizes::with_cpu(made, &name, cpu(calm, rtt_us)))
            })
            .collect();
        if pair.len() == 2 {
            let rtts: &'static [u64] = if rtt_us == 30_000 { &[30_000] } else { &[5_500] };
            let part = format!("study-shape-{rtt_us}");
            let shape = grid::Shape { rtt_us: rtts, ..grid::study(run.quick()) };
            let places = grid::places(&part, &shape, profile, grid::HANDSHAKE);
            shapes.extend(play::over(run, &places, &pair)?);
        }
    }
    let shape = grid::Shape {
        rtt_us: &[grid::CLOSE_RTT_US],
        loss: &[grid::CLOSE_LOSS],
        ..grid::study(run.quick())
    };
    let places = grid::places("study-pairing", &shape, profile, grid::HANDSHAKE);
    let short = play::over(run, &places, one_certificate)?
        .pop()
        .ok_or_else(|| LabError::failed("nothing was played"))?;
    Ok(Study { contenders, seen, shapes, short, published, measured: !legacy.is_empty() })
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
        "Chain root, intermediate, leaf; 6000 handshakes of each at each point, as the study's article says (its files have 1000 to \
         5000), and its clock, which starts when TCP is connected. (sizes): composed from the published sizes of the study's algorithms; their processor time was not measured \
         and is left out.",
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
            let (Some(row), Some([_, median, p95, mean])) = (point.played.row(&name), published)
            else {
                continue;
            };
            let spread = row.handshake(CLOCK);
            rows.push(vec![
                rtt_ms(&point.link).into(),
                tables::hundred(point.link.loss).into(),
                signature.name.into(),
                short(median).into(),
                short(spread.at(50)).into(),
                short(p95).into(),
                short(spread.at(95)).into(),
                short(mean).into(),
                short(spread.mean).into(),
            ]);
        }
    }
    Table {
        name: "study-beside".to_owned(),
        title: "The study's published curves beside the model's: P256_Kyber512".to_owned(),
        columns: [
            "RTT (ms)",
            "loss (%)",
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
        note: "Absolute times are of the study's machine and year: its processor time (loss-free median less one RTT) is put into the \
               server's flight, so the rows without loss agree by construction, and the others show whether losses act alike."
            .to_owned(),
    }
}

fn at_loss(curve: &Curve, loss: f64) -> Option<[f64; 4]> {
    curve.rows.iter().find(|row| (row[0] - loss).abs() < 1e-6).copied()
}

/// "KEMs indistinguishable but NTRU."
fn kems(study: &Study) -> Finding {
    let suffix = if study.measured { "" } else { " (sizes)" };
    let far = |kem: &str, sizes: &str| {
        let name = |kem: &str| format!("{}{sizes}", sizes::pair(kem, SIGNATURES[0].name));
        study
            .seen
            .iter()
            .filter_map(|point| {
                let one = point.played.row(&name(kem))?.handshake(CLOCK).at(50);
                let kyber = point.played.row(&name(KEMS[0].name))?.handshake(CLOCK).at(50);
                Some((one / kyber - 1.0).abs())
            })
            .reduce(f64::max)
    };
    let (saber, ntru) = (far(KEMS[1].name, suffix), far(KEMS[2].name, suffix));
    let published = |kem: usize| {
        let calm = |kem: usize| {
            let curve =
                curve(&study.published, KEMS[kem].name, SIGNATURES[0].name, grid::CLOSE_RTT_US)?;
            Some(curve.rows.first()?[1])
        };
        Some(calm(kem)? / calm(0)? - 1.0)
    };
    let percent = |share: Option<f64>| {
        share.map_or("not published".to_owned(), |share| format!("{:+} %", short(100.0 * share)))
    };
    let ours = |share: Option<f64>| {
        share.map_or("not measured".to_owned(), |share| format!("{} %", short(100.0 * share)))
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
            ours(saber),
            ours(ntru)
        ),
        verdict: judge_kems(saber, ntru, study.measured),
        why: if study.measured {
            "NTRU's keys take long to make, the others' do not: its distance is processor time, which weighs more the shorter the RTT, and \
             is a matter of the implementation and the machine."
        } else {
            "By their sizes alone no KEM stands out, NTRU neither: what set NTRU apart in the study was the processor time of its key \
             generation, which is not measured here without the algorithms of the literature (feature legacy of outlast-lab)."
        }
        .to_owned(),
    }
}

fn judge_kems(saber: Option<f64>, ntru: Option<f64>, measured: bool) -> Verdict {
    match (saber, ntru) {
        // Sizes alone say nothing about the processor time that set NTRU apart.
        (Some(saber), Some(ntru)) if measured => match (saber <= TELLING, ntru > TELLING) {
            (true, true) => Verdict::Holds,
            (false, false) => Verdict::Differs,
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
    let points = ours(&study.shapes, grid::CLOSE_RTT_US);
    let model = (!points.is_empty()).then(|| crossing(&points));
    let quoted = theirs(&study.published, KEMS[0].name, grid::CLOSE_RTT_US, 3);
    let shown: Vec<String> =
        quoted.iter().map(|[loss, less]| format!("{:+} ms at {loss} %", short(*less))).collect();
    let agrees = quoted.first().is_some_and(|[_, less]| *less < 0.0)
        && quoted.last().is_some_and(|[_, less]| *less > 0.0);
    Finding {
        kind: ClaimKind::Published,
        source: SOURCE.to_owned(),
        claim: "Dilithium2 is faster than Falcon-512 until about 10 % loss, then slower.".to_owned(),
        published: format!(
            "about 10 % in the text; the means of its data, Dilithium2 less Falcon-512 with Kyber512 at RTT 30 ms, {}: {}",
            if agrees { "reverse, too" } else { "do not reverse" },
            shown.join(", ")
        ),
        measured: model.map_or_else(
            || "not played: the study's loss-free times are missing".to_owned(),
            |model| {
                format!(
                    "model, with the study's loss-free times and {dilithium} packets against {falcon}: {}",
                    crossing_words(model)
                )
            },
        ),
        verdict: judge_signatures(model, agrees),
        why: format!(
            "Which is faster without loss is a matter of signing time, here the study's own; what losses add is a matter of packets. {} \
             The published medians hardly move up to 20 % loss, although of eight packets all arrive in only 17 % of the flights then: perhaps \
             a whole flight was lost or not as one piece, as netem does with segmentation offload, so that packets did not count. It holds in \
             part at most while the study's data contradict its text.",
            disagreement(&both(study, grid::CLOSE_RTT_US))
        ),
    }
}

/// At most in part if the published data (`agrees`) contradict the text.
fn judge_signatures(model: Option<Crossing>, agrees: bool) -> Verdict {
    match model {
        None | Some(Crossing::Unresolved) => Verdict::Undecided,
        Some(Crossing::Never) => Verdict::Differs,
        Some(Crossing::Between(from, to)) if agrees && from >= 5.0 && to <= 15.0 => Verdict::Holds,
        Some(Crossing::Between(..)) => Verdict::Partly,
    }
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
    if effect.abs() <= paired {
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
        assert_eq!(judge_signatures(between(5.0, 10.0), true), Verdict::Holds);
        assert_eq!(judge_signatures(between(5.0, 10.0), false), Verdict::Partly);
        assert_eq!(judge_signatures(between(1.0, 2.0), true), Verdict::Partly);
        assert_eq!(judge_signatures(Some(Crossing::Never), true), Verdict::Differs);
        assert_eq!(judge_signatures(Some(Crossing::Unresolved), true), Verdict::Undecided);
        assert_eq!(judge_signatures(None, true), Verdict::Undecided);
        assert_eq!(judge_kems(Some(0.01), Some(0.1), true), Verdict::Holds);
        assert_eq!(judge_kems(Some(0.01), Some(0.01), true), Verdict::Partly);
        assert_eq!(judge_kems(Some(0.1), Some(0.01), true), Verdict::Differs);
        assert_eq!(judge_kems(Some(0.01), Some(0.1), false), Verdict::Undecided);
        assert_eq!(judge_kems(None, None, true), Verdict::Undecided);
        assert_eq!(judge_pairing(5.0, 2.0, 13.0), Verdict::Holds);
        assert_eq!(judge_pairing(5.0, 1.0, 4.0), Verdict::Partly);
        assert_eq!(judge_pairing(5.0, 3.0, 4.0), Verdict::Differs);
        assert_eq!(judge_pairing(1.0, 2.0, 13.0), Verdict::Undecided);
    }

    #[test]
    fn processor_time_is_what_the_round_trip_leaves() {
        assert_eq!(cpu(48.5, 30_000), 18_500_000);
        assert_eq!(cpu(20.0, 30_000), 0);
    }
}
