//! Revocation: an authority's configuration, the reasons, and the record of a revoked certificate.

use serde::{Deserialize, Serialize};

use crate::arn::Scope;

/// `RevocationConfiguration`: what is enabled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    /// `CrlConfiguration`, if it is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crl: Option<Crl>,
    /// `OcspConfiguration`, if it is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ocsp: Option<Ocsp>,
}

/// `CrlConfiguration` of an authority that has CRLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crl {
    /// `ExpirationInDays`: how long a CRL is valid.
    pub expiration_days: i64,
    /// `CustomCname`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_cname: Option<String>,
    /// `S3BucketName`: the bucket that CRLs are also written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// `S3ObjectAcl`; kept for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acl: Option<String>,
    /// `CrlDistributionPointExtensionConfiguration.OmitExtension`
    #[serde(default)]
    pub omit_extension: bool,
    /// `CrlType`: `PARTITIONED` rather than `COMPLETE`.
    #[serde(default)]
    pub partitioned: bool,
    /// `CustomPath`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_path: Option<String>,
    /// Prefix of the URLs in certificates, as of the time when CRLs were configured: `http://host/path` without a
    /// slash at the end.
    pub base_url: String,
}

/// `OcspConfiguration` of an authority that answers OCSP requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ocsp {
    /// `OcspCustomCname`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_cname: Option<String>,
    /// The URL in certificates, as of the time when OCSP was configured.
    pub url: String,
}

/// The reasons for which a certificate can be revoked, AWS's spelling.
pub const REASONS: &[&str] = &[
    "UNSPECIFIED",
    "KEY_COMPROMISE",
    "CERTIFICATE_AUTHORITY_COMPROMISE",
    "AFFILIATION_CHANGED",
    "SUPERSEDED",
    "CESSATION_OF_OPERATION",
    "PRIVILEGE_WITHDRAWN",
    "A_A_COMPROMISE",
];

/// A revoked certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// `RevocationReason`, AWS's spelling.
    pub reason: String,
    /// Milliseconds since 1970.
    pub revoked_ms: i64,
    /// End of the certificate's validity, seconds since 1970: it leaves the CRL some time after it.
    pub not_after: i64,
}

/// Account, Region and id at the end of a record key, and the rest.
pub(super) fn parts<'a>(record_key: &'a str, prefix: &str) -> Option<(Scope, &'a str, &'a str)> {
    let mut parts = record_key.strip_prefix(prefix)?.splitn(4, '/');
    let scope = Scope { account: parts.next()?.into(), region: parts.next()?.into() };
    Some((scope, parts.next()?, parts.next().unwrap_or_default()))
}

/// Lower-case hexadecimal without colons and leading zeros, as in the record keys of issued certificates.
pub fn canonical_serial(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    let digits = digits.to_ascii_lowercase();
    let digits = digits.trim_start_matches("0x").trim_start_matches("00");
    let even = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
    let valid = (1..=40).contains(&even.len()) && even.bytes().all(|byte| byte.is_ascii_hexdigit());
    valid.then_some(even)
}

pub(super) fn revoked_prefix(scope: &Scope, id: &str) -> String {
    format!("ca/revoked/{}/{}/{id}/", scope.account, scope.region)
}

pub(super) fn revoked_record_key(scope: &Scope, id: &str, serial: &str) -> String {
    format!("{}{serial}", revoked_prefix(scope, id))
}
