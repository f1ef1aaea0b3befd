//! Certificates, requests and CRLs in words for people: names, keys, extensions.

mod extension;
mod request;

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5912::ID_AD_OCSP;
use der::asn1::BitStringRef;
use der::{Decode, Encode};
use spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralName};
use x509_cert::ext::pkix::{AuthorityInfoAccessSyntax, CrlDistributionPoints};

use crate::PkiError;
use crate::certificate::Certificate;

pub use extension::{Described, extension};
pub use request::{Request, request};

/// A public key in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// `ML-DSA-65`, `RSA 2048 bits`, `EC P-256`.
    pub name: String,
    /// Length of the key itself in bytes, without the structure around it.
    pub bytes: usize,
    /// Whether it is believed to resist quantum computers.
    pub post_quantum: bool,
}

/// Names by OID: const-oid has the RFCs' spelling; these are the usual names.
static NAMES: &[(&str, &str)] = &[
    ("1.2.840.113549.1.1.1", "RSA"),
    ("1.2.840.113549.1.1.5", "RSA with SHA-1"),
    ("1.2.840.113549.1.1.10", "RSA-PSS"),
    ("1.2.840.113549.1.1.11", "RSA with SHA-256"),
    ("1.2.840.113549.1.1.12", "RSA with SHA-384"),
    ("1.2.840.113549.1.1.13", "RSA with SHA-512"),
    ("1.2.840.10045.2.1", "EC"),
    ("1.2.840.10045.3.1.7", "P-256"),
    ("1.3.132.0.34", "P-384"),
    ("1.3.132.0.35", "P-521"),
    ("1.3.132.0.10", "secp256k1"),
    ("1.2.840.10045.4.3.2", "ECDSA with SHA-256"),
    ("1.2.840.10045.4.3.3", "ECDSA with SHA-384"),
    ("1.2.840.10045.4.3.4", "ECDSA with SHA-512"),
    ("1.3.101.110", "X25519"),
    ("1.3.101.112", "Ed25519"),
    ("1.3.101.113", "Ed448"),
    ("2.16.840.1.101.3.4.3.17", "ML-DSA-44"),
    ("2.16.840.1.101.3.4.3.18", "ML-DSA-65"),
    ("2.16.840.1.101.3.4.3.19", "ML-DSA-87"),
    ("2.16.840.1.101.3.4.3.20", "SLH-DSA-SHA2-128s"),
    ("2.16.840.1.101.3.4.3.21", "SLH-DSA-SHA2-128f"),
    ("2.16.840.1.101.3.4.3.22", "SLH-DSA-SHA2-192s"),
    ("2.16.840.1.101.3.4.3.23", "SLH-DSA-SHA2-192f"),
    ("2.16.840.1.101.3.4.3.24", "SLH-DSA-SHA2-256s"),
    ("2.16.840.1.101.3.4.3.25", "SLH-DSA-SHA2-256f"),
    ("2.16.840.1.101.3.4.4.1", "ML-KEM-512"),
    ("2.16.840.1.101.3.4.4.2", "ML-KEM-768"),
    ("2.16.840.1.101.3.4.4.3", "ML-KEM-1024"),
    ("1.3.6.1.5.5.7.6.45", "MLDSA65-ECDSA-P256-SHA512 (composite)"),
];

/// Prefixes of OIDs whose algorithms are believed to resist quantum computers, with the range of the last number.
static POST_QUANTUM: &[(&str, std::ops::RangeInclusive<u32>)] = &[
    // ML-DSA, SLH-DSA and their pre-hash forms (FIPS 204, FIPS 205).
    ("2.16.840.1.101.3.4.3", 17..=46),
    // ML-KEM (FIPS 203).
    ("2.16.840.1.101.3.4.4", 1..=3),
    // HSS/LMS (RFC 9708).
    ("1.2.840.113549.1.9.16.3", 17..=17),
    // XMSS and XMSS^MT (RFC 9802), and the composites of ML-DSA (draft-ietf-lamps-pq-composite-sigs).
    ("1.3.6.1.5.5.7.6", 34..=54),
];

/// Length of the signature on a certificate, request or CRL, in bytes.
pub fn signature_len(der: &[u8]) -> usize {
    let outer = crate::object::children(der).unwrap_or_default();
    outer
        .get(2)
        .and_then(|(_, encoding)| BitStringRef::from_der(encoding).ok())
        .map_or(0, |bits| bits.raw_bytes().len())
}

/// Length of a TLS signature by the key in a `SubjectPublicKeyInfo`, in bytes; approximate for ECDSA, whose DER
/// varies by a few bytes. `None` for keys that do not sign.
pub fn signature_bytes(spki: &[u8]) -> Option<usize> {
    let key = public_key(spki).ok()?;
    let known = |(name, bytes): &(&str, usize)| (*name == key.name).then_some(*bytes);
    match key.name.strip_prefix("RSA ") {
        Some(_) => Some(key.bytes),
        None => SIGNATURE_BYTES.iter().find_map(known),
    }
}

/// Length of a name's DER, in bytes.
pub fn name_len(name: &x509_cert::name::Name) -> usize {
    name.to_der().map_or(0, |der| der.len())
}

/// FIPS 204, table 2; FIPS 205, table 2; RFC 8032; the most common length of a DER `ECDSA-Sig-Value`.
static SIGNATURE_BYTES: &[(&str, usize)] = &[
    ("ML-DSA-44", 2420),
    ("ML-DSA-65", 3309),
    ("ML-DSA-87", 4627),
    ("SLH-DSA-SHA2-128s", 7856),
    ("SLH-DSA-SHA2-128f", 17_088),
    ("SLH-DSA-SHA2-256s", 29_792),
    ("Ed25519", 64),
    ("EC P-256", 71),
    ("EC P-384", 103),
    ("EC P-521", 138),
];

/// URLs of a certificate's revocation status, plain HTTP only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RevocationUrls {
    /// OCSP responders.
    pub ocsp: Vec<String>,
    /// CRLs.
    pub crl: Vec<String>,
}

/// RFC 5280, sections 4.2.1.13 and 4.2.2.1; only the http URLs.
pub fn revocation_urls(certificate: &Certificate) -> RevocationUrls {
    let points = certificate.extension::<CrlDistributionPoints>();
    let crl = points.iter().flat_map(|(_, points)| &points.0).flat_map(|point| {
        match &point.distribution_point {
            Some(DistributionPointName::FullName(names)) => names.as_slice(),
            Some(DistributionPointName::NameRelativeToCRLIssuer(_)) | None => &[],
        }
    });
    let access = certificate.extension::<AuthorityInfoAccessSyntax>();
    let access = access.iter().flat_map(|(_, access)| &access.0);
    let ocsp = access.filter(|access| access.access_method == ID_AD_OCSP);
    RevocationUrls {
        ocsp: ocsp.filter_map(|access| http_url(&access.access_location)).collect(),
        crl: crl.filter_map(http_url).collect(),
    }
}

fn http_url(name: &GeneralName) -> Option<String> {
    let GeneralName::UniformResourceIdentifier(url) = name else { return None };
    // RFC 3986, section 3.1: schemes ignore case.
    let scheme = url.as_str().get(..7)?;
    scheme.eq_ignore_ascii_case("http://").then(|| url.as_str().to_owned())
}

/// The usual name of an algorithm.
pub fn algorithm_name(oid: ObjectIdentifier) -> String {
    let text = oid.to_string();
    match NAMES.iter().find(|(dotted, _)| *dotted == text) {
        Some((_, name)) => (*name).to_owned(),
        None => crate::oid_name(oid).map_or(text, str::to_owned),
    }
}

/// Whether an algorithm is believed to resist quantum computers.
pub fn is_post_quantum(oid: ObjectIdentifier) -> bool {
    let text = oid.to_string();
    let Some((arc, last)) = text.rsplit_once('.') else { return false };
    let last = last.parse::<u32>().unwrap_or_default();
    POST_QUANTUM.iter().any(|(begin, range)| *begin == arc && range.contains(&last))
}

/// A DER `SubjectPublicKeyInfo` in words.
pub fn public_key(spki: &[u8]) -> Result<PublicKey, PkiError> {
    let parsed = SubjectPublicKeyInfoOwned::from_der(spki)
        .map_err(|error| PkiError::malformed("public key", &error))?;
    let AlgorithmIdentifierOwned { oid, parameters } = &parsed.algorithm;
    let key = parsed.subject_public_key.raw_bytes();
    let mut name = algorithm_name(*oid);
    if *oid == const_oid::db::rfc5912::ID_EC_PUBLIC_KEY {
        let curve = parameters.as_ref().and_then(|any| any.decode_as::<ObjectIdentifier>().ok());
        let curve = curve.map_or_else(|| "an unnamed curve".to_owned(), algorithm_name);
        name = format!("EC {curve}");
    }
    let mut bytes = key.len();
    if *oid == const_oid::db::rfc5912::RSA_ENCRYPTION
        && let Some(modulus) = rsa_modulus(key)
    {
        let zeros = modulus.first().map_or(0, |byte| byte.leading_zeros() as usize);
        name = format!("RSA {} bits", modulus.len() * 8 - zeros);
        bytes = modulus.len();
    }
    Ok(PublicKey { name, bytes, post_quantum: is_post_quantum(*oid) })
}

/// RFC 8017, A.1.1: the modulus of an `RSAPublicKey`, without leading zeros.
fn rsa_modulus(key: &[u8]) -> Option<Vec<u8>> {
    use der::Reader;
    let mut modulus = None;
    der::SliceReader::new(key)
        .ok()?
        .sequence(|inner| {
            modulus = Some(der::asn1::UintRef::decode(inner)?.as_bytes().to_vec());
            inner.drain(inner.remaining_len())
        })
        .ok()?;
    modulus
}

/// A general name in OpenSSL's notation: `DNS:example.com`.
pub fn general_name(name: &GeneralName) -> String {
    match name {
        GeneralName::DnsName(text) => format!("DNS:{}", text.as_str()),
        GeneralName::Rfc822Name(text) => format!("email:{}", text.as_str()),
        GeneralName::UniformResourceIdentifier(text) => format!("URI:{}", text.as_str()),
        GeneralName::IpAddress(bytes) => format!("IP:{}", address(bytes.as_bytes())),
        GeneralName::DirectoryName(name) => format!("directory:{name}"),
        GeneralName::RegisteredId(oid) => format!("registered id:{oid}"),
        GeneralName::OtherName(other) => format!("other:{}", other.type_id),
        GeneralName::EdiPartyName(_) => "EDI party".to_owned(),
    }
}

/// An address, or an address and a mask (RFC 5280, section 4.2.1.10).
fn address(bytes: &[u8]) -> String {
    use std::net::{Ipv4Addr, Ipv6Addr};
    let one = |bytes: &[u8]| match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|ip| Ipv4Addr::from(ip).to_string()),
        16 => <[u8; 16]>::try_from(bytes).ok().map(|ip| Ipv6Addr::from(ip).to_string()),
        _ => None,
    };
    let half = bytes.len() / 2;
    let text = match bytes.len() {
        4 | 16 => one(bytes),
        8 | 32 => {
            one(&bytes[..half]).zip(one(&bytes[half..])).map(|(ip, mask)| format!("{ip}/{mask}"))
        }
        _ => None,
    };
    text.unwrap_or_else(|| hex_text(bytes))
}

/// Bytes as hexadecimal.
pub(crate) fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use outlast_crypto::keys::KeySpec;

    use super::*;

    #[test]
    fn keys_in_words() {
        for (spec, name, bytes, post_quantum) in [
            ("ML_DSA_65", "ML-DSA-65", 1952, true),
            ("ML_KEM_768", "ML-KEM-768", 1184, true),
            ("SLH_DSA_SHA2_128S", "SLH-DSA-SHA2-128s", 32, true),
            ("ML_DSA_65_ECDSA_P256", "MLDSA65-ECDSA-P256-SHA512 (composite)", 2017, true),
            ("ECC_NIST_P256", "EC P-256", 65, false),
            ("ECC_SECG_P256K1", "EC secp256k1", 65, false),
            ("ECC_NIST_EDWARDS25519", "Ed25519", 32, false),
            ("RSA_2048", "RSA 2048 bits", 256, false),
        ] {
            let row = KeySpec::by_name(spec).unwrap();
            let key = row.load(&row.generate().unwrap()).unwrap();
            let expected = PublicKey { name: name.into(), bytes, post_quantum };
            assert_eq!(public_key(key.public_key().unwrap()).unwrap(), expected);
        }
        assert!(public_key(b"no key").is_err());
    }

    #[test]
    fn every_signature_algorithm_has_a_name() {
        for oid in outlast_crypto::signatures::SIGNATURES.iter().filter_map(|row| row.oid) {
            let text = oid.to_string();
            assert!(NAMES.iter().any(|(known, _)| *known == text), "{text}");
        }
        assert!(!is_post_quantum(ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.3.4")));
        assert!(is_post_quantum(ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.3.20")));
    }

    #[test]
    fn addresses_and_masks() {
        assert_eq!(address(&[127, 0, 0, 1]), "127.0.0.1");
        assert_eq!(address(&[10, 0, 0, 0, 255, 0, 0, 0]), "10.0.0.0/255.0.0.0");
        assert_eq!(address(&[1, 2, 3]), "010203");
    }
}
