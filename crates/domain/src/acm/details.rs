//! The contents of a certificate, extracted once so that lists and searches need not parse it again.

use outlast_crypto::keys::KeySpec;
use outlast_pki::ObjectIdentifier;
use outlast_pki::certificate::Certificate;
use outlast_pki::extensions::SUBJECT_ALT_NAME;
use outlast_pki::general_name::{GeneralName, decode_names};
use outlast_pki::name::common_names;
use outlast_pki::public_key::{Kind, rsa_bits};
use serde::{Deserialize, Serialize};

/// AWS's names of the bits of a key usage, in RFC 5280's order.
pub const KEY_USAGES: &[&str] = &[
    "DIGITAL_SIGNATURE",
    "NON_REPUDIATION",
    "KEY_ENCIPHERMENT",
    "DATA_ENCIPHERMENT",
    "KEY_AGREEMENT",
    "CERTIFICATE_SIGNING",
    "CRL_SIGNING",
    "ENCIPHER_ONLY",
    "DECIPHER_ONLY",
];

/// AWS's names of extended key usages.
pub const EXTENDED_KEY_USAGES: &[(&str, &str)] = &[
    ("TLS_WEB_SERVER_AUTHENTICATION", "1.3.6.1.5.5.7.3.1"),
    ("TLS_WEB_CLIENT_AUTHENTICATION", "1.3.6.1.5.5.7.3.2"),
    ("CODE_SIGNING", "1.3.6.1.5.5.7.3.3"),
    ("EMAIL_PROTECTION", "1.3.6.1.5.5.7.3.4"),
    ("IPSEC_END_SYSTEM", "1.3.6.1.5.5.7.3.5"),
    ("IPSEC_TUNNEL", "1.3.6.1.5.5.7.3.6"),
    ("IPSEC_USER", "1.3.6.1.5.5.7.3.7"),
    ("TIME_STAMPING", "1.3.6.1.5.5.7.3.8"),
    ("OCSP_SIGNING", "1.3.6.1.5.5.7.3.9"),
    ("ANY", "2.5.29.37.0"),
];

/// AWS's names of the key types that certificates have here, and their names in the table of public keys. RSA's
/// depend on the length.
const KEY_ALGORITHMS: &[(&str, &str)] = &[
    ("EC_prime256v1", "EC P-256"),
    ("EC_secp384r1", "EC P-384"),
    ("EC_secp521r1", "EC P-521"),
    ("ML_DSA_44", "ML-DSA-44"),
    ("ML_DSA_65", "ML-DSA-65"),
    ("ML_DSA_87", "ML-DSA-87"),
];

/// The contents of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Details {
    /// Serial number in lower-case hexadecimal.
    pub serial: String,
    /// Common name of the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_name: Option<String>,
    /// DNS names among the subject alternative names.
    pub dns_names: Vec<String>,
    /// Seconds since 1970.
    pub not_before: i64,
    /// Seconds since 1970.
    pub not_after: i64,
    /// AWS's name of its key type, or our name for a type that AWS lacks.
    pub key_algorithm: String,
    /// Names of [`KEY_USAGES`]; empty if the certificate has no key usage.
    pub key_usages: Vec<String>,
    /// Names of [`EXTENDED_KEY_USAGES`] or `CUSTOM`, and identifiers.
    pub extended_key_usages: Vec<(String, String)>,
}

impl Details {
    /// What is known of a certificate that was requested for these names and is not issued yet.
    pub(super) fn requested(dns_names: Vec<String>, key_algorithm: &str) -> Self {
        Self {
            serial: String::new(),
            common_name: dns_names.first().cloned(),
            dns_names,
            not_before: 0,
            not_after: 0,
            key_algorithm: key_algorithm.to_owned(),
            key_usages: Vec::new(),
            extended_key_usages: Vec::new(),
        }
    }

    /// Extracts the contents of a certificate.
    pub fn of(certificate: &Certificate) -> Self {
        let flags = certificate.key_usage().map(|(_, usage)| {
            [
                usage.digital_signature(),
                usage.non_repudiation(),
                usage.key_encipherment(),
                usage.data_encipherment(),
                usage.key_agreement(),
                usage.key_cert_sign(),
                usage.crl_sign(),
                usage.encipher_only(),
                usage.decipher_only(),
            ]
        });
        let key_usages = KEY_USAGES
            .iter()
            .zip(flags.unwrap_or_default())
            .filter(|(_, set)| *set)
            .map(|(name, _)| (*name).to_owned())
            .collect();
        let purposes = certificate.extended_key_usage().map(|(_, purposes)| purposes);
        Self {
            serial: hex::encode(certificate.serial()),
            common_name: common_names(certificate.subject()).next(),
            dns_names: names(certificate)
                .into_iter()
                .filter_map(|name| match name {
                    GeneralName::DnsName(name) => Some(name),
                    _ => None,
                })
                .collect(),
            not_before: certificate.not_before(),
            not_after: certificate.not_after(),
            key_algorithm: certificate
                .public_key()
                .map_or_else(|_| String::new(), |spki| key_algorithm(&spki)),
            key_usages,
            extended_key_usages: purposes.unwrap_or_default().iter().map(purpose).collect(),
        }
    }
}

/// All subject alternative names; empty if they cannot be read.
pub fn names(certificate: &Certificate) -> Vec<GeneralName> {
    certificate
        .extensions()
        .iter()
        .find(|extension| extension.extn_id == SUBJECT_ALT_NAME)
        .and_then(|extension| decode_names(extension.extn_value.as_bytes()).ok())
        .unwrap_or_default()
}

/// AWS's name of the key type of a DER `SubjectPublicKeyInfo`, or our name for a type that AWS lacks.
pub fn key_algorithm(spki: &[u8]) -> String {
    if let Some(bits) = rsa_bits(spki) {
        return format!("RSA_{bits}");
    }
    let Ok(kind) = Kind::of(spki) else { return "UNKNOWN".to_owned() };
    let found = KEY_ALGORITHMS.iter().find(|(_, name)| *name == kind.name);
    found.map_or(kind.name, |(name, _)| name).to_owned()
}

/// The key type with a name from [`key_algorithm`], if certificates can be requested for it.
pub fn requestable(name: &str) -> Option<&'static KeySpec> {
    KeySpec::by_pca_name(name).filter(|spec| {
        name.starts_with("RSA_")
            || KEY_ALGORITHMS.iter().any(|(known, _)| Some(*known) == spec.pca_name)
    })
}

fn purpose(oid: &ObjectIdentifier) -> (String, String) {
    let oid = oid.to_string();
    let found = EXTENDED_KEY_USAGES.iter().find(|(_, known)| *known == oid);
    (found.map_or("CUSTOM", |(name, _)| name).to_owned(), oid)
}
