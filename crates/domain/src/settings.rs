//! Settings of the operator that appear in certificates and answers.

use std::collections::{BTreeMap, BTreeSet};

use outlast_tlog::VerifierKey;

use crate::arn::Scope;
use crate::limits;

/// A standard for keeping the keys of CAs, by Private CA's name.
///
/// Source: AWS Private CA, API reference, `CreateCertificateAuthority`, `KeyStorageSecurityStandard`.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyStorage {
    /// Its name.
    pub name: &'static str,
    /// Names of other standards that it implies.
    implies: &'static [&'static str],
}

/// All standards.
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

    /// Whether this standard implies the one with that name.
    pub fn meets(&self, name: &str) -> bool {
        self.name == name || self.implies.contains(&name)
    }
}

/// Certificates whose requests name no CA: what takes the place of Amazon's public CA, and of the proofs that it asks
/// for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublicCertificates {
    /// ARN of the private CA that issues them, by account and Region.
    pub authorities: BTreeMap<String, BTreeMap<String, String>>,
    /// Domains that are approved without a proof, by account: themselves, the names below them, and wildcards.
    pub approved: BTreeMap<String, BTreeSet<String>>,
}

impl PublicCertificates {
    /// ARN of the CA that issues for an account in a Region.
    pub fn authority(&self, scope: &Scope) -> Option<&str> {
        self.authorities.get(&scope.account)?.get(&scope.region).map(String::as_str)
    }

    /// Whether the operator has approved a name for an account.
    pub fn approves(&self, account: &str, name: &str) -> bool {
        let name = name.strip_prefix("*.").unwrap_or(name).to_ascii_lowercase();
        self.approved.get(account).is_some_and(|domains| {
            domains.iter().any(|domain| {
                let domain = domain.to_ascii_lowercase();
                name.strip_suffix(&domain)
                    .is_some_and(|above| above.is_empty() || above.ends_with('.'))
            })
        })
    }
}

/// Events for programs outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events {
    /// Where they go.
    pub targets: Vec<EventTarget>,
    /// Days before the end of a CA's certificate at which its events begin.
    pub authority_days: i64,
}

impl Default for Events {
    fn default() -> Self {
        Self { targets: Vec::new(), authority_days: limits::AUTHORITY_EVENT_DAYS.into() }
    }
}

/// A target of events, as far as it decides which events are kept for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventTarget {
    /// Its name, chosen by the operator.
    pub name: String,
    /// Sources of the events that it wants, such as `aws.acm`; empty for all.
    pub sources: BTreeSet<String>,
    /// `detail-type` of the events that it wants; empty for all.
    pub detail_types: BTreeSet<String>,
}

impl EventTarget {
    /// Whether it wants events with this source and `detail-type`.
    pub fn wants(&self, source: &str, detail_type: &str) -> bool {
        (self.sources.is_empty() || self.sources.contains(source))
            && (self.detail_types.is_empty() || self.detail_types.contains(detail_type))
    }
}

/// How the artifact log is cosigned and published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArtifactLog {
    /// Whether everybody may read it.
    pub is_published: bool,
    /// Its witnesses, with their URLs.
    pub witnesses: Vec<(VerifierKey, String)>,
    /// How many of them must cosign a head.
    pub quorum: usize,
}

/// Where clients reach this server, and which standard it may claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// URL of the listener for plain HTTP, for CRLs and OCSP: `http://host:port` without a slash at the end; `None`
    /// if it is off.
    pub revocation_url: Option<String>,
    /// URL of HTTPS, for ACME: `https://host:port` without a slash at the end.
    pub service_url: String,
    /// Whether the operator has set that URL: then it is the only one in ACME's answers.
    pub service_url_is_given: bool,
    /// The standard that the token with the root key is certified for, according to the operator; `None` claims
    /// nothing.
    pub key_storage: Option<&'static KeyStorage>,
    /// ARNs of the functions that rotate secrets; `None` if any is accepted, because nothing calls them.
    pub rotation_functions: Option<BTreeSet<String>>,
    /// ARNs of the functions that decide about logins of SFTP servers; `None` if any is accepted, because nothing calls them.
    pub login_functions: Option<BTreeSet<String>>,
    /// ARNs of the functions that custom steps of workflows call; `None` if any is accepted, because nothing calls them.
    pub workflow_functions: Option<BTreeSet<String>>,
    /// Whether sessions of Roles Anywhere end when their certificate is revoked.
    pub end_sessions_on_revocation: bool,
    /// Certificates whose requests name no CA.
    pub public_certificates: PublicCertificates,
    /// Events for programs outside.
    pub events: Events,
    /// The log of signatures.
    pub artifact_log: ArtifactLog,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_wants_what_its_filters_name() {
        let set = |name: &str| BTreeSet::from([name.to_owned()]);
        let all = EventTarget::default();
        let source = EventTarget { sources: set("aws.kms"), ..EventTarget::default() };
        let both = EventTarget { detail_types: set("KMS CMK Deletion"), ..source.clone() };
        for (kind, expected) in [
            (("aws.kms", "KMS CMK Deletion"), [true, true, true]),
            (("aws.kms", "KMS CMK Rotation"), [true, true, false]),
            (("aws.acm", "KMS CMK Deletion"), [true, false, false]),
        ] {
            assert_eq!([&all, &source, &both].map(|target| target.wants(kind.0, kind.1)), expected);
        }
    }

    #[test]
    fn approved_domains_cover_what_is_below_them() {
        let approved =
            BTreeMap::from([("1".to_owned(), BTreeSet::from(["Corp.example".to_owned()]))]);
        let settings = PublicCertificates { approved, ..PublicCertificates::default() };
        for (name, expected) in [
            ("corp.example", true),
            ("*.corp.example", true),
            ("a.b.CORP.example", true),
            ("notcorp.example", false),
            ("example", false),
            ("corp.example.org", false),
        ] {
            assert_eq!(settings.approves("1", name), expected, "{name}");
            assert!(!settings.approves("2", name), "{name}");
        }
    }
}
