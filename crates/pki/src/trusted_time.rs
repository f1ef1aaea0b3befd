//! When a signature was made, by others than its signer: timestamps in the message (RFC 3161) and evidence records (RFC
//! 4998).
//!
//! A token proves a time for as long as its own certificates hold. So it is judged twice: at the time that it states, where
//! its authority must have been entitled to state it, and at the last moment at which its signature could be relied on:
//! now, or when a later token proves that it existed already. An authority whose certificate was superseded or that ceased
//! keeps its earlier tokens; one whose key was compromised loses all that nothing later covers (RFC 3161, section 4).
//!
//! A token that does not hold is reported, and otherwise as if it were not there.

pub mod due;
mod refusal;

use const_oid::ObjectIdentifier;
use outlast_crypto::digests::sha256;
use outlast_crypto::signatures::SignatureAlgorithm;

use crate::certificate::Certificate;
use crate::cms::verify::{
    Authentic, CLOCK_SKEW_SECONDS, Evidence as Source, SignedMessage, Signer, Status, Time,
    TimeSource, Verifier, VerifyError,
};
use crate::crl::Crl;
use crate::evidence_record::EvidenceRecord;
use crate::ocsp::Response;
use crate::path::{PathError, SignerCheck, check_leaf, pinned_standing};
use crate::seen::Seen;
use crate::templates::TIME_STAMPING;
use crate::time::rfc3339;
use crate::timestamp::{self, Imprint, TimestampError, Token};
use crate::validate::{Revocation, SignatureTime, Standing};

pub use refusal::{FAULTS, Fault, Refusal};

/// A time-stamping authority that is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authority {
    /// Every authority below one of these roots, in DER.
    Roots(Vec<Vec<u8>>),
    /// The certificate with this SHA-256.
    Certificate(Vec<u8>),
    /// The public key whose `SubjectPublicKeyInfo` has this SHA-256.
    PublicKey(Vec<u8>),
}

/// Says why the certificates of a token's chain (signer first) are not good enough at a time in seconds since 1970.
pub type Suits<'a> = &'a dyn Fn(i64, &[Certificate]) -> Option<String>;

/// Whose timestamps count.
#[derive(Clone, Copy)]
pub struct Trust<'a> {
    /// The authorities.
    pub authorities: &'a [Authority],
    /// How many of them must agree that a signature existed; at least 1.
    pub least: usize,
    /// Policies of tokens that are accepted; any if there are none.
    pub policies: &'a [ObjectIdentifier],
    /// Certificates that tokens may lack, in DER.
    pub certificates: &'a [Vec<u8>],
    /// The clock, seconds since 1970.
    pub now: i64,
    /// The time at which the newest tokens must hold; `now`, unless the future is asked for.
    pub holds_at: i64,
    /// Whether revocation is checked.
    pub revocation: Revocation,
    /// CRLs.
    pub crls: &'a [Crl],
    /// OCSP responses.
    pub ocsp: &'a [Response],
    /// Signatures of certificates, CRLs and OCSP responses that need not be verified again, and how many more may be verified
    /// for the message ([`Seen::for_message`]): all of its tokens and its evidence record share them.
    pub seen: Option<&'a Seen>,
    /// What is asked of the authorities' algorithms.
    pub suits: Suits<'a>,
}

/// A token that holds.
#[derive(Debug, Clone)]
pub struct Stamp {
    /// The time that it proves, in whole seconds since 1970: that of the token and its accuracy, rounded up, because the
    /// authority's clock may have been so much behind.
    pub at: i64,
    /// How far the authority's clock may be off.
    pub accuracy: Option<timestamp::Accuracy>,
    /// Serial number, big-endian.
    pub serial: Vec<u8>,
    /// Policy of the authority.
    pub policy: ObjectIdentifier,
    /// Algorithm of the signature.
    pub algorithm: &'static SignatureAlgorithm,
    /// From the authority's certificate to the root; the certificate alone if it is trusted without one.
    pub chain: Vec<Certificate>,
    /// Revocation of each certificate below the root; empty if it was not checked, or if there is no root.
    pub statuses: Vec<Status>,
    /// Which of [`Trust::authorities`] it is by.
    authorities: Vec<usize>,
}

/// What is known of a token.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The time that it states, seconds since 1970; `None` if it cannot be read.
    pub states: Option<i64>,
    /// Subject of the certificate that it is by, as far as it is in the token.
    pub authority: Option<String>,
    /// Whether it is a token of this signature that states a time in the future.
    pub is_future: bool,
    /// The token, or why it does not count.
    pub result: Result<Stamp, Refusal>,
}

/// What an evidence record proves.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// Its tokens, oldest first; at least one.
    pub stamps: Vec<Stamp>,
}

/// A verified signer, and how its time is known.
#[derive(Debug, Clone)]
pub struct Timed<T> {
    /// The signer, or what is wrong with it.
    pub signer: T,
    /// All tokens of its signature.
    pub tokens: Vec<Outcome>,
    /// The time that enough authorities agree on, whether or not it was used.
    pub proven: Option<Time>,
}

/// What makes a token hold.
struct Held {
    chain: Vec<Certificate>,
    statuses: Vec<Status>,
}

/// The last moment at which a token could be relied on.
#[derive(Debug, Clone, Copy)]
enum Until {
    /// It has to hold still.
    Now,
    /// A later token proves that it existed then, seconds since 1970.
    Covered(i64),
}

impl Stamp {
    /// When its certificates end, unless something covers it before: seconds since 1970.
    pub fn ends(&self) -> i64 {
        self.chain.iter().map(Certificate::not_after).min().unwrap_or(self.at)
    }

    /// Subject of the authority's certificate.
    pub fn authority(&self) -> String {
        self.chain.first().map(|found| found.subject().to_string()).unwrap_or_default()
    }

    fn key(&self) -> Option<Vec<u8>> {
        self.chain.first().and_then(|found| found.public_key().ok())
    }
}

impl Evidence {
    /// When the data existed, seconds since 1970.
    pub fn at(&self) -> i64 {
        self.stamps.first().map_or(i64::MAX, |stamp| stamp.at)
    }
}

impl Trust<'_> {
    /// Judges the tokens of a signature, which `evidence` covers if it is there.
    pub fn tokens(&self, signer: &Authentic, evidence: Option<&Evidence>) -> Vec<Outcome> {
        let until = evidence.map_or(Until::Now, |evidence| Until::Covered(evidence.at()));
        let one = |der: &Vec<u8>| {
            let token = match Token::parse(der) {
                Ok(token) => token,
                Err(error) => {
                    let result = Err(Refusal::of(&error));
                    return Outcome { states: None, authority: None, is_future: false, result };
                }
            };
            let imprint = Imprint::of(token.imprint().digest, &signer.signature);
            let states = token.time_ms().div_euclid(1000);
            let is_future = states > self.now.saturating_add(CLOCK_SKEW_SECONDS)
                && Seen::count(self.seen)
                && token.authenticate(&imprint, self.certificates).is_ok();
            Outcome {
                states: Some(states),
                authority: authority_of(&token),
                is_future,
                result: self.judge(&token, &[imprint], until),
            }
        };
        signer.tokens.iter().map(one).collect()
    }

    /// Verifies an evidence record: its hashes, and each token at the time of the next one, the last one now. `objects` are
    /// the digests of the data: see [`EvidenceRecord::links`]. The error says what is wrong.
    pub fn evidence(
        &self,
        record: &EvidenceRecord,
        objects: &[Vec<Vec<u8>>],
    ) -> Result<Evidence, Refusal> {
        let links = record.links(objects).map_err(|error| Refusal::invalid(error.to_string()))?;
        let count = links.len();
        let mut until = Until::Now;
        let mut stamps = Vec::with_capacity(count);
        for (index, link) in links.iter().enumerate().rev() {
            let failed = |Refusal { fault, reason }: Refusal| {
                let number = index + 1;
                Refusal::new(fault, format!("timestamp {number} of {count} in it: {reason}"))
            };
            let token = Token::parse(&link.token).map_err(|error| failed(Refusal::of(&error)))?;
            let imprints = link.imprints.iter().map(|value| Imprint::new(link.digest, value));
            let imprints = imprints.collect::<Result<Vec<_>, _>>();
            let imprints = imprints.map_err(|error| failed(Refusal::invalid(error.to_string())))?;
            let stamp = self.judge(&token, &imprints, until).map_err(failed)?;
            until = Until::Covered(stamp.at);
            stamps.push(stamp);
        }
        stamps.reverse();
        match stamps.is_empty() {
            true => Err(Refusal::invalid("it has no timestamp")),
            false => Ok(Evidence { stamps }),
        }
    }

    /// The time that enough of the authorities agree on: the latest of the earliest ones. The evidence record's first
    /// token is one of them, since it covers the signature, too.
    fn agreed(&self, tokens: &[Outcome], evidence: Option<&Evidence>) -> Option<Time> {
        let own = tokens.iter().filter_map(|token| token.result.as_ref().ok());
        let mut stamps: Vec<_> = own.map(|stamp| (stamp, TimeSource::Timestamp)).collect();
        let record = evidence.and_then(|evidence| evidence.stamps.first());
        stamps.extend(record.map(|stamp| (stamp, TimeSource::EvidenceRecord)));
        stamps.sort_by_key(|(stamp, _)| stamp.at);
        let enough = |count: &usize| {
            let first: Vec<_> = stamps.iter().take(*count).map(|(stamp, _)| *stamp).collect();
            distinct(&first, self.least)
        };
        let count = (self.least.max(1)..=stamps.len()).find(enough)?;
        let (stamp, source) = stamps.get(count - 1)?;
        Some(Time { at: stamp.at, source: source.clone() })
    }

    fn judge(&self, token: &Token, imprints: &[Imprint], until: Until) -> Result<Stamp, Refusal> {
        let fits = imprints.iter().find(|imprint| *imprint == token.imprint());
        let imprint = fits.or(imprints.first());
        let imprint = imprint.ok_or_else(|| Refusal::invalid("it is over nothing"))?;
        if !Seen::count(self.seen) {
            return Err(too_many_signatures());
        }
        let signer =
            token.authenticate(imprint, self.certificates).map_err(|error| Refusal::of(&error))?;
        let mut found: Option<Stamp> = None;
        let mut refusal: Option<Refusal> = None;
        for (index, authority) in self.authorities.iter().enumerate() {
            let held = match authority {
                Authority::Roots(roots) => self.by_roots(token, &signer, roots, until),
                Authority::Certificate(pin) => {
                    let is_it = sha256(signer.certificate.der())[..] == pin[..];
                    self.pinned(token, &signer, is_it, until)
                }
                Authority::PublicKey(pin) => {
                    let spki = signer.certificate.public_key().unwrap_or_default();
                    self.pinned(token, &signer, sha256(&spki)[..] == pin[..], until)
                }
            };
            let held =
                held.and_then(|held| match (self.suits)(self.relied_on(until), &held.chain) {
                    None => Ok(held),
                    Some(reason) => Err(Refusal::new(Fault::Unsuited, reason)),
                });
            match (held, &mut found) {
                (Ok(_), Some(stamp)) => stamp.authorities.push(index),
                (Ok(held), None) => {
                    let verified = self.facts(token, signer.algorithm, held, index);
                    found = Some(verified);
                }
                // What is wrong with a trusted authority says more than that others do not know it.
                (Err(new), _) if refusal.as_ref().is_none_or(Refusal::is_by_stranger) => {
                    refusal = Some(new);
                }
                (Err(_), _) => {}
            }
        }
        if Seen::is_used_up(self.seen) {
            return Err(too_many_signatures());
        }
        let nobody = || Refusal::new(Fault::Untrusted, "no time-stamping authority is trusted");
        found.ok_or_else(|| refusal.unwrap_or_else(nobody))
    }

    fn facts(
        &self,
        token: &Token,
        algorithm: &'static SignatureAlgorithm,
        held: Held,
        index: usize,
    ) -> Stamp {
        Stamp {
            at: latest_second(token.time_ms(), token.accuracy()),
            accuracy: token.accuracy(),
            serial: token.serial().to_vec(),
            policy: token.policy(),
            algorithm,
            chain: held.chain,
            statuses: held.statuses,
            authorities: vec![index],
        }
    }

    fn relied_on(&self, until: Until) -> i64 {
        match until {
            Until::Now => self.holds_at,
            Until::Covered(at) => at,
        }
    }

    /// The chain to one of these roots, by what was known at both times.
    fn by_roots(
        &self,
        token: &Token,
        signer: &Authentic,
        roots: &[Vec<u8>],
        until: Until,
    ) -> Result<Held, Refusal> {
        let trust = |existed_at, revocation| timestamp::Trust {
            roots,
            certificates: self.certificates,
            now: self.now,
            existed_at,
            policies: self.policies,
            nonce: None,
            revocation,
            crls: self.crls,
            ocsp: self.ocsp,
            seen: self.seen,
        };
        let verify =
            |existed_at, revocation| token.trust_signer(signer, &trust(existed_at, revocation));
        // By what its authority says itself: its certificates at that time, and no compromise ever since.
        let by_itself = verify(None, self.revocation);
        // Its certificates at the time until which it has to hold.
        let held = verify(Some(self.relied_on(until)), Revocation::Off)
            .map_err(|error| self.ended(token, &error, until))?;
        let outcome = match (by_itself, until) {
            // What came after a later token does not matter.
            (Err(_), Until::Covered(at)) => {
                verify(None, Revocation::Off).and_then(|_| verify(Some(at), self.revocation))
            }
            (outcome, _) => outcome,
        };
        let found = outcome.map_err(|error| Refusal::of(&error))?;
        Ok(Held { chain: held.chain, statuses: found.statuses })
    }

    fn ended(&self, token: &Token, error: &TimestampError, until: Until) -> Refusal {
        let refusal = Refusal::of(error);
        match until {
            Until::Now if refusal.fault == Fault::Ended => Refusal::new(
                Fault::Ended,
                format!(
                    "{error}: what it says of {} was not renewed before",
                    rfc3339(token.time_ms().div_euclid(1000))
                ),
            ),
            Until::Covered(at) if refusal.fault == Fault::Ended => Refusal::new(
                Fault::Ended,
                format!("{error}: it was renewed too late, at {}", rfc3339(at)),
            ),
            _ => refusal,
        }
    }

    /// A certificate that is trusted without a chain: its own rules alone.
    fn pinned(
        &self,
        token: &Token,
        signer: &Authentic,
        is_it: bool,
        until: Until,
    ) -> Result<Held, Refusal> {
        let certificate = &signer.certificate;
        if !is_it {
            let reason = "its authority is none of those that are trusted";
            return Err(Refusal::new(Fault::Untrusted, reason));
        }
        let statuses = self.alone(token, certificate, until)?;
        Ok(Held { chain: vec![certificate.clone()], statuses })
    }

    fn alone(
        &self,
        token: &Token,
        certificate: &Certificate,
        until: Until,
    ) -> Result<Vec<Status>, Refusal> {
        if self.revocation == Revocation::Required {
            return Err(Refusal::new(
                Fault::RevocationUnknown,
                "the revocation of its authority cannot be known: no root is trusted for it",
            ));
        }
        check_leaf(certificate, TIME_STAMPING)
            .map_err(|error| Refusal::invalid(error.to_string()))?;
        if !self.policies.is_empty() && !self.policies.contains(&token.policy()) {
            return Err(Refusal::of(&TimestampError::Policy(token.policy())));
        }
        let states = token.time_ms().div_euclid(1000);
        let (bound, until) = (until, self.relied_on(until));
        if states > self.now.saturating_add(CLOCK_SKEW_SECONDS) {
            return Err(Refusal::of(&TimestampError::Future(rfc3339(states))));
        }
        if states > until.saturating_add(CLOCK_SKEW_SECONDS) {
            return Err(Refusal::of(&TimestampError::Late(rfc3339(states))));
        }
        for at in [states, until] {
            if at < certificate.not_before() || at > certificate.not_after() {
                let fault =
                    if at > certificate.not_after() { Fault::Ended } else { Fault::Invalid };
                return Err(Refusal::new(
                    fault,
                    format!(
                        "the certificate \"{}\" is valid from {} to {}, not at {}",
                        certificate.subject(),
                        rfc3339(certificate.not_before()),
                        rfc3339(certificate.not_after()),
                        rfc3339(at)
                    ),
                ));
            }
        }
        let standing = self
            .not_revoked(certificate, states, bound)
            .map_err(|error| Refusal::of(&TimestampError::Message(error.into())))?;
        let status = |standing| Status {
            certificate: certificate.clone(),
            evidence: match &standing {
                Standing::Known { by, .. } => Some(Source::Given(*by)),
                Standing::Exempt | Standing::Unknown(_) => None,
            },
            standing,
        };
        Ok(standing.map(status).into_iter().collect())
    }

    /// Refuses a certificate without a root that was revoked, by the same rules as one with a root: see
    /// [`Trust::by_roots`]. Its CA must be among the certificates and roots that the verifier has.
    fn not_revoked(
        &self,
        certificate: &Certificate,
        states: i64,
        until: Until,
    ) -> Result<Option<Standing>, PathError> {
        let roots = self.authorities.iter().flat_map(|authority| match authority {
            Authority::Roots(roots) => roots.as_slice(),
            Authority::Certificate(_) | Authority::PublicKey(_) => &[],
        });
        let known: Vec<_> = roots.chain(self.certificates).cloned().collect();
        let check = |at, is_trusted| {
            let check = SignerCheck {
                at,
                purpose: TIME_STAMPING,
                signature: SignatureTime { is_trusted, now: self.now },
                revocation: self.revocation,
                crls: self.crls,
                ocsp: self.ocsp,
                seen: self.seen,
            };
            pinned_standing(certificate, &known, &check)
        };
        match (check(states, false), until) {
            // What came after a later token does not matter.
            (Err(_), Until::Covered(at)) => check(at, true),
            (outcome, _) => outcome,
        }
    }
}

/// Whether at least this many of the stamps are by different authorities, with different keys.
fn distinct(stamps: &[&Stamp], least: usize) -> bool {
    fn assign(stamps: &[&Stamp], used: &mut Vec<(usize, Option<Vec<u8>>)>, least: usize) -> bool {
        if used.len() >= least {
            return true;
        }
        let Some((first, rest)) = stamps.split_first() else { return false };
        if stamps.len() + used.len() < least {
            return false;
        }
        let key = first.key();
        for authority in &first.authorities {
            if used.iter().any(|(other, known)| other == authority || *known == key) {
                continue;
            }
            used.push((*authority, key.clone()));
            if assign(rest, used, least) {
                return true;
            }
            used.pop();
        }
        assign(rest, used, least)
    }
    assign(stamps, &mut Vec::new(), least.max(1))
}

impl Trust<'_> {
    /// Reads the tokens of a signer, and the time on which enough authorities agree.
    ///
    /// # Errors
    ///
    /// A token states a time in the future, or the message has reached its limit of signatures.
    pub fn timed(
        &self,
        signer: Authentic,
        evidence: Option<&Evidence>,
    ) -> Result<Timed<Authentic>, VerifyError> {
        let tokens = self.tokens(&signer, evidence);
        if Seen::is_used_up(self.seen) {
            return Err(VerifyError::TooManySignatures);
        }
        if let Some(at) =
            tokens.iter().filter(|token| token.is_future).find_map(|token| token.states)
        {
            return Err(VerifyError::FutureTimestamp(rfc3339(at)));
        }
        let proven = self.agreed(&tokens, evidence);
        Ok(Timed { signer, tokens, proven })
    }
}

/// Verifies every signer of a message like [`SignedMessage::verify`], at the time that its tokens or an evidence record
/// prove, unless the verifier knows the time.
pub fn verify(
    message: &SignedMessage,
    file_digests: &[Vec<u8>],
    verifier: &Verifier<'_>,
    trust: &Trust<'_>,
    evidence: Option<&Evidence>,
) -> Result<Vec<Timed<Signer>>, VerifyError> {
    let authentic = message.authenticate(file_digests, verifier.certificates)?;
    let one = |signer: Authentic| {
        let Timed { signer, tokens, proven } = trust.timed(signer, evidence)?;
        let time = verifier.time.clone().or_else(|| proven.clone());
        let signer = message.trust(&signer, &Verifier { time, ..verifier.clone() })?;
        Ok(Timed { signer, tokens, proven })
    };
    authentic.into_iter().map(one).collect()
}

fn too_many_signatures() -> Refusal {
    Refusal::invalid(VerifyError::TooManySignatures.to_string())
}

fn authority_of(token: &Token) -> Option<String> {
    let own = token.certificates().iter().filter_map(|der| Certificate::parse(der).ok());
    let mut stampers = own.filter(|found| {
        found.extended_key_usage().is_some_and(|(_, purposes)| purposes.contains(&TIME_STAMPING))
    });
    stampers.next().map(|found| found.subject().to_string())
}

/// The latest time at which a token can have been made (RFC 3161, section 2.4.2), rounded up to seconds since 1970.
fn latest_second(time_ms: i64, accuracy: Option<timestamp::Accuracy>) -> i64 {
    let micros = accuracy.map_or(0, |known| i64::try_from(known.micros).unwrap_or(i64::MAX));
    let latest = time_ms.saturating_mul(1000).saturating_add(micros);
    latest.saturating_add(999_999).div_euclid(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accuracy_of_a_token_makes_its_time_later() {
        for (time_ms, micros, at) in [
            (5_000, None, 5),
            (5_001, None, 6),
            (5_000, Some(0), 5),
            (5_000, Some(1), 6),
            (5_000, Some(1_000_000), 6),
            (5_500, Some(500_000), 6),
            (5_500, Some(500_001), 7),
            (-1, Some(1_000), 0),
            (i64::MAX, Some(u64::MAX), i64::MAX.div_euclid(1_000_000)),
        ] {
            let accuracy = micros.map(|micros| timestamp::Accuracy { micros });
            assert_eq!(latest_second(time_ms, accuracy), at, "{time_ms} {micros:?}");
        }
    }
}
