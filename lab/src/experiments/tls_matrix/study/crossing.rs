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

/// Published means at a loss, Dilithium2 less Falcon-512.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Less {
    /// Loss in each direction, in per cent.
    pub(super) loss: f64,
    /// Difference of the means, in milliseconds.
    pub(super) mean_ms: f64,
    /// The same in each of the two passes, where they are quoted.
    pub(super) passes_ms: Option<[f64; 2]>,
}

impl Less {
    /// Whether Dilithium2 is slower. Where two passes over the same point disagree, the data do not tell.
    fn is_slower(&self) -> Option<bool> {
        let slower = self.mean_ms > 0.0;
        let passes = self.passes_ms.unwrap_or([self.mean_ms; 2]);
        passes.iter().all(|pass| (*pass > 0.0) == slower).then_some(slower)
    }
}

/// The published means, Dilithium2 less Falcon-512, by loss.
pub(super) fn theirs(published: &[Curve], kem: &str, rtt_us: u64) -> Vec<Less> {
    let [Some(dilithium), Some(falcon)] =
        [0, 1].map(|index: usize| curve(published, kem, SIGNATURES[index].name, rtt_us))
    else {
        return Vec::new();
    };
    dilithium
        .points
        .iter()
        .zip(&falcon.points)
        .map(|(one, other)| Less {
            loss: tables::hundred(one.loss),
            mean_ms: one.mean_ms - other.mean_ms,
            passes_ms: one
                .passes_ms
                .zip(other.passes_ms)
                .map(|(one, other)| [one[0] - other[0], one[1] - other[1]]),
        })
        .collect()
}

/// The losses in per cent between which published differences turn from below zero to above, for good. They have no
/// intervals: only points at which the passes agree in sign count. Where no passes are quoted, the sign of the mean does.
pub(super) fn reversal(points: &[Less]) -> Option<(f64, f64)> {
    let told: Vec<(f64, bool)> =
        points.iter().filter_map(|point| Some((point.loss, point.is_slower()?))).collect();
    let below = told.iter().rposition(|(_, slower)| !slower)?;
    let ((from, _), (to, _)) = (told.get(below)?, told.get(below + 1)?);
    Some((*from, *to))
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
            theirs(&study.published, KEMS[0].name, rtt_us)
                .iter()
                .map(|less| [less.loss, less.mean_ms])
                .collect(),
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
                  to 40 ms, so that its line is no more exact than that; at 5 % they differ in sign, so that the line's crossing of zero below 5 % tells \
                  nothing."
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
        // At 5 % the mean is above zero, and one of the passes is not.
        assert_eq!(reversal(&longest), Some((2.5, 7.5)));
        let rounded: Vec<f64> = longest.iter().map(|less| short(less.mean_ms)).collect();
        assert_eq!([rounded[0], rounded[3], rounded[5]], [-3.37, 3.55, 29.1]);
        assert_eq!(longest[3].passes_ms.unwrap().map(short), [-8.01, 15.1]);
        assert_eq!(longest[4].passes_ms.unwrap().map(short), [19.0, 23.4]);
        assert_eq!(reversal(&[]), None);
    }

    /// The data turn the bracket: a pass of the other sign widens it, and takes it away at the last point.
    #[test]
    fn points_whose_passes_disagree_do_not_count() {
        let less = |loss: f64, passes: [f64; 2]| Less {
            loss,
            mean_ms: f64::midpoint(passes[0], passes[1]),
            passes_ms: Some(passes),
        };
        let below = less(1.0, [-3.0, -2.0]);
        assert_eq!(reversal(&[below, less(5.0, [1.0, 2.0])]), Some((1.0, 5.0)));
        assert_eq!(reversal(&[below, less(5.0, [-1.0, 2.0])]), None);
        let high = less(7.5, [4.0, 6.0]);
        assert_eq!(reversal(&[below, less(5.0, [-1.0, 2.0]), high]), Some((1.0, 7.5)));
        assert_eq!(reversal(&[below, less(5.0, [-2.0, 1.0]), high]), Some((1.0, 7.5)));
        assert_eq!(reversal(&[below, less(5.0, [-2.0, -1.0]), high]), Some((5.0, 7.5)));
        assert_eq!(reversal(&[high]), None, "there is nothing to turn from");
        // Without passes the mean alone tells.
        let alone = Less { passes_ms: None, ..less(5.0, [-1.0, 2.0]) };
        assert_eq!(reversal(&[below, alone]), Some((1.0, 5.0)));
    }
}
