//! `quic-rate`: connections over QUIC, by wall clock and by processor time, and the round trips that large chains
//! cost.

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

/// The experiment's row.
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

/// A part of the experiment.
type Part = fn(&mut Run<'_>) -> Result<(), LabError>;

fn estimate(settings: &Settings) -> Duration {
    rate::estimate(settings.quick)
        + grid::estimate(settings.quick)
        + limit::ESTIMATE
        + live::estimate(settings.quick)
}

fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let mut failed = None;
    for (part, optional) in
        [(rate::run as Part, false), (limit::run, false), (grid::run, false), (live::run, true)]
    {
        match part(run) {
            Err(error @ LabError::Unavailable { .. }) => {
                run.left_out(&format!("Not measured: {error}."));
            }
            // The other parts do not depend on it.
            Err(error @ (LabError::Peer { .. } | LabError::Failed(_))) if !run.stopped() => {
                run.left_out(&format!("A part failed, and is not among the results: {error}."));
                if !optional {
                    failed.get_or_insert(error);
                }
            }
            done => done?,
        }
    }
    run.note("Virtual time stands still while processors compute: what is in it is the network's share of a handshake, exactly. The processors' share is in handshake-cost, and in the live table here.");
    run.note("In virtual time both ends are s2n-quic 1.91 with its own defaults, which the live endpoint has, too: datagrams of 1200 bytes until the handshake is over (MTU discovery up to 1472 comes later), an assumed round trip of 333 ms before the first sample, ten datagrams of congestion window, pacing. Its rustls provider sends no tickets; those of resumed handshakes come from a handshake in memory.");
    run.note("CertificateVerify with ECDSA is signed again until it has its full length, so that a trace repeats to the byte in any process; one or two bytes less would be usual.");
    failed.map_or(Ok(()), Err)
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::result::{Findings, Marks, Verdict};
    use crate::run::Progress;

    struct Silent;

    impl Progress for Silent {
        fn begin(&self, _: &'static str, _: Duration) {}
        fn measuring(&self, _: &str) {}
        fn done(&self, _: Duration, _: bool) {}
        fn say(&self, _: &str) {}
        fn end(&self, _: &'static str, _: &Result<(), LabError>) {}
    }

    fn told(part: fn(&mut Run<'_>) -> Result<(), LabError>) -> Findings {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            quick: true,
            seed: 1,
            plan: None,
            version: String::new(),
            executable: PathBuf::new(),
        };
        let never = AtomicBool::new(false);
        let mut run =
            Run::open(folder.path(), EXPERIMENT.name, &settings, &Silent, &never).unwrap();
        part(&mut run).unwrap();
        run.into_findings()
    }

    #[test]
    fn chains_pass_the_limit_in_steps_and_the_hybrid_later() {
        let findings = told(limit::run);
        assert_eq!(findings.findings[0].verdict, Verdict::Holds);
        assert!(findings.summary[0].contains("(60 ms instead of 30"), "{:?}", findings.summary);
        let chart = |name: &str| findings.charts.iter().find(|chart| chart.name == name).unwrap();
        let Marks::Steps { series } = &chart("quic-chain-steps").marks else { panic!("no steps") };
        // The first step comes from the server's credit.
        let steps: Vec<f64> = series
            .iter()
            .map(|series| {
                assert!(
                    series
                        .points
                        .is_sorted_by(|one, other| one[0] <= other[0] && one[1] <= other[1] + 8.0)
                );
                series.points.iter().find(|point| point[1] > 30.0).unwrap()[0]
            })
            .collect();
        assert!(3.6 < steps[0] && steps[0] < 7.2 && 7.2 < steps[1], "{steps:?}");
        let Marks::Bars { categories, parts, .. } = &chart("quic-flights").marks else {
            panic!("no bars")
        };
        assert_eq!(categories.len(), 16);
        assert!(parts.iter().all(|(_, values)| values.len() == 16));
    }
}
