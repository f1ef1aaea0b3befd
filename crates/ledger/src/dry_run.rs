//! Replays the recorded offers under another policy: who would break, who would change.

use std::collections::{BTreeMap, BTreeSet};

use outlast_crypto::schemes::{Kind, SCHEMES, Scheme};
use outlast_negotiate::decide::{CertificateFacts, can_show};
use outlast_negotiate::ssh::{
    SshChosen, SshNothingLeft, SshOffer, SshRefusal, SshRules, decide_ssh, decide_ssh_late,
    decide_ssh_server, served, with_plain_host_keys,
};
use outlast_negotiate::{Decision, Refusal, Rules, decide};
use serde::Serialize;

use crate::known::Ability;
use crate::report::{ClientRow, rows_with_offers};
use crate::tally::{Counts, Hello, Tally};

/// Kinds of certificates, and the schemes that their keys sign with. Certificates in the operator's own files are
/// named by their key.
const KINDS: &[(&str, &[&str])] = &[
    ("ecdsa-p256", &["ecdsa_secp256r1_sha256"]),
    ("ecdsa-p384", &["ecdsa_secp384r1_sha384"]),
    ("ecdsa-p521", &["ecdsa_secp521r1_sha512"]),
    ("ecc-nist-p521", &["ecdsa_secp521r1_sha512"]),
    ("ed25519", &["ed25519"]),
    ("ecc-nist-edwards25519", &["ed25519"]),
    ("ml-dsa-44", &["mldsa44"]),
    ("ml-dsa-65", &["mldsa65"]),
    ("ml-dsa-87", &["mldsa87"]),
];

/// The facts on a certificate of this kind, as the ledger and `--tls-cert` name it. Its chain is assumed to be signed
/// with the same kind of key; for RSA, where a chain may have any of several schemes, nothing is assumed.
pub fn certificate(kind: &str) -> Option<CertificateFacts> {
    let codes = |names: &[&str]| -> Vec<u16> {
        let rows = names.iter().filter_map(|name| Scheme::by_name(name));
        rows.map(|row| row.code_point).collect()
    };
    let is_rsa = kind == "rsa" || kind.starts_with("rsa-");
    let schemes: Vec<u16> = if is_rsa {
        let rsa = SCHEMES.iter().filter(|row| matches!(row.kind, Kind::RsaPss | Kind::RsaPkcs1));
        rsa.map(|row| row.code_point).collect()
    } else {
        codes(KINDS.iter().find(|row| row.0 == kind)?.1)
    };
    let chain = if is_rsa { Vec::new() } else { schemes.clone() };
    Some(CertificateFacts { kind: kind.to_owned(), schemes, chain })
}

/// Names of the kinds that [`certificate`] knows.
pub fn certificate_kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|row| row.0).chain(["rsa"])
}

/// What a client would get under the other policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Future {
    /// A connection.
    Served {
        /// IANA name of the group; in SSH of the key exchange method.
        group: &'static str,
        /// Whether by HelloRetryRequest.
        hello_retry: bool,
        /// `TLSv1.3` or `SSH-2.0`.
        version: &'static str,
        /// IANA name; in SSH the cipher to the server.
        suite: &'static str,
    },
    /// An alert, or the end of an SSH connection.
    Refused {
        /// What the offer lacks.
        reason: Reason,
        /// The same in words.
        explanation: String,
    },
}

/// What an offer lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Reason {
    /// In TLS.
    Tls(Refusal),
    /// In SSH.
    Ssh(SshRefusal),
}

/// A client under the other policy.
#[derive(Debug, Serialize)]
pub struct ClientChange {
    /// The client as recorded.
    #[serde(flatten)]
    pub client: ClientRow,
    /// What it would get.
    pub future: Future,
    /// Connections that were served and would be refused.
    pub breaks: u64,
    /// Connections that were refused and would be served.
    pub mends: u64,
    /// Connections that would have another group.
    pub changes_group: u64,
    /// Connections that would need one more round trip.
    pub more_round_trips: u64,
    /// Connections that would need one less.
    pub fewer_round_trips: u64,
}

impl ClientChange {
    /// The connections that differ from what was recorded, in the way that matters most.
    pub fn affected(&self) -> (Effect, u64) {
        let effects = [
            (Effect::Breaks, self.breaks),
            (Effect::WouldBeServed, self.mends),
            (Effect::ChangesGroup, self.changes_group),
            (Effect::MoreRoundTrips, self.more_round_trips),
            (Effect::FewerRoundTrips, self.fewer_round_trips),
        ];
        let first = effects.into_iter().find(|(_, count)| *count > 0);
        first.unwrap_or((Effect::None, 0))
    }
}

/// How a client is affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It was served and would be refused.
    Breaks,
    /// It was refused and would be served.
    WouldBeServed,
    /// It would have another group.
    ChangesGroup,
    /// It would need one more round trip.
    MoreRoundTrips,
    /// It would need one less.
    FewerRoundTrips,
    /// Not at all.
    None,
}

/// A ledger under another policy.
#[derive(Debug, Serialize)]
pub struct DryRun {
    /// The policy's name.
    pub policy: &'static str,
    /// The mode's name.
    pub mode: &'static str,
    /// Kinds of certificates that were used for the replay, by listener.
    pub certificates: BTreeMap<String, Vec<String>>,
    /// Kinds of certificates in the records that are not known here: without them the replay may be wrong.
    pub unknown_certificates: BTreeMap<String, Vec<String>>,
    /// Listeners without a certificate that the policy allows: for that reason alone no client would be served there.
    pub useless_certificates: Vec<String>,
    /// Connections as recorded.
    pub recorded: Counts,
    /// Connections whose offer is replayed.
    pub replayed: u64,
    /// Those of them that were served: only they can break.
    pub replayed_served: u64,
    /// Connections whose offer is not known, which are not replayed.
    pub not_replayed: u64,
    /// Those of them that did not fail: it is not known whether they would break.
    pub unknown: u64,
    /// Connections of a protocol that the policy does not cover, which are left out.
    pub uncovered: u64,
    /// Connections that were served and would be refused.
    pub breaks: u64,
    /// Connections that were refused and would be served.
    pub mends: u64,
    /// Connections that would have another group.
    pub changes_group: u64,
    /// Connections that would need one more round trip.
    pub more_round_trips: u64,
    /// Connections that would need one less.
    pub fewer_round_trips: u64,
    /// Connections that would have a post-quantum group.
    pub hybrid: u64,
    /// By client: those that break come first, then the most frequent.
    pub clients: Vec<ClientChange>,
}

/// Replays. `certificates` are used at every TLS listener; without any, those in the listener's records, ML-DSA first,
/// or ECDSA P-256 if there are none. SSH listeners are assumed to have a host key for each algorithm of the policy, and
/// to read clients' lists before they send theirs. Servers that connectors have reached are replayed as if the connectors
/// had the policy.
pub fn dry_run(tally: &Tally, rules: &Rules, certificates: &[CertificateFacts]) -> DryRun {
    let mut shown: BTreeMap<&str, Vec<CertificateFacts>> = BTreeMap::new();
    let mut unknown = BTreeMap::new();
    let ssh_only = ssh_listeners(tally);
    let has_tls = |listener: &&String| rules.policy.has_tls() && !ssh_only.contains(*listener);
    for listener in tally.listeners.keys().filter(has_tls) {
        let mut facts = certificates.to_vec();
        if facts.is_empty() {
            for kind in tally.certificates.get(listener).into_iter().flat_map(BTreeMap::keys) {
                match certificate(kind) {
                    Some(known) => facts.push(known),
                    None => {
                        let kinds: &mut Vec<_> = unknown.entry(listener.clone()).or_default();
                        kinds.push(kind.clone());
                    }
                }
            }
            facts.sort_by_key(|facts| !facts.kind.starts_with("ml-dsa-"));
        }
        if facts.is_empty() {
            facts.extend(certificate("ecdsa-p256"));
        }
        shown.insert(listener, facts);
    }
    let kinds = |facts: &Vec<CertificateFacts>| facts.iter().map(|one| one.kind.clone()).collect();
    let mut out = DryRun {
        policy: rules.policy.name,
        mode: rules.mode.name(),
        certificates: shown
            .iter()
            .map(|(listener, facts)| ((*listener).to_owned(), kinds(facts)))
            .collect(),
        unknown_certificates: unknown,
        useless_certificates: shown
            .iter()
            .filter(|(_, facts)| !facts.iter().any(|facts| can_show(rules, facts)))
            .map(|(listener, _)| (*listener).to_owned())
            .collect(),
        recorded: tally.total.clone(),
        replayed: 0,
        replayed_served: 0,
        not_replayed: tally.unseen.beyond_limits,
        unknown: tally.unseen.beyond_limits,
        uncovered: 0,
        breaks: 0,
        mends: 0,
        changes_group: 0,
        more_round_trips: 0,
        fewer_round_trips: 0,
        hybrid: 0,
        clients: Vec::new(),
    };
    let ssh_rules = SshRules::new(rules.policy, Some(rules.mode), served);
    for (client, offer) in rows_with_offers(tally) {
        let Counts { connections, failed, .. } = client.counts;
        let covered = match offer.map(|row| &row.offer) {
            Some(Hello::Ssh(_) | Hello::SshServer(_)) => rules.policy.has_ssh(),
            Some(Hello::Tls(_)) | None => rules.policy.has_tls(),
        };
        if !covered {
            out.uncovered += connections;
            continue;
        }
        let served = client.counts.served();
        let future = match offer.map(|row| &row.offer) {
            Some(Hello::Tls(Some(offer))) => {
                let facts = shown.get(client.listener.as_str());
                let facts = facts.map(Vec::as_slice).unwrap_or_default();
                of_tls(&client, decide(rules, offer, facts))
            }
            Some(Hello::Ssh(Some(offer))) if !offer.key_exchanges.is_empty() => {
                // A client that has always waited for the server's list waits again.
                let late = client.late > 0 && client.in_time == 0;
                let decide = if late { decide_ssh_late } else { decide_ssh };
                // One that was served by a certificate is served by it again: host keys stay as they are.
                let plain = ssh_rules.as_ref().ok().filter(|_| client.certified > 0);
                let plain = plain.map(|rules| with_plain_host_keys(rules, offer));
                of_ssh(&ssh_rules, plain.as_ref().unwrap_or(offer), decide)
            }
            Some(Hello::SshServer(Some(offer))) if !offer.key_exchanges.is_empty() => {
                of_ssh(&ssh_rules, offer, decide_ssh_server)
            }
            _ => {
                out.not_replayed += connections;
                out.unknown += connections - failed;
                continue;
            }
        };
        out.replayed += connections;
        out.replayed_served += served;
        let change = change(client, future, &mut out.hybrid);
        out.breaks += change.breaks;
        out.mends += change.mends;
        out.changes_group += change.changes_group;
        out.more_round_trips += change.more_round_trips;
        out.fewer_round_trips += change.fewer_round_trips;
        out.clients.push(change);
    }
    out.clients.sort_by_key(|change| (u64::MAX - change.breaks, u64::MAX - change.changes_group));
    out
}

/// Listeners with SSH clients only.
fn ssh_listeners(tally: &Tally) -> BTreeSet<String> {
    let mut ssh = BTreeSet::new();
    let mut tls = BTreeSet::new();
    for (client, offer) in rows_with_offers(tally) {
        match offer.map(|row| &row.offer) {
            Some(Hello::Ssh(_) | Hello::SshServer(_)) => ssh.insert(client.listener),
            Some(Hello::Tls(_)) | None => tls.insert(client.listener),
        };
    }
    ssh.difference(&tls).cloned().collect()
}

/// What a client would get, and whether its key exchange would be post-quantum.
type Outcome = (Future, bool);

fn of_tls(client: &ClientRow, decision: Decision) -> Outcome {
    match decision {
        Decision::Refuse(reason) => {
            let unserved = client.fingerprint.ability == Ability::Unserved;
            let explanation = match reason {
                Refusal::Group if unserved => {
                    "the client's post-quantum groups are not supported here".to_owned()
                }
                reason => reason.to_string(),
            };
            (Future::Refused { reason: Reason::Tls(reason), explanation }, false)
        }
        Decision::Serve(choice) => {
            let future = Future::Served {
                group: choice.group.name,
                hello_retry: choice.hello_retry,
                version: choice.version.name(),
                suite: choice.suite.name,
            };
            (future, choice.group.strength.is_post_quantum())
        }
    }
}

fn of_ssh(
    rules: &Result<SshRules, SshNothingLeft>,
    offer: &SshOffer,
    decide: fn(&SshRules, &SshOffer) -> Result<SshChosen, SshRefusal>,
) -> Outcome {
    let refused =
        |reason, explanation| (Future::Refused { reason: Reason::Ssh(reason), explanation }, false);
    let rules = match rules {
        Ok(rules) => rules,
        // Such a listener does not start.
        Err(nothing) => {
            return refused(SshRefusal::where_nothing_is_left(nothing), nothing.to_string());
        }
    };
    match decide(rules, offer) {
        Ok(chosen) => {
            let future = Future::Served {
                group: chosen.key_exchange,
                hello_retry: false,
                version: "SSH-2.0",
                suite: chosen.to_server.cipher,
            };
            (future, chosen.post_quantum)
        }
        Err(refusal) => refused(refusal, refusal.to_string()),
    }
}

fn change(client: ClientRow, (future, post_quantum): Outcome, hybrid: &mut u64) -> ClientChange {
    let counts = &client.counts;
    let (served, refused) = (counts.served(), counts.refused);
    let retried = counts.hello_retry.min(served);
    let mut change = ClientChange {
        breaks: 0,
        mends: 0,
        changes_group: 0,
        more_round_trips: 0,
        fewer_round_trips: 0,
        future,
        client,
    };
    match &change.future {
        Future::Refused { .. } => change.breaks = served,
        Future::Served { group, hello_retry, .. } => {
            let same = change.client.groups.get(*group).copied().unwrap_or_default();
            // A resumed session of TLS 1.2 has no group that could change.
            let none = change.client.groups.get("-").copied().unwrap_or_default();
            change.mends = refused;
            change.changes_group = served.saturating_sub(same).saturating_sub(none);
            if *hello_retry {
                change.more_round_trips = served - retried;
            } else {
                change.fewer_round_trips = retried;
            }
            if post_quantum {
                *hybrid += served + refused;
            }
        }
    }
    change
}
