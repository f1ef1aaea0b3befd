//! DER in and out: X.509 certificates and requests, CRLs, OCSP, CMS signatures, timestamps, path
//! validation.
//!
//! No socket, no file, no clock: bytes and times (seconds since 1970 in UTC) are arguments. Signing takes two steps
//! everywhere, to-be-signed bytes out and the signature in, so that the private key can be anywhere.

pub mod certificate;
pub mod cms;
pub mod crl;
pub mod csr;
pub mod describe;
pub mod dsse;
mod error;
pub mod evidence_record;
pub mod extension;
pub mod extensions;
pub mod general_name;
pub mod in_toto;
pub mod jws;
pub mod key_forms;
pub mod lint;
pub mod name;
pub mod object;
pub mod ocsp;
pub mod path;
pub mod pattern;
pub mod pem;
pub mod public_key;
pub mod seen;
pub mod signing_policy;
pub mod strict_der;
pub mod strict_json;
pub mod templates;
pub mod time;
pub mod timestamp;
pub mod trusted_time;
pub mod validate;
pub mod whatif;

pub use error::PkiError;

pub use const_oid::ObjectIdentifier;

/// The RFCs' name of an OID.
pub fn oid_name(oid: ObjectIdentifier) -> Option<&'static str> {
    const_oid::db::DB.by_oid(&oid)
}
