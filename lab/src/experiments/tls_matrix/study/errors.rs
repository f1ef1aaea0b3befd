//! By how much the model's times differ from the study's under loss, by network, TCP and statistic.
//!
//! Points without loss are left out: their times are put into the model.

use super::{CLOCK, Curve, NETWORKS, at_loss, curve};
use crate::experiments::play::Seen;
use crate::experiments::tables::{distinct, short};
use crate::experiments::tls_matrix::sizes::{self, KEMS, SIGNATURES};
use crate::result::{Table, Value};
use crate::statistics::quantile_of;

/// Names of the statistics that are compared.
const STATISTICS: [&str; 3] = ["mean", "median", "p95"];

/// An error of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Error {
    /// Kernel whose TCP was modelled.
    profile: &'static str,
    /// Round-trip time in microseconds.
    rtt_us: u64,
    /// One of [`STATISTICS`].
    statistic: &'static str,
    /// The model's time over the published one, less one, in per cent.
    percent: f64,
}

/// The errors at all lossy points that are both played and published.
pub(super) fn errors(published: &[Curve], seen: &[Seen]) -> Vec<Error> {
    let mut found = Vec::new();
    for point in seen.iter().filter(|point| point.link.loss > 0.0) {
        let rtt_us = point.link.rtt_us;
        for signature in SIGNATURES.iter().take(2) {
            let name = sizes::pair(KEMS[0].name, signature.name);
            let theirs = curve(published, KEMS[0].name, signature.name, rtt_us)
                .and_then(|curve| at_loss(curve, point.link.loss));
            let (Some(row), Some(theirs)) = (point.played.row(&name), theirs) else { continue };
            let spread = row.handshake(CLOCK);
            let times = [
                (Some(theirs.mean_ms), spread.mean),
                (theirs.p50_ms, spread.at(50)),
                (theirs.p95_ms, spread.at(95)),
            ];
            for (statistic, (theirs, ours)) in STATISTICS.into_iter().zip(times) {
                let Some(theirs) = theirs else { continue };
                let percent = 100.0 * (ours / theirs - 1.0);
                found.push(Error { profile: point.profile, rtt_us, statistic, percent });
            }
        }
    }
    found
}

/// Median and largest of the errors' sizes, and their number.
pub(super) fn sizes_of<'a>(errors: impl IntoIterator<Item = &'a Error>) -> (f64, f64, usize) {
    let sizes: Vec<f64> = errors.into_iter().map(|error| error.percent.abs()).collect();
    (quantile_of(&sizes, 0.5), quantile_of(&sizes, 1.0), sizes.len())
}

/// The table, and the errors of the means in a sentence.
pub(super) fn table(published: &[Curve], played: &[&[Seen]]) -> (Table, String) {
    let mut rows = Vec::new();
    let mut words = Vec::new();
    for seen in played {
        let errors = errors(published, seen);
        for profile in distinct(seen, |point| point.profile) {
            for (network, rtt_us) in NETWORKS {
                for statistic in STATISTICS {
                    let (median, largest, count) = sizes_of(errors.iter().filter(|error| {
                        (error.profile, error.rtt_us, error.statistic)
                            == (profile, rtt_us, statistic)
                    }));
                    if count == 0 {
                        continue;
                    }
                    #[expect(clippy::cast_precision_loss, reason = "a number of points")]
                    let count = count as f64;
                    rows.push(vec![
                        Value::from(network),
                        profile.into(),
                        statistic.into(),
                        count.into(),
                        short(median).into(),
                        short(largest).into(),
                    ]);
                }
            }
            let means =
                errors.iter().filter(|error| error.profile == profile && error.statistic == "mean");
            let (median, largest, count) = sizes_of(means);
            words.push(format!(
                "with the TCP of {profile} the means of {count} lossy points are off by {} % in the median, {} % at most",
                short(median),
                short(largest)
            ));
        }
    }
    let table = Table {
        name: "study-errors".to_owned(),
        title: "The model's errors against the study's lossy points".to_owned(),
        columns: [
            "network",
            "TCP of",
            "statistic",
            "points",
            "error, median of its size (%)",
            "error, largest (%)",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        note: "P256_Kyber512 with P256_Dilithium2 and P256_Falcon512. Of the study's data the model has the loss-free times alone. \
               The round-trip times were chosen with those in sight, and the kernel is assumed. Of the network worst, only means are quoted."
            .to_owned(),
    };
    (table, format!("The 2022 study beside the model (table study-errors): {}.", words.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::play::measure;
    use crate::experiments::tls_matrix::grid;
    use crate::experiments::tls_matrix::study::crossing::{Crossing, crossing, ours};
    use crate::experiments::tls_matrix::study::{KERNEL, curves, pair};
    use crate::model::Profile;
    use crate::subject::Subject;
    use crate::trace::{Side, Step, Trace};

    /// The study's pairs on some of its networks, so many handshakes a point, with a made-up classical handshake from
    /// which they are composed.
    fn played(profile: &str, networks: &[(&str, u64)], count: u64) -> Vec<Seen> {
        let step = |from, bytes| Step { from, bytes, cpu_ns: 1000 };
        let base = Trace {
            steps: vec![step(Side::Client, 230), step(Side::Server, 1_150), step(Side::Client, 74)],
            client_done: 2,
            server_after_ns: 0,
            hello_retry: false,
            resumed: false,
            cpu_spread: Vec::new(),
        };
        let subject = Subject::new("x25519", "ECDSA P-256", 2).unwrap();
        let composed: Vec<_> = SIGNATURES
            .iter()
            .take(2)
            .map(|signature| sizes::compose(&base, &subject, &KEMS[0], signature).unwrap())
            .collect();
        let profile = Profile::by_name(profile).unwrap();
        let published = curves().unwrap();
        let mut seen = Vec::new();
        for &(_, rtt_us) in networks {
            let pair = pair(&composed, &published, rtt_us).unwrap();
            for mut place in grid::places("", &grid::study(true), profile, grid::HANDSHAKE) {
                if place.link.rtt_us == rtt_us {
                    place.count = count;
                    let played = measure(&place, &pair, 2022, &|| false).unwrap();
                    let (link, transfer) = (place.link, place.transfer);
                    seen.push(Seen { profile: profile.name, link, transfer, played });
                }
            }
        }
        seen
    }

    #[test]
    fn the_studys_set_up_gives_the_studys_means() {
        let published = curves().unwrap();
        let netem = played(KERNEL, &NETWORKS, 6_000);
        let today = played("linux-6.18", &NETWORKS[..2], 2_000);
        let (table, sentence) = table(&published, &[&netem, &today]);
        let of = |seen: &[Seen], wanted: &dyn Fn(&Error) -> bool| {
            let errors = errors(&published, seen);
            sizes_of(errors.iter().filter(|error| wanted(error)))
        };
        let close = |error: &Error| error.statistic == "mean" && error.rtt_us <= 30_000;
        let (median, _, count) = of(&netem, &close);
        assert_eq!(count, 20, "the lossy points of near and medium");
        assert!(median < 4.0, "{sentence} {:#?}", table.rows);
        assert!(median < of(&today, &close).0, "{sentence} {:#?}", table.rows);
        // The axis that was wrong: twice the loss gives means that are off by tens of per cent.
        let doubled: Vec<Curve> = published
            .iter()
            .cloned()
            .map(|mut curve| {
                curve.points.iter_mut().for_each(|point| point.loss *= 2.0);
                curve
            })
            .collect();
        let errors = errors(&doubled, &netem);
        let wrong = sizes_of(errors.iter().filter(|error| close(error)));
        assert!(wrong.0 > 20.0, "{wrong:?}");
        // Where the study's means are reversed, on its longest link, the model's are.
        let longest = crossing(&ours(&netem, grid::LONGEST_RTT_US));
        assert!(
            matches!(longest, Crossing::Between(from, to) if from <= 5.0 && to >= 2.5),
            "{longest:?}"
        );
    }
}
