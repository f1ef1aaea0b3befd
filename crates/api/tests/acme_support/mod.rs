//! What an ACME client needs: keys, JWS, certificate requests. It shares no code with the server's JWS.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test may fail; each test file uses its own part"
)]

pub mod world;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlast_crypto::keys::{Key, KeySpec};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::certificate::Extension;
use outlast_pki::extensions::subject_alternative_names;
use outlast_pki::general_name::GeneralName;
use outlast_pki::{csr, name};
use serde_json::{Value, json};

/// KMS key spec, JWS algorithm, KMS signing algorithm.
pub const ALGORITHMS: &[(&str, &str, &str)] = &[
    ("ECC_NIST_P256", "ES256", "ECDSA_SHA_256"),
    ("ECC_NIST_P384", "ES384", "ECDSA_SHA_384"),
    ("ECC_NIST_P521", "ES512", "ECDSA_SHA_512"),
    ("RSA_2048", "RS256", "RSASSA_PKCS1_V1_5_SHA_256"),
    ("RSA_2048", "PS256", "RSASSA_PSS_SHA_256"),
    ("ECC_NIST_EDWARDS25519", "EdDSA", "ED25519_SHA_512"),
    ("ML_DSA_44", "ML-DSA-44", "ML_DSA_SHAKE_256"),
    ("ML_DSA_65", "ML-DSA-65", "ML_DSA_SHAKE_256"),
    ("ML_DSA_87", "ML-DSA-87", "ML_DSA_SHAKE_256"),
];

pub fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub fn unb64(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// A key that signs JWS.
pub struct Signer {
    pub key: Box<dyn Key>,
    pub algorithm: &'static str,
    row: &'static SignatureAlgorithm,
    pub jwk: Value,
}

impl Signer {
    pub fn new(algorithm: &str) -> Self {
        let (spec, name, kms) = ALGORITHMS.iter().find(|row| row.1 == algorithm).unwrap();
        let spec = KeySpec::by_name(spec).unwrap();
        let key = spec.load(&spec.generate().unwrap()).unwrap();
        Self::of(key, spec, name, kms)
    }

    /// A signer with a certificate's key.
    pub fn of(key: Box<dyn Key>, spec: &'static KeySpec, name: &'static str, kms: &str) -> Self {
        let row = spec.signing_algorithm(kms).unwrap();
        let jwk = jwk(name, key.public_key().unwrap());
        Self { key, algorithm: name, row, jwk }
    }

    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let signature = self.key.sign(self.row, Message::Raw(message)).unwrap();
        match self.algorithm {
            "ES256" => side_by_side(&signature, 32),
            "ES384" => side_by_side(&signature, 48),
            "ES512" => side_by_side(&signature, 66),
            _ => signature,
        }
    }

    pub fn thumbprint(&self) -> String {
        let names: &[&str] = match self.jwk["kty"].as_str().unwrap() {
            "EC" => &["crv", "kty", "x", "y"],
            "RSA" => &["e", "kty", "n"],
            "OKP" => &["crv", "kty", "x"],
            _ => &["alg", "kty", "pub"],
        };
        let members: Vec<_> =
            names.iter().map(|name| format!("\"{name}\":{}", self.jwk[name])).collect();
        let text = format!("{{{}}}", members.join(","));
        b64(outlast_crypto::digests::sha256(text.as_bytes()))
    }

    /// A JWS with this protected header, to which the algorithm and the signer are added.
    pub fn jws(&self, kid: Option<&str>, mut header: Value, payload: &str) -> Value {
        header["alg"] = self.algorithm.into();
        match kid {
            Some(kid) => header["kid"] = kid.into(),
            None => header["jwk"] = self.jwk.clone(),
        }
        self.jws_with(&header, payload)
    }

    /// A JWS with just this protected header.
    pub fn jws_with(&self, header: &Value, payload: &str) -> Value {
        let (protected, payload) = (b64(header.to_string()), b64(payload));
        let signature = self.sign(format!("{protected}.{payload}").as_bytes());
        json!({ "protected": protected, "payload": payload, "signature": b64(signature) })
    }
}

/// Converts a DER ECDSA signature to two numbers of equal length.
fn side_by_side(der: &[u8], len: usize) -> Vec<u8> {
    let mut rest = if der[1] & 0x80 == 0 { &der[2..] } else { &der[3..] };
    let mut out = Vec::new();
    for _ in 0..2 {
        let (number, after) = rest[2..].split_at(usize::from(rest[1]));
        let number = &number[number.iter().take_while(|byte| **byte == 0).count()..];
        out.extend(std::iter::repeat_n(0, len - number.len()));
        out.extend_from_slice(number);
        rest = after;
    }
    out
}

/// Public keys end a `SubjectPublicKeyInfo`, so their offset is fixed.
fn jwk(algorithm: &str, spki: &[u8]) -> Value {
    let tail = |len: usize| &spki[spki.len() - len..];
    let ec = |crv: &str, len: usize| {
        let (x, y) = tail(2 * len).split_at(len);
        json!({ "kty": "EC", "crv": crv, "x": b64(x), "y": b64(y) })
    };
    let akp = |len| json!({ "kty": "AKP", "alg": algorithm, "pub": b64(tail(len)) });
    match algorithm {
        "ES256" => ec("P-256", 32),
        "ES384" => ec("P-384", 48),
        "ES512" => ec("P-521", 66),
        "RS256" | "PS256" => {
            assert_eq!(spki.len(), 294);
            json!({ "kty": "RSA", "n": b64(&spki[33..289]), "e": b64(tail(3)) })
        }
        "EdDSA" => json!({ "kty": "OKP", "crv": "Ed25519", "x": b64(tail(32)) }),
        "ML-DSA-44" => akp(1312),
        "ML-DSA-65" => akp(1952),
        _ => akp(2592),
    }
}

/// An external account binding for a key and a URL.
pub fn binding(kid: &str, mac_key: &[u8], account: &Signer, url: &str) -> Value {
    let header = json!({ "alg": "HS256", "kid": kid, "url": url });
    let (protected, payload) = (b64(header.to_string()), b64(account.jwk.to_string()));
    let signed = format!("{protected}.{payload}");
    let mac = outlast_crypto::hmac::sha256(mac_key, signed.as_bytes());
    json!({ "protected": protected, "payload": payload, "signature": b64(mac) })
}

/// A certificate request for these names, with the first as its common name if there is one.
pub fn request(signer: &Signer, names: &[&str], common: Option<&str>) -> Vec<u8> {
    let all: Vec<_> = names.iter().map(|name| GeneralName::DnsName((*name).into())).collect();
    request_for(signer, &all, common)
}

pub fn request_for(signer: &Signer, names: &[GeneralName], common: Option<&str>) -> Vec<u8> {
    let subject: Vec<_> = common.iter().map(|common| ("2.5.4.3", *common)).collect();
    let extensions = match names {
        [] => Vec::new(),
        names => vec![subject_alternative_names(names, false).unwrap()],
    };
    request_of(signer, &subject, extensions)
}

/// A certificate request with any subject, by object identifiers, and any extensions.
pub fn request_of(
    signer: &Signer,
    subject: &[(&str, &str)],
    extensions: Vec<Extension>,
) -> Vec<u8> {
    let own = |(oid, text): &(&str, &str)| ((*oid).to_owned(), (*text).to_owned());
    let subject = name::name(&[], &subject.iter().map(own).collect::<Vec<_>>()).unwrap();
    let unsigned =
        csr::Unsigned::new(subject, signer.key.public_key().unwrap(), extensions).unwrap();
    let signature = signer.key.sign(signer.row, Message::Raw(&unsigned.to_be_signed)).unwrap();
    unsigned.assemble(signer.row, &signature).unwrap()
}
