//! Timestamps (RFC 3161 with RFC 5816): requests, responses and tokens, for authorities and clients.
//!
//! A token says that a digest existed at a time. It is a CMS message with one signer, whose content has the digest and
//! the time. [`Grant`] builds one in two steps around a signer elsewhere, [`Token`] verifies those of any authority.

mod asn1;
mod gen_time;
mod grant;
mod imprint;
mod request;
mod response;
mod token;

pub use grant::{Grant, Unsigned};
pub use imprint::{Imprint, Nonce};
pub use request::{Request, RequestError};
pub use response::{Failure, Response, Status, refusal};
pub use token::{TimestampError, Token, Trust, Verified};

use const_oid::ObjectIdentifier;

use crate::PkiError;

/// Longest request that is read, in bytes.
pub const MAX_REQUEST_LEN: usize = 4 * 1024;

/// Longest response or token that is read, in bytes: room for a chain of SLH-DSA certificates.
pub const MAX_RESPONSE_LEN: usize = 512 * 1024;

/// Longest nonce, in bytes of its INTEGER.
pub const MAX_NONCE_LEN: usize = 64;

/// Longest serial number of a token, in bytes. RFC 3161, section 2.4.2: clients must accept 160 bits.
pub const MAX_SERIAL_LEN: usize = 64;

/// Most characters of an authority's explanation that are kept.
pub const MAX_TEXT_LEN: usize = 500;

/// Media type of requests (RFC 3161, section 3.4).
pub const REQUEST_MEDIA_TYPE: &str = "application/timestamp-query";

/// Media type of responses (RFC 3161, section 3.4).
pub const RESPONSE_MEDIA_TYPE: &str = "application/timestamp-reply";

/// `id-ct-TSTInfo`
pub const TST_INFO: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");

/// How far the authority's clock may be off (RFC 3161, section 2.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Accuracy {
    /// Microseconds; less than 2^32 seconds.
    pub micros: u64,
}

impl std::fmt::Display for Accuracy {
    /// In seconds, without trailing zeros: `0.5 s`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, micros) = (self.micros / 1_000_000, self.micros % 1_000_000);
        if micros == 0 {
            return write!(f, "{seconds} s");
        }
        let fraction = format!("{micros:06}");
        write!(f, "{seconds}.{} s", fraction.trim_end_matches('0'))
    }
}

fn malformed(error: der::Error) -> PkiError {
    PkiError::malformed("timestamp", &error)
}
