//! Explains a policy: who may sign what, until when.

use std::fmt::Display;

use super::log::Log;
use super::rule::{Need, Phase, Policy, Rule, Scope, Timestamps, Validity};
use crate::path::purpose_name;
use crate::pattern::Pattern;
use crate::time::rfc3339;
use crate::trusted_time::Authority;
use crate::validate::Revocation;

/// One paragraph for each rule, in the order in which they are tried.
pub fn explain(policy: &Policy) -> String {
    let mut text = format!("{}: the first rule that matches a file decides\n", policy.name);
    for rule in &policy.rules {
        text.push_str(&format!(
            "\nrule \"{}\", for files {}\n",
            rule.name,
            listed(rule.files.iter().map(Pattern::as_str))
        ));
        for line in lines(rule) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text.push_str("\nevery other file is refused\n");
    text
}

fn lines(rule: &Rule) -> Vec<String> {
    let mut out = vec![trust(rule)];
    if let Scope::Attestations(attested) = &rule.scope {
        out.push(format!("for attestations of type {}", listed(&attested.predicate_types)));
        for (what, patterns) in [
            ("builder", &attested.builders),
            ("source", &attested.sources),
            ("build type", &attested.build_types),
        ] {
            if !patterns.is_empty() {
                out.push(format!("the {what} is {}", listed(patterns.iter().map(Pattern::as_str))));
            }
        }
    }
    if !rule.subjects.is_empty() {
        out.push(format!("the subject is {}", listed(&rule.subjects)));
    }
    if !rule.names.is_empty() {
        out.push(format!("an alternative name is {}", listed(&rule.names)));
    }
    out.push(format!("the certificate is for {}", purpose_name(rule.purpose)));
    for phase in &rule.phases {
        let since = if phase.from == i64::MIN {
            String::new()
        } else {
            format!("from {}: ", rfc3339(phase.from))
        };
        out.extend(algorithms(phase).into_iter().map(|line| format!("{since}{line}")));
    }
    out.push(
        match rule.validity {
            Validity::SigningTime => {
                "the certificate was valid at --at, when timestamps prove, or when the signer claims to have signed"
            }
            Validity::Now => "the certificate is valid when it is verified",
            Validity::TrustedTime => {
                "the certificate was valid at the time that --at gives or timestamps prove"
            }
        }
        .to_owned(),
    );
    out.push(
        match rule.revocation {
            Some(Revocation::Off) => "revocation is not checked",
            Some(Revocation::Required) => "it is known that no certificate was revoked",
            Some(Revocation::IfPresent) => "no certificate is known to be revoked",
            None => "revocation is checked as --revocation says",
        }
        .to_owned(),
    );
    out.extend(timestamps(rule));
    out.extend(rule.log.as_ref().map(log));
    out.push(match (rule.not_before, rule.until) {
        (None, None) => "without an end".to_owned(),
        (Some(first), None) => format!("for signatures from {} on", rfc3339(first)),
        (None, Some(last)) => format!("for signatures until {}", rfc3339(last)),
        (Some(first), Some(last)) => {
            format!("for signatures from {} until {}", rfc3339(first), rfc3339(last))
        }
    });
    out
}

fn timestamps(rule: &Rule) -> Vec<String> {
    let Timestamps { trust, authorities, policies, algorithms, by_phases, least } =
        &rule.timestamps;
    if rule.timestamp == Need::Off {
        return vec!["timestamps are ignored".to_owned()];
    }
    let pins = authorities.iter().filter(|one| !matches!(one, Authority::Roots(_))).count();
    let whose = match (trust.is_empty(), pins) {
        (true, 0) => "below a root in --timestamp-trust, or else in --trust".to_owned(),
        (false, 0) => format!("below a root in {}", listed(trust)),
        (true, _) => format!("with one of {pins} certificates and keys that the policy names"),
        (false, _) => format!(
            "below a root in {}, or with one of {pins} certificates and keys that the policy names",
            listed(trust)
        ),
    };
    let count = match (rule.timestamp, least) {
        (Need::Required, 0 | 1) => "a timestamp is needed from an authority".to_owned(),
        (Need::Required, count) => {
            format!("timestamps are needed from {count} different authorities")
        }
        (_, 0 | 1) => "a timestamp counts if it is from an authority".to_owned(),
        (_, count) => format!("timestamps count if they are from {count} different authorities"),
    };
    let mut out = vec![format!("{count} {whose}")];
    if !policies.is_empty() {
        out.push(format!("the policy of a timestamp is {}", listed(policies)));
    }
    if let Some(algorithms) = algorithms {
        out.push(format!("the algorithm of a time-stamping authority is {algorithms}"));
    }
    if *by_phases {
        out.push(
            "signatures are judged by the date of their timestamp, timestamps by the date until which they have to hold"
                .to_owned(),
        );
    }
    out
}

fn log(log: &Log) -> String {
    let proof = "a proof shows that the signature is in the log";
    match log {
        Log::File(name) => format!("{proof} of {name}, with its witnesses"),
        Log::Inline { policy, witnesses } => {
            let logs = listed(policy.logs().iter().map(|log| log.key.name()));
            let names: Vec<_> = policy.witnesses().map(|witness| witness.name.as_str()).collect();
            match witnesses {
                0 => format!("{proof} {logs}; no witness is asked for"),
                count => format!(
                    "{proof} {logs}, cosigned by {count} of {}: {}",
                    names.len(),
                    names.join(", ")
                ),
            }
        }
    }
}

fn trust(rule: &Rule) -> String {
    let pins = rule.certificates.len() + rule.public_keys.len();
    let pinned = if pins == 1 {
        "the one certificate or key that it names".to_owned()
    } else {
        format!("one of {pins} certificates and keys that it names")
    };
    match (rule.trust.is_empty(), pins) {
        (true, 0) => "may be signed by certificates below a root in --trust".to_owned(),
        (false, 0) => {
            format!("may be signed by certificates below a root in {}", listed(&rule.trust))
        }
        (true, _) => format!("may be signed by {pinned}"),
        (false, _) => format!("may be signed by {pinned}, below a root in {}", listed(&rule.trust)),
    }
}

fn algorithms(phase: &Phase) -> Vec<String> {
    let mut out = vec![match phase.all_of.as_slice() {
        [one] => format!("the algorithm is {one}"),
        all => {
            let each: Vec<_> = all.iter().map(|one| format!("one with {one}")).collect();
            format!("{} signers with different keys: {}", all.len(), each.join("; "))
        }
    }];
    out.push(match &phase.authorities {
        Some(allowed) => format!("the keys of the CAs above are {allowed}"),
        None => "the keys of the CAs above are at least as good".to_owned(),
    });
    if !phase.digests.is_empty() {
        out.push(format!("the digest is {}", listed(&phase.digests)));
    }
    out.extend(
        phase
            .deprecated
            .iter()
            .map(|(which, text)| format!("with {which} there is a warning: {text}")),
    );
    out
}

fn listed<T: Display>(values: impl IntoIterator<Item = T>) -> String {
    let all: Vec<_> = values.into_iter().map(|one| one.to_string()).collect();
    all.join(", or ")
}
