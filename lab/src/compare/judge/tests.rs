//! Simulated runs of which it is known what changed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::spread::{trigamma, trigamma_inverse};
use super::*;

/// Approximately normal: the sum of twelve.
fn normal(random: &mut Pcg64Mcg) -> f64 {
    (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
}

/// What varies, as shares: passes of one figure, runs of one figure, passes as wholes, runs as wholes.
#[derive(Clone, Copy)]
struct Noise {
    passes: f64,
    runs: f64,
    whole_passes: f64,
    whole_runs: f64,
}

const CALM: Noise = Noise { passes: 1.0, runs: 0.0, whole_passes: 0.0, whole_runs: 0.0 };
/// As on a shared machine: runs differ more than passes do.
const SHARED: Noise = Noise { passes: 1.0, runs: 1.0, whole_passes: 0.02, whole_runs: 0.05 };

/// Ten columns of 30 figures, whose noise is between a tenth of a per cent and three per cent; every tenth figure of
/// the second run is larger by `change`.
fn runs(random: &mut Pcg64Mcg, passes: usize, noise: Noise, change: f64) -> Vec<Figure> {
    let mut figures = Vec::new();
    for column in 0..10 {
        let wholes = [0, 1].map(|_| {
            let run = noise.whole_runs * normal(random);
            (0..passes).map(|_| run + noise.whole_passes * normal(random)).collect::<Vec<f64>>()
        });
        for n in 0..30 {
            let size = 10_f64.powf(random.random::<f64>() * 6.0 - 2.0);
            let own = 10_f64.powf(-1.5 - 1.5 * random.random::<f64>());
            let runs = [0, 1].map(|run: usize| {
                let apart = own * noise.runs * normal(random);
                let more = if run == 1 && n % 10 == 0 { 1.0 + change } else { 1.0 };
                let values = wholes[run].iter().map(|whole| {
                    let log = whole + apart + own * noise.passes * normal(random);
                    size * more * log.exp()
                });
                values.collect::<Vec<f64>>()
            });
            let row = format!("row {n}");
            figures.push(Figure { column: format!("e: t: {column}"), row, role: Role::Main, runs });
        }
    }
    figures
}

fn named(figures: &[Figure]) -> Vec<usize> {
    let judged = all(figures, None);
    let outside = |(n, (judgement, _)): (usize, &(Judgement, String))| {
        (*judgement == Judgement::Outside).then_some(n)
    };
    judged.figures.iter().enumerate().filter_map(outside).collect()
}

/// Of twenty pairs of equal runs at most one figure in a hundred is named, also where runs differ more than passes do.
#[test]
fn equal_runs_differ_by_noise() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    for passes in [5, 8] {
        for noise in [CALM, SHARED, Noise { runs: 0.3, ..SHARED }, Noise { runs: 3.0, ..SHARED }] {
            let pairs: Vec<usize> =
                (0..20).map(|_| named(&runs(&mut random, passes, noise, 0.0)).len()).collect();
            // 300 figures in each pair.
            let named: usize = pairs.iter().sum();
            assert!(named <= 20 * 300 / 100, "{passes} passes, {} runs: {pairs:?}", noise.runs);
        }
    }
}

/// Changed figures are found among noise, and few others are named with them.
#[test]
fn what_changed_is_named() {
    let mut random = Pcg64Mcg::seed_from_u64(2);
    for (noise, change, least) in [(CALM, 0.2, 27), (SHARED, 0.5, 27), (SHARED, 0.1, 8)] {
        let rounds = 5;
        let found: Vec<usize> =
            (0..rounds).flat_map(|_| named(&runs(&mut random, 5, noise, change))).collect();
        let right = found.iter().filter(|n| *n % 10 == 0).count();
        let wrong = found.len() - right;
        assert!(right >= least * rounds, "{change}: {right} of {}", 30 * rounds);
        assert!(wrong * 10 <= found.len(), "{change}: {wrong} of {}", found.len());
    }
}

/// A change of everything is told as such, and names no figure.
#[test]
fn a_slower_machine_changes_columns_not_figures() {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let mut figures = runs(&mut random, 5, CALM, 0.0);
    for value in figures.iter_mut().flat_map(|figure| &mut figure.runs[1]) {
        *value *= 1.1;
    }
    assert!(named(&figures).len() <= 3);
    let columns = all(&figures, None).columns;
    assert_eq!(columns.len(), 10);
    for moved in columns {
        assert!((moved.percent - 10.0).abs() < 2.0, "{moved:?}");
        assert_eq!(moved.judgement, Judgement::Unknown, "nothing says how much columns move");
    }
}

fn one(role: Role, a: &[f64], b: &[f64]) -> Figure {
    Figure { column: "e: t: c".into(), row: "r".into(), role, runs: [a.to_vec(), b.to_vec()] }
}

fn judged(figure: Figure) -> (Judgement, String) {
    all(&[figure], None).figures.remove(0)
}

/// A size that never varies is judged by two passes, whatever the change. Any other figure is not: a count or a rounded
/// tail may be the same in a few passes by chance.
#[test]
fn what_never_varies_is_judged_by_itself() {
    assert_eq!(judged(one(Role::Size, &[1216.0; 2], &[1216.0; 2])).0, Judgement::Within);
    assert_eq!(judged(one(Role::Size, &[1216.0; 3], &[1217.0; 3])).0, Judgement::Outside);
    assert_eq!(judged(one(Role::Size, &[0.0; 3], &[1.0; 3])).0, Judgement::Outside);
    assert_eq!(judged(one(Role::Size, &[1216.0], &[1217.0])).1, "too few passes");
    assert_eq!(judged(one(Role::Size, &[70.0, 71.0], &[72.0; 2])).1, "a size that varies");
    for (role, a, b) in [(Role::Count, 120.0, 119.0), (Role::Tail, 4.8, 4.9)] {
        for passes in [2, 5] {
            let (judgement, _) = judged(one(role, &vec![a; passes], &vec![b; passes]));
            assert_eq!(judgement, Judgement::Unknown, "{role:?} {passes}");
        }
    }
    let main =
        |passes: usize, b: f64| judged(one(Role::Main, &vec![4.8; passes], &vec![b; passes]));
    assert_eq!(main(4, 4.9).1, "too few passes");
    assert_eq!(main(5, 4.9).0, Judgement::Outside);
    assert_eq!(main(5, 4.84).0, Judgement::Within, "less than one per cent");
    assert!(all(&[], None).figures.is_empty());
}

/// What has no interval, or too few passes, is not judged, however large the change is.
#[test]
fn no_verdict_without_grounds() {
    let (a, b) = ([1.0, 1.1, 1.0, 0.9, 1.0], [9.0, 9.1, 9.0, 8.9, 9.2]);
    let reason = |role, a: &[f64], b: &[f64]| {
        let (judgement, reason) = judged(one(role, a, b));
        assert_eq!(judgement, Judgement::Unknown, "{reason}");
        reason
    };
    assert_eq!(reason(Role::Tail, &a, &b), "a tail without an interval");
    assert_eq!(reason(Role::Count, &a, &b), "a count without an interval");
    assert_eq!(reason(Role::Difference, &a, &b), "a difference: its parts are judged");
    assert_eq!(reason(Role::Main, &a[..4], &b), "too few passes");
    assert_eq!(reason(Role::Main, &[1.0], &[2.0]), "too few passes");
    assert_eq!(reason(Role::Main, &[1.0, -1.0, 1.0, 1.0, 1.0], &b), "not above zero in every pass");
    assert_eq!(judged(one(Role::Main, &a, &b)).0, Judgement::Outside);
}

/// However sure it is, a change of less than one per cent is not named.
#[test]
fn small_changes_are_not_named() {
    let times = |factor: f64| [1.0, 1.0001, 0.9999, 1.0, 1.0002].map(|value| value * factor);
    assert_eq!(judged(one(Role::Main, &times(1.0), &times(1.009))).0, Judgement::Within);
    assert_eq!(judged(one(Role::Main, &times(1.0), &times(1.011))).0, Judgement::Outside);
}

#[test]
fn functions_have_their_known_values() {
    // pi^2 / 6, pi^2 / 2, and pi^2 / 6 - 1.
    for (x, value) in [(1.0, 1.644_934_066_8), (0.5, 4.934_802_200_5), (2.0, 0.644_934_066_8)] {
        assert!((trigamma(x) - value).abs() < 1e-9, "{x}");
        assert!((trigamma_inverse(value) - x).abs() < 1e-6, "{value}");
    }
    assert!((median_of_t(4.0) - 0.740_697).abs() < 1e-5);
    assert_eq!(bound([0.001, 0.02, 0.9].into_iter()), 0.02);
    assert_eq!(bound([0.5, 0.9].into_iter()), -1.0);
    // Equal variances of 1 and 5 passes each: the error is the root of 2/5, with 8 degrees of freedom.
    let (error, df) = welch(&[vec![0.0; 5], vec![0.0; 5]], |_| (1.0, 4.0));
    assert!((error - 0.4_f64.sqrt()).abs() < 1e-12 && (df - 8.0).abs() < 1e-9);
}
