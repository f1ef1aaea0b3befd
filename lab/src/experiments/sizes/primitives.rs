//! Processor time of the primitives: all in turn, in random order.

use std::hint::black_box;
use std::time::Duration;

use outlast_crypto::signatures::Message;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use rustls::SignatureScheme;
use serde::{Deserialize, Serialize};
use spki::SubjectPublicKeyInfoRef;
use spki::der::Decode;

use super::keys::{self, Made};
use crate::error::LabError;
use crate::subject::{Authentication, authentications, key_exchanges};
use crate::time::thread_cpu;

/// Length of what CertificateVerify signs under SHA-384 (RFC 8446, section 4.4.3).
const MESSAGE: usize = 146;
/// Most samples.
const MOST: usize = 1000;
/// Fewest samples, unless they take too long.
const LEAST: usize = 5;
/// Name of the second measurement of one algorithm, for the control.
pub const AGAIN: &str = "x25519 again";

/// An algorithm's operations.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Timing {
    /// The algorithm.
    pub name: String,
    /// Whether it exchanges keys, or signs.
    pub exchange: bool,
    /// Whether it is from the literature.
    pub legacy: bool,
    /// The operations' names.
    pub parts: Vec<String>,
    /// Nanoseconds of each operation, by sample.
    pub samples: Vec<Vec<u32>>,
}

/// Messages, each a new one: the number of attempts of a deterministic algorithm depends on the message.
#[derive(Default)]
struct Messages(u64);

impl Messages {
    fn next(&mut self) -> [u8; MESSAGE] {
        self.0 += 1;
        let mut message = [0x20; MESSAGE];
        for (place, byte) in message.iter_mut().zip(self.0.to_be_bytes()) {
            *place = byte;
        }
        message
    }
}

type Measured = Result<Vec<Duration>, LabError>;

struct Operation {
    name: String,
    exchange: bool,
    legacy: bool,
    parts: &'static [&'static str],
    run: Box<dyn FnMut() -> Measured>,
    samples: Vec<Vec<u32>>,
    spent: Duration,
}

/// Operations of a key exchange.
pub const EXCHANGE: &[&str] = &["key pair", "encapsulation", "decapsulation"];
/// Operations of a signature algorithm: making keys is measured separately, because it may take a thousand times as
/// long.
pub const SIGN: &[&str] = &["signature", "verification"];
/// Making keys.
pub const GENERATE: &[&str] = &["key pair"];

/// Measures every algorithm, each operation for about this long.
pub fn measure(
    seed: u64,
    budget: Duration,
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<Timing>, LabError> {
    let mut operations = exchanges();
    operations.extend(signatures()?);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    // Fills caches, and seeds AWS-LC's randomness.
    for operation in &mut operations {
        let first = (operation.run)()?;
        operation.spent = first.iter().sum();
        // An operation that takes longer than its budget is not repeated.
        if operation.spent > budget * 2 {
            operation.samples.push(nanos(&first));
            operation.spent = Duration::MAX;
        } else {
            operation.spent = Duration::ZERO;
        }
    }
    let mut order: Vec<usize> = (0..operations.len()).collect();
    while !order.is_empty() {
        if stopped() {
            return Err(LabError::Interrupted);
        }
        order.shuffle(&mut random);
        for &index in &order {
            let Some(operation) = operations.get_mut(index) else { continue };
            if operation.spent == Duration::MAX {
                continue;
            }
            let times = (operation.run)()?;
            operation.spent += times.iter().sum::<Duration>();
            operation.samples.push(nanos(&times));
        }
        order.retain(|index| {
            operations.get(*index).is_some_and(|operation| {
                let count = operation.samples.len();
                operation.spent < Duration::MAX
                    && count < MOST
                    && (operation.spent < budget || count < LEAST)
            })
        });
    }
    Ok(operations
        .into_iter()
        .map(|operation| Timing {
            name: operation.name,
            exchange: operation.exchange,
            legacy: operation.legacy,
            parts: operation.parts.iter().map(ToString::to_string).collect(),
            samples: operation.samples,
        })
        .collect())
}

fn nanos(times: &[Duration]) -> Vec<u32> {
    times.iter().map(|time| u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)).collect()
}

/// Through rustls's interface, so that groups and mechanisms are measured in the same way.
fn exchanges() -> Vec<Operation> {
    let mut rows: Vec<_> = key_exchanges().iter().map(|row| (row.name.to_owned(), row)).collect();
    rows.extend(
        rows.iter().find(|(name, _)| name == "x25519").map(|(_, row)| (AGAIN.to_owned(), *row)),
    );
    rows.into_iter()
        .map(|(name, row)| Operation {
            name,
            exchange: true,
            legacy: row.legacy,
            parts: EXCHANGE,
            run: Box::new(|| {
                let begun = thread_cpu();
                let client = row.group.start().map_err(LabError::failed)?;
                let started = thread_cpu();
                let server =
                    row.group.start_and_complete(client.pub_key()).map_err(LabError::failed)?;
                let answered = thread_cpu();
                let secret = client.complete(&server.pub_key).map_err(LabError::failed)?;
                let done = thread_cpu();
                if secret.secret_bytes() != server.secret.secret_bytes() {
                    return Err(LabError::Failed(format!("{}: two secrets", row.name)));
                }
                Ok(vec![started - begun, answered - started, done - answered])
            }),
            samples: Vec::new(),
            spent: Duration::ZERO,
        })
        .collect()
}

fn signatures() -> Result<Vec<Operation>, LabError> {
    let mut rows = Vec::new();
    for (spec, algorithm) in keys::specs() {
        let name = keys::name(spec);
        rows.push(operation(
            name.clone(),
            false,
            GENERATE,
            Box::new(move || {
                let begun = thread_cpu();
                let stored = spec.generate().map_err(LabError::failed)?;
                // The stored form may be a seed: only the loaded form is a key.
                let key = spec.load(&stored).map_err(LabError::failed)?;
                black_box(key.public_key().map(<[u8]>::len));
                Ok(vec![thread_cpu() - begun])
            }),
        ));
        let made = Made::new(spec)?;
        let mut messages = Messages::default();
        rows.push(operation(
            name,
            false,
            SIGN,
            Box::new(move || {
                let message = messages.next();
                let begun = thread_cpu();
                let signature =
                    made.key.sign(algorithm, Message::Raw(&message)).map_err(LabError::failed)?;
                let signed = thread_cpu();
                let right = algorithm.verify(made.spki()?, Message::Raw(&message), &signature);
                let done = thread_cpu();
                right.map_err(LabError::failed)?;
                Ok(vec![signed - begun, done - signed])
            }),
        ));
    }
    for row in authentications().iter().filter(|row| row.legacy) {
        rows.push(operation(
            row.name.to_owned(),
            true,
            GENERATE,
            Box::new(|| {
                let begun = thread_cpu();
                black_box(row.maker.generate()?.public_key().len());
                Ok(vec![thread_cpu() - begun])
            }),
        ));
        rows.push(operation(row.name.to_owned(), true, SIGN, literature(row)?));
    }
    Ok(rows)
}

fn operation(
    name: String,
    legacy: bool,
    parts: &'static [&'static str],
    run: Box<dyn FnMut() -> Measured>,
) -> Operation {
    Operation {
        name,
        exchange: false,
        legacy,
        parts,
        run,
        samples: Vec::new(),
        spent: Duration::ZERO,
    }
}

/// Signs as in a certificate and verifies as in a handshake.
fn literature(row: &'static Authentication) -> Result<Box<dyn FnMut() -> Measured>, LabError> {
    let pair = row.maker.generate()?;
    let spki = SubjectPublicKeyInfoRef::from_der(pair.public_key()).map_err(LabError::failed)?;
    let public_key = spki.subject_public_key.raw_bytes().to_vec();
    let wanted = SignatureScheme::from(row.code_point);
    let known = row.maker.verification();
    let verifiers = known.mapping.iter().find(|(scheme, _)| *scheme == wanted);
    let verifier = verifiers
        .and_then(|(_, verifiers)| verifiers.first().copied())
        .ok_or_else(|| LabError::Failed(format!("{} has no verifier", row.name)))?;
    let mut messages = Messages::default();
    Ok(Box::new(move || {
        let message = messages.next();
        let begun = thread_cpu();
        let signature = pair.sign(&message)?;
        let signed = thread_cpu();
        let right = verifier.verify_signature(&public_key, &message, &signature);
        let done = thread_cpu();
        right.map_err(|error| LabError::Failed(format!("{}: {error:?}", row.name)))?;
        Ok(vec![signed - begun, done - signed])
    }))
}
