//! Asks a witness to cosign a checkpoint.
//!
//! Every step has a time limit, so callers should wait in the background. Only what the witness's key has signed is
//! believed.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::response::Parts;
use http::{Method, Uri};
use outlast_tlog::note::NoteError;
use outlast_tlog::witness::{AddCheckpoint, parse_cosignatures, parse_size};
use outlast_tlog::{Hash, NoteSignature, SignedCheckpoint, VerifierKey};
use tokio::time::{sleep, timeout};

use crate::client::Connector;
use crate::exchange::Origin;
use crate::limits;

/// How often a witness may name another size before it cosigns.
const SIZES: usize = 4;

/// Why there is no cosignature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// Not an HTTP URL, or an HTTPS URL without trusted roots.
    #[error("{0} is not the URL of a witness")]
    Url(String),
    /// The connection failed, broke or took too long. Retried.
    #[error("the witness cannot be reached: {0}")]
    Unreachable(String),
    /// The witness reports that it cannot answer now. Retried.
    #[error("the witness answered with status {0}")]
    Unavailable(u16),
    /// The witness does not know the log.
    #[error("the witness does not know the log")]
    UnknownLog,
    /// The witness rejects the log's signature.
    #[error("the witness does not accept the log's signature")]
    NotAccepted,
    /// The witness refused for another reason.
    #[error("the witness refused with status {0}")]
    Refused(u16),
    /// The response is malformed, or contains a signature that is not its own.
    #[error("the witness's answer cannot be used: {0}")]
    Answer(String),
    /// It has cosigned a larger tree: this log was larger before.
    #[error(
        "the witness has cosigned {witnessed} entries of this log, which now has {size}: the log was rolled back"
    )]
    Ahead {
        /// Size that it cosigned.
        witnessed: u64,
        /// Requested size.
        size: u64,
    },
    /// It has cosigned another tree of the same size.
    #[error(
        "the witness has cosigned another tree of {0} entries of this log: the log has two histories"
    )]
    Forked(u64),
    /// It rejects the proof that the tree which it cosigned last is a prefix of this one.
    #[error(
        "the witness finds the log inconsistent with the {0} entries that it has cosigned: the log has two histories"
    )]
    Inconsistent(u64),
    /// The consistency proof that it needs could not be made.
    #[error(
        "the log cannot be proved consistent with the {old} entries that the witness has cosigned: {reason}"
    )]
    NoProof {
        /// Size that it cosigned.
        old: u64,
        /// What went wrong.
        reason: String,
    },
}

impl WitnessError {
    /// Whether it reports that the log's history has changed, which needs an operator and not another attempt.
    pub fn is_alarm(&self) -> bool {
        matches!(self, Self::Ahead { .. } | Self::Forked(_) | Self::Inconsistent(_))
    }

    /// Whether another attempt may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Unavailable(_))
    }
}

/// A witness to call.
pub struct Witness {
    keys: Vec<VerifierKey>,
    url: String,
    uri: Uri,
    origin: Origin,
    tls: Option<Connector>,
    /// The size that it is believed to have cosigned last.
    known: AtomicU64,
}

impl Witness {
    /// The witness with this key at this submission prefix, `http://host/prefix`, or `https://` with `tls`.
    pub fn new(key: VerifierKey, url: &str, tls: Option<Connector>) -> Result<Self, WitnessError> {
        let wrong = || WitnessError::Url(url.chars().take(200).collect());
        let uri: Uri =
            format!("{}/add-checkpoint", url.trim_end_matches('/')).parse().map_err(|_| wrong())?;
        let origin = Origin::of(&uri).ok_or_else(wrong)?;
        if origin.is_tls && tls.is_none() || !key.algorithm().of_witnesses {
            return Err(wrong());
        }
        let url = url.to_owned();
        Ok(Self { keys: vec![key], url, uri, origin, tls, known: AtomicU64::new(0) })
    }

    /// Name of its key.
    pub fn name(&self) -> &str {
        self.keys.first().map_or("", VerifierKey::name)
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the size that the next request assumes it knows. A wrong one costs one round trip.
    pub fn assume(&self, size: u64) {
        self.known.store(size, Ordering::Relaxed);
    }

    async fn post(&self, body: Vec<u8>) -> Result<(u16, Bytes), WitnessError> {
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let request = self.origin.request(Method::POST, path);
        let request = request
            .header(CONTENT_TYPE, "text/plain; charset=utf-8")
            .body(Bytes::from(body))
            .map_err(|_| WitnessError::Url(self.url.clone()))?;
        let wanted = |_: &Parts| limits::MAX_WITNESS_ANSWER;
        let exchange = self.origin.exchange(self.tls.as_ref(), request, wanted);
        match timeout(limits::WITNESS_ANSWER, exchange).await {
            Ok(Ok(response)) => Ok((response.status().as_u16(), response.into_body())),
            Ok(Err(error)) => Err(WitnessError::Unreachable(error.to_string())),
            Err(_) => {
                let seconds = limits::WITNESS_ANSWER.as_secs();
                Err(WitnessError::Unreachable(format!("no answer within {seconds} seconds")))
            }
        }
    }
}

/// The witness's cosignatures of a checkpoint, each verified. `prove` returns the consistency proof from a size to
/// the checkpoint's; it is called for sizes in between. Temporary failures are retried, for less than a minute in
/// all.
pub async fn cosign<E: Display>(
    witness: &Witness,
    checkpoint: &SignedCheckpoint,
    prove: impl Fn(u64) -> Result<Vec<Hash>, E>,
) -> Result<Vec<NoteSignature>, WitnessError> {
    let mut pause = limits::WITNESS_PAUSE;
    for _ in 1..limits::WITNESS_ATTEMPTS {
        match ask(witness, checkpoint, &prove).await {
            Err(error) if error.is_transient() => {
                tracing::debug!(witness = witness.name(), %error, "trying again");
                sleep(pause).await;
                pause *= 2;
            }
            outcome => return outcome,
        }
    }
    ask(witness, checkpoint, &prove).await
}

async fn ask<E: Display>(
    witness: &Witness,
    checkpoint: &SignedCheckpoint,
    prove: &impl Fn(u64) -> Result<Vec<Hash>, E>,
) -> Result<Vec<NoteSignature>, WitnessError> {
    let size = checkpoint.checkpoint().size();
    let mut old = witness.known.load(Ordering::Relaxed).min(size);
    let mut told = false;
    for _ in 0..SIZES {
        let proof = if old == 0 || old == size { Ok(Vec::new()) } else { prove(old) };
        let proof = match proof {
            Ok(proof) => proof,
            // The size was only assumed, so the witness is asked instead.
            Err(_) if !told => {
                old = 0;
                Vec::new()
            }
            Err(error) => return Err(WitnessError::NoProof { old, reason: error.to_string() }),
        };
        let request = AddCheckpoint { old, proof, checkpoint: checkpoint.clone() };
        let (status, body) = witness.post(request.to_string().into_bytes()).await?;
        match status {
            200 => {
                let signatures = parse_cosignatures(&body, checkpoint, &witness.keys)
                    .map_err(|error: NoteError| WitnessError::Answer(error.to_string()))?;
                witness.assume(size);
                return Ok(signatures);
            }
            409 => match parse_size(&body) {
                Some(witnessed) if witnessed > size => {
                    return Err(WitnessError::Ahead { witnessed, size });
                }
                Some(witnessed) if witnessed != old => {
                    witness.assume(witnessed);
                    (old, told) = (witnessed, true);
                }
                // The same size with another root.
                _ if old == size => return Err(WitnessError::Forked(size)),
                _ => {
                    return Err(WitnessError::Answer("a conflict that names no other size".into()));
                }
            },
            422 => return Err(WitnessError::Inconsistent(old)),
            404 => return Err(WitnessError::UnknownLog),
            403 => return Err(WitnessError::NotAccepted),
            408 | 429 | 500..=599 => return Err(WitnessError::Unavailable(status)),
            _ => return Err(WitnessError::Refused(status)),
        }
    }
    Err(WitnessError::Answer("it names a different size each time".into()))
}
