//! What revocation means for a signature that is older than its verification.
//!
//! A TLS certificate is used now, so any revocation ends it. A signature was made once, and what counts is whether it
//! was made before the revocation. Who says when it was made decides:
//!
//! - A **trusted** time (the verifier's own, or a timestamp) proves that the signature existed then. A revocation
//!   after that time does not touch it, whatever the reason; one at or before that time refuses it. The date is that
//!   of the revocation or the invalidity date, whichever is earlier (RFC 5280, sections 5.3.1 and 5.3.2). ETSI EN 319
//!   102-1 calls this a proof of existence (clauses 5.6.2 and 5.6.3).
//! - Without one there is only the signer's **claim** (the signed attribute signingTime), and a thief of the key can
//!   claim any time. So a revocation that puts the key at risk (keyCompromise, cACompromise, aACompromise, a hold, or
//!   no reason) refuses every signature, whatever it claims. Other reasons (superseded, cessationOfOperation,
//!   affiliationChanged, privilegeWithdrawn) leave the key with its owner, whose claim is then compared with the date.
//!
//! Evidence that a certificate is not revoked counts for a trusted time if it is current at that time, or was made
//! later and before the certificate expired (CAs may drop expired certificates: RFC 5280, section 3.3). With a
//! claim only, evidence that came with the signature could have been kept by a thief: where the status must be known,
//! the evidence must be current now.

use std::fmt;

use super::Rule;
use crate::crl::Revoked;
use crate::ocsp::verify::CLOCK_SKEW_SECONDS;
use crate::time::rfc3339;

/// How the time of a signature ([`super::Options::at`]) is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureTime {
    /// Whether somebody else than the signer says so.
    pub is_trusted: bool,
    /// The verifier's clock, seconds since 1970.
    pub now: i64,
}

/// The evidence that told the status of a certificate, by its index in [`super::Material`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// A CRL.
    Crl(usize),
    /// An OCSP response.
    Ocsp(usize),
}

/// What is known about the revocation of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Its CA says that it never revokes it (RFC 9608), or it is a trust anchor.
    Exempt,
    /// It is not revoked, or was revoked later than what it signed.
    Known {
        /// The evidence.
        by: Proof,
        /// When the status was known to be so, seconds since 1970 (thisUpdate).
        as_of: i64,
        /// The later revocation.
        later: Option<Revoked>,
    },
    /// Not known, and why.
    Unknown(String),
}

/// A revocation that refuses a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// The revocation.
    pub revoked: Revoked,
    /// Time of the signature, seconds since 1970.
    pub time: i64,
    /// Whether that time is trusted.
    pub is_trusted: bool,
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { revoked, time, is_trusted } = self;
        write!(f, "it was revoked at {revoked}")?;
        let time = rfc3339(*time);
        match (is_trusted, revoked.since() <= self.time) {
            (true, _) => write!(f, ", and nothing shows that the signature is older than {time}"),
            (false, true) => write!(f, ", not after {time}, when the signer claims to have signed"),
            (false, false) => write!(
                f,
                ", and only the signer claims to have signed before, at {time}: a thief of the key can claim that"
            ),
        }
    }
}

impl SignatureTime {
    /// Refuses a revocation that matters for a signature made at `at`, and returns one that does not.
    pub(super) fn judge(self, at: i64, revoked: Revoked) -> Result<Revoked, Rule> {
        let is_claim_of_a_thief = !self.is_trusted && revoked.reason.key_at_risk;
        if is_claim_of_a_thief || revoked.since() <= at {
            let judged = Judged { revoked, time: at, is_trusted: self.is_trusted };
            return Err(Rule::RevokedSigner(judged));
        }
        Ok(revoked)
    }

    /// Whether evidence of these times (thisUpdate, nextUpdate) shows that a certificate, which expires at
    /// `not_after`, was not revoked at `at`. Otherwise says why not.
    pub(super) fn counts(
        self,
        at: i64,
        (this_update, next_update): (i64, Option<i64>),
        not_after: i64,
        must_be_known: bool,
        what: &str,
    ) -> Result<(), String> {
        let made = rfc3339(this_update);
        if this_update > self.now.saturating_add(CLOCK_SKEW_SECONDS) {
            return Err(format!("its {what} of {made} is from the future"));
        }
        let end = next_update.unwrap_or(this_update.saturating_add(CLOCK_SKEW_SECONDS));
        let is_current =
            |time: i64| this_update <= time.saturating_add(CLOCK_SKEW_SECONDS) && time <= end;
        if !self.is_trusted && must_be_known && !is_current(self.now) {
            return Err(format!(
                "its {what} of {made} is not current, and only the signer claims that the signature is older"
            ));
        }
        if is_current(at) {
            return Ok(());
        }
        if this_update < at {
            return Err(format!("its {what} of {made} is too old"));
        }
        if this_update > not_after {
            return Err(format!(
                "its {what} of {made} was made after the certificate had expired, when CAs need not list it any more"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;
    use crate::crl::{REASONS, Reason};

    const NOW: i64 = 2_000_000;

    #[test]
    fn a_revocation_is_judged_by_who_says_when() {
        for reason in REASONS {
            for (is_trusted, at, since, refused) in [
                (true, 1000, 1001, false),
                (true, 1000, 1000, true),
                (true, 1000, 999, true),
                (false, 1000, 1001, reason.key_at_risk),
                (false, 1000, 1000, true),
            ] {
                let time = SignatureTime { is_trusted, now: NOW };
                for revoked in [
                    Revoked { at: since, reason, invalid_since: None },
                    Revoked { at: since + 500, reason, invalid_since: Some(since) },
                ] {
                    let outcome = time.judge(at, revoked);
                    assert_eq!(outcome.is_err(), refused, "{is_trusted} {at} {revoked}");
                }
            }
        }
        let at_risk: Vec<_> =
            REASONS.iter().filter(|row| row.key_at_risk).map(|row| row.code).collect();
        assert_eq!(at_risk, [0, 1, 2, 6, 8, 10]);
        assert!(!Reason::by_code(4).unwrap().key_at_risk);
    }

    #[test]
    fn evidence_counts_for_its_time_only() {
        // (trusted, time of the signature, thisUpdate, nextUpdate, end of the certificate, must be known, counts)
        for (row, (is_trusted, at, this, next, end, must, counts)) in [
            (true, 10_000, 9_000, 11_000, NOW, true, true),
            (true, 10_000, 5_000, 9_000, NOW, true, false),
            (true, 10_000, 20_000, 21_000, NOW, true, true),
            (true, 10_000, 20_000, 21_000, 15_000, true, false),
            (false, 10_000, 9_000, 11_000, NOW, false, true),
            (false, 10_000, 9_000, 11_000, NOW, true, false),
            (false, 10_000, NOW - 100, NOW + 100, NOW + 500, true, true),
            (false, 10_000, NOW - 100, NOW + 100, NOW - 500, true, false),
            (true, NOW, NOW + 1_000, NOW + 2_000, NOW + 5_000, true, false),
        ]
        .into_iter()
        .enumerate()
        {
            let time = SignatureTime { is_trusted, now: NOW };
            let outcome = time.counts(at, (this, Some(next)), end, must, "CRL");
            assert_eq!(outcome.is_ok(), counts, "row {row}: {outcome:?}");
        }
    }
}
