//! Nonces against replay (RFC 8555, section 6.5).
//!
//! A nonce contains the time it was made and a MAC under a key that all servers share, so making one writes nothing.
//! Using it writes a record in the transaction of the request, so that of two uses, on whichever servers, one fails.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlast_crypto::{hmac, random};
use serde::{Deserialize, Serialize};

use super::{AcmeError, Kind};
use crate::work::Work;
use crate::{Fault, limits};

/// Record key of the MAC key, which is made with the first endpoint.
const KEY: &str = "acme/nonce-key";
/// Length in bytes: time, random bytes, MAC.
const LEN: usize = 8 + 16 + 16;

/// A nonce that was used.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Used {
    pub made_ms: i64,
}

impl Used {
    /// Whether the nonce would be refused for its age anyway.
    pub fn is_old(&self, now_ms: i64) -> bool {
        self.made_ms + limits::ACME_NONCE_MS + SKEW_MS < now_ms
    }
}

/// Tolerance for the clocks of several servers, in milliseconds.
const SKEW_MS: i64 = 300_000;

/// Makes the MAC key, unless it exists.
pub(super) fn prepare(work: &mut Work<'_>) -> Result<(), Fault> {
    if work.secret(KEY)?.is_none() {
        work.put_secret(KEY, &random::secret(32)?)?;
    }
    Ok(())
}

/// A new nonce for an endpoint.
pub fn fresh(work: &mut Work<'_>, endpoint: &str) -> Result<String, Fault> {
    let mut bytes = Vec::with_capacity(LEN);
    bytes.extend_from_slice(&work.now_ms().to_be_bytes());
    bytes.extend_from_slice(&random::bytes::<16>()?);
    let tag = tag(work, endpoint, &bytes)?;
    bytes.extend_from_slice(&tag);
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Uses a nonce up; returns the key of its record, which must be written even if the request is refused.
pub fn consume(work: &mut Work<'_>, endpoint: &str, nonce: &str) -> Result<String, AcmeError> {
    let bad = |detail: &str| AcmeError::new(Kind::BAD_NONCE, detail);
    let bytes = (nonce.len() <= 2 * LEN)
        .then(|| URL_SAFE_NO_PAD.decode(nonce).ok())
        .flatten()
        .filter(|bytes| bytes.len() == LEN)
        .ok_or_else(|| bad("The nonce was not issued by this server."))?;
    let (content, found) = bytes.split_at(LEN - 16);
    let expected = tag(work, endpoint, content)?;
    if !hmac::equal(&expected, found) {
        return Err(bad("The nonce was not issued by this endpoint."));
    }
    let made_ms = content.first_chunk::<8>().map_or(0, |time| i64::from_be_bytes(*time));
    if work.now_ms() - made_ms > limits::ACME_NONCE_MS || made_ms - work.now_ms() > SKEW_MS {
        return Err(bad("The nonce is too old."));
    }
    let record_key = format!("acme/nonce/{}", hex::encode(content));
    if work.exists(&record_key)? {
        return Err(bad("The nonce was used before."));
    }
    work.put(&record_key, &Used { made_ms })?;
    Ok(record_key)
}

fn tag(work: &mut Work<'_>, endpoint: &str, content: &[u8]) -> Result<[u8; 16], Fault> {
    let key = work.secret(KEY)?.ok_or_else(|| Fault::Damaged(KEY.to_owned()))?;
    let mut message = content.to_vec();
    message.extend_from_slice(endpoint.as_bytes());
    let full = hmac::sha256(key.expose(), &message);
    let mut tag = [0; 16];
    tag.copy_from_slice(&full[..16]);
    Ok(tag)
}
