//! Attestations: envelopes about files, judged by the same trust and policies as signatures.

use std::path::Path;

use outlast_crypto::digests::Digest;
use outlast_pki::cms::verify::{Authentic, SignedMessage};
use outlast_pki::dsse::{Envelope, MAX_ENVELOPE_LEN};
use outlast_pki::in_toto::Statement;
use outlast_pki::signing_policy::rule::Scope;
use serde_json::json;

use super::ruling::Ruling;
use super::{Entry, Run};
use crate::failure::{Failure, REFUSED};
use crate::verifying::Bare;
use crate::{digest, files, output};

impl Run<'_> {
    /// Verifies what an attestation says about a file. `entry` gets what is known about both.
    pub(super) fn attested(
        &mut self,
        path: &Path,
        attestation: &Path,
        entry: &mut Entry,
    ) -> Result<(), Failure> {
        let bytes = files::read(attestation, MAX_ENVELOPE_LEN)?;
        let refused = |reason: &dyn std::fmt::Display| {
            Failure::file(path, reason).code(REFUSED).prefixed(&attestation.display().to_string())
        };
        let envelope = Envelope::parse(&bytes).map_err(|error| {
            refused(&error).hint("an attestation is one envelope in JSON: outlast attest makes one")
        })?;
        // Nothing of the payload is read before its signatures are known to be right.
        let found = envelope.authenticate(&self.verifier.extra).map_err(|error| refused(&error))?;
        let statement = Statement::parse(&envelope.payload_type, &envelope.payload)
            .map_err(|error| refused(&error))?;
        let values = digest::file(path, &statement.digests(), &self.progress)?;
        let (_, row) = statement.about(&values).map_err(|error| refused(&error))?;
        let about = json!({
            "file": files::json_path(attestation),
            "predicate_type": statement.predicate_type,
            "builder": statement.builder(),
            "source": statement.source(),
            "build_type": statement.build_type(),
            "unknown_signatures": found.unknown,
        });
        entry.members.insert("attestation".into(), about);
        if found.unknown > 0 {
            output::warning(&format!(
                "{}: {} of its signatures are by keys that are not known, and do not count",
                attestation.display(),
                found.unknown
            ));
        }
        let signers = found.signers.into_iter().map(|one| with_subject(one, row)).collect();
        let message = SignedMessage::of_certificates(found.certificates);
        self.bare(path, &Bare { signers, message }, Some(&statement), entry)?;
        entry.text.push_str(&said(path, &statement));
        Ok(())
    }

    /// Judges signers whose signatures are right, in any format.
    pub(super) fn bare(
        &mut self,
        path: &Path,
        bare: &Bare,
        statement: Option<&Statement>,
        entry: &mut Entry,
    ) -> Result<(), Failure> {
        let verb = if self.arguments.dry_run { "would accept" } else { "verified" };
        let what = "attestations, images and JWS";
        let Some(loaded) = self.policy else {
            self.logs.refuse(None, path, what)?;
            let timed = self.verifier.bare(path, bare)?;
            self.accept(verb, path, &timed, entry);
            return Ok(());
        };
        let folder = self.arguments.recursive.as_deref();
        let name = folder.and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
        entry.members.insert("policy".into(), json!(loaded.policy.name));
        let rule = match statement {
            Some(statement) => loaded.rule_about(path, name, &statement.predicate_type)?,
            None => loaded.rule_for(path, name)?,
        };
        entry.members.insert("rule".into(), json!(rule.name));
        self.logs.refuse(loaded.log_of(rule), path, what)?;
        let verdict = self.verifier.judge_bare(rule, self.as_of, path, bare)?;
        let ruling = Ruling { path, loaded, rule, verdict: &verdict, verifier: &self.verifier };
        entry.members.extend(ruling.members());
        if let (Scope::Attestations(wanted), Some(statement)) = (&rule.scope, statement) {
            let against = wanted.against(statement);
            if !against.is_empty() {
                let reason = format!(
                    "the attestation is not as rule \"{}\" of {} demands: {}",
                    rule.name,
                    loaded.policy.name,
                    against.join("; ")
                );
                return Err(Failure::file(path, &reason).hint(loaded.advice()).code(REFUSED));
            }
        }
        entry.text = ruling.text(verb)?;
        Ok(())
    }
}

/// A signer of an attestation: a policy judges the weaker of the digests of the signature and of the subject.
fn with_subject(signer: Authentic, subject: &'static Digest) -> Authentic {
    let own = signer.algorithm.digest.and_then(Digest::by_name);
    let digest = own.filter(|row| row.output_len < subject.output_len).unwrap_or(subject);
    Authentic { digest, ..signer }
}

/// What the attestation says, for people.
fn said(path: &Path, statement: &Statement) -> String {
    let mut text = format!("attested {}: {}", path.display(), shown(&statement.predicate_type));
    for (what, found) in [("builder", statement.builder()), ("source", statement.source())] {
        if let Some(found) = found {
            text.push_str(&format!(", {what} {}", shown(found)));
        }
    }
    text.push('\n');
    text
}

/// Text of somebody else, in one line.
fn shown(text: &str) -> String {
    text.chars().take(200).flat_map(char::escape_debug).collect()
}
