//! Explains the SSH part of a policy: why each key exchange method is there, and what common clients get.

use outlast_crypto::ssh::{Algorithm, Kind};
use serde::Serialize;

use super::crowd::{CROWD, SshClient};
use super::decide::{SshChosen, SshRefusal, decide_ssh};
use super::offer::row;
use super::rules::{SshNothingLeft, SshRules, served};
use crate::fare::Fare;
use crate::row::{Mode, SecurityPolicy};

/// Explanation of the SSH part of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SshExplanation {
    /// How it works, a sentence each.
    pub meaning: Vec<String>,
    /// Each key exchange method that the mode leaves.
    pub key_exchanges: Vec<SshReason>,
    /// Names in the policy that are not served.
    pub not_served: Vec<&'static str>,
    /// Results of common clients.
    pub clients: Vec<Fare>,
}

/// Why a key exchange method is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SshReason {
    /// IANA name.
    pub key_exchange: &'static str,
    /// The purpose that it serves in the policy, in a sentence.
    pub why: String,
}

/// Explains the SSH part of a policy in this mode; `None` if it has none.
pub fn explain_ssh(policy: &'static SecurityPolicy, mode: Mode) -> Option<SshExplanation> {
    if !policy.has_ssh() {
        return None;
    }
    let names = policy.lists().into_iter().filter(|list| list.name.starts_with("ssh "));
    let not_served = names.flat_map(|list| list.values).filter(|name| !served(name)).collect();
    let rules = match SshRules::new(policy, Some(mode), served) {
        Ok(rules) => rules,
        Err(nothing) => {
            let refused = |client: &SshClient| Fare {
                client: client.name,
                served: false,
                post_quantum: false,
                outcome: "refused: no listener can have this policy".to_owned(),
            };
            return Some(SshExplanation {
                meaning: vec![unusable(&nothing)],
                key_exchanges: Vec::new(),
                not_served,
                clients: CROWD.iter().map(refused).collect(),
            });
        }
    };
    let clients = CROWD.iter().map(|client| {
        let outcome = decide_ssh(&rules, &client.offer);
        Fare {
            client: client.name,
            served: outcome.is_ok(),
            post_quantum: outcome.is_ok_and(|chosen| chosen.post_quantum),
            outcome: outcome_text(outcome),
        }
    });
    let reason = |name: &&'static str| SshReason { key_exchange: name, why: why(name) };
    Some(SshExplanation {
        meaning: meaning(&rules),
        key_exchanges: rules.lists().key_exchanges.iter().map(reason).collect(),
        not_served,
        clients: clients.collect(),
    })
}

/// Why no SSH listener can have a policy.
fn unusable(nothing: &SshNothingLeft) -> String {
    match nothing {
        SshNothingLeft::NoSsh(_) => "It does not cover SSH.".to_owned(),
        SshNothingLeft::NoKeyExchange(..) => {
            "SSH listeners cannot use it in this mode: none of its key exchange methods is left."
                .to_owned()
        }
        SshNothingLeft::NoHostKey(_) => {
            "SSH listeners cannot use it: no host key algorithm of it is served here.".to_owned()
        }
        SshNothingLeft::NoCipher(_) => {
            "SSH listeners cannot use it: no cipher of it is served here.".to_owned()
        }
    }
}

fn meaning(rules: &SshRules) -> Vec<String> {
    let methods = rules.lists().key_exchanges.iter();
    let is_post_quantum =
        |name: &&&str| row(name, Kind::KeyExchange).is_some_and(|row| row.post_quantum);
    let (all, hybrids) = (methods.len(), methods.filter(is_post_quantum).count());
    let mut out = vec![
        match (rules.mode, hybrids) {
            (_, 0) => {
                "No key exchange of SSH is post-quantum: a quantum computer will be able to decrypt traffic \
                 that is recorded today."
            }
            (_, hybrids) if hybrids == all => {
                "Only post-quantum key exchange in SSH: clients without it are disconnected."
            }
            (Mode::Allow, _) => {
                "In SSH the client's order counts: a client that puts a classical method first gets it, even if \
                 it offers a post-quantum one."
            }
            _ => {
                "An SSH client that offers one of the post-quantum methods gets one, whatever its order: the \
                 server reads the client's list before it sends its own. Other clients get a classical method."
            }
        }
        .to_owned(),
    ];
    let host_keys = &rules.lists().host_keys;
    let is_hybrid =
        |name: &&'static str| row(name, Kind::HostKey).is_some_and(|row| row.post_quantum);
    if !host_keys.iter().any(is_hybrid) {
        out.push("Host keys are classical.".to_owned());
    }
    out
}

/// Why a policy has this method.
fn why(name: &str) -> String {
    let reason = match name {
        "mlkem768x25519-sha256" => "the hybrid that OpenSSH, Go, JSch and paramiko offer first",
        "mlkem768nistp256-sha256" => "the hybrid for clients that may only use NIST curves",
        "mlkem1024nistp384-sha384" => "the hybrid of the highest security level",
        "curve25519-sha256" => "the classical method of most clients without a served hybrid",
        "curve25519-sha256@libssh.org" => "the same under the name that older clients know",
        "ecdh-sha2-nistp256" => "for clients that may only use NIST curves, and for old ones",
        "ecdh-sha2-nistp384" => "for clients that require the higher level of NIST curves",
        "ecdh-sha2-nistp521" => "for the few clients that accept nothing else",
        _ => "a further method",
    };
    let post_quantum = Algorithm::by_name(name).is_some_and(|row| row.post_quantum);
    let safety = if post_quantum {
        "secure as long as either part is"
    } else {
        "not secure against a quantum computer"
    };
    format!("{reason}; {safety}")
}

/// What a client gets, in a few words.
pub(super) fn outcome_text(outcome: Result<SshChosen, SshRefusal>) -> String {
    match outcome {
        Ok(SshChosen { key_exchange, host_key, to_server, .. }) => {
            let mac = to_server.mac.map(|mac| format!(" with {mac}")).unwrap_or_default();
            format!("{key_exchange}, {}{mac}, signed with {host_key}", to_server.cipher)
        }
        Err(refusal) => format!("refused: {refusal}"),
    }
}
