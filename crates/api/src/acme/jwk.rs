//! Keys in JSON (RFC 7517, RFC 7518, RFC 8037, RFC 9964) and the JWS algorithms of each, as rows.
//!
//! A key becomes a DER `SubjectPublicKeyInfo`, the form in which the rows of `outlast-crypto` verify signatures.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use const_oid::ObjectIdentifier;
use der::asn1::{AnyRef, BitStringRef, UintRef};
use der::{Encode, Sequence};
use outlast_crypto::digests;
use outlast_crypto::signatures::{self, Message, SignatureAlgorithm};
use outlast_domain::acme::{AccountKey, AcmeError, Kind};
use outlast_pki::jws::ecdsa_der;
use outlast_pki::public_key;
use serde_json::{Map, Value};
use spki::{AlgorithmIdentifierRef, SubjectPublicKeyInfoRef};

/// A kind of key: its `kty`, and the `crv` or `alg` that tells kinds of the same `kty` apart.
pub struct KeyRow {
    kty: &'static str,
    /// The member that tells kinds of the same `kty` apart, and its value.
    which: Option<(&'static str, &'static str)>,
    /// Members of the public key in lexicographic order: the input of the thumbprint (RFC 7638, section 3.2; RFC
    /// 9964, section 6).
    members: &'static [&'static str],
    /// Builds the `SubjectPublicKeyInfo` from the members.
    spki: fn(&KeyRow, &Map<String, Value>) -> Option<Vec<u8>>,
    oid: ObjectIdentifier,
    /// Curve of an EC key.
    curve: Option<ObjectIdentifier>,
    /// Length of a coordinate, or of the whole key, in bytes.
    len: usize,
    /// JWS algorithms that a key of this kind signs with.
    algorithms: &'static [Algorithm],
}

/// A JWS algorithm.
pub struct Algorithm {
    /// Value of `alg`.
    pub name: &'static str,
    row: &'static SignatureAlgorithm,
}

const ID_EC: ObjectIdentifier = const_oid::db::rfc5912::ID_EC_PUBLIC_KEY;
const MEMBERS_EC: &[&str] = &["crv", "kty", "x", "y"];
const MEMBERS_AKP: &[&str] = &["alg", "kty", "pub"];

const fn ec(
    crv: &'static str,
    curve: ObjectIdentifier,
    len: usize,
    algorithms: &'static [Algorithm],
) -> KeyRow {
    KeyRow {
        kty: "EC",
        which: Some(("crv", crv)),
        members: MEMBERS_EC,
        spki: ec_spki,
        oid: ID_EC,
        curve: Some(curve),
        len,
        algorithms,
    }
}

const fn akp(
    alg: &'static str,
    oid: &'static str,
    len: usize,
    algorithms: &'static [Algorithm],
) -> KeyRow {
    KeyRow {
        kty: "AKP",
        which: Some(("alg", alg)),
        members: MEMBERS_AKP,
        spki: |row, jwk| raw_spki(row, jwk, "pub"),
        oid: ObjectIdentifier::new_unwrap(oid),
        curve: None,
        len,
        algorithms,
    }
}

/// Every kind of key.
static KEYS: &[KeyRow] = &[
    ec(
        "P-256",
        const_oid::db::rfc5912::SECP_256_R_1,
        32,
        &[Algorithm { name: "ES256", row: &signatures::ECDSA_SHA_256 }],
    ),
    ec(
        "P-384",
        const_oid::db::rfc5912::SECP_384_R_1,
        48,
        &[Algorithm { name: "ES384", row: &signatures::ECDSA_SHA_384 }],
    ),
    ec(
        "P-521",
        const_oid::db::rfc5912::SECP_521_R_1,
        66,
        &[Algorithm { name: "ES512", row: &signatures::ECDSA_SHA_512 }],
    ),
    KeyRow {
        kty: "RSA",
        which: None,
        members: &["e", "kty", "n"],
        spki: rsa_spki,
        oid: const_oid::db::rfc5912::RSA_ENCRYPTION,
        curve: None,
        len: 0,
        algorithms: &[
            Algorithm { name: "RS256", row: &signatures::RSA_PKCS1_SHA_256 },
            Algorithm { name: "RS384", row: &signatures::RSA_PKCS1_SHA_384 },
            Algorithm { name: "RS512", row: &signatures::RSA_PKCS1_SHA_512 },
            Algorithm { name: "PS256", row: &signatures::RSA_PSS_SHA_256 },
            Algorithm { name: "PS384", row: &signatures::RSA_PSS_SHA_384 },
            Algorithm { name: "PS512", row: &signatures::RSA_PSS_SHA_512 },
        ],
    },
    KeyRow {
        kty: "OKP",
        which: Some(("crv", "Ed25519")),
        members: &["crv", "kty", "x"],
        spki: |row, jwk| raw_spki(row, jwk, "x"),
        oid: ObjectIdentifier::new_unwrap("1.3.101.112"),
        curve: None,
        len: 32,
        algorithms: &[
            Algorithm { name: "EdDSA", row: &signatures::ED25519 },
            // RFC 9864 says the same with the curve's name.
            Algorithm { name: "Ed25519", row: &signatures::ED25519 },
        ],
    },
    akp(
        "ML-DSA-44",
        "2.16.840.1.101.3.4.3.17",
        1312,
        &[Algorithm { name: "ML-DSA-44", row: &signatures::ML_DSA_44 }],
    ),
    akp(
        "ML-DSA-65",
        "2.16.840.1.101.3.4.3.18",
        1952,
        &[Algorithm { name: "ML-DSA-65", row: &signatures::ML_DSA_65 }],
    ),
    akp(
        "ML-DSA-87",
        "2.16.840.1.101.3.4.3.19",
        2592,
        &[Algorithm { name: "ML-DSA-87", row: &signatures::ML_DSA_87 }],
    ),
];

/// Names of all algorithms, each once.
pub fn algorithm_names() -> Vec<&'static str> {
    KEYS.iter().flat_map(|row| row.algorithms.iter().map(|algorithm| algorithm.name)).collect()
}

/// A public key.
#[derive(Clone)]
pub struct PublicKey {
    row: &'static KeyRow,
    spki: Vec<u8>,
    canonical: String,
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.canonical)
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

impl PublicKey {
    /// Reads a JWK. Members that do not belong to the public key are ignored.
    pub fn parse(jwk: &Value) -> Result<Self, AcmeError> {
        let bad = |why: &str| AcmeError::new(Kind::BAD_PUBLIC_KEY, why);
        let jwk = jwk.as_object().ok_or_else(|| AcmeError::malformed("`jwk` is not an object."))?;
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        // RFC 7517, section 4; RFC 9964, section 4: members of a private key.
        if ["d", "priv", "k"].iter().any(|name| jwk.contains_key(*name)) {
            return Err(bad("The JWK contains a private key."));
        }
        let row = KEYS
            .iter()
            .find(|row| {
                text("kty") == Some(row.kty)
                    && row.which.is_none_or(|(name, value)| text(name) == Some(value))
            })
            .ok_or_else(|| bad("The type of the key is not supported."))?;
        let spki = (row.spki)(row, jwk).ok_or_else(|| bad("The key is not encoded correctly."))?;
        public_key::Kind::check(&spki).map_err(|error| bad(&error.to_string()))?;
        let mut canonical = Map::new();
        for name in row.members {
            let value =
                text(name).ok_or_else(|| bad("The JWK lacks a member that its type requires."))?;
            canonical.insert((*name).to_owned(), value.into());
        }
        Ok(Self { row, spki, canonical: Value::Object(canonical).to_string() })
    }

    /// Reads a key from the record of its account.
    pub fn of_account(key: &AccountKey) -> Result<Self, AcmeError> {
        let damaged = |_| outlast_domain::Fault::Damaged("an ACME account's key".into());
        let jwk = serde_json::from_str::<Value>(&key.jwk).map_err(damaged)?;
        Self::parse(&jwk)
    }

    /// The key as its account's record stores it.
    pub fn account_key(&self) -> AccountKey {
        AccountKey { jwk: self.canonical.clone(), thumbprint: self.thumbprint() }
    }

    /// SHA-256 of the canonical form in base64url (RFC 7638).
    pub fn thumbprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(digests::sha256(self.canonical.as_bytes()))
    }

    /// DER `SubjectPublicKeyInfo`.
    pub fn spki(&self) -> &[u8] {
        &self.spki
    }

    /// The canonical JWK.
    pub fn jwk(&self) -> &str {
        &self.canonical
    }

    /// Verifies a signature of a JWS.
    pub fn verify(
        &self,
        algorithm: &str,
        signed: &[u8],
        signature: &[u8],
    ) -> Result<(), AcmeError> {
        let row = self.row.algorithms.iter().find(|row| row.name == algorithm);
        let row = row.ok_or_else(|| {
            AcmeError::new(
                Kind::UNAUTHORIZED,
                format!("A key of this type cannot sign with {algorithm}."),
            )
        })?;
        let wrong = || AcmeError::new(Kind::UNAUTHORIZED, "The signature is not valid.");
        let converted;
        let signature = if self.row.curve.is_some() {
            converted = ecdsa_der(signature, self.row.len).ok_or_else(wrong)?;
            &converted
        } else {
            signature
        };
        row.row.verify(&self.spki, Message::Raw(signed), signature).map_err(|_| wrong())
    }
}

fn bytes(jwk: &Map<String, Value>, name: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(jwk.get(name)?.as_str()?).ok()
}

fn info(oid: ObjectIdentifier, parameters: Option<AnyRef<'_>>, key: &[u8]) -> Option<Vec<u8>> {
    SubjectPublicKeyInfoRef {
        algorithm: AlgorithmIdentifierRef { oid, parameters },
        subject_public_key: BitStringRef::from_bytes(key).ok()?,
    }
    .to_der()
    .ok()
}

/// RFC 5480: an uncompressed point.
fn ec_spki(row: &KeyRow, jwk: &Map<String, Value>) -> Option<Vec<u8>> {
    let (x, y) = (bytes(jwk, "x")?, bytes(jwk, "y")?);
    // RFC 7518, section 6.2.1.2: the full size of a coordinate.
    if x.len() != row.len || y.len() != row.len {
        return None;
    }
    let curve = row.curve?;
    let point = [&[4][..], &x, &y].concat();
    info(row.oid, Some(AnyRef::from(&curve)), &point)
}

fn raw_spki(row: &KeyRow, jwk: &Map<String, Value>, name: &str) -> Option<Vec<u8>> {
    let key = bytes(jwk, name)?;
    if key.len() != row.len {
        return None;
    }
    info(row.oid, None, &key)
}

/// RFC 8017, appendix A.1.1.
#[derive(Sequence)]
struct RsaPublicKey<'a> {
    modulus: UintRef<'a>,
    exponent: UintRef<'a>,
}

fn rsa_spki(row: &KeyRow, jwk: &Map<String, Value>) -> Option<Vec<u8>> {
    let (modulus, exponent) = (bytes(jwk, "n")?, bytes(jwk, "e")?);
    // RFC 7518, section 6.3.1.1: no leading zeros, which would give one key two thumbprints.
    if modulus.first() == Some(&0) || exponent.first() == Some(&0) {
        return None;
    }
    let key = RsaPublicKey {
        modulus: UintRef::new(&modulus).ok()?,
        exponent: UintRef::new(&exponent).ok()?,
    };
    info(row.oid, Some(AnyRef::NULL), &key.to_der().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thumbprint_is_that_of_rfc_7638() {
        // RFC 7638, section 3.1.
        let jwk = serde_json::json!({
            "kty": "RSA",
            "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjB\
                  ZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgn\
                  Yb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0L\
                  s1jF44-csFCur-kEgU8awapJzKnqDKgw",
            "e": "AQAB",
            "alg": "RS256",
            "kid": "2011-04-29"
        });
        let key = PublicKey::parse(&jwk).unwrap();
        assert_eq!(key.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }

    #[test]
    fn keys_that_are_not_as_they_must_be_are_refused() {
        let x = URL_SAFE_NO_PAD.encode([1; 32]);
        for (jwk, kind) in [
            (serde_json::json!([]), Kind::MALFORMED),
            (serde_json::json!({}), Kind::BAD_PUBLIC_KEY),
            (serde_json::json!({ "kty": "EC", "crv": "P-256", "x": x }), Kind::BAD_PUBLIC_KEY),
            (
                serde_json::json!({ "kty": "EC", "crv": "P-192", "x": x, "y": x }),
                Kind::BAD_PUBLIC_KEY,
            ),
            (
                serde_json::json!({ "kty": "EC", "crv": "P-256", "x": "AQ", "y": x }),
                Kind::BAD_PUBLIC_KEY,
            ),
            (
                serde_json::json!({ "kty": "OKP", "crv": "Ed25519", "x": "AQ" }),
                Kind::BAD_PUBLIC_KEY,
            ),
            (
                serde_json::json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "d": x }),
                Kind::BAD_PUBLIC_KEY,
            ),
            (serde_json::json!({ "kty": "oct", "k": x }), Kind::BAD_PUBLIC_KEY),
            (serde_json::json!({ "kty": "RSA", "n": x, "e": "AQAB" }), Kind::BAD_PUBLIC_KEY),
            (
                serde_json::json!({ "kty": "AKP", "alg": "ML-DSA-65", "pub": x }),
                Kind::BAD_PUBLIC_KEY,
            ),
            (serde_json::json!({ "kty": "AKP", "pub": x }), Kind::BAD_PUBLIC_KEY),
        ] {
            let AcmeError::Problem(problem) = PublicKey::parse(&jwk).unwrap_err() else { panic!() };
            assert_eq!(problem.kind, kind, "{jwk}");
        }
    }
}
