//! Detached JSON Web Signatures of files in the compact form (RFC 7515, appendix F; RFC 7797): ML-DSA by RFC 9964, the
//! classical algorithms by RFC 7518 and RFC 9864.
//!
//! The signer's certificate, in the header `x5c`, says which key signs and so which algorithms are possible: the
//! header's `alg` must be one of them (RFC 8725, section 3.1). No key and no URL of a header is ever used.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use der::asn1::UintRef;
use der::{Decode, Encode, Sequence};
use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::{self as rows, Message, SignatureAlgorithm};
use serde_json::{Value, json};

use crate::certificate::Certificate;
use crate::cms::verify::Authentic;
use crate::public_key::Kind;
use crate::{PkiError, strict_json};

/// Longest signature, in bytes.
pub const MAX_LEN: usize = 1 << 20;
/// Longest file that is signed this way, in bytes: the signature covers the file itself, which is kept in memory.
pub const MAX_PAYLOAD_LEN: usize = 64 << 20;
/// Most certificates.
pub const MAX_CERTIFICATES: usize = 16;

/// How a JWS begins: the header is an object, `{"`.
pub const BEGIN: &[u8] = b"eyJ";

/// Why a signature is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwsError {
    /// The bytes are no JWS.
    #[error("not a JWS in the compact form: {0}")]
    Malformed(String),
    /// An `alg` that no certificate's key signs with, such as none or HS256.
    #[error("the algorithm \"{0}\" is not one by which certificates' keys sign")]
    Algorithm(String),
    /// The key is of another kind than `alg` says.
    #[error("the header says {algorithm}, and the key of \"{subject}\" is of type {kind}")]
    OtherKey {
        /// The header's `alg`.
        algorithm: &'static str,
        /// The signer.
        subject: String,
        /// The kind of the key.
        kind: &'static str,
    },
    /// A header must be understood, and is not (RFC 7515, section 4.1.11).
    #[error("the critical header \"{0}\" is not known")]
    Critical(String),
    /// The payload in the signature is another one.
    #[error("the payload inside the signature is not the file")]
    OtherPayload,
    /// There is no certificate.
    #[error("the header has no certificate (x5c)")]
    NoCertificate,
    /// The signature is wrong.
    #[error("the signature is not valid for the signer's certificate, or the file was changed")]
    Signature,
}

/// An algorithm of JWS, with the only kind of key that signs by it.
#[derive(Debug)]
pub struct Algorithm {
    /// Value of `alg`.
    pub name: &'static str,
    kind: &'static str,
    row: &'static SignatureAlgorithm,
    /// Bytes of each number of an ECDSA signature (RFC 7518, section 3.4).
    number_len: Option<usize>,
}

const fn row(
    name: &'static str,
    kind: &'static str,
    row: &'static SignatureAlgorithm,
) -> Algorithm {
    Algorithm { name, kind, row, number_len: None }
}

/// Every algorithm; the kinds are those of [`crate::public_key::KINDS`]. RFC 9964, section 5: ML-DSA. RFC 7518, section
/// 3.1: ECDSA and RSA. RFC 8037 and RFC 9864: two names of Ed25519.
static ALGORITHMS: &[Algorithm] = &[
    row("ML-DSA-44", "ML-DSA-44", &rows::ML_DSA_44),
    row("ML-DSA-65", "ML-DSA-65", &rows::ML_DSA_65),
    row("ML-DSA-87", "ML-DSA-87", &rows::ML_DSA_87),
    Algorithm { number_len: Some(32), ..row("ES256", "EC P-256", &rows::ECDSA_SHA_256) },
    Algorithm { number_len: Some(48), ..row("ES384", "EC P-384", &rows::ECDSA_SHA_384) },
    Algorithm { number_len: Some(66), ..row("ES512", "EC P-521", &rows::ECDSA_SHA_512) },
    row("RS256", "RSA", &rows::RSA_PKCS1_SHA_256),
    row("RS384", "RSA", &rows::RSA_PKCS1_SHA_384),
    row("RS512", "RSA", &rows::RSA_PKCS1_SHA_512),
    row("PS256", "RSA", &rows::RSA_PSS_SHA_256),
    row("PS384", "RSA", &rows::RSA_PSS_SHA_384),
    row("PS512", "RSA", &rows::RSA_PSS_SHA_512),
    row("Ed25519", "Ed25519", &rows::ED25519),
    row("EdDSA", "Ed25519", &rows::ED25519),
];

/// A signature without its last part.
pub struct Unsigned {
    header: String,
    algorithm: &'static Algorithm,
}

impl Unsigned {
    /// The header for a signer, with its certificate and the CAs `chain` (DER, without the root).
    pub fn new(
        signer: &Certificate,
        chain: &[Vec<u8>],
        algorithm: &SignatureAlgorithm,
    ) -> Result<Self, PkiError> {
        let kind = Kind::of(&signer.public_key()?)?;
        let found = ALGORITHMS.iter().find(|one| one.kind == kind.name && *one.row == *algorithm);
        let algorithm =
            found.ok_or_else(|| PkiError::UnsupportedAlgorithm(kind.name.to_owned()))?;
        let all = std::iter::once(signer.der()).chain(chain.iter().map(Vec::as_slice));
        let x5c: Vec<_> = all.map(|der| STANDARD.encode(der)).collect();
        let header = json!({ "alg": algorithm.name, "b64": false, "crit": ["b64"], "x5c": x5c });
        Ok(Self { header: URL_SAFE_NO_PAD.encode(header.to_string()), algorithm })
    }

    /// The bytes to sign.
    pub fn to_be_signed(&self, payload: &[u8]) -> Vec<u8> {
        [self.header.as_bytes(), b".", payload].concat()
    }

    /// The JWS, given the signature in the form of X.509.
    pub fn assemble(self, signature: &[u8]) -> Result<String, PkiError> {
        let converted = match self.algorithm.number_len {
            Some(len) => ecdsa_numbers(signature, len).ok_or_else(|| PkiError::Malformed {
                what: "ECDSA signature",
                reason: "its numbers are too long".into(),
            })?,
            None => signature.to_vec(),
        };
        Ok(format!("{}..{}", self.header, URL_SAFE_NO_PAD.encode(converted)))
    }
}

/// A parsed JWS, not verified yet.
#[derive(Debug)]
pub struct Jws {
    header: String,
    algorithm: &'static Algorithm,
    /// Whether the payload is signed as it is (RFC 7797), and not in base64url.
    is_raw: bool,
    payload: String,
    signature: Vec<u8>,
    /// The signer's certificate and the CAs above it, in DER.
    pub certificates: Vec<Vec<u8>>,
}

impl Jws {
    /// Parses a JWS; a line break may follow it.
    pub fn parse(bytes: &[u8]) -> Result<Self, JwsError> {
        let malformed = |reason: &str| JwsError::Malformed(reason.to_owned());
        if bytes.len() > MAX_LEN {
            return Err(malformed(&format!("it is longer than {MAX_LEN} bytes")));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| malformed("it is not text"))?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let parts: Vec<_> = text.split('.').collect();
        let [header, payload, signature] = parts[..] else {
            return Err(malformed("it has not three parts"));
        };
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text);
        let json = decode(header).map_err(|_| malformed("the header is not in base64url"))?;
        let value = strict_json::parse(&json).map_err(JwsError::Malformed)?;
        let name = value.get("alg").and_then(Value::as_str);
        let name = name.ok_or_else(|| malformed("the header has no alg"))?;
        let algorithm = ALGORITHMS.iter().find(|row| row.name == name);
        let algorithm = algorithm.ok_or_else(|| JwsError::Algorithm(short(name)))?;
        let is_raw = !is_encoded(&value)?;
        let signature =
            decode(signature).map_err(|_| malformed("the signature is not in base64url"))?;
        let list = value.get("x5c").and_then(Value::as_array).ok_or(JwsError::NoCertificate)?;
        if list.is_empty() {
            return Err(JwsError::NoCertificate);
        }
        if list.len() > MAX_CERTIFICATES {
            return Err(malformed("the header has too many certificates"));
        }
        let one = |value: &Value| value.as_str().and_then(|text| STANDARD.decode(text).ok());
        let certificates = list.iter().map(one).collect::<Option<Vec<_>>>();
        let certificates = certificates.ok_or_else(|| malformed("x5c is not in Base64"))?;
        let (header, payload) = (header.to_owned(), payload.to_owned());
        Ok(Self { header, algorithm, is_raw, payload, signature, certificates })
    }

    /// Verifies the signature of a file by the key of the certificate in the header.
    pub fn authenticate(&self, file: &[u8]) -> Result<Authentic, JwsError> {
        let malformed = |error: PkiError| JwsError::Malformed(error.to_string());
        let der = self.certificates.first().ok_or(JwsError::NoCertificate)?;
        let certificate = Certificate::parse(der).map_err(malformed)?;
        let spki = certificate.public_key().map_err(malformed)?;
        let kind = Kind::check(&spki).map_err(malformed)?;
        if kind.name != self.algorithm.kind {
            return Err(JwsError::OtherKey {
                algorithm: self.algorithm.name,
                subject: certificate.subject().to_string(),
                kind: kind.name,
            });
        }
        let payload = match self.is_raw {
            true => file.to_vec(),
            false => URL_SAFE_NO_PAD.encode(file).into_bytes(),
        };
        if !self.payload.is_empty() && self.payload.as_bytes() != payload {
            return Err(JwsError::OtherPayload);
        }
        let signed = [self.header.as_bytes(), b".", &payload].concat();
        let signature = match self.algorithm.number_len {
            Some(len) => ecdsa_der(&self.signature, len).ok_or(JwsError::Signature)?,
            None => self.signature.clone(),
        };
        let row = self.algorithm.row;
        row.verify(&spki, Message::Raw(&signed), &signature).map_err(|_| JwsError::Signature)?;
        // ML-DSA and Ed25519 have no digest of their own: SHAKE256 and SHA-512 are inside.
        let inside = if kind.name == "Ed25519" { "sha512" } else { "shake256" };
        let digest = Digest::by_name(row.digest.unwrap_or(inside)).ok_or(JwsError::Signature)?;
        Ok(Authentic {
            certificate,
            algorithm: row,
            digest,
            signing_time: None,
            signature,
            tokens: Vec::new(),
        })
    }
}

/// Whether the payload is signed in base64url. RFC 7797, section 6: `b64` counts only if it is critical.
fn is_encoded(header: &Value) -> Result<bool, JwsError> {
    let malformed = |reason: &str| JwsError::Malformed(reason.to_owned());
    let critical = match header.get("crit") {
        None => Vec::new(),
        Some(Value::Array(list)) if !list.is_empty() => list.iter().collect(),
        Some(_) => return Err(malformed("crit is not a list of names")),
    };
    for name in &critical {
        let name = name.as_str().ok_or_else(|| malformed("crit is not a list of names"))?;
        if name != "b64" {
            return Err(JwsError::Critical(short(name)));
        }
    }
    match (header.get("b64"), critical.len()) {
        (None, 0) => Ok(true),
        (Some(Value::Bool(is_encoded)), 1) => Ok(*is_encoded),
        (None, _) => Err(malformed("crit names b64, which is not there")),
        _ => Err(malformed("b64 is not a boolean that crit names once")),
    }
}

/// RFC 3279, section 2.2.3: `ECDSA-Sig-Value`. In a JWS both numbers stand side by side (RFC 7518, section 3.4).
#[derive(Sequence)]
struct EcdsaSignature<'a> {
    r: UintRef<'a>,
    s: UintRef<'a>,
}

/// The ECDSA signature of X.509 for one of JWS with numbers of `len` bytes.
pub fn ecdsa_der(signature: &[u8], len: usize) -> Option<Vec<u8>> {
    if signature.len() != 2 * len {
        return None;
    }
    let (r, s) = signature.split_at(len);
    EcdsaSignature { r: UintRef::new(r).ok()?, s: UintRef::new(s).ok()? }.to_der().ok()
}

/// The other way.
fn ecdsa_numbers(der: &[u8], len: usize) -> Option<Vec<u8>> {
    let read = EcdsaSignature::from_der(der).ok()?;
    let mut out = Vec::with_capacity(2 * len);
    for number in [read.r.as_bytes(), read.s.as_bytes()] {
        out.resize(out.len() + len.checked_sub(number.len())?, 0);
        out.extend_from_slice(number);
    }
    Some(out)
}

/// The beginning of a text, for messages.
fn short(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;
    use crate::public_key::KINDS;

    #[test]
    fn headers_that_cannot_be_relied_on_are_refused() {
        let jws = |header: &str| format!("{}..AAAA", URL_SAFE_NO_PAD.encode(header));
        let parse = |text: &str| Jws::parse(text.as_bytes());
        let good = r#"{"alg": "ML-DSA-65", "b64": false, "crit": ["b64"], "x5c": ["MAA="]}"#;
        assert!(parse(&jws(good)).unwrap().is_raw);
        assert!(!parse(&jws(r#"{"alg": "ES256", "x5c": ["MAA="]}"#)).unwrap().is_raw);
        parse(&format!("{}\n", jws(good))).unwrap();
        for (text, reason) in [
            (jws(&good.replace("ML-DSA-65", "none")), "the algorithm \"none\""),
            (jws(&good.replace("ML-DSA-65", "HS256")), "the algorithm \"HS256\""),
            (jws(&good.replace("[\"b64\"]", "[\"b64\", \"exp\"]")), "critical header \"exp\""),
            (jws(&good.replace("[\"b64\"]", "[\"b64\", \"b64\"]")), "that crit names once"),
            (jws(&good.replace("[\"b64\"]", "[]")), "crit is not a list"),
            (jws(&good.replace("\"crit\": [\"b64\"], ", "")), "that crit names once"),
            (jws(&good.replace("\"b64\": false, ", "")), "which is not there"),
            (jws(&good.replace("false", "0")), "b64 is not a boolean"),
            (jws(&good.replace("{\"alg\"", "{\"alg\": \"ES256\", \"alg\"")), "occurs twice"),
            (jws(&good.replace("[\"MAA=\"]", "[]")), "has no certificate"),
            (jws(&good.replace("x5c", "jwk")), "has no certificate"),
            (jws(&good.replace("MAA=", "*")), "x5c is not in Base64"),
            (jws("[]"), "the header has no alg"),
            (format!("{}.x", jws(good)), "three parts"),
            (jws(good).replace("AAAA", "AA=="), "the signature is not in base64url"),
            (format!("{}\n\n", jws(good)), "the signature is not in base64url"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_keep_their_length() {
        let numbers = [&[0, 0, 1][..], &[0x80, 0, 2]].concat();
        let der = ecdsa_der(&numbers, 3).unwrap();
        assert_eq!(der, [0x30, 9, 2, 1, 1, 2, 4, 0, 0x80, 0, 2]);
        assert_eq!(ecdsa_numbers(&der, 3).unwrap(), numbers);
        assert_eq!(ecdsa_numbers(&der, 2), None);
        assert_eq!(ecdsa_der(&numbers, 4), None);
        assert!(ALGORITHMS.iter().all(|row| KINDS.iter().any(|kind| kind.name == row.kind)));
    }
}
