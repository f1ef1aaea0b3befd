//! A signing policy and its rules.

use const_oid::ObjectIdentifier;

use super::algorithms::AnyOf;
use super::log::Log;
use super::names::{FileName, NamePattern, SubjectPattern};
use crate::in_toto::Attested;
use crate::pattern::Pattern;
use crate::trusted_time::Authority;
use crate::validate::Revocation;

/// A policy: the first rule that matches a file decides.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Where it comes from: a file, or `builtin:NAME`.
    pub name: String,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// When a certificate must be valid, and when the signature counts as made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// As the signer claims, unless the verifier knows a time.
    SigningTime,
    /// At the time of verification.
    Now,
    /// At a time that the verifier knows or timestamps prove; without one no signer counts.
    TrustedTime,
}

/// Names of validities.
pub const VALIDITIES: &[(&str, Validity)] = &[
    ("signing-time", Validity::SigningTime),
    ("now", Validity::Now),
    ("trusted-time", Validity::TrustedTime),
];

/// What timestamps mean for a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Need {
    /// They are ignored.
    Off,
    /// They tell the time if they hold.
    #[default]
    IfAvailable,
    /// Without enough of them no signer counts.
    Required,
}

/// Names of needs.
pub const NEEDS: &[(&str, Need)] =
    &[("required", Need::Required), ("if-available", Need::IfAvailable), ("off", Need::Off)];

/// Whose timestamps count.
#[derive(Debug, Clone, Default)]
pub struct Timestamps {
    /// Files with roots of time-stamping authorities, as the policy names them: each stands for one authority. The caller
    /// reads them into `authorities`.
    pub trust: Vec<String>,
    /// The authorities; the verifier's own if there are none.
    pub authorities: Vec<Authority>,
    /// Policies of tokens that are accepted; any if there are none.
    pub policies: Vec<ObjectIdentifier>,
    /// What their keys, and those of the CAs above them, must be.
    pub algorithms: Option<AnyOf>,
    /// Whether the rule's own algorithms are asked of them, by the date until which a timestamp has to hold.
    pub by_phases: bool,
    /// How many different authorities are needed; 0 is as good as 1.
    pub least: usize,
}

impl Timestamps {
    /// Whether the verifier's own authorities count, because the policy names none.
    pub fn needs_roots(&self) -> bool {
        self.trust.is_empty() && self.authorities.is_empty()
    }
}

/// Algorithms from a date on.
#[derive(Debug, Clone)]
pub struct Phase {
    /// First second, since 1970; the first phase begins before everything.
    pub from: i64,
    /// Each needs a signer of its own, with a key of its own.
    pub all_of: Vec<AnyOf>,
    /// What the keys of the CAs must be; by default as good as the signer must be.
    pub authorities: Option<AnyOf>,
    /// Digests that are allowed; all if it is empty.
    pub digests: Vec<&'static str>,
    /// Algorithms that still count, each with what to say about it.
    pub deprecated: Vec<(AnyOf, &'static str)>,
}

/// What a rule decides about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Signatures of files, and attestations about them.
    Everything,
    /// Signatures of files.
    Signatures,
    /// Attestations about files.
    Attestations(Attested),
}

/// Who may sign the files of some patterns.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Name for people.
    pub name: String,
    /// Files that it is for.
    pub files: Vec<Pattern>,
    /// What about them.
    pub scope: Scope,
    /// Files with trusted roots, as the policy names them; the caller reads them into `roots`.
    pub trust: Vec<String>,
    /// Trusted roots, in DER.
    pub roots: Vec<Vec<u8>>,
    /// SHA-256 of the certificates (DER) of signers. With `public_keys`, one of both is enough.
    pub certificates: Vec<Vec<u8>>,
    /// SHA-256 of the public keys (DER of `SubjectPublicKeyInfo`) of signers.
    pub public_keys: Vec<Vec<u8>>,
    /// Subjects of signers: one must match, if there are any.
    pub subjects: Vec<SubjectPattern>,
    /// Alternative names of signers: one must match, if there are any.
    pub names: Vec<NamePattern>,
    /// Extended key usage.
    pub purpose: ObjectIdentifier,
    /// Algorithms, in order of their dates.
    pub phases: Vec<Phase>,
    /// How revocation is checked; the verifier decides if the rule does not.
    pub revocation: Option<Revocation>,
    /// When the certificate must be valid.
    pub validity: Validity,
    /// Whether timestamps are needed.
    pub timestamp: Need,
    /// Whose.
    pub timestamps: Timestamps,
    /// The log that must have the signature, with the witnesses that must have cosigned the log. The caller verifies the
    /// proof.
    pub log: Option<Log>,
    /// First second in which a signature may have been made, since 1970.
    pub not_before: Option<i64>,
    /// Last second.
    pub until: Option<i64>,
}

impl Policy {
    /// The rule that decides about the signature of a file.
    pub fn rule_for(&self, file: &FileName) -> Option<&Rule> {
        let is_of_signatures = |rule: &&Rule| !matches!(rule.scope, Scope::Attestations(_));
        self.rules.iter().filter(is_of_signatures).find(|rule| rule.is_for(file))
    }

    /// The rule that decides about an attestation of this predicate type about a file. A rule for signatures does not:
    /// who may sign a file may not yet say how it was built.
    pub fn attestation_rule_for(&self, file: &FileName, predicate_type: &str) -> Option<&Rule> {
        let is_of_attestations = |rule: &&Rule| match &rule.scope {
            Scope::Everything => true,
            Scope::Signatures => false,
            Scope::Attestations(wanted) => wanted.is_for(predicate_type),
        };
        self.rules.iter().filter(is_of_attestations).find(|rule| rule.is_for(file))
    }
}

impl Rule {
    fn is_for(&self, file: &FileName) -> bool {
        self.files.iter().any(|files| files.matches(file.as_str()))
    }

    /// Whether it names signers by their certificates or keys.
    pub fn has_pins(&self) -> bool {
        !self.certificates.is_empty() || !self.public_keys.is_empty()
    }

    /// Whether the verifier's own roots count, because the rule says nothing about trust.
    pub fn needs_roots(&self) -> bool {
        self.trust.is_empty() && !self.has_pins()
    }

    /// The algorithms at a time, in seconds since 1970.
    pub fn phase(&self, at: i64) -> Option<&Phase> {
        self.phases.iter().rev().find(|phase| phase.from <= at).or_else(|| self.phases.first())
    }
}
