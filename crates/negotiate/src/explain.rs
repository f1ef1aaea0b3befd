//! Explains a policy in sentences: why each group is there, who is served, and what a given client would get.
//!
//! Outcomes come from [`decide()`], so that the explanation is what really happens.

use outlast_crypto::groups::{Group, Strength};
use outlast_crypto::schemes::{Kind, Scheme};
use outlast_crypto::versions::Version;
use serde::Serialize;

use crate::crowd::{CROWD, Client};
use crate::decide::{CertificateFacts, Choice, Decision, Refusal, decide};
pub use crate::fare::Fare;
use crate::offer::{Offer, Transport};
use crate::policy::{Mode, Rules};
use crate::ssh::{SshExplanation, explain_ssh};

/// Explanation of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The policy's name.
    pub policy: &'static str,
    /// The mode's name.
    pub mode: &'static str,
    /// The policy's purpose.
    pub summary: &'static str,
    /// How it works, a sentence each.
    pub meaning: Vec<String>,
    /// Each group that the mode leaves.
    pub groups: Vec<Reason>,
    /// Results of common clients.
    pub clients: Vec<Fare>,
    /// Its departures from its sources.
    pub differences: &'static [&'static str],
    /// Its sources.
    pub sources: &'static [&'static str],
    /// Its part for SSH.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh: Option<SshExplanation>,
}

/// Why a group is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// IANA name.
    pub group: &'static str,
    /// The purpose that it serves in the policy, in a sentence.
    pub why: String,
}

/// Result of one offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Whether it is served.
    pub served: bool,
    /// `TLSv1.3`
    pub version: Option<&'static str>,
    /// IANA name.
    pub suite: Option<&'static str>,
    /// IANA name.
    pub group: Option<&'static str>,
    /// Whether the group is a post-quantum one.
    pub post_quantum: bool,
    /// Whether the client is asked for a share by HelloRetryRequest.
    pub hello_retry: bool,
    /// Kind of the certificate.
    pub certificate: Option<String>,
    /// IANA name of the scheme that signs the handshake.
    pub scheme: Option<&'static str>,
    /// Why it is refused.
    pub refusal: Option<Refusal>,
    /// The alert that it gets in that case.
    pub alert: Option<u8>,
    /// What happens and why, one sentence each.
    pub steps: Vec<String>,
}

/// Explains a policy in this mode.
pub fn explain(rules: &Rules) -> Explanation {
    let policy = rules.policy;
    let clients = CROWD.iter().filter(|_| policy.has_tls()).map(|client| {
        let verdict = verdict(rules, client);
        let choice = match verdict.decision {
            Decision::Serve(choice) => Some(choice),
            Decision::Refuse(_) => None,
        };
        Fare {
            client: client.name,
            served: choice.is_some(),
            post_quantum: choice.is_some_and(|choice| choice.group.strength.is_post_quantum()),
            outcome: verdict.text,
        }
    });
    Explanation {
        policy: policy.name,
        mode: rules.mode.name(),
        summary: policy.summary,
        meaning: meaning(rules),
        groups: rules.groups().map(|row| Reason { group: row.name, why: why(row) }).collect(),
        clients: clients.collect(),
        differences: policy.differences,
        sources: policy.sources,
        ssh: explain_ssh(policy, rules.mode),
    }
}

fn meaning(rules: &Rules) -> Vec<String> {
    let policy = rules.policy;
    let mut out = Vec::new();
    if !policy.has_tls() {
        out.push("It is for SSH only: TLS listeners cannot use it.".to_owned());
        return out;
    }
    let versions: Vec<_> = rules.versions().map(Version::name).collect();
    out.push(match versions.as_slice() {
        [] => "The mode leaves no TLS version.".to_owned(),
        ["TLSv1.3"] => "TLS 1.3 only: clients without TLS 1.3 are refused.".to_owned(),
        versions => {
            format!("It negotiates {}: the first that the client supports.", versions.join(" and "))
        }
    });
    let hybrids = rules.groups().filter(|row| row.strength.is_post_quantum()).count();
    let classical = rules.groups().count() - hybrids;
    out.push(match (rules.mode, hybrids, classical) {
        (_, 0, 0) => "The mode leaves no group: every client is refused.".to_owned(),
        (_, 0, _) => {
            "No key exchange is post-quantum: a quantum computer will be able to decrypt traffic that \
                      is recorded today."
                .to_owned()
        }
        (_, _, 0) => {
            "Only post-quantum key exchange: clients without it are refused with the alert \
                      handshake_failure."
                .to_owned()
        }
        (Mode::Allow, _, _) => {
            "The client's order counts: a client that puts a classical group first gets it, \
                                even if it offers a post-quantum one."
                .to_owned()
        }
        _ => "A client that offers one of the post-quantum groups gets one, whatever its order, by \
              HelloRetryRequest if the share is missing; other clients get a classical group."
            .to_owned(),
    });
    if versions.contains(&"TLSv1.2") {
        out.push(
            "TLS 1.2 has no post-quantum key exchange: its clients get a classical group."
                .to_owned(),
        );
    }
    let schemes: Vec<_> = rules.handshake_schemes().collect();
    if schemes.iter().all(|row| row.kind == Kind::MlDsa) {
        out.push("Handshakes are signed with ML-DSA only.".to_owned());
    } else if !schemes.iter().any(|row| row.kind == Kind::MlDsa) {
        out.push("ML-DSA certificates are not used: signatures are classical.".to_owned());
    }
    if policy.is_fips() {
        out.push(
            "FIPS 140-3 allows all of its algorithms; the cryptographic module must be validated as well.".to_owned(),
        );
    }
    out
}

/// Why a policy has this group.
fn why(row: &Group) -> String {
    let bytes = format!(
        "shares of {} bytes from the client and {} from the server",
        row.client_share_len, row.server_share_len
    );
    let reason = match row.name {
        "X25519MLKEM768" => "the hybrid that browsers, OpenSSL 3.5, Go and AWS's SDKs offer first",
        "SecP256r1MLKEM768" => "the hybrid for clients that may only use NIST curves",
        "SecP384r1MLKEM1024" => "the hybrid of the highest security level, with the largest shares",
        "MLKEM1024" => "ML-KEM alone, at the level that CNSA 2.0 requires",
        "MLKEM768" => "ML-KEM alone: small and fast, and as safe as ML-KEM is",
        "x25519" => "the classical group of most clients without a hybrid",
        "secp256r1" => "for clients that may only use NIST curves, and for old ones",
        "secp384r1" => "for clients that require the higher level of NIST curves",
        "secp521r1" => "for the few clients that accept nothing else",
        _ => "a further group",
    };
    let safety = match row.strength {
        Strength::Hybrid => "secure as long as either part is",
        Strength::PostQuantum => "secure as long as ML-KEM is",
        Strength::Classical => "not secure against a quantum computer",
    };
    format!("{reason}; {safety}; {bytes}")
}

/// Result of a kind of client, in a few words.
pub(crate) struct Verdict {
    pub(crate) decision: Decision,
    pub(crate) text: String,
}

/// For a server with a certificate of every kind, so that only groups and suites decide.
pub(crate) fn verdict(rules: &Rules, client: &Client) -> Verdict {
    let decision = decide(rules, &client.offer(), &every_certificate());
    let text = match &decision {
        Decision::Serve(choice) => {
            let retry = if choice.hello_retry { " by HelloRetryRequest" } else { "" };
            let Choice { version, group, scheme, .. } = choice;
            format!("{}, {}{retry}, signed with {}", version.name(), group.name, scheme.name)
        }
        Decision::Refuse(refusal) => format!("refused: {refusal}"),
    };
    Verdict { decision, text }
}

/// A certificate for each kind of key: all that a server could show, the usual ones first.
pub fn every_certificate() -> Vec<CertificateFacts> {
    let rows = |names: &&[&str]| -> Vec<_> {
        names.iter().filter_map(|name| Scheme::by_name(name)).collect()
    };
    KEYS.iter().map(|names| certificate(&rows(names))).collect()
}

/// Schemes of each kind of key.
const KEYS: &[&[&str]] = &[
    &["ecdsa_secp256r1_sha256"],
    &["ecdsa_secp384r1_sha384"],
    &[
        "rsa_pss_rsae_sha256",
        "rsa_pss_rsae_sha384",
        "rsa_pss_rsae_sha512",
        "rsa_pkcs1_sha256",
        "rsa_pkcs1_sha384",
        "rsa_pkcs1_sha512",
    ],
    &["ecdsa_secp521r1_sha512"],
    &["ed25519"],
    &["mldsa65"],
    &["mldsa87"],
    &["mldsa44"],
];

/// A certificate whose key signs with these schemes, and whose chain is of the same kind.
pub fn certificate(schemes: &[&'static Scheme]) -> CertificateFacts {
    let names: Vec<_> = schemes.iter().map(|row| row.name).collect();
    let ml_dsa = schemes.iter().filter(|row| row.kind == Kind::MlDsa);
    CertificateFacts {
        kind: names.join("+"),
        schemes: schemes.iter().map(|row| row.code_point).collect(),
        chain: ml_dsa.map(|row| row.code_point).collect(),
    }
}

/// What an offer gets, and why.
pub fn outcome(rules: &Rules, offer: &Offer, certificates: &[CertificateFacts]) -> Outcome {
    match decide(rules, offer, certificates) {
        Decision::Serve(choice) => {
            let certificate = certificates.get(choice.certificate).map(|facts| facts.kind.clone());
            Outcome {
                served: true,
                version: Some(choice.version.name()),
                suite: Some(choice.suite.name),
                group: Some(choice.group.name),
                post_quantum: choice.group.strength.is_post_quantum(),
                hello_retry: choice.hello_retry,
                certificate,
                scheme: Some(choice.scheme.name),
                refusal: None,
                alert: None,
                steps: served(rules, offer, &choice),
            }
        }
        Decision::Refuse(refusal) => Outcome {
            served: false,
            version: None,
            suite: None,
            group: None,
            post_quantum: false,
            hello_retry: false,
            certificate: None,
            scheme: None,
            refusal: Some(refusal),
            alert: Some(refusal.alert()),
            steps: refused(rules, offer, certificates, refusal),
        },
    }
}

fn served(rules: &Rules, offer: &Offer, choice: &Choice) -> Vec<String> {
    let group = choice.group;
    let is_post_quantum = group.strength.is_post_quantum();
    let mut out =
        vec![format!("{} is the newest version that both support.", choice.version.name())];
    let first = offer.groups.iter().find(|code| rules.groups().any(|row| row.code_point == **code));
    let is_first = first == Some(&group.code_point);
    out.push(match (choice.version, rules.mode) {
        (Version::Tls12, _) => format!(
            "The key exchange is {}: TLS 1.2 has no post-quantum group, and this is the policy's first that the client supports.",
            group.name
        ),
        (_, Mode::Allow) => format!("The group is {}: the client's order counts.", group.name),
        _ if is_post_quantum && !is_first => format!(
            "The group is {}, although the client prefers others: a common post-quantum group is always used.",
            group.name
        ),
        _ if is_post_quantum => format!("The group is {}: post-quantum, and both support it.", group.name),
        _ => format!(
            "The group is {}: {}",
            group.name,
            if offer.groups.iter().filter_map(|code| Group::by_code_point(*code)).any(|row| row.strength.is_post_quantum()) {
                "the client's post-quantum groups are not in the policy in this mode."
            } else {
                "the client offers no post-quantum group."
            }
        ),
    });
    if choice.version == Version::Tls13 {
        out.push(if choice.hello_retry {
            let shares = match names(offer.shares.iter().flatten()) {
                shares if shares.is_empty() => "none was".to_owned(),
                shares => shares,
            };
            format!(
                "Its share was not sent ({shares}): the client is asked for it by HelloRetryRequest, which costs a round trip."
            )
        } else {
            "Its share was sent: no HelloRetryRequest.".to_owned()
        });
    }
    out.push(format!(
        "{} signs the handshake: the first scheme that the certificate's key, the policy and the client have in common.",
        choice.scheme.name
    ));
    out.push(format!(
        "{} is the policy's first suite that the client supports.",
        choice.suite.name
    ));
    out
}

fn refused(
    rules: &Rules,
    offer: &Offer,
    certificates: &[CertificateFacts],
    refusal: Refusal,
) -> Vec<String> {
    let (theirs, ours) = match refusal {
        Refusal::Version => {
            let theirs = offer.versions.iter().map(|code| match code {
                0x0304 => "TLSv1.3".to_owned(),
                0x0303 => "TLSv1.2".to_owned(),
                other => format!("{other:#06x}"),
            });
            let ours: Vec<_> = rules.versions().map(Version::name).collect();
            (theirs.collect::<Vec<_>>().join(", "), ours.join(", "))
        }
        Refusal::Group | Refusal::Classical => {
            let ours: Vec<_> = rules.groups().map(|row| row.name).collect();
            (names(offer.groups.iter()), ours.join(", "))
        }
        Refusal::Suite => {
            let known = |code: &u16| outlast_crypto::suites::Suite::by_code_point(*code);
            let theirs = offer.suites.iter().map(|code| {
                known(code).map_or_else(|| format!("{code:#06x}"), |row| row.name.to_owned())
            });
            let ours: Vec<_> = rules
                .versions()
                .flat_map(|version| rules.suites(version))
                .map(|row| row.name)
                .collect();
            (theirs.collect::<Vec<_>>().join(", "), ours.join(", "))
        }
        Refusal::Scheme => {
            let theirs = offer.schemes.iter().map(|code| {
                Scheme::by_code_point(*code)
                    .map_or_else(|| format!("{code:#06x}"), |row| row.name.to_owned())
            });
            let ours: Vec<_> = rules.handshake_schemes().map(|row| row.name).collect();
            (theirs.collect::<Vec<_>>().join(", "), ours.join(", "))
        }
    };
    let or_none = |text: String| if text.is_empty() { "nothing".to_owned() } else { text };
    let mut out = vec![
        format!("The client is refused with alert {}: {refusal}.", refusal.alert()),
        format!("It offers {}.", or_none(theirs)),
        format!("The policy allows {} in the mode {}.", or_none(ours), rules.mode),
    ];
    if refusal == Refusal::Scheme {
        out.push("A certificate is used only if its key can sign with a common scheme.".to_owned());
    }
    if refusal == Refusal::Version && offer.transport == Transport::Quic {
        out.push("QUIC needs TLS 1.3 (RFC 9001, section 4.2).".to_owned());
    }
    let would_serve = |mode: &&Mode| {
        let rules = Rules { policy: rules.policy, mode: **mode };
        matches!(decide(&rules, offer, certificates), Decision::Serve(_))
    };
    let modes: Vec<_> = Mode::ALL.iter().filter(would_serve).map(|mode| mode.name()).collect();
    if !modes.is_empty() {
        out.push(format!("It would be served in the mode {}.", modes.join(" or ")));
    }
    out
}

/// Names of groups; code points of unknown ones.
fn names<'a>(codes: impl Iterator<Item = &'a u16>) -> String {
    let shown: Vec<_> = codes
        .map(|code| {
            Group::by_code_point(*code)
                .map_or_else(|| format!("{code:#06x}"), |row| row.name.to_owned())
        })
        .collect();
    shown.join(", ")
}
