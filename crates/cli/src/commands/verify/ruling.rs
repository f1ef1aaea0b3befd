//! What `outlast verify` says about a file that a rule of a policy has judged.

use std::path::Path;

use outlast_pki::signing_policy::judge::{Judged, Verdict};
use outlast_pki::signing_policy::rule::Rule;
use serde_json::{Map, Value, json};

use super::words::{describe, warn_of, worst};
use crate::failure::{Failure, REFUSED};
use crate::output;
use crate::signing_policy::Loaded;
use crate::verifying::{Verifier, time};

/// The verdict about a file.
pub(in crate::commands) struct Ruling<'a> {
    pub(in crate::commands) path: &'a Path,
    pub(in crate::commands) loaded: &'a Loaded,
    pub(in crate::commands) rule: &'a Rule,
    pub(in crate::commands) verdict: &'a Verdict,
    pub(in crate::commands) verifier: &'a Verifier,
}

impl Ruling<'_> {
    /// Members of the file's entry in JSON.
    pub(in crate::commands) fn members(&self) -> Map<String, Value> {
        let all = &self.verdict.signers;
        let signers: Vec<_> = all.iter().map(|one| self.verifier.judged_json(one)).collect();
        let counting = all.iter().filter(|one| one.counts());
        let verified: Vec<_> = counting.filter_map(|one| one.verified.clone()).collect();
        let mut members = Map::new();
        members.insert("signers".into(), json!(signers));
        members.insert("missing".into(), json!(self.verdict.missing));
        if !verified.is_empty() {
            members.insert("revocation".into(), json!(worst(&verified)));
        }
        members
    }

    /// One line for each signer. A refusal, with exit code 3, names them all, too.
    pub(in crate::commands) fn text(&self, verb: &str) -> Result<String, Failure> {
        for one in &self.verdict.signers {
            warn_of(self.path, &one.signer.certificate.subject().to_string(), &one.tokens);
        }
        if !self.verdict.is_accepted() {
            return Err(self.refusal());
        }
        let path = self.path.display();
        let mut text = String::new();
        for one in &self.verdict.signers {
            let Some(signer) = one.verified.as_ref().filter(|_| one.counts()) else {
                text.push_str(&format!("ignored {path}: {}\n", standing(one)));
                continue;
            };
            let line = describe(verb, self.path, std::slice::from_ref(signer), self.verifier);
            text.push_str(&format!("{}; rule \"{}\"\n", line.trim_end(), self.rule.name));
            text.push_str(&time::tokens_text(self.path, &one.tokens, self.verifier));
            for warning in &one.warnings {
                output::warning(&format!("{path}: {warning}"));
            }
        }
        Ok(text)
    }

    fn refusal(&self) -> Failure {
        let signers: Vec<_> = self.verdict.signers.iter().map(standing).collect();
        let message = format!(
            "rule \"{}\" of {} lacks a signer with {}: {}",
            self.rule.name,
            self.loaded.policy.name,
            self.verdict.missing.join(" and one with "),
            signers.join(". ")
        );
        Failure::file(self.path, &message).hint(self.loaded.advice()).code(REFUSED)
    }
}

/// Who signed, and whether that counts.
fn standing(one: &Judged) -> String {
    let who = format!("{:?} by \"{}\"", one.signer.algorithm, one.signer.certificate.subject());
    if one.counts() {
        return format!("{who} counts");
    }
    format!("{who} does not count: {}", one.against.join("; "))
}
