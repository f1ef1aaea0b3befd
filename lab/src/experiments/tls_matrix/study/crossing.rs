//! Where Dilithium2 and Falcon-512 change places, in the study's figures and in the model's.

use std::time::Duration;

use super::{Curve, NETWORKS, Study, curve};
use crate::effect::{self, Effect};
use crate::experiments::play::Seen;
use crate::experiments::tables;
use crate::experiments::tls_matrix::sizes::{self, KEMS, SIGNATURES};
use crate::result::{Axis, Chart, Marks, Series};
use crate::statistics::Estimate;

/// Our mean of Dilithium2 minus Falcon-512, paired by flow, with its interval, against loss in per cent.
pub(super) fn ours(shapes: &[Seen], rtt_us: u64) -> Vec<(f64, Estimate)> {
    let falcon = sizes::pair(KEMS[0].name, SIGNATURES[1].name);
    shapes
        .iter()
        .filter(|point| point.link.rtt_us == rtt_us)
        .filter_map(|point| {
            // The baseline of the pairing is the first of the two.
            let Estimate { value, low, high } = point.played.row(&falcon)?.paired;
            let less = Estimate { value: -value, low: -high, high: -low };
            Some((tables::hundred(point.link.loss), less))
        })
        .collect()
}

/// The published means, Dilithium2 less Falcon-512, against loss in per cent.
pub(super) fn theirs(published: &[Curve], kem: &str, rtt_us: u64) -> Vec<[f64; 2]> {
    let [Some(dilithium), Some(falcon)] =
        [0, 1].map(|index: usize| curve(published, kem, SIGNATURES[index].name, rtt_us))
    else {
        return Vec::new();
    };
    dilithium
        .points
        .iter()
        .zip(&falcon.points)
        .map(|(one, other)| [tables::hundred(one.loss), one.mean_ms - other.mean_ms])
        .collect()
}

/// The losses in per cent between which published differences turn from below zero to above, for good. They have no
/// intervals: their signs are taken as they are.
pub(super) fn reversal(points: &[[f64; 2]]) -> Option<(f64, f64)> {
    let below = points.iter().rposition(|[_, less]| *less <= 0.0)?;
    let above = points.get(below + 1)?;
    Some((points[below][0], above[0]))
}

/// Where a curve with intervals rises through zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Crossing {
    /// Between the last loss at which it is below zero and the first from which on it is above, in per cent.
    Between(f64, f64),
    /// Below zero wherever it can be told, and so at the largest loss.
    Never,
    /// The intervals do not decide.
    Unresolved,
}

/// Only points whose interval excludes zero count.
pub(super) fn crossing(points: &[(f64, Estimate)]) -> Crossing {
    let shown = |less: &Estimate| effect::decide(less, 0.0, 0.0) == Effect::Shown;
    let is_below = |(_, less): &(f64, Estimate)| shown(less) && less.value < 0.0;
    let is_above = |(_, less): &(f64, Estimate)| shown(less) && less.value > 0.0;
    let Some(below) = points.iter().rposition(is_below) else {
        return Crossing::Unresolved;
    };
    if below + 1 == points.len() && !points.iter().any(is_above) {
        return Crossing::Never;
    }
    let above = points.iter().skip(below + 1).find(|point| is_above(point));
    match (points.get(below), above) {
        (Some((from, _)), Some((to, _))) => Crossing::Between(*from, *to),
        _ => Crossing::Unresolved,
    }
}

pub(super) fn crossing_words(crossing: &Crossing) -> String {
    match crossing {
        Crossing::Between(from, to) => {
            format!(
                "the means cross between {from} and {to} % loss (points whose interval excludes 0)"
            )
        }
        Crossing::Never => "Dilithium2 is faster up to the largest loss".to_owned(),
        Crossing::Unresolved => "no crossing could be told: the intervals contain 0".to_owned(),
    }
}

pub(super) fn crossing_chart(study: &Study) -> Chart {
    let mut series = Vec::new();
    for (_, rtt_us) in NETWORKS {
        let rtt = Duration::from_micros(rtt_us).as_secs_f64() * 1e3;
        let mut add = |name: String, points: Vec<[f64; 2]>, band: Vec<[f64; 2]>| {
            if !points.is_empty() {
                series.push(Series { name, points, band });
            }
        };
        let model = ours(&study.shapes, rtt_us);
        add(
            format!("model, mean, RTT {rtt} ms"),
            model.iter().map(|(loss, less)| [*loss, less.value]).collect(),
            model.iter().map(|(_, less)| [less.low, less.high]).collect(),
        );
        add(
            format!("published, mean, RTT {rtt} ms"),
            theirs(&study.published, KEMS[0].name, rtt_us),
            Vec::new(),
        );
    }
    Chart {
        name: "study-crossing".to_owned(),
        title: "Dilithium2 less Falcon-512: below zero Dilithium2 is faster".to_owned(),
        x: Axis::linear("loss in each direction (%)"),
        y: Axis::linear("Dilithium2 less Falcon-512, mean (ms)"),
        marks: Marks::Lines { series },
        rules: vec![crate::result::Rule { label: "equal".to_owned(), at: 0.0 }],
        caption: "The model has the study's own loss-free times and the algorithms' sizes, nothing else of the study; its lines have 95 % intervals \
                  of the paired difference, the published ones have none. On the longest link two passes of the study over the same point differ by up \
                  to 40 ms, so that its line is no more exact than that."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::tables::short;
    use crate::experiments::tls_matrix::grid;
    use crate::experiments::tls_matrix::study::curves;

    fn curve(points: &[(f64, f64, f64)]) -> Vec<(f64, Estimate)> {
        let estimate = |low: f64, high: f64| Estimate { value: (low + high) / 2.0, low, high };
        points.iter().map(|(loss, low, high)| (*loss, estimate(*low, *high))).collect()
    }

    #[test]
    fn a_crossing_needs_intervals_without_zero() {
        let calm = (0.0, -8.1, -8.0);
        let found = |rest: &[(f64, f64, f64)]| crossing(&curve(&[&[calm], rest].concat()));
        assert_eq!(
            found(&[(5.0, -6.0, -1.0), (8.0, -2.0, 3.0), (10.0, 1.0, 5.0), (15.0, 2.0, 9.0)]),
            Crossing::Between(5.0, 10.0)
        );
        assert_eq!(found(&[(10.0, -2.0, 3.0), (15.0, -1.0, 9.0)]), Crossing::Unresolved);
        assert_eq!(found(&[(10.0, 2.0, 3.0), (15.0, -9.0, -1.0)]), Crossing::Unresolved);
        assert_eq!(found(&[(10.0, -5.0, 3.0), (15.0, -9.0, -1.0)]), Crossing::Never);
        assert_eq!(crossing(&curve(&[(0.0, 1.0, 2.0)])), Crossing::Unresolved);
        assert_eq!(crossing(&[]), Crossing::Unresolved);
    }

    #[test]
    fn published_means_reverse_on_the_longest_link_alone() {
        let theirs = |rtt_us| theirs(&curves().unwrap(), KEMS[0].name, rtt_us);
        for (_, rtt_us) in NETWORKS {
            assert_eq!(theirs(rtt_us).len(), 6);
        }
        assert_eq!(reversal(&theirs(5_500)), None);
        assert_eq!(reversal(&theirs(30_000)), None);
        let longest = theirs(grid::LONGEST_RTT_US);
        assert_eq!(reversal(&longest), Some((2.5, 5.0)));
        let rounded: Vec<f64> = longest.iter().map(|[_, less]| short(*less)).collect();
        assert_eq!([rounded[0], rounded[3], rounded[5]], [-3.37, 3.55, 29.1]);
        assert_eq!(reversal(&[]), None);
        assert_eq!(reversal(&[[0.0, 1.0]]), None, "there is nothing to turn from");
    }
}
