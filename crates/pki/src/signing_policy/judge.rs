//! Judges the signers of a file by a rule.

use outlast_crypto::digests::Digest;

use super::algorithms::{Algorithm, AnyOf};
use super::rule::{Need, Phase, Rule, Validity};
use crate::certificate::Certificate;
use crate::cms::verify::{
    Authentic, SignedMessage, Signer, Time, TimeSource, Verifier, VerifyError,
};
use crate::crl::Crl;
use crate::ocsp::Response;
use crate::path::{PathError, check_leaf};
use crate::seen::Seen;
use crate::time::rfc3339;
use crate::trusted_time::{Authority, Evidence, Outcome, Timed, Trust};
use crate::validate::{Revocation, Standing};

/// What a verifier has besides the policy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// Roots for rules that name none, in DER.
    pub roots: &'a [Vec<u8>],
    /// Certificates that the message may lack, in DER.
    pub certificates: &'a [Vec<u8>],
    /// The clock, seconds since 1970.
    pub now: i64,
    /// The date by which the rule is read: its phase, and the time of [`Validity::Now`]. Usually `now`.
    pub as_of: i64,
    /// A time at which the signature existed for certain.
    pub trusted: Option<i64>,
    /// Whether signers without any time are judged as of now, because the format of their signatures has none. That is no
    /// trusted time.
    pub without_times: bool,
    /// For rules that say nothing about revocation; stricter than a rule, it counts, too.
    pub revocation: Option<Revocation>,
    /// CRLs.
    pub crls: &'a [Crl],
    /// OCSP responses.
    pub ocsp: &'a [Response],
    /// Signatures of certificates, CRLs and OCSP responses that need not be verified again, and how many more may be verified
    /// for the message ([`Seen::for_message`]).
    pub seen: Option<&'a Seen>,
    /// Roots of time-stamping authorities for rules that name none, in DER.
    pub timestamp_roots: &'a [Vec<u8>],
    /// What an evidence record proves about the file and the message; [`Rule::trust`] verifies it.
    pub evidence: Option<&'a Evidence>,
}

/// A signer and whether it counts.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Its signature is right.
    pub signer: Authentic,
    /// Its chain, if it is valid.
    pub verified: Option<Signer>,
    /// Why it does not count; empty if it counts.
    pub against: Vec<String>,
    /// What to think about, although it counts.
    pub warnings: Vec<String>,
    /// All timestamps of its signature; none if the rule ignores them.
    pub tokens: Vec<Outcome>,
    /// Why there are not enough timestamps, if the rule asks for them; it is one of `against`, too.
    pub lacks_timestamps: Option<String>,
    /// For which of the phase's requirements.
    serves: Vec<usize>,
}

impl Judged {
    /// Whether it counts.
    pub fn counts(&self) -> bool {
        self.against.is_empty()
    }
}

/// The outcome for a file.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// All signers.
    pub signers: Vec<Judged>,
    /// The requirements that no signer is left for; none if the file is accepted.
    pub missing: Vec<String>,
}

impl Verdict {
    /// Whether those who count are enough.
    pub fn is_accepted(&self) -> bool {
        self.missing.is_empty()
    }
}

impl Rule {
    /// Judges a message about a file with these digests, in the order of [`SignedMessage::digests`].
    ///
    /// # Errors
    ///
    /// A signature is wrong or missing: then the message is refused, whatever the rule says.
    pub fn judge(
        &self,
        message: &SignedMessage,
        file_digests: &[Vec<u8>],
        context: &Context<'_>,
    ) -> Result<Verdict, VerifyError> {
        let authentic = message.authenticate(file_digests, context.certificates)?;
        self.judge_authentic(message, authentic, context)
    }

    /// Judges signers whose signatures are right, of any format; `message` has the certificates that came with them.
    pub fn judge_authentic(
        &self,
        message: &SignedMessage,
        authentic: Vec<Authentic>,
        context: &Context<'_>,
    ) -> Result<Verdict, VerifyError> {
        let authorities = self.authorities(context);
        let suits = |at, chain: &[Certificate]| self.unsuited(at, chain);
        let trust = self.trust(&authorities, &suits, context);
        let timed: Vec<_> = authentic
            .into_iter()
            .map(|signer| match self.timestamp {
                Need::Off => Ok(Timed { signer, tokens: Vec::new(), proven: None }),
                Need::IfAvailable | Need::Required => trust.timed(signer, context.evidence),
            })
            .collect::<Result<_, _>>()?;
        let Some(phase) = self.phase(self.date(&timed, context)) else {
            return Ok(Verdict {
                signers: Vec::new(),
                missing: vec!["a rule with algorithms".into()],
            });
        };
        let signers: Vec<_> =
            timed.into_iter().map(|signer| self.signer(message, signer, phase, context)).collect();
        // Of some signers it is not known whether they count.
        if Seen::is_used_up(context.seen) {
            return Err(VerifyError::TooManySignatures);
        }
        let missing = missing(phase, &signers);
        Ok(Verdict { signers, missing })
    }

    /// The time-stamping authorities that count.
    pub fn authorities(&self, context: &Context<'_>) -> Vec<Authority> {
        match self.timestamps.needs_roots() {
            true => vec![Authority::Roots(context.timestamp_roots.to_vec())],
            false => self.timestamps.authorities.clone(),
        }
    }

    /// Whose timestamps count: those of `authorities`, if their keys suit.
    pub fn trust<'a>(
        &'a self,
        authorities: &'a [Authority],
        suits: crate::trusted_time::Suits<'a>,
        context: &Context<'a>,
    ) -> Trust<'a> {
        Trust {
            authorities,
            least: self.timestamps.least.max(1),
            policies: &self.timestamps.policies,
            certificates: context.certificates,
            now: context.now,
            holds_at: context.as_of.max(context.now),
            revocation: strictest(self.revocation, context.revocation),
            crls: context.crls,
            ocsp: context.ocsp,
            seen: context.seen,
            suits,
        }
    }

    /// Why a time-stamping authority with this chain does not count at a time in seconds since 1970.
    pub fn unsuited(&self, at: i64, chain: &[Certificate]) -> Option<String> {
        let (leaf, above) = chain.split_first()?;
        let row = |found: &Certificate| found.public_key().ok().and_then(|key| Algorithm::of(&key));
        let name = |found: &Certificate| row(found).map_or("unknown", |found| found.name);
        let weak = |wanted: &AnyOf, authorities: Option<&AnyOf>| {
            if !row(leaf).is_some_and(|found| wanted.accepts(found)) {
                return Some(format!(
                    "the algorithm of its authority, {}, is not {wanted}",
                    name(leaf)
                ));
            }
            let is_enough = |found: &Algorithm| match authorities {
                Some(allowed) => allowed.accepts(found),
                None => wanted.suits_authority(found),
            };
            let weak = above.iter().find(|one| !row(one).is_some_and(is_enough))?;
            Some(format!(
                "the key of its CA \"{}\", {}, is not good enough",
                weak.subject(),
                name(weak)
            ))
        };
        if let Some(reason) =
            self.timestamps.algorithms.as_ref().and_then(|wanted| weak(wanted, None))
        {
            return Some(reason);
        }
        let phase = self.phase(at).filter(|_| self.timestamps.by_phases)?;
        let reasons: Vec<_> =
            phase.all_of.iter().map(|wanted| weak(wanted, phase.authorities.as_ref())).collect();
        if reasons.iter().any(Option::is_none) {
            return None;
        }
        let reason = reasons.into_iter().flatten().next()?;
        Some(format!("{reason} at {}", rfc3339(at)))
    }

    /// The date by which the algorithms of the signers are judged: that of the newest signature, as far as timestamps prove
    /// one.
    fn date(&self, timed: &[Timed<Authentic>], context: &Context<'_>) -> i64 {
        if self.validity == Validity::Now {
            return context.as_of;
        }
        let of_one =
            |one: &Timed<Authentic>| one.proven.as_ref().map_or(context.as_of, |time| time.at);
        timed.iter().map(of_one).max().unwrap_or(context.as_of).min(context.as_of)
    }

    /// Judges one signer: everything that the rule asks is asked of it.
    fn signer(
        &self,
        message: &SignedMessage,
        timed: Timed<Authentic>,
        phase: &Phase,
        context: &Context<'_>,
    ) -> Judged {
        let Timed { signer, tokens, proven } = timed;
        let lacks_timestamps = (self.timestamp == Need::Required && proven.is_none())
            .then(|| self.no_timestamp(&tokens, context));
        let mut against: Vec<_> = lacks_timestamps.clone().into_iter().collect();
        let certificate = &signer.certificate;
        if self.has_pins() && !self.is_pinned(certificate) {
            against.push("the rule names neither its certificate nor its public key".to_owned());
        }
        if !self.subjects.is_empty()
            && !self.subjects.iter().any(|one| one.matches(certificate.subject()))
        {
            against.push("its subject is none of the rule's".to_owned());
        }
        if !self.names.is_empty() && !self.names.iter().any(|one| one.matches(certificate)) {
            against.push("it has no alternative name of the rule".to_owned());
        }
        if !phase.digests.is_empty() && !phase.digests.contains(&signer.digest.name) {
            against.push(format!("the digest {} is not allowed", signer.digest.name));
        }
        let verified = match self.trusted(message, &signer, proven.clone(), context) {
            Ok(verified) => {
                against.extend(self.out_of_dates(&verified, proven.map(|time| time.at)));
                Some(verified)
            }
            Err(reason) => {
                against.push(reason);
                None
            }
        };
        let algorithm = certificate.public_key().ok().and_then(|spki| Algorithm::of(&spki));
        let chain = verified.as_ref().map_or(&[][..], |verified| &verified.chain);
        let authorities = chain.get(1..).unwrap_or_default();
        let mut serves = Vec::new();
        let mut unsuited = Vec::new();
        for (index, wanted) in phase.all_of.iter().enumerate() {
            let Some(algorithm) = algorithm.filter(|found| wanted.accepts(found)) else {
                let name = algorithm.map_or("unknown", |found| found.name);
                unsuited.push(format!("its algorithm {name} is not {wanted}"));
                continue;
            };
            let weak = authorities.iter().find_map(|authority| {
                let found = authority.public_key().ok().and_then(|spki| Algorithm::of(&spki));
                let is_enough = found.is_some_and(|found| match &phase.authorities {
                    Some(allowed) => allowed.accepts(found),
                    None => wanted.suits_authority(found),
                });
                (!is_enough).then(|| (authority, found.map_or("unknown", |found| found.name)))
            });
            match weak {
                Some((authority, key)) => unsuited.push(format!(
                    "the key of its CA \"{}\", {key}, is not good enough for a signer with {}",
                    authority.subject(),
                    algorithm.name
                )),
                None => serves.push(index),
            }
        }
        if serves.is_empty() {
            unsuited.dedup();
            against.extend(unsuited);
        }
        let weak = |found: &&Algorithm| {
            phase
                .deprecated
                .iter()
                .filter(|(which, _)| which.accepts(found))
                .map(|(_, text)| (*text).to_owned())
                .collect()
        };
        let mut warnings: Vec<_> = algorithm.as_ref().map(weak).unwrap_or_default();
        if self.is_alone() {
            warnings.extend(verified.as_ref().and_then(unknown_revocation));
        }
        Judged { signer, verified, against, warnings, tokens, lacks_timestamps, serves }
    }

    /// Why there are not enough timestamps.
    fn no_timestamp(&self, tokens: &[Outcome], context: &Context<'_>) -> String {
        let refusals = tokens.iter().filter_map(|token| token.result.as_ref().err());
        let reasons: Vec<_> = refusals.map(|refusal| refusal.reason.clone()).collect();
        let least = self.timestamps.least.max(1);
        let count = tokens.len() + usize::from(context.evidence.is_some());
        match (count, reasons.as_slice()) {
            (0, _) => "it has no timestamp, and the rule asks for one".to_owned(),
            (_, []) => format!("its timestamps are not by {least} different authorities"),
            (_, reasons) if least == 1 => format!("no timestamp counts: {}", reasons.join("; ")),
            (_, reasons) => format!(
                "its timestamps are not by {least} different authorities: {}",
                reasons.join("; ")
            ),
        }
    }

    /// Whether certificates and keys are trusted without a root.
    fn is_alone(&self) -> bool {
        self.trust.is_empty() && self.has_pins()
    }

    fn is_pinned(&self, certificate: &Certificate) -> bool {
        let sha256 = |bytes: &[u8]| Digest::by_name("sha256").map(|row| row.digest(bytes));
        let among = |list: &[Vec<u8>], bytes: &[u8]| {
            sha256(bytes).is_some_and(|digest| list.contains(&digest))
        };
        among(&self.certificates, certificate.der())
            || certificate.public_key().is_ok_and(|spki| among(&self.public_keys, &spki))
    }

    /// The signer's chain; the error says why it is not trusted.
    fn trusted(
        &self,
        message: &SignedMessage,
        signer: &Authentic,
        proven: Option<Time>,
        context: &Context<'_>,
    ) -> Result<Signer, String> {
        let known = |at| Time { at, source: TimeSource::Verifier };
        let trusted = context.trusted.map(known).or(proven);
        let is_here = context.without_times && signer.signing_time.is_none();
        let present = || is_here.then_some(Time { at: context.now, source: TimeSource::Present });
        let time = match self.validity {
            Validity::SigningTime => trusted.or_else(present),
            Validity::Now => Some(known(context.as_of)),
            Validity::TrustedTime => Some(trusted.ok_or(
                "only the signer says when it was made, and the rule asks for a trusted time",
            )?),
        };
        let revocation = strictest(self.revocation, context.revocation);
        let verifier = Verifier {
            roots: if self.needs_roots() { context.roots } else { &self.roots },
            purpose: Some(self.purpose),
            certificates: context.certificates,
            now: context.now,
            time,
            revocation,
            crls: context.crls,
            ocsp: context.ocsp,
            seen: context.seen,
        };
        if !self.is_alone() {
            return message.trust(signer, &verifier).map_err(|error| error.to_string());
        }
        if revocation == Revocation::Required {
            return Err("its revocation cannot be known: the rule names no root for it".into());
        }
        if !self.is_pinned(&signer.certificate) {
            return Err("no root is trusted, only certain certificates or keys".into());
        }
        let verifier = Verifier { roots: context.roots, ..verifier };
        self.alone(message, signer, &verifier).map_err(|error| error.to_string())
    }

    /// A pinned certificate without a chain: its own rules, and what is known of its revocation by the CAs that the
    /// verifier has.
    fn alone(
        &self,
        message: &SignedMessage,
        signer: &Authentic,
        verifier: &Verifier<'_>,
    ) -> Result<Signer, VerifyError> {
        let Authentic { certificate, algorithm, digest, signing_time, .. } = signer.clone();
        check_leaf(&certificate, self.purpose)?;
        let time = verifier.time_of(signing_time)?;
        let subject = certificate.subject().to_string();
        let at = rfc3339(time.at);
        if time.at < certificate.not_before() {
            let not_before = rfc3339(certificate.not_before());
            return Err(PathError::NotYetValid { subject, not_before, at }.into());
        }
        if time.at > certificate.not_after() {
            let not_after = rfc3339(certificate.not_after());
            return Err(PathError::Expired { subject, not_after, at }.into());
        }
        let statuses = message.status_of_pinned(&certificate, &time, self.purpose, verifier)?;
        let chain = vec![certificate.clone()];
        Ok(Signer { certificate, algorithm, digest, signing_time, time, chain, statuses })
    }

    /// Why a signer did not sign between the dates of the rule. Timestamps and verifiers know by when a signature was there,
    /// which says nothing about how old it is: `not_before` is compared with the earliest time that anybody states for the
    /// signature itself, `until` with the earliest by which it was there.
    fn out_of_dates(&self, verified: &Signer, proven: Option<i64>) -> Option<String> {
        if let Some(first) = self.not_before {
            let begins = rfc3339(first);
            let stated = verified.signing_time.into_iter().chain(proven).min();
            let Some(signed) = stated else {
                return Some(format!(
                    "nothing says when it signed, and the rule begins at {begins}"
                ));
            };
            if signed < first {
                let signed = rfc3339(signed);
                return Some(format!("it signed at {signed}, and the rule begins at {begins}"));
            }
        }
        let by = proven.map_or(verified.time.at, |proven| proven.min(verified.time.at));
        let last = self.until.filter(|last| by > *last)?;
        Some(format!("it signed at {}, and the rule ended at {}", rfc3339(by), rfc3339(last)))
    }
}

/// What to say of a pinned signer whose revocation is not known although there is evidence of its CA.
fn unknown_revocation(signer: &Signer) -> Option<String> {
    signer.statuses.iter().find_map(|status| match &status.standing {
        Standing::Unknown(why) => Some(format!(
            "it is not known whether \"{}\" is revoked: {why}",
            status.certificate.subject()
        )),
        _ => None,
    })
}

/// The stricter of both; revoked certificates are refused if nobody says anything.
#[must_use]
pub fn strictest(rule: Option<Revocation>, verifier: Option<Revocation>) -> Revocation {
    let rank = |one: &Revocation| match one {
        Revocation::Off => 0,
        Revocation::IfPresent => 1,
        Revocation::Required => 2,
    };
    rule.into_iter().chain(verifier).max_by_key(rank).unwrap_or(Revocation::IfPresent)
}

/// The requirements that are left if each signer who counts serves one of them, and each key once.
fn missing(phase: &Phase, signers: &[Judged]) -> Vec<String> {
    let mut used = Vec::new();
    let mut best = Vec::new();
    assign(phase, signers, 0, &mut used, &mut best);
    let unserved = |index: &usize| !best.iter().any(|(served, _)| served == index);
    (0..phase.all_of.len())
        .filter(unserved)
        .filter_map(|index| phase.all_of.get(index).map(ToString::to_string))
        .collect()
}

/// Tries every assignment of signers to requirements from `index` on. There are few of both.
fn assign(
    phase: &Phase,
    signers: &[Judged],
    index: usize,
    used: &mut Vec<(usize, usize)>,
    best: &mut Vec<(usize, usize)>,
) {
    if used.len() > best.len() {
        best.clone_from(used);
    }
    if index >= phase.all_of.len() || best.len() == phase.all_of.len() {
        return;
    }
    for (at, judged) in signers.iter().enumerate() {
        let is_same_key = |other: &(usize, usize)| {
            signers.get(other.1).is_none_or(|other| {
                other.signer.certificate.public_key().ok()
                    == judged.signer.certificate.public_key().ok()
            })
        };
        if judged.counts() && judged.serves.contains(&index) && !used.iter().any(is_same_key) {
            used.push((index, at));
            assign(phase, signers, index + 1, used, best);
            used.pop();
        }
    }
    assign(phase, signers, index + 1, used, best);
}
