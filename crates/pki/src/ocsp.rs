//! OCSP (RFC 6960, with the nonces of RFC 9654): requests and responses, for responders and clients.
//!
//! Responses are built in two steps around a signer elsewhere. Signatures on requests are ignored: RFC 6960 leaves it
//! to the responder whether it requires them.

mod asn1;
pub mod cert_id;
pub mod request;
pub mod response;
pub mod verify;

pub use cert_id::CertId;
pub use request::Request;
pub use response::{Content, Failure, Single, Status, Unsigned};
pub use verify::{OcspError, Response, Verified};

use x509_cert::ext::Extension;

use crate::PkiError;
use crate::extension::extension;

/// Longest request that is read, in bytes: room for a signature with its certificates.
pub const MAX_REQUEST_LEN: usize = 32 * 1024;

/// Most certificates that one request may ask about.
pub const MAX_CERT_IDS: usize = 32;

/// Longest nonce, in bytes (RFC 9654, section 2.1).
pub const MAX_NONCE_LEN: usize = 128;

/// Longest response that is read, in bytes.
pub const MAX_RESPONSE_LEN: usize = 256 * 1024;

/// Media type of requests (RFC 6960, appendix C.1).
pub const REQUEST_MEDIA_TYPE: &str = "application/ocsp-request";

/// Media type of responses (RFC 6960, appendix C.2).
pub const RESPONSE_MEDIA_TYPE: &str = "application/ocsp-response";

/// The extension that a delegated responder's certificate must have (RFC 6960, section 4.2.2.2.1): its revocation is
/// not checked, so the certificate should be short-lived.
pub fn no_check() -> Result<Extension, PkiError> {
    extension(asn1::NO_CHECK, false, &der::asn1::Null)
}

fn malformed(error: der::Error) -> PkiError {
    PkiError::malformed("OCSP object", &error)
}
