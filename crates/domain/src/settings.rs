//! What the operator has set that ends up in certificates and answers.

/// A standard for keeping the keys of CAs, by Private CA's name.
///
/// Source: AWS Private CA, API reference, `CreateCertificateAuthority`, `KeyStorageSecurityStandard`.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyStorage {
    /// Its name.
    pub name: &'static str,
    /// Names of others that whoever meets this one meets, too.
    implies: &'static [&'static str],
}

/// Every standard.
pub static KEY_STORAGE: &[KeyStorage] = &[
    KeyStorage { name: "FIPS_140_2_LEVEL_2_OR_HIGHER", implies: &[] },
    KeyStorage { name: "FIPS_140_2_LEVEL_3_OR_HIGHER", implies: &["FIPS_140_2_LEVEL_2_OR_HIGHER"] },
    KeyStorage { name: "CCPC_LEVEL_1_OR_HIGHER", implies: &[] },
];

impl KeyStorage {
    /// The standard with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        KEY_STORAGE.iter().find(|row| row.name == name)
    }

    /// Whether who meets this one meets the standard with that name.
    pub fn meets(&self, name: &str) -> bool {
        self.name == name || self.implies.contains(&name)
    }
}

/// Where others reach this server, and what it may claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Plain HTTP, for CRLs and OCSP, as `http://host:port` without a slash at the end; `None` if it is off.
    pub revocation_url: Option<String>,
    /// HTTPS, for ACME, as `https://host:port` without a slash at the end.
    pub service_url: String,
    /// Whether the operator has given that URL: then clients of ACME reach the server there and nowhere else.
    pub service_url_is_given: bool,
    /// What the operator says that the token with the root key is certified to; `None` claims nothing.
    pub key_storage: Option<&'static KeyStorage>,
}
