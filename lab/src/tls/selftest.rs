//! The accuracy that is promised of the CPU engine, as checks.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::implementation::{Handshaker, Stack};
use super::rounds::{Measured, PROCESSES, Part, ROUNDS, measure};
use super::rustls::Rustls;
use crate::error::LabError;
use crate::run::Settings;
use crate::selftest::check::{Check, Checked};
use crate::subject::{Kind, Subject};
use crate::trace::Side;

/// Rounds per process in the short form.
const SHORT: usize = 150;

/// Checks of ratios and sizes.
pub const CHECKS: &[Check] = &[
    // A 95 % interval misses once in twenty times; twice in a row once in four hundred.
    Check {
        name: "CPU: ratios on a busy machine",
        estimate: ratios_take,
        timed: true,
        run: ratios,
    },
    Check {
        name: "CPU: bytes of a hybrid",
        estimate: |_| Duration::from_secs(1),
        timed: false,
        run: bytes,
    },
];

fn pair() -> Result<[Subject; 2], LabError> {
    Ok([
        Subject::new("X25519MLKEM768", "ECDSA P-256", 1)?,
        Subject::new("x25519", "ECDSA P-256", 1)?,
    ])
}

fn ratios_take(short: bool) -> Duration {
    Duration::from_secs(if short { 6 } else { 10 })
}

fn ratios(settings: &Settings, short: bool, stop: &AtomicBool) -> Result<Vec<Checked>, LabError> {
    let [hybrid, classical] = pair()?;
    let subjects = [hybrid, classical, classical];
    let rounds = if short { SHORT } else { ROUNDS };
    let measured = measure(settings, "rustls", &subjects, PROCESSES, rounds, stop)?;
    let ratio = measured.ratio(0, 1, Part::Both, settings.seed);
    let control = same_is_same(settings, &measured);
    Ok(vec![
        control,
        Checked {
            measured: format!(
                "X25519MLKEM768 over x25519 on rustls: {:.4} [{:.4}, {:.4}]",
                ratio.value, ratio.low, ratio.high
            ),
            limit: "1.10 to 1.30".to_owned(),
            met: Some((1.10..=1.30).contains(&ratio.value)),
        },
    ])
}

fn same_is_same(settings: &Settings, measured: &Measured) -> Checked {
    let control = measured.control("x25519", 1, 2, Part::Both, settings.seed);
    Checked {
        measured: format!(
            "x25519 over itself: {:.4} [{:.4}, {:.4}]",
            control.ratio, control.low, control.high
        ),
        limit: "the interval contains 1 and is within 0.98 to 1.02".to_owned(),
        met: Some(control.holds() && control.low >= 0.98 && control.high <= 1.02),
    }
}

fn bytes(_: &Settings, _: bool, _: &AtomicBool) -> Result<Vec<Checked>, LabError> {
    let mut checked = Vec::new();
    for kind in [Kind::Full, Kind::Mutual] {
        let [hybrid, classical] = pair()?.map(|subject| subject.kind(kind));
        let sent = |subject: &Subject| -> Result<[u64; 2], LabError> {
            let mut handshaker: Box<dyn Handshaker> = Rustls.prepare(subject)?;
            let trace = handshaker.handshake()?;
            Ok([trace.bytes(Side::Client), trace.bytes(Side::Server)])
        };
        let (over, under) = (sent(&hybrid)?, sent(&classical)?);
        let [client, server] = [0, 1].map(|side| i128::from(over[side]) - i128::from(under[side]));
        checked.push(Checked {
            measured: format!(
                "{}: {client:+} and {server:+}, {:+} bytes",
                hybrid.name(),
                client + server
            ),
            limit: "client +1184 and server +1088, +2272 bytes".to_owned(),
            met: Some((client, server) == (1184, 1088)),
        });
    }
    Ok(checked)
}
