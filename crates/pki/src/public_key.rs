//! Kinds of public keys in certificates, as rows: their encoding, and what they can do.

use const_oid::ObjectIdentifier;
use der::Decode;
use der::asn1::{AnyRef, UintRef};
use outlast_crypto::signatures::Family;
use spki::SubjectPublicKeyInfoRef;

use crate::PkiError;

/// Smallest RSA modulus, in bits (SP 800-131A; CA/Browser Forum BR 6.1.5).
pub const MIN_RSA_BITS: usize = 2048;
/// Largest RSA modulus, in bits: AWS-LC's limit for verification.
pub const MAX_RSA_BITS: usize = 8192;

/// The `parameters` of the key's `AlgorithmIdentifier`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameters {
    /// Not encoded: ML-DSA (RFC 9881, section 4), SLH-DSA (RFC 9909, section 4), ML-KEM (RFC 9935, section 3),
    /// Ed25519 (RFC 8410, section 3).
    Absent,
    /// ASN.1 NULL: RSA (RFC 3279, section 2.3.1).
    Null,
    /// A curve's name: EC (RFC 5480, section 2.1.1).
    Curve(ObjectIdentifier),
}

/// A kind of key.
#[derive(Debug)]
pub struct Kind {
    /// A name for people.
    pub name: &'static str,
    /// Algorithm.
    pub oid: ObjectIdentifier,
    /// Parameters.
    pub parameters: Parameters,
    /// Length of the public key in bytes; `None` for RSA's, which differs.
    pub len: Option<usize>,
    /// Signature family; `None` for keys that cannot sign.
    pub family: Option<Family>,
    /// Whether it can have the key usage `keyEncipherment`. RFC 8813, section 3 (EC), RFC 9881, section 5 (ML-DSA)
    /// and RFC 9909, section 6 (SLH-DSA) forbid it.
    pub enciphers: bool,
}

const NONE: Kind = Kind {
    name: "",
    oid: const_oid::db::rfc5912::RSA_ENCRYPTION,
    parameters: Parameters::Absent,
    len: None,
    family: None,
    enciphers: false,
};

const fn ml_dsa(name: &'static str, oid: &str, len: usize) -> Kind {
    Kind { name, oid: id(oid), len: Some(len), family: Some(Family::MlDsa), ..NONE }
}

const fn slh_dsa(name: &'static str, oid: &str, len: usize) -> Kind {
    Kind { name, oid: id(oid), len: Some(len), family: Some(Family::SlhDsa), ..NONE }
}

const fn ml_kem(name: &'static str, oid: &str, len: usize) -> Kind {
    Kind { name, oid: id(oid), len: Some(len), enciphers: true, ..NONE }
}

/// `len` is the length of an uncompressed point.
const fn ec(name: &'static str, curve: &str, len: usize) -> Kind {
    Kind {
        name,
        oid: const_oid::db::rfc5912::ID_EC_PUBLIC_KEY,
        parameters: Parameters::Curve(id(curve)),
        len: Some(len),
        family: Some(Family::Ec),
        ..NONE
    }
}

/// All kinds.
pub static KINDS: &[Kind] = &[
    Kind {
        name: "RSA",
        parameters: Parameters::Null,
        family: Some(Family::Rsa),
        enciphers: true,
        ..NONE
    },
    ec("EC P-256", "1.2.840.10045.3.1.7", 65),
    ec("EC P-384", "1.3.132.0.34", 97),
    ec("EC P-521", "1.3.132.0.35", 133),
    ec("EC secp256k1", "1.3.132.0.10", 65),
    Kind {
        name: "Ed25519",
        oid: id("1.3.101.112"),
        len: Some(32),
        family: Some(Family::Ed25519),
        ..NONE
    },
    ml_dsa("ML-DSA-44", "2.16.840.1.101.3.4.3.17", 1312),
    ml_dsa("ML-DSA-65", "2.16.840.1.101.3.4.3.18", 1952),
    ml_dsa("ML-DSA-87", "2.16.840.1.101.3.4.3.19", 2592),
    slh_dsa("SLH-DSA-SHA2-128s", "2.16.840.1.101.3.4.3.20", 32),
    slh_dsa("SLH-DSA-SHA2-256s", "2.16.840.1.101.3.4.3.24", 64),
    Kind {
        name: "MLDSA65-ECDSA-P256-SHA512",
        oid: id("1.3.6.1.5.5.7.6.45"),
        len: Some(1952 + 65),
        family: Some(Family::Composite),
        ..NONE
    },
    ml_kem("ML-KEM-512", "2.16.840.1.101.3.4.4.1", 800),
    ml_kem("ML-KEM-768", "2.16.840.1.101.3.4.4.2", 1184),
    ml_kem("ML-KEM-1024", "2.16.840.1.101.3.4.4.3", 1568),
];

impl Kind {
    /// The kind of the key in a DER `SubjectPublicKeyInfo`, by its algorithm and curve alone.
    pub fn of(spki: &[u8]) -> Result<&'static Self, PkiError> {
        let parsed = parse(spki)?;
        Self::by_algorithm(&parsed)
            .ok_or_else(|| PkiError::UnsupportedAlgorithm(algorithm_name(&parsed)))
    }

    /// The same as [`Kind::of`], for a key that is encoded as its RFC requires and strong enough: RSA has at least
    /// [`MIN_RSA_BITS`] bits.
    pub fn check(spki: &[u8]) -> Result<&'static Self, PkiError> {
        let parsed = parse(spki)?;
        let kind = Self::by_algorithm(&parsed)
            .ok_or_else(|| PkiError::UnsupportedAlgorithm(algorithm_name(&parsed)))?;
        kind.fault(&parsed)
            .map_or(Ok(kind), |reason| Err(PkiError::PublicKey { kind: kind.name, reason }))
    }

    pub(crate) fn by_algorithm(spki: &SubjectPublicKeyInfoRef<'_>) -> Option<&'static Self> {
        let curve = || spki.algorithm.parameters_oid().ok();
        KINDS.iter().find(|kind| {
            kind.oid == spki.algorithm.oid
                && match kind.parameters {
                    Parameters::Curve(name) => curve() == Some(name),
                    Parameters::Absent | Parameters::Null => true,
                }
        })
    }

    /// What is wrong with a key of this kind, if anything.
    pub(crate) fn fault(&self, spki: &SubjectPublicKeyInfoRef<'_>) -> Option<String> {
        let parameters_fit = match (self.parameters, spki.algorithm.parameters) {
            (Parameters::Absent, given) => given.is_none(),
            (Parameters::Null, given) => given.is_some_and(AnyRef::is_null),
            (Parameters::Curve(_), _) => true,
        };
        if !parameters_fit {
            return Some("its parameters are not those of its algorithm".into());
        }
        let Some(key) = spki.subject_public_key.as_bytes() else {
            return Some("it is not a whole number of bytes".into());
        };
        let Some(len) = self.len else { return rsa_fault(key) };
        if key.len() != len {
            return Some(format!("it has {} bytes instead of {len}", key.len()));
        }
        // RFC 5480, section 2.2: the uncompressed form MUST be supported; others are not.
        if self.family == Some(Family::Ec) && key.first() != Some(&4) {
            return Some("its point is not in the uncompressed form".into());
        }
        None
    }

    /// Whether it can sign.
    pub const fn signs(&self) -> bool {
        self.family.is_some()
    }
}

/// RSAPublicKey ::= SEQUENCE { modulus INTEGER, publicExponent INTEGER }
#[derive(der::Sequence)]
struct RsaPublicKey<'a> {
    modulus: UintRef<'a>,
    public_exponent: UintRef<'a>,
}

fn rsa_fault(key: &[u8]) -> Option<String> {
    let Ok(key) = RsaPublicKey::from_der(key) else {
        return Some("it is not an RSAPublicKey".into());
    };
    let bits = bits(key.modulus.as_bytes());
    if !(MIN_RSA_BITS..=MAX_RSA_BITS).contains(&bits) {
        return Some(format!("it has {bits} bits; {MIN_RSA_BITS} to {MAX_RSA_BITS} are allowed"));
    }
    let exponent = key.public_exponent.as_bytes();
    let odd = |number: &[u8]| number.last().is_some_and(|last| last % 2 == 1);
    // FIPS 186-5, A.1.1: e is odd and above 2^16; smaller ones are in use; with 1 nothing would be encrypted.
    if exponent == [1] || !odd(exponent) || !odd(key.modulus.as_bytes()) {
        return Some("its modulus or exponent is even, or the exponent is 1".into());
    }
    None
}

/// Whether it is an EC key with other parameters than a named curve: RFC 5480, section 2.1.1, forbids
/// `specifiedCurve` and `implicitCurve`, which let a key define its own generator (CVE-2020-0601).
pub(crate) fn has_explicit_curve(spki: &[u8]) -> bool {
    parse(spki).is_ok_and(|parsed| {
        parsed.algorithm.oid == const_oid::db::rfc5912::ID_EC_PUBLIC_KEY
            && parsed.algorithm.parameters_oid().is_err()
    })
}

/// Bits of the modulus of an RSA key in a DER `SubjectPublicKeyInfo`; `None` for other kinds.
pub fn rsa_bits(spki: &[u8]) -> Option<usize> {
    let parsed = parse(spki).ok()?;
    let key = parsed.subject_public_key.as_bytes()?;
    (parsed.algorithm.oid == const_oid::db::rfc5912::RSA_ENCRYPTION).then_some(())?;
    RsaPublicKey::from_der(key).ok().map(|key| bits(key.modulus.as_bytes()))
}

fn bits(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros).map_or(0, |first| {
        (number.len() - zeros) * 8 - usize::try_from(first.leading_zeros()).unwrap_or(0)
    })
}

fn parse(spki: &[u8]) -> Result<SubjectPublicKeyInfoRef<'_>, PkiError> {
    SubjectPublicKeyInfoRef::from_der(spki)
        .map_err(|error| PkiError::malformed("public key", &error))
}

fn algorithm_name(spki: &SubjectPublicKeyInfoRef<'_>) -> String {
    match spki.algorithm.parameters_oid() {
        Ok(curve) => format!("{} with {curve}", spki.algorithm.oid),
        Err(_) => spki.algorithm.oid.to_string(),
    }
}

const fn id(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use der::Encode;
    use outlast_crypto::keys::KEY_SPECS;

    #[test]
    fn every_key_type_has_a_kind_that_accepts_it() {
        for spec in KEY_SPECS.iter().filter(|spec| !spec.is_symmetric()) {
            let key = spec.load(&spec.generate().unwrap()).unwrap();
            let spki = key.public_key().unwrap();
            let kind = Kind::check(spki).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
            assert_eq!(kind.signs(), !spec.signing.is_empty(), "{}", spec.name);
            if let Some(algorithm) = spec.signing.first() {
                assert_eq!(kind.family, Some(algorithm.family));
            }
            let size = spec.name.strip_prefix("RSA_").and_then(|bits| bits.parse().ok());
            assert_eq!(rsa_bits(spki), size, "{}", spec.name);
            let mut longer = SubjectPublicKeyInfoRef::from_der(spki).unwrap();
            let bytes = [longer.subject_public_key.raw_bytes(), &[0]].concat();
            longer.subject_public_key = der::asn1::BitStringRef::from_bytes(&bytes).unwrap();
            let outcome = Kind::check(&longer.to_der().unwrap());
            assert!(matches!(outcome, Err(PkiError::PublicKey { .. })), "{outcome:?}");
            let mut other = SubjectPublicKeyInfoRef::from_der(spki).unwrap();
            other.algorithm.parameters = Some(AnyRef::from_der(&[0x02, 1, 1]).unwrap());
            assert!(Kind::check(&other.to_der().unwrap()).is_err(), "{}", spec.name);
        }
    }

    #[test]
    fn bits_are_counted() {
        for (number, expected) in
            [(&[][..], 0), (&[0], 0), (&[1], 1), (&[0, 0x80], 8), (&[1, 0], 9), (&[0xff, 0xff], 16)]
        {
            assert_eq!(bits(number), expected, "{number:?}");
        }
    }
}
