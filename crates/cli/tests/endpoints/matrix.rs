//! A case of the matrix: what a client offers, and whether everybody agrees on the outcome.

use std::collections::BTreeMap;

use outlast_crypto::groups::Group;
use outlast_crypto::schemes::{Kind, Scheme};
use outlast_crypto::suites::Suite;
use outlast_crypto::versions::Version;
use outlast_ledger::{Handshake, Outcome};
use outlast_negotiate::{Decision, Mode, Offer, Refusal, Transport, decide};
use serde::Deserialize;

use crate::endpoints::world::Listener;

/// A client's report on its connection; see `tests/interop/endpoints/PROTOCOL.md`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Report {
    #[serde(default)]
    pub id: usize,
    pub ok: bool,
    pub version: Option<String>,
    pub group: Option<String>,
    pub hello_retry: Option<bool>,
    pub suite: Option<String>,
    pub resumed: Option<bool>,
    pub signature: Option<String>,
    pub error: Option<String>,
    pub alert: Option<String>,
}

/// A client stack: what all its clients offer.
pub struct Stack {
    pub name: &'static str,
    /// IANA names; those that matter for the choice. The client may offer others, too.
    pub suites: &'static [&'static str],
    pub schemes: &'static [&'static str],
    /// `signature_algorithms_cert`
    pub certificate_schemes: Option<&'static [&'static str]>,
}

/// Groups that are offered and that no policy has.
const OTHERS: &[(&str, u16)] = &[
    ("secp521r1", 0x0019),
    ("x448", 0x001e),
    ("ffdhe2048", 0x0100),
    ("ffdhe3072", 0x0101),
    ("MLKEM512", 0x0200),
    // From the drafts before the standard: X25519Kyber768Draft00.
    ("X25519Kyber768Draft00", 0x6399),
];

/// Code point of a group.
pub fn group(name: &str) -> u16 {
    let other = || OTHERS.iter().find(|row| row.0 == name).map(|row| row.1);
    let known = Group::by_name(name).map(|row| row.code_point);
    known.or_else(other).unwrap_or_else(|| panic!("{name}"))
}

impl Stack {
    /// The offer of a client of this stack with these groups and shares.
    pub fn offer(
        &self,
        transport: Transport,
        versions: &[Version],
        groups: &[&str],
        shares: &[&str],
    ) -> Offer {
        let is_13 = versions.contains(&Version::Tls13);
        let codes = |names: &[&str]| names.iter().map(|name| group(name)).collect::<Vec<_>>();
        let schemes = |names: &[&str]| {
            names.iter().map(|name| Scheme::by_name(name).unwrap().code_point).collect::<Vec<_>>()
        };
        let suites = self.suites.iter().map(|name| Suite::by_name(name).unwrap());
        Offer {
            transport,
            versions: versions.iter().map(|version| version.code_point()).collect(),
            suites: suites
                .filter(|suite| versions.contains(&suite.version))
                .map(|suite| suite.code_point)
                .collect(),
            groups: codes(groups),
            shares: is_13.then(|| codes(shares)),
            // The ML-DSA schemes are for TLS 1.3; not every client leaves them out when it does not offer that.
            schemes: schemes(self.schemes)
                .into_iter()
                .filter(|code| is_13 || Scheme::by_code_point(*code).unwrap().kind != Kind::MlDsa)
                .collect(),
            certificate_schemes: self.certificate_schemes.map(schemes),
            sni: None,
            protocols: Vec::new(),
            extensions: vec![43],
            resumes: false,
        }
    }
}

/// Results of cases, by client stack.
#[derive(Default)]
pub struct Tally {
    rows: BTreeMap<String, Row>,
    failures: Vec<String>,
}

#[derive(Default)]
struct Row {
    cases: usize,
    hybrid: usize,
    retried: usize,
    classical: usize,
    refused: usize,
}

impl Tally {
    /// Counts a case, or records what is wrong with it.
    pub fn add(&mut self, stack: &str, label: &str, outcome: Result<Decision, String>) {
        let row = self.rows.entry(stack.to_owned()).or_default();
        row.cases += 1;
        match outcome {
            Ok(Decision::Serve(choice)) if choice.group.strength.is_post_quantum() => {
                row.hybrid += 1;
                row.retried += usize::from(choice.hello_retry);
            }
            Ok(Decision::Serve(_)) => row.classical += 1,
            Ok(Decision::Refuse(_)) => row.refused += 1,
            Err(problem) => self.failures.push(format!("{stack}, {label}: {problem}")),
        }
    }

    /// Number of cases of a stack.
    pub fn cases(&self, stack: &str) -> usize {
        self.rows.get(stack).map_or(0, |row| row.cases)
    }

    /// Prints the counts, and fails if anything is wrong.
    pub fn settle(self) {
        println!(
            "\n{:<24} {:>6} {:>13} {:>16} {:>9} {:>7} {:>9}",
            "client", "cases", "post-quantum", "by HelloRetry", "classical", "refused", "wrong"
        );
        for (stack, row) in &self.rows {
            let wrong = row.cases - row.hybrid - row.classical - row.refused;
            println!(
                "{stack:<24} {:>6} {:>13} {:>16} {:>9} {:>7} {wrong:>9}",
                row.cases, row.hybrid, row.retried, row.classical, row.refused
            );
        }
        let count = self.failures.len();
        let shown: Vec<_> = self.failures.iter().take(12).map(String::as_str).collect();
        assert!(count == 0, "{count} cases are wrong, such as\n{}", shown.join("\n"));
    }
}

/// Checks that the policy, the client and the listener's report agree.
pub fn agree(
    listener: &Listener,
    known: &Offer,
    report: &Report,
    recorded: &Handshake,
) -> Result<Decision, String> {
    let decision = decide(&listener.rules, known, &listener.facts);
    let mut wrong = Vec::new();
    let mut same = |what: &str, expected: &dyn std::fmt::Debug, found: &dyn std::fmt::Debug| {
        let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
        if expected != found {
            wrong.push(format!("{what} is {found}, not {expected}"));
        }
    };
    // The model of the client must match, or the decision would be about another client.
    let offer = recorded.offer.as_ref().ok_or("no offer was recorded")?;
    same("transport", &known.transport, &offer.transport);
    same("versions offered", &known.versions, &offer.versions);
    same("groups offered", &known.groups, &offer.groups);
    same("shares sent", &known.shares, &offer.shares);
    let lacking = |known: &[u16], offer: &[u16]| -> Vec<u16> {
        known.iter().copied().filter(|code| !offer.contains(code)).collect()
    };
    same("suites missing", &[0u16; 0], &lacking(&known.suites, &offer.suites));
    same("schemes missing", &[0u16; 0], &lacking(&known.schemes, &offer.schemes));
    match decision {
        Decision::Serve(choice) => {
            same("served, says the client,", &(true, None::<String>), &(report.ok, &report.error));
            let version = choice.version.name();
            same("version of the client", &Some(version), &report.version.as_deref());
            if report.group.is_some() || choice.version == Version::Tls13 {
                same("group of the client", &Some(choice.group.name), &report.group.as_deref());
            }
            if let Some(suite) = &report.suite {
                same("suite of the client", &choice.suite.name, suite);
            }
            if let Some(retry) = &report.hello_retry {
                same("HelloRetryRequest to the client", &choice.hello_retry, retry);
            }
            match &recorded.outcome {
                Outcome::Served(served) => {
                    same("version recorded", &version, &served.version);
                    let group = served.group.as_deref();
                    same("group recorded", &Some(choice.group.name), &group);
                    let strong = choice.group.strength.is_post_quantum();
                    same("strength recorded", &strong, &served.post_quantum);
                    same("HelloRetryRequest recorded", &choice.hello_retry, &served.hello_retry);
                    same("suite recorded", &choice.suite.name, &served.suite);
                    let kind = &listener.facts[choice.certificate].kind;
                    same("certificate recorded", &Some(kind), &served.certificate.as_ref());
                    if !served.resumed {
                        let scheme = served.scheme.as_deref();
                        same("scheme recorded", &Some(choice.scheme.name), &scheme);
                    }
                }
                other => same("outcome recorded", &choice, other),
            }
        }
        Decision::Refuse(refusal) => {
            same("served, says the client,", &false, &report.ok);
            same("alert", &Some(alert(refusal)), &report.alert.as_deref());
            same("outcome recorded", &Outcome::Refused(refusal), &recorded.outcome);
        }
    }
    // The rule itself, in case the decision breaks it.
    let mode = listener.rules.mode;
    let named = |row: &&Group| known.groups.contains(&row.code_point);
    let newest = known.versions.contains(&Version::Tls13.code_point())
        && listener.rules.versions().any(|version| version == Version::Tls13);
    let could =
        newest && listener.rules.groups().filter(named).any(|row| row.strength.is_post_quantum());
    let did = match decision {
        Decision::Serve(choice) => Some(choice.group.strength.is_post_quantum()),
        Decision::Refuse(Refusal::Group | Refusal::Classical) => Some(false),
        // For other reasons, which have nothing to do with groups.
        Decision::Refuse(_) => None,
    };
    if mode != Mode::Allow && did.is_some_and(|did| did != could) {
        wrong.push(format!("a post-quantum group: possible {could}, chosen {did:?}"));
    }
    if wrong.is_empty() { Ok(decision) } else { Err(wrong.join("; ")) }
}

/// IANA's name of the alert that the client must receive.
pub fn alert(refusal: Refusal) -> &'static str {
    match refusal.alert() {
        40 => "handshake_failure",
        70 => "protocol_version",
        71 => "insufficient_security",
        other => panic!("alert {other}"),
    }
}

/// All ordered choices of one to `max` of these.
pub fn orders(from: &[&'static str], max: usize) -> Vec<Vec<&'static str>> {
    let mut all: Vec<Vec<&'static str>> = vec![Vec::new()];
    let mut out = Vec::new();
    for _ in 0..max {
        all = all
            .iter()
            .flat_map(|prefix| {
                from.iter()
                    .filter(|name| !prefix.contains(name))
                    .map(|name| [prefix.as_slice(), &[name]].concat())
            })
            .collect();
        out.extend(all.clone());
    }
    out
}
