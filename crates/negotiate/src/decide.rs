//! What a client gets under a policy: a function of the policy, the offer and the server's certificates only.

use outlast_crypto::groups::{Group, Strength, UNSERVED};
use outlast_crypto::schemes::{Kind, Scheme};
use outlast_crypto::suites::{Authentication, Suite};
use outlast_crypto::versions::Version;
use serde::{Deserialize, Serialize};

use crate::failing::FAILING;
use crate::offer::{Offer, SUPPORTED_VERSIONS, Transport};
use crate::policy::{Mode, Rules};

/// Facts about a certificate that the server may show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Kind in the ledger, such as `ecdsa-p256`.
    pub kind: String,
    /// Code points of the schemes that its key can sign with, the preferred first.
    pub schemes: Vec<u16>,
    /// Code points of the schemes that its chain is signed with, without the root's; empty if unknown.
    pub chain: Vec<u16>,
}

/// The decision on a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A connection.
    Serve(Choice),
    /// An alert.
    Refuse(Refusal),
}

/// The negotiated parameters.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// Version of TLS.
    pub version: Version,
    /// Cipher suite.
    pub suite: &'static Suite,
    /// Group of the key exchange.
    pub group: &'static Group,
    /// Whether the client is asked for a share by HelloRetryRequest.
    pub hello_retry: bool,
    /// Index of the certificate.
    pub certificate: usize,
    /// Scheme that signs the handshake.
    pub scheme: &'static Scheme,
}

impl PartialEq for Choice {
    fn eq(&self, other: &Self) -> bool {
        let key = |choice: &Self| {
            (
                choice.version,
                choice.suite.code_point,
                choice.group.code_point,
                choice.hello_retry,
                choice.certificate,
                choice.scheme.code_point,
            )
        };
        key(self) == key(other)
    }
}

impl Eq for Choice {}

/// Why a client is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// No version in common.
    #[error("no TLS version in common")]
    Version,
    /// No group in common.
    #[error("no key-exchange group in common")]
    Group,
    /// The client only has classical groups, and the policy requires post-quantum ones.
    #[error("the client has no post-quantum group, and the policy requires one")]
    Classical,
    /// No cipher suite in common.
    #[error("no cipher suite in common")]
    Suite,
    /// No certificate with signatures that the client accepts.
    #[error("no signature scheme in common")]
    Scheme,
}

impl Refusal {
    /// The alert (RFC 8446, section 6.2): `protocol_version` is 70, `handshake_failure` 40.
    pub fn alert(self) -> u8 {
        match self {
            Self::Version => 70,
            Self::Group | Self::Classical | Self::Suite | Self::Scheme => 40,
        }
    }
}

/// Whether a policy can use a certificate: it allows the scheme of its key and those of its chain.
pub fn can_show(rules: &Rules, facts: &CertificateFacts) -> bool {
    let is_allowed =
        |code: &u16| rules.certificate_schemes().any(|allowed| allowed.code_point == *code);
    facts.chain.iter().all(is_allowed)
        && rules.handshake_schemes().any(|row| facts.schemes.contains(&row.code_point))
}

/// Decides. `certificates` are the server's, the preferred first.
pub fn decide(rules: &Rules, offer: &Offer, certificates: &[CertificateFacts]) -> Decision {
    match serve(rules, offer, certificates) {
        Ok(choice) => Decision::Serve(choice),
        Err(refusal) => Decision::Refuse(refusal),
    }
}

fn serve(
    rules: &Rules,
    offer: &Offer,
    certificates: &[CertificateFacts],
) -> Result<Choice, Refusal> {
    let version = version(rules, offer)?;
    let (group, hello_retry) = group(rules, offer, version)?;
    let mut refusal = Refusal::Scheme;
    // A chain with signatures that the client does not list comes last, but is not excluded: many clients list less
    // than they accept, and can decide for themselves (RFC 8446, section 4.4.2.2).
    let named = |wanted: bool| {
        let certificates = certificates.iter().enumerate();
        certificates.filter(move |(_, facts)| names_chain(offer, facts) == wanted)
    };
    for (certificate, facts) in named(true).chain(named(false)) {
        let Some(scheme) = scheme(rules, offer, version, facts) else { continue };
        let suite = rules.suites(version).find(|row| {
            offer.suites.contains(&row.code_point)
                && match row.authentication {
                    Authentication::Any => true,
                    Authentication::Ecdsa => matches!(scheme.kind, Kind::Ecdsa | Kind::Ed25519),
                    Authentication::Rsa => matches!(scheme.kind, Kind::RsaPss | Kind::RsaPkcs1),
                }
        });
        match suite {
            Some(suite) => {
                return Ok(Choice { version, suite, group, hello_retry, certificate, scheme });
            }
            None => refusal = Refusal::Suite,
        }
    }
    Err(refusal)
}

fn version(rules: &Rules, offer: &Offer) -> Result<Version, Refusal> {
    let has_newer = offer.extensions.contains(&SUPPORTED_VERSIONS);
    let offered = |version: Version| {
        if has_newer {
            offer.versions.contains(&version.code_point())
        } else {
            // Without the extension the legacy version is the highest that the client speaks.
            version == Version::Tls12 && offer.versions.iter().any(|found| *found >= 0x0303)
        }
    };
    rules
        .versions()
        .filter(|version| offer.transport == Transport::Tcp || *version == Version::Tls13)
        .find(|version| offered(*version))
        .ok_or(Refusal::Version)
}

/// The group, and whether its share must be requested.
fn group(
    rules: &Rules,
    offer: &Offer,
    version: Version,
) -> Result<(&'static Group, bool), Refusal> {
    if version == Version::Tls12 {
        let classical = |row: &&Group| row.strength == Strength::Classical;
        let named = |row: &&Group| offer.groups.contains(&row.code_point);
        // Without the extension any group could be chosen (RFC 8422, section 4), but rustls does not.
        let found = rules.groups().filter(classical).find(named);
        return found.map(|row| (row, false)).ok_or(Refusal::Group);
    }
    let common: Vec<_> =
        rules.groups().filter(|row| offer.groups.contains(&row.code_point)).collect();
    let sent =
        |row: &Group| offer.shares.as_ref().is_some_and(|shares| shares.contains(&row.code_point));
    // Among equals, a group whose share was sent saves a round trip.
    let best = |post_quantum: bool| {
        let equals = || common.iter().filter(|row| row.strength.is_post_quantum() == post_quantum);
        equals().find(|row| sent(row)).or_else(|| equals().next()).copied()
    };
    let chosen = match rules.mode {
        Mode::Allow => {
            let by_client = |sent_only: bool| {
                offer.groups.iter().find_map(|code| {
                    common
                        .iter()
                        .find(|row| row.code_point == *code && (!sent_only || sent(row)))
                        .copied()
                })
            };
            by_client(true).or_else(|| by_client(false))
        }
        Mode::Require | Mode::Prefer | Mode::Off => best(true).or_else(|| best(false)),
    };
    match chosen {
        Some(row) => Ok((row, !sent(row))),
        None => {
            let wants_more = rules.groups().all(|row| row.strength.is_post_quantum());
            let is_classical = offer.groups.iter().all(|code| {
                Group::by_code_point(*code).is_none_or(|row| !row.strength.is_post_quantum())
                    && UNSERVED.iter().all(|row| row.0 != *code)
            });
            Err(if wants_more && is_classical { Refusal::Classical } else { Refusal::Group })
        }
    }
}

/// Whether the client lists the chain's signatures, as far as they matter for the choice: those of ML-DSA.
fn names_chain(offer: &Offer, facts: &CertificateFacts) -> bool {
    let for_chain = offer.certificate_schemes.as_ref().unwrap_or(&offer.schemes);
    let is_ml_dsa =
        |code: &u16| Scheme::by_code_point(*code).is_some_and(|scheme| scheme.kind == Kind::MlDsa);
    facts.chain.iter().all(|code| !is_ml_dsa(code) || for_chain.contains(code))
}

/// The scheme for signing the handshake with this certificate, if the client accepts one.
fn scheme(
    rules: &Rules,
    offer: &Offer,
    version: Version,
    facts: &CertificateFacts,
) -> Option<&'static Scheme> {
    if !can_show(rules, facts) {
        return None;
    }
    let fails = |scheme: &Scheme| FAILING.iter().any(|row| row.fails(offer, scheme));
    if facts.chain.iter().filter_map(|code| Scheme::by_code_point(*code)).any(fails) {
        return None;
    }
    facts
        .schemes
        .iter()
        .filter_map(|code| Scheme::by_code_point(*code))
        .filter(|scheme| match version {
            Version::Tls13 => scheme.kind != Kind::RsaPkcs1,
            Version::Tls12 => scheme.kind != Kind::MlDsa,
        })
        .find(|scheme| {
            rules.handshake_schemes().any(|allowed| allowed.code_point == scheme.code_point)
                && offer.schemes.contains(&scheme.code_point)
                && (version == Version::Tls13 || names_curve(offer, scheme))
                && !fails(scheme)
        })
}

/// Curves of ECDSA schemes, with their code points as groups.
static CURVES: &[(&str, u16)] = &[
    ("ecdsa_secp256r1_sha256", 0x0017),
    ("ecdsa_secp384r1_sha384", 0x0018),
    ("ecdsa_secp521r1_sha512", 0x0019),
];

/// Whether the client of TLS 1.2 accepts keys on the scheme's curve: there its list of groups applies to
/// certificates, too (RFC 8422, section 5.1), and OpenSSL refuses others. In TLS 1.3 it does not (RFC 8446, section
/// 4.2.7).
fn names_curve(offer: &Offer, scheme: &Scheme) -> bool {
    let curve = CURVES.iter().find(|(name, _)| *name == scheme.name);
    curve.is_none_or(|(_, group)| offer.groups.contains(group))
}

#[cfg(test)]
mod tests {
    use outlast_crypto::schemes::SCHEMES;

    use super::*;

    #[test]
    fn every_scheme_of_ecdsa_has_its_curve() {
        let of_ecdsa = |row: &&Scheme| row.kind == Kind::Ecdsa;
        let names: Vec<_> = SCHEMES.iter().filter(of_ecdsa).map(|row| row.name).collect();
        assert_eq!(CURVES.len(), names.len());
        for (name, group) in CURVES {
            assert!(names.contains(name), "{name}");
            let row = Group::by_code_point(*group).unwrap();
            assert!(name.contains(row.name), "{name}: {}", row.name);
        }
    }
}
