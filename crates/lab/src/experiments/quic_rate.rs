//! `quic-rate`: connections over QUIC, by the clock and by the processor, and round trips that large chains cost.

mod grid;
mod limit;
mod live;
mod rate;

use std::time::Duration;

use crate::error::LabError;
use crate::experiment::{Engine, Experiment};
use crate::result::Value;
use crate::run::{Run, Settings};
use crate::statistics::Estimate;
use crate::subject::Subject;

/// The row.
pub const EXPERIMENT: Experiment = Experiment {
    name: "quic-rate",
    title: "Connections over QUIC",
    question: "How many connections a second does post-quantum cost over QUIC, and when does it cost a round trip?",
    source: "AWS Security Blog, Enable post-quantum key exchange in QUIC with the s2n-quic library, 2022, https://aws.amazon.com/blogs/security/enable-post-quantum-key-exchange-in-quic-with-the-s2n-quic-library/: 10,000 sequential connections, one byte each way. Extended by ML-DSA, links with loss, and the anti-amplification limit (RFC 9000, section 8.1).",
    engines: &[Engine::Quic],
    estimate,
    run,
};

/// IANA writes it in lower case.
const CLASSICAL: &str = "x25519";
const HYBRID: &str = "X25519MLKEM768";
const ECDSA: &str = "ECDSA P-256";

fn estimate(settings: &Settings) -> Duration {
    rate::estimate(settings.quick)
        + grid::estimate(settings.quick)
        + limit::ESTIMATE
        + live::estimate(settings.quick)
}

fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    for part in [rate::run, limit::run, grid::run, live::run] {
        match part(run) {
            Err(LabError::Unavailable { what, needs }) => {
                run.note(format!("Not measured: {what}, which needs {needs}."));
            }
            done => done?,
        }
    }
    run.note("Virtual time stands still while processors compute: what is in it is the network's share of a handshake, exactly. The processors' share is in handshake-cost, and in the live table here.");
    run.note("In virtual time both ends are s2n-quic 1.91 with its own defaults, which the live endpoint has, too: datagrams of 1200 bytes until the handshake is over (MTU discovery up to 1472 comes later), an assumed round trip of 333 ms before the first sample, ten datagrams of congestion window, pacing. Its rustls provider sends no tickets; those of resumed handshakes come from a handshake in memory.");
    run.note("CertificateVerify with ECDSA is signed again until it has its full length, so that a trace repeats to the byte in any process; one or two bytes less would be usual.");
    Ok(())
}

/// What is compared everywhere: names and subjects.
fn subjects() -> Result<Vec<Subject>, LabError> {
    [(CLASSICAL, ECDSA), (HYBRID, ECDSA), (HYBRID, "ML-DSA-44"), (HYBRID, "ML-DSA-65")]
        .into_iter()
        .map(|(group, signature)| Subject::new(group, signature, 2))
        .collect()
}

/// Rounded for tables.
fn rounded(value: f64, digits: i32) -> Value {
    let unit = 10f64.powi(digits);
    Value::Number((value * unit).round() / unit)
}

/// A ratio as a change in per cent with its interval.
fn change(ratio: Estimate) -> String {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    format!(
        "{:+.1} % [{:+.1}, {:+.1}]",
        percent(ratio.value),
        percent(ratio.low),
        percent(ratio.high)
    )
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of connections and bytes of flights")]
fn float(count: u64) -> f64 {
    count as f64
}
