//! `sizes`: sizes of every group, mechanism and signature in bytes, and the time of the primitives.
//!
//! Every figure is counted from a real object: a share that was sent, a certificate that was signed, a flight that
//! was recorded. The figures of standards and submissions are next to it; algorithms that cannot run here have only
//! those.

mod claims;
mod flights;
mod keys;
mod primitives;
mod published;
mod tables;

use std::time::Duration;

use crate::error::LabError;
use crate::experiment::{Engine, Experiment};
use crate::run::{Run, Settings};
use crate::subject::{authentications, key_exchanges};

/// The experiment's row.
pub const EXPERIMENT: Experiment = Experiment {
    name: "sizes",
    title: "How large it is, and what the primitives cost",
    question: "How many bytes do keys, shares, signatures, certificates and flights take, into how many packets do they fit, and how \
               long do the primitives take?",
    source: "FIPS 203, 204 and 205; the submissions of NIST's rounds 2 and 3; the 2022 study of TLS 1.3 with Kyber, Saber, NTRU, \
             Dilithium and Falcon; the articles that say what a hybrid handshake adds",
    engines: &[Engine::Cpu],
    estimate,
    run,
};

/// Key exchange of the counted flights.
const KEY_EXCHANGE: &str = "X25519MLKEM768";
/// Numbers of certificates that are sent.
const CHAINS: [u8; 3] = [1, 2, 3];
/// Time for measuring each operation of a primitive.
const SHORT: Duration = Duration::from_millis(25);
const LONG: Duration = Duration::from_millis(500);
/// Making an RSA key takes so long that short runs have only one chain of the larger ones.
const SLOW: [&str; 2] = ["RSA 3072", "RSA 4096"];
/// Approximate time of a handshake with new certificates.
const FLIGHT: Duration = Duration::from_millis(40);

fn estimate(settings: &Settings) -> Duration {
    let exchanges = u32::try_from(key_exchanges().len()).unwrap_or_default();
    let signatures = u32::try_from(authentications().len()).unwrap_or_default();
    let each = if settings.quick { SHORT } else { LONG };
    // RSA keys and SLH-DSA signatures, whose time is fixed.
    let slow = Duration::from_secs(if settings.quick { 8 } else { 25 });
    slow + each * (exchanges + 2 * signatures + 10) * 5 / 4
        + FLIGHT * (exchanges / 4 + 4 * signatures)
}

fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let key = format!("shares of {} groups", key_exchanges().len());
    let groups = run.point(&key, FLIGHT * 10, keys::groups)?;
    let key = format!("mechanisms with {} groups", key_exchanges().len());
    let mechanisms = run.point(&key, FLIGHT, keys::mechanisms)?;
    let mut signatures = Vec::new();
    for name in keys::signing_names() {
        signatures
            .push(run.point(&format!("certificates {name}"), FLIGHT, || keys::signing(&name))?);
    }
    let mut flights = Vec::new();
    for row in authentications() {
        for certificates in CHAINS {
            if run.quick() && certificates > 1 && SLOW.contains(&row.name) {
                continue;
            }
            let key = format!("flights {KEY_EXCHANGE} + {} x{certificates}", row.name);
            let measure = || flights::measure(KEY_EXCHANGE, row.name, certificates);
            flights.push(run.point(&key, FLIGHT, measure)?);
        }
    }
    let budget = if run.quick() { SHORT } else { LONG };
    let (seed, stop) = (run.seed(), run.stop_flag());
    let operations = u32::try_from(groups.len() + 2 * signatures.len()).unwrap_or_default();
    let key = format!(
        "primitives of {} groups and {} signatures, {budget:?} each",
        groups.len(),
        signatures.len()
    );
    let stopped = || stop.load(std::sync::atomic::Ordering::Relaxed);
    let timings =
        run.point(&key, budget * operations, || primitives::measure(seed, budget, &stopped))?;
    tables::groups(run, &groups);
    tables::mechanisms(run, &mechanisms);
    tables::signatures(run, &signatures);
    tables::flights(run, &flights);
    tables::primitives(run, &timings);
    claims::check(run, &groups, &mechanisms, &signatures, &flights)?;
    notes(run, &signatures);
    Ok(())
}

fn notes(run: &mut Run<'_>, signatures: &[keys::Signing]) {
    if cfg!(feature = "legacy") {
        if !signatures.iter().any(|row| row.name.starts_with("aigis")) {
            run.note(
                "Aigis-enc and Aigis-sig are shown as published: their library is not installed. Get it by `pip install \
                 pqmagic==1.0.7`.",
            );
        }
    } else {
        run.note(
            "Algorithms of the literature (Kyber of rounds 2 and 3, Saber, NTRU, Dilithium, Falcon, Aigis) are shown as published: this \
             program was built without them. Build outlast-lab with `--features legacy` to measure them.",
        );
    }
    run.note(
        "AKCN-MLWE and Mulan of the Chinese competition are shown as published: there is no library of theirs that may be used.",
    );
}
