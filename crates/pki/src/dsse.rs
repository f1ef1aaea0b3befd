//! Envelopes of the Dead Simple Signing Envelope, version 1 (<https://github.com/secure-systems-lab/dsse>).
//!
//! A signature says neither its algorithm nor its time. The algorithm follows from the key, which is in the signer's
//! certificate: in the member `cert` of the signature (PEM, the CAs behind it), as Sigstore's tools write it, or among
//! the certificates that the verifier has.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use outlast_crypto::digests::{self, Digest};
use outlast_crypto::signatures::{self as rows, Message, SignatureAlgorithm};
use serde_json::{Value, json};

use crate::certificate::Certificate;
use crate::cms::verify::Authentic;
use crate::public_key::Kind;
use crate::{pem, strict_json};

/// Longest envelope, in bytes: bills of materials are long.
pub const MAX_ENVELOPE_LEN: usize = 48 << 20;
/// Longest payload, in bytes.
pub const MAX_PAYLOAD_LEN: usize = 32 << 20;
/// Most signatures.
pub const MAX_SIGNATURES: usize = 16;
/// Most certificates of one signature.
pub const MAX_CERTIFICATES: usize = 16;
/// Longest payload type, in bytes.
const MAX_TYPE_LEN: usize = 1024;
/// Certificates of the verifier that are tried for a signature without one.
const MAX_TRIED: usize = 64;

/// Why an envelope is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DsseError {
    /// The bytes are no envelope.
    #[error("not a DSSE envelope: {0}")]
    Malformed(String),
    /// It has no signature, or more than are verified.
    #[error("the envelope has {0} signatures, and 1 to {MAX_SIGNATURES} are accepted")]
    Signatures(usize),
    /// A signature is not that of its certificate's key.
    #[error(
        "the signature of \"{0}\" is not valid: the payload or its type was changed, or another key signed it"
    )]
    Signature(String),
    /// A key signs with an algorithm that the table lacks.
    #[error("a key of type {0} cannot sign envelopes")]
    Key(&'static str),
    /// No signature is by a key that is known.
    #[error("no certificate is known for any of its signatures; give them with --certificates")]
    NoSigner,
}

/// An envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Type of the payload, which is signed with it.
    pub payload_type: String,
    /// The payload.
    pub payload: Vec<u8>,
    /// The signatures.
    pub signatures: Vec<Signature>,
}

/// A signature of an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Which key it might be; nobody signs this hint.
    pub keyid: Option<String>,
    /// The signature.
    pub signature: Vec<u8>,
    /// The signer's certificate, and the CAs above it, in DER.
    pub certificates: Vec<Vec<u8>>,
}

/// What is right about an envelope's signatures. Whom the certificates belong to is another question.
#[derive(Debug, Clone)]
pub struct Authenticated {
    /// The signers whose certificates are known.
    pub signers: Vec<Authentic>,
    /// Signatures by keys that are not known, which count for nothing.
    pub unknown: usize,
    /// All certificates in the envelope.
    pub certificates: Vec<Vec<u8>>,
}

/// The bytes that are signed: the pre-authentication encoding of the protocol, version 1.
///
/// ```
/// // The example of the specification.
/// let signed = outlast_pki::dsse::pae("http://example.com/HelloWorld", b"hello world");
/// assert_eq!(signed, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
/// ```
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

/// The key's name in envelopes: SHA-256 of its `SubjectPublicKeyInfo`, which outlives its certificates.
pub fn keyid(spki: &[u8]) -> String {
    digests::sha256(spki).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Envelope {
    /// Parses an envelope in JSON. Members that nobody knows are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Self, DsseError> {
        let malformed = |reason: &str| DsseError::Malformed(reason.to_owned());
        if bytes.len() > MAX_ENVELOPE_LEN {
            return Err(malformed(&format!("it is longer than {MAX_ENVELOPE_LEN} bytes")));
        }
        let value = strict_json::parse(bytes).map_err(DsseError::Malformed)?;
        let text =
            |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let payload_type =
            text(&value, "payloadType").ok_or_else(|| malformed("payloadType is not a text"))?;
        if payload_type.is_empty() || payload_type.len() > MAX_TYPE_LEN {
            return Err(malformed("payloadType is empty or too long"));
        }
        let payload = text(&value, "payload").ok_or_else(|| malformed("payload is not a text"))?;
        let payload = decode(&payload).ok_or_else(|| malformed("payload is not in Base64"))?;
        if payload.len() > MAX_PAYLOAD_LEN {
            return Err(malformed(&format!("the payload is longer than {MAX_PAYLOAD_LEN} bytes")));
        }
        let list = value.get("signatures").and_then(Value::as_array);
        let list = list.ok_or_else(|| malformed("signatures is not a list"))?;
        if list.is_empty() || list.len() > MAX_SIGNATURES {
            return Err(DsseError::Signatures(list.len()));
        }
        let mut signatures = Vec::with_capacity(list.len());
        for entry in list {
            let signature = text(entry, "sig").and_then(|text| decode(&text));
            let certificates = match entry.get("cert") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::String(text)) if text.is_empty() => Vec::new(),
                Some(Value::String(text)) => pem::read_certificates(text.as_bytes())
                    .map_err(|error| malformed(&format!("cert: {error}")))?,
                Some(_) => return Err(malformed("cert is not a text")),
            };
            if certificates.len() > MAX_CERTIFICATES {
                return Err(malformed("a signature has too many certificates"));
            }
            signatures.push(Signature {
                keyid: text(entry, "keyid").filter(|text| !text.is_empty()),
                signature: signature.ok_or_else(|| malformed("a sig is not in Base64"))?,
                certificates,
            });
        }
        Ok(Self { payload_type, payload, signatures })
    }

    /// The envelope as JSON in one line, without a line break.
    pub fn to_json(&self) -> String {
        let signatures: Vec<_> = self
            .signatures
            .iter()
            .map(|one| {
                let mut value = json!({ "sig": STANDARD.encode(&one.signature) });
                if let Some(keyid) = &one.keyid {
                    value["keyid"] = json!(keyid);
                }
                if !one.certificates.is_empty() {
                    value["cert"] = json!(pem::chain(one.certificates.iter().map(Vec::as_slice)));
                }
                value
            })
            .collect();
        json!({
            "payloadType": self.payload_type,
            "payload": STANDARD.encode(&self.payload),
            "signatures": signatures,
        })
        .to_string()
    }

    /// Verifies the signatures by keys that are known. A signature that comes with a certificate must be right; one that
    /// is by none of the verifier's certificates `known` (DER) is not counted.
    pub fn authenticate(&self, known: &[Vec<u8>]) -> Result<Authenticated, DsseError> {
        let signed = pae(&self.payload_type, &self.payload);
        let own: Vec<_> = known
            .iter()
            .filter_map(|der| Certificate::parse(der).ok())
            .filter(|found| !found.may_issue())
            .take(MAX_TRIED)
            .collect();
        let mut out = Authenticated { signers: Vec::new(), unknown: 0, certificates: Vec::new() };
        for one in &self.signatures {
            out.certificates.extend(one.certificates.iter().cloned());
            let found = match one.certificates.first() {
                Some(der) => {
                    let certificate = Certificate::parse(der)
                        .map_err(|error| DsseError::Malformed(error.to_string()))?;
                    let algorithm = signer(&certificate, &signed, &one.signature)?;
                    let wrong = || DsseError::Signature(certificate.subject().to_string());
                    Some((algorithm.ok_or_else(wrong)?, certificate))
                }
                None => own.iter().find_map(|certificate| {
                    let algorithm = signer(certificate, &signed, &one.signature).ok()??;
                    Some((algorithm, certificate.clone()))
                }),
            };
            match found {
                Some((algorithm, certificate)) => {
                    // ML-DSA and SLH-DSA hash inside.
                    let name = algorithm.digest.unwrap_or("shake256");
                    let digest = Digest::by_name(name).ok_or(DsseError::Key(name))?;
                    out.signers.push(Authentic {
                        certificate,
                        algorithm,
                        digest,
                        signing_time: None,
                        signature: one.signature.clone(),
                        tokens: Vec::new(),
                    });
                }
                None => out.unknown += 1,
            }
        }
        if out.signers.is_empty() {
            return Err(DsseError::NoSigner);
        }
        Ok(out)
    }
}

/// The protocol allows both alphabets.
fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}

/// Algorithms of keys, by the names in [`crate::public_key::KINDS`]: the digest of ECDSA follows from the curve, as in
/// securesystemslib. RSA keys sign in several ways.
const ALGORITHMS: &[(&str, &[&SignatureAlgorithm])] = &[
    ("ML-DSA-44", &[&rows::ML_DSA_44]),
    ("ML-DSA-65", &[&rows::ML_DSA_65]),
    ("ML-DSA-87", &[&rows::ML_DSA_87]),
    ("SLH-DSA-SHA2-128s", &[&rows::SLH_DSA_SHA2_128S]),
    ("SLH-DSA-SHA2-256s", &[&rows::SLH_DSA_SHA2_256S]),
    ("EC P-256", &[&rows::ECDSA_SHA_256]),
    ("EC P-384", &[&rows::ECDSA_SHA_384]),
    ("EC P-521", &[&rows::ECDSA_SHA_512]),
    ("Ed25519", &[&rows::ED25519]),
    (
        "RSA",
        &[
            &rows::RSA_PSS_SHA_256,
            &rows::RSA_PKCS1_SHA_256,
            &rows::RSA_PKCS1_SHA_384,
            &rows::RSA_PKCS1_SHA_512,
        ],
    ),
];

/// The algorithm by which the certificate's key made a signature, if it did.
fn signer(
    certificate: &Certificate,
    signed: &[u8],
    signature: &[u8],
) -> Result<Option<&'static SignatureAlgorithm>, DsseError> {
    let malformed = |error: crate::PkiError| DsseError::Malformed(error.to_string());
    let spki = certificate.public_key().map_err(malformed)?;
    let kind = Kind::check(&spki).map_err(malformed)?;
    let row = ALGORITHMS.iter().find(|(name, _)| *name == kind.name);
    let (_, algorithms) = row.ok_or(DsseError::Key(kind.name))?;
    let made = |row: &&&'static SignatureAlgorithm| {
        row.verify(&spki, Message::Raw(signed), signature).is_ok()
    };
    Ok(algorithms.iter().find(made).copied())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;
    use crate::public_key::KINDS;

    #[test]
    fn the_encoding_counts_bytes() {
        assert_eq!(pae("é", b"a b\n\0"), b"DSSEv1 2 \xc3\xa9 5 a b\n\0");
        assert_eq!(pae("t", b""), b"DSSEv1 1 t 0 ");
    }

    #[test]
    fn envelopes_that_are_none_are_named() {
        let envelope = |signatures: &str| {
            format!(r#"{{"payloadType": "t", "payload": "aGk=", "signatures": {signatures}}}"#)
        };
        let good = envelope(r#"[{"sig": "-_-_", "keyid": "", "more": 1}]"#);
        let read = Envelope::parse(good.as_bytes()).unwrap();
        assert_eq!((read.payload.as_slice(), &read.signatures[0].keyid), (&b"hi"[..], &None));
        assert_eq!(Envelope::parse(read.to_json().as_bytes()).unwrap(), read);
        assert_eq!(read.authenticate(&[]).unwrap_err(), DsseError::NoSigner);
        let many = vec![r#"{"sig": ""}"#; MAX_SIGNATURES + 1].join(",");
        for (text, reason) in [
            (envelope("[]"), "has 0 signatures"),
            (envelope(&format!("[{many}]")), "has 17 signatures"),
            (envelope("{}"), "signatures is not a list"),
            (envelope(r#"[{"sig": "*"}]"#), "a sig is not in Base64"),
            (envelope(r#"[{"sig": "", "cert": "x"}]"#), "cert: "),
            (envelope(r#"[{"sig": "", "cert": 1}]"#), "cert is not a text"),
            (good.replace("aGk=", "aGl="), "payload is not in Base64"),
            (good.replace("\"t\"", "\"\""), "payloadType is empty"),
            (good.replace("\"t\"", "1"), "payloadType is not a text"),
            (good.replace("\"payload\":", "\"payloadType\": \"u\", \"payload\":"), "occurs twice"),
            (format!("{good}{good}"), "trailing characters"),
        ] {
            let error = Envelope::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn every_kind_of_the_table_exists() {
        for (name, _) in ALGORITHMS {
            assert!(KINDS.iter().any(|kind| kind.name == *name), "{name}");
        }
    }
}
