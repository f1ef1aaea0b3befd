//! The grids, quick and full, as data.

use std::time::Duration;

use crate::error::LabError;
use crate::experiments::play::{self, GridPoint};
use crate::experiments::validation::{self, Job};
use crate::link::{Link, Transfer};
use crate::model::{PROFILES, Profile};
use crate::subject::{Kind, Subject, authentications, key_exchanges};

/// The baseline.
pub(super) const CLASSICAL: (&str, &str) = ("x25519", "ECDSA P-256");
/// Its first replacement.
pub(super) const HYBRID: (&str, &str) = ("X25519MLKEM768", "ECDSA P-256");
/// The next step, with ML-DSA-44.
pub(super) const HYBRID_44: (&str, &str) = ("X25519MLKEM768", "ML-DSA-44");
/// The same with ML-DSA-65.
pub(super) const HYBRID_65: (&str, &str) = ("X25519MLKEM768", "ML-DSA-65");
/// Pairs that are compared at every point.
pub(super) const CHOSEN: [(&str, &str); 4] = [CLASSICAL, HYBRID, HYBRID_44, HYBRID_65];

/// Usual chain length of the server, without the root: a leaf and an intermediate.
pub(super) const CERTIFICATES: u8 = 2;

/// A transfer of nothing: only the handshake matters.
pub(super) const HANDSHAKE: Transfer = Transfer { request: 0, body: 0 };

/// RTT of the point whose times are shown one by one, in microseconds.
pub(super) const CLOSE_RTT_US: u64 = 30_000;
/// Its loss.
pub(super) const CLOSE_LOSS: f64 = 0.05;

/// RTT of the 2022 study's longest link, in microseconds: 98.5 ms in each direction.
pub(super) const LONGEST_RTT_US: u64 = 197_000;

/// Links and connections of a part.
pub(super) struct Shape {
    /// Round-trip times in microseconds.
    pub(super) rtt_us: &'static [u64],
    /// Losses in each direction.
    pub(super) loss: &'static [f64],
    /// Connections of each contender.
    pub(super) count: u64,
}

/// Pairs of key exchange and signature.
pub(super) fn pairs(quick: bool) -> Shape {
    if quick {
        return Shape {
            rtt_us: &[1_000, 5_500, 30_000, 100_000],
            loss: &[0.0, 0.005, 0.01, 0.02, 0.05, 0.1],
            count: 2_000,
        };
    }
    Shape {
        rtt_us: &[1_000, 5_500, 30_000, 100_000, 200_000],
        loss: &[0.0, 0.001, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2],
        count: 6_000,
    }
}

/// Chain lengths and kinds of handshakes.
pub(super) fn variants(quick: bool) -> (Shape, &'static [u8]) {
    if quick {
        let shape = Shape { rtt_us: &[30_000], loss: &[0.0, 0.02, 0.05], count: 2_000 };
        return (shape, &[1, 2, 3]);
    }
    let shape = Shape {
        rtt_us: &[1_000, 5_500, 30_000, 100_000],
        loss: &[0.0, 0.01, 0.02, 0.05, 0.1],
        count: 6_000,
    };
    (shape, &[1, 2, 3, 4])
}

/// Kinds of handshakes.
pub(super) const KINDS: [Kind; 4] = [Kind::Full, Kind::HelloRetry, Kind::Resumed, Kind::Mutual];

/// Times to the last byte.
pub(super) fn bodies(quick: bool) -> Shape {
    if quick {
        return Shape { rtt_us: &[5_500, 30_000, 100_000], loss: &[0.0, 0.02], count: 600 };
    }
    Shape {
        rtt_us: &[1_000, 5_500, 30_000, 100_000, 200_000],
        loss: &[0.0, 0.01, 0.02, 0.05],
        count: 3_000,
    }
}

/// Bytes of the answers.
pub(super) const BODIES: [u32; 5] = [1_000, 10_000, 50_000, 100_000, 1_000_000];

/// The 2022 study's grid, with its count also in a quick run: what 6000 handshakes can tell is one of the questions.
/// Losses in each direction: its `half_loss_rate` from 0.00 to 10.00 %; a quick run has those that are quoted.
pub(super) fn study(quick: bool) -> Shape {
    let rtt_us = &[1_000, 2_500, 5_500, CLOSE_RTT_US, LONGEST_RTT_US];
    if quick {
        return Shape { rtt_us, loss: &[0.0, 0.01, 0.025, 0.05, 0.075, 0.1], count: 6_000 };
    }
    Shape {
        rtt_us,
        loss: &[
            0.0, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05, 0.055, 0.06,
            0.065, 0.07, 0.075, 0.08, 0.085, 0.09, 0.095, 0.1,
        ],
        count: 6_000,
    }
}

/// A part's links, for its key and cost.
pub(super) fn places<'a>(
    part: &'a str,
    shape: &Shape,
    profile: &'static Profile,
    transfer: Transfer,
) -> Vec<GridPoint<'a>> {
    let place = |rtt_us: u64, loss: f64| GridPoint {
        part,
        profile,
        link: Link::new(Duration::from_micros(rtt_us), loss),
        transfer,
        count: shape.count,
        seed: None,
        raw: false,
        bytes: false,
    };
    shape
        .rtt_us
        .iter()
        .flat_map(|rtt| shape.loss.iter().map(move |loss| (*rtt, *loss)))
        .map(|(rtt, loss)| place(rtt, loss))
        .collect()
}

/// The kernel that the model behaves like.
pub(super) fn kernel() -> Result<&'static Profile, LabError> {
    PROFILES.first().ok_or_else(|| LabError::failed("there is no kernel profile"))
}

/// The baseline, then every other pair: in a quick run those that people choose between.
pub(super) fn subjects(quick: bool) -> Result<Vec<Subject>, LabError> {
    let groups: Vec<&str> = if quick {
        vec![
            "x25519",
            "secp256r1",
            "X25519MLKEM768",
            "SecP256r1MLKEM768",
            "SecP384r1MLKEM1024",
            "MLKEM768",
        ]
    } else {
        key_exchanges().iter().filter(|row| !row.legacy).map(|row| row.name).collect()
    };
    let signatures: Vec<&str> = if quick {
        vec!["ECDSA P-256", "RSA 2048", "ML-DSA-44", "ML-DSA-65"]
    } else {
        authentications().iter().filter(|row| !row.legacy).map(|row| row.name).collect()
    };
    let mut subjects = vec![Subject::new(CLASSICAL.0, CLASSICAL.1, CERTIFICATES)?];
    for signature in signatures {
        for group in &groups {
            if (*group, signature) != CLASSICAL {
                subjects.push(Subject::new(group, signature, CERTIFICATES)?);
            }
        }
    }
    Ok(subjects)
}

/// The chosen pairs with this chain and kind.
pub(super) fn chosen(kind: Kind, certificates: u8) -> Result<Vec<Subject>, LabError> {
    CHOSEN
        .iter()
        .map(|(group, signature)| Ok(Subject::new(group, signature, certificates)?.kind(kind)))
        .collect()
}

/// The name of a chosen pair with the usual chain.
pub(super) fn name((group, signature): (&str, &str)) -> String {
    format!("{group} + {signature} x{CERTIFICATES}")
}

/// Points for the live engine: classical, hybrid, hybrid with ML-DSA-65 at a handful of links.
pub(super) fn live(quick: bool) -> Result<Vec<Job>, LabError> {
    // Connections of a point without loss, and of one with: fewer than 1000 of the latter decide nothing.
    let (points, counts): (&[(u64, f64)], [u64; 2]) = if quick {
        (&[(1_000, 0.0), (5_500, 0.02), (30_000, 0.02)], [60, 60])
    } else {
        (
            &[
                (1_000, 0.0),
                (5_500, 0.0),
                (5_500, 0.05),
                (30_000, 0.0),
                (30_000, 0.02),
                (30_000, 0.05),
                (100_000, 0.01),
            ],
            [400, 1_000],
        )
    };
    let subjects: Result<Vec<Subject>, LabError> = [CLASSICAL, HYBRID, HYBRID_65]
        .iter()
        .map(|(group, signature)| Subject::new(group, signature, CERTIFICATES))
        .collect();
    let subjects = subjects?;
    let job = |&(rtt_us, loss): &(u64, f64)| Job {
        part: "beside".to_owned(),
        link: Link::new(Duration::from_micros(rtt_us), loss),
        transfer: Transfer { request: 100, body: 1000 },
        subjects: subjects.clone(),
        count: counts[usize::from(loss > 0.0)],
    };
    Ok(points.iter().map(job).collect())
}

/// Duration of everything on two processors.
pub(super) fn estimate(quick: bool) -> Duration {
    let mut total = Duration::ZERO;
    let mut add = |shape: &Shape, contenders: usize, body: u32, traces: usize| {
        let traces = u32::try_from(traces).unwrap_or(u32::MAX);
        total += play::trace_cost(quick) * traces;
        let links = shape.rtt_us.len() * shape.loss.len();
        let connections = shape.count * (contenders * links) as u64;
        total += crate::plan::model_cost(body) * u32::try_from(connections).unwrap_or(u32::MAX);
    };
    let subjects = subjects(quick).map_or(0, |list| list.len());
    add(&pairs(quick), subjects, 1, subjects);
    let (shape, chains) = variants(quick);
    let variants = chains.len() * KINDS.len() * CHOSEN.len();
    add(&shape, variants, 1, variants);
    for body in BODIES {
        add(&bodies(quick), CHOSEN.len(), body, 0);
    }
    add(&study(quick), 10, 1, 0);
    total + live(quick).map_or(Duration::ZERO, |jobs| jobs.iter().map(validation::cost).sum())
}
