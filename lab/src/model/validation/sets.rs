//! The published points as sets: those that the model was made with, and those that were held out
//! (`lab/published/holdout.toml`).

use serde::Deserialize;

use super::paquin_trace;
use super::score::{Measured, flights};
use crate::error::LabError;
use crate::link::{ClockStart, Link};
use crate::model::Profile;
use crate::published::{PAQUIN_HANDSHAKES, Row, fudan, fudan_worst, paquin, rows};

/// The sets, in their order.
const HOLDOUT: &str = include_str!("../../../published/holdout.toml");
const HELD_OUT: &str = include_str!("../../../published/paquin2019-heldout.csv");
const FRODOKEM: &str = include_str!("../../../published/paquin2019-frodokem.csv");

/// Whether a set was used to make the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Role {
    /// The model was made with it, so that agreement confirms nothing.
    #[serde(rename = "fitted")]
    Fitted,
    /// No constant of the model was chosen by it.
    #[serde(rename = "held out")]
    HeldOut,
}

impl Role {
    /// It in a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::HeldOut => "held out",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// Since when the files have not changed.
    frozen: String,
    set: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    file: String,
    sha256: String,
    profile: String,
    role: Role,
    why: String,
}

/// A set of published points.
#[derive(Debug, Clone)]
pub struct Set {
    /// Its name.
    pub name: String,
    /// Whether the model was made with it.
    pub role: Role,
    /// The kernel of its set-up, as far as that is known.
    pub profile: &'static Profile,
    /// Why it is there.
    pub why: String,
    /// Its file in lab/published, and the SHA-256 of that.
    pub file: (String, String),
    /// Since when neither has changed.
    pub frozen: String,
    /// Its points, those without loss, too.
    pub points: Vec<Measured>,
}

/// All sets.
pub fn sets() -> Result<Vec<Set>, LabError> {
    let manifest: Manifest = toml::from_str(HOLDOUT).map_err(LabError::failed)?;
    manifest
        .set
        .into_iter()
        .map(|row| {
            let points = points(&row.file)?;
            let profile = Profile::by_name(&row.profile)
                .ok_or_else(|| LabError::failed(format!("no profile {}", row.profile)))?;
            let frozen = manifest.frozen.clone();
            let file = (row.file, row.sha256);
            Ok(Set { name: row.name, role: row.role, profile, why: row.why, file, frozen, points })
        })
        .collect()
}

fn points(file: &str) -> Result<Vec<Measured>, LabError> {
    match file {
        "paquin2019.csv" => of_paquin(),
        "paquin2019-heldout.csv" => more_of_paquin(HELD_OUT),
        "paquin2019-frodokem.csv" => more_of_paquin(FRODOKEM),
        "fudan2022.csv" => of_fudan(),
        "fudan2022-worst.csv" => of_worst(),
        _ => Err(LabError::failed(format!("nothing reads {file}"))),
    }
}

/// A link as in the study of 2019.
fn gigabit(rtt_ms: f64, loss_percent: f64) -> Link {
    Link { rate_bps: Some(1_000_000_000), ..link(rtt_ms, loss_percent) }
}

fn link(rtt_ms: f64, loss_percent: f64) -> Link {
    let rtt = std::time::Duration::from_secs_f64(rtt_ms / 1e3);
    Link::new(rtt, loss_percent / 100.0)
}

fn of_paquin() -> Result<Vec<Measured>, LabError> {
    let points = paquin()?.into_iter().map(|point| Measured {
        name: format!("{} {}", point.experiment, point.algorithm),
        line: 0,
        link: gigabit(point.rtt_ms, point.loss_percent),
        handshakes: PAQUIN_HANDSHAKES,
        clock: ClockStart::Syn,
        trace: paquin_trace(&point.experiment, &point.algorithm, 0),
        quantiles: vec![
            (0.5, point.p50_ms),
            (0.75, point.p75_ms),
            (0.85, point.p85_ms),
            (0.95, point.p95_ms),
        ],
        mean_ms: None,
    });
    Ok(points.collect())
}

/// Shares of the columns of the files with all percentiles.
const SHARES: [f64; 7] = [0.25, 0.375, 0.5, 0.625, 0.75, 0.85, 0.95];

fn more_of_paquin(file: &str) -> Result<Vec<Measured>, LabError> {
    rows(file, |row: &Row| {
        let algorithm = row.text(1)?;
        let times: Option<Vec<f64>> = (4..11).map(|column| row.number(column)).collect();
        Some(Measured {
            name: format!("{} {algorithm}", row.text(0)?),
            line: 0,
            link: gigabit(row.number(2)?, row.number(3)?),
            handshakes: PAQUIN_HANDSHAKES,
            clock: ClockStart::Syn,
            trace: paquin_trace(&row.text(0)?, &algorithm, 0),
            quantiles: SHARES.into_iter().zip(times?).collect(),
            mean_ms: None,
        })
    })
}

/// Flights of the study's pairs with Kyber512 (as `tls-matrix` composes them), a chain of two certificates.
fn study_flights(kem: &str, signature: &str) -> crate::trace::Trace {
    let (share, answer) = match kem {
        "p256_lightsaber" => (672, 736),
        "p256_ntru509" => (699, 699),
        _ => (800, 736),
    };
    let rest = if signature == "p256_falcon512" { 5180 } else { 9630 };
    flights(&[198 + 65 + share], &[rest + 65 + answer], 74)
}

fn of_fudan() -> Result<Vec<Measured>, LabError> {
    let points = fudan()?.into_iter().map(|point| {
        let rtt_ms = if point.network == "near" { 5.5 } else { 30.0 };
        Measured {
            name: format!("{}, {} + {}", point.network, point.kem, point.signature),
            line: 0,
            link: link(rtt_ms, point.loss_each_direction_percent),
            handshakes: 6000,
            clock: ClockStart::Connected,
            trace: study_flights(&point.kem, &point.signature),
            quantiles: vec![(0.5, point.p50_ms), (0.95, point.p95_ms)],
            mean_ms: Some(point.mean_ms),
        }
    });
    Ok(points.collect())
}

fn of_worst() -> Result<Vec<Measured>, LabError> {
    let points = fudan_worst()?.into_iter().map(|point| {
        let [rising, falling] = point.pass_means_ms;
        Measured {
            name: format!("worst, {} + {}", point.kem, point.signature),
            line: 0,
            link: link(197.0, point.loss_each_direction_percent),
            handshakes: 6000,
            clock: ClockStart::Connected,
            trace: study_flights(&point.kem, &point.signature),
            quantiles: Vec::new(),
            mean_ms: Some(f64::midpoint(rising, falling)),
        }
    });
    Ok(points.collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use aws_lc_rs::digest;

    use super::*;

    /// Every file of published figures is in one set, and is what it was when the sets were frozen.
    #[test]
    fn sets_are_frozen() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("published");
        let manifest: Manifest = toml::from_str(HOLDOUT).unwrap();
        assert_eq!(manifest.frozen, "2026-11-27");
        let mut files = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "csv") {
                continue;
            }
            files += 1;
            let name = path.file_name().unwrap().to_str().unwrap();
            let of: Vec<&Entry> = manifest.set.iter().filter(|row| row.file == name).collect();
            let [row] = of.as_slice() else { panic!("{name} is in {} sets", of.len()) };
            let sum = digest::digest(&digest::SHA256, &std::fs::read(&path).unwrap());
            assert_eq!(hex::encode(sum), row.sha256, "{name} has changed");
        }
        assert_eq!(files, manifest.set.len());
    }

    #[test]
    fn all_points_are_in_the_sets() {
        let sets = sets().unwrap();
        let counts: Vec<(Role, usize)> =
            sets.iter().map(|set| (set.role, set.points.len())).collect();
        assert_eq!(
            counts,
            [
                (Role::Fitted, 400),
                (Role::Fitted, 100),
                (Role::HeldOut, 53),
                (Role::HeldOut, 26),
                (Role::HeldOut, 12)
            ]
        );
        for point in sets.iter().flat_map(|set| &set.points) {
            assert!(point.quantiles.is_sorted_by(|one, other| one.1 <= other.1), "{point:?}");
        }
        // The study's packets: "8 against 5".
        let packets = |signature| {
            let trace = study_flights("p256_kyber512", signature);
            trace.steps[1].bytes.div_ceil(1448)
        };
        assert_eq!((packets("p256_dilithium2"), packets("p256_falcon512")), (8, 5));
    }
}
