//! When evidence must be renewed: before a certificate ends, and before the algorithm of a key does.
//!
//! Nothing is verified here: a date that is wrong makes nobody believe anything.

use crate::certificate::Certificate;
use crate::cms::verify::SignedMessage;
use crate::evidence_record::EvidenceRecord;
use crate::signing_policy::algorithms::Algorithm;
use crate::signing_policy::builtin::AFTER_2035;
use crate::templates::TIME_STAMPING;
use crate::time::rfc3339;
use crate::timestamp::Token;

/// Most CAs above a certificate that are read.
const MAX_ABOVE: usize = 10;

/// The last moment for a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Seconds since 1970.
    pub at: i64,
    /// What ends then.
    pub because: String,
}

/// Of a record: its newest token.
pub fn of_record(record: &EvidenceRecord) -> Option<Due> {
    of_token(record.tokens().ok()?.last()?)
}

/// Of a token in DER: the authority's certificate and those above it, as far as the token holds them.
pub fn of_token(der: &[u8]) -> Option<Due> {
    let token = Token::parse(der).ok()?;
    let all = parsed(token.certificates());
    let is_authority = |found: &&Certificate| {
        found.extended_key_usage().is_some_and(|(_, purposes)| purposes.contains(&TIME_STAMPING))
    };
    of_chain(all.iter().find(is_authority)?, &all)
}

/// Of a signature without a record: for each signer the longest-lived token, or its own certificate if it has none.
pub fn of_signature(message: &SignedMessage) -> Option<Due> {
    let all = parsed(&message.certificates);
    let of_signer = |claim: crate::cms::verify::Claim| {
        let of_tokens =
            claim.tokens.iter().filter_map(|token| of_token(token)).max_by_key(|due| due.at);
        of_tokens.or_else(|| of_chain(claim.certificate.as_ref()?, &all))
    };
    message.claims().into_iter().filter_map(of_signer).min_by_key(|due| due.at)
}

fn parsed(certificates: &[Vec<u8>]) -> Vec<Certificate> {
    certificates.iter().filter_map(|der| Certificate::parse(der).ok()).collect()
}

/// The first end of a certificate or of its algorithm, from a leaf upwards.
fn of_chain(leaf: &Certificate, all: &[Certificate]) -> Option<Due> {
    let mut chain = vec![leaf];
    while let Some(last) = chain.last().filter(|last| last.issuer() != last.subject()) {
        let above = all.iter().find(|found| last.signed_by(found));
        match above.filter(|_| chain.len() <= MAX_ABOVE) {
            Some(above) => chain.push(above),
            None => break,
        }
    }
    let ends = |found: &&Certificate| Due {
        at: found.not_after(),
        because: format!(
            "the certificate \"{}\" ends at {}",
            found.subject(),
            rfc3339(found.not_after())
        ),
    };
    let classical = |found: &&Certificate| {
        let row = Algorithm::of(&found.public_key().ok()?)?;
        (!row.is_post_quantum()).then(|| Due {
            at: AFTER_2035,
            because: format!("NIST IR 8547 disallows {} from {} on", row.name, rfc3339(AFTER_2035)),
        })
    };
    let all_ends = chain.iter().map(ends).chain(chain.iter().filter_map(classical));
    all_ends.min_by_key(|due| due.at)
}
