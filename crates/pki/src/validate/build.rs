//! Path building: from the leaf upwards, by name and signature, depth first.
//!
//! Every path that reaches a trust anchor is checked as a whole; the first valid one is returned. The search is
//! limited, because the certificates may come from an adversary: signatures, steps and name comparisons are counted
//! over the whole validation.

use super::check::{self, Status};
use super::pool::Pool;
use super::{MAX_INTERMEDIATES, Material, Options, Refusal, Rule, Validated};
use crate::certificate::Certificate;

/// See [`super::validate`].
pub fn find<'a>(
    leaf: &'a Certificate,
    material: &Material<'a>,
    options: &Options<'_>,
    status: Status,
) -> Result<Validated<'a>, Refusal> {
    let pool = Pool::new(leaf, material);
    let Found { path, holds } = Search::new(&pool, options, status, None, &[]).run(0)?;
    let certificate = |index: usize| pool.certificates[index];
    let undetermined = holds.undetermined.into_iter().map(|(index, why)| (certificate(index), why));
    Ok(Validated {
        path: path.into_iter().map(certificate).collect(),
        policies: holds.policies,
        undetermined: undetermined.collect(),
        standings: holds.standings,
    })
}

/// A path that the search has found.
pub struct Found {
    /// Indexes into the pool, leaf first.
    pub path: Vec<usize>,
    holds: check::Holds,
}

/// A search for a path.
pub struct Search<'p, 'a> {
    pool: &'p Pool<'a>,
    options: &'p Options<'p>,
    /// Checks whether a certificate is revoked.
    status: Status,
    /// The only trust anchor that is accepted, if there is one.
    anchor: Option<usize>,
    /// CRL signers whose own path is being built.
    busy: &'p [usize],
    best: Option<(Rank, Refusal)>,
}

/// How far a refused path came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    NoIssuer,
    Candidate,
    Complete,
}

impl<'p, 'a> Search<'p, 'a> {
    pub fn new(
        pool: &'p Pool<'a>,
        options: &'p Options<'p>,
        status: Status,
        anchor: Option<usize>,
        busy: &'p [usize],
    ) -> Self {
        Self { pool, options, status, anchor, busy, best: None }
    }

    /// Searches for a path from `target`.
    pub fn run(mut self, target: usize) -> Result<Found, Refusal> {
        let mut path = vec![target];
        if let Some(found) = self.extend(&mut path)? {
            return Ok(found);
        }
        Err(self.best.map_or_else(
            || self.pool.refusal(target, Rule::Limit("no path was tried")),
            |(_, refusal)| refusal,
        ))
    }

    /// Tries every continuation of `path`. Errors end the whole search.
    fn extend(&mut self, path: &mut Vec<usize>) -> Result<Option<Found>, Refusal> {
        let pool = self.pool;
        let Some(tip) = path.last().copied() else { return Ok(None) };
        let limit = |rule| pool.refusal(tip, rule);
        let most = self.options.max_intermediates.min(MAX_INTERMEDIATES);
        for candidate in self.candidates(tip) {
            pool.step().map_err(limit)?;
            let is_root = pool.is_root(candidate);
            // The same certificate again, or another one with the same subject and key, leads nowhere.
            if !is_root && path.iter().any(|known| pool.is_same_entity(*known, candidate)) {
                continue;
            }
            if let Err(rule) = pool.check_issuer(candidate, self.options.at) {
                self.note(Rank::Candidate, candidate, rule);
                continue;
            }
            match pool.signed(tip, candidate) {
                Err(rule @ Rule::Limit(_)) => return Err(limit(rule)),
                Ok(true) => {}
                Ok(false) | Err(_) => {
                    let certificate = pool.certificates[tip];
                    let rule = if certificate.has_known_signature_algorithm() {
                        Rule::Signature
                    } else {
                        Rule::Algorithm(certificate.signature_algorithm().to_string())
                    };
                    self.note(Rank::Candidate, tip, rule);
                    continue;
                }
            }
            path.push(candidate);
            if is_root {
                match check::path(pool, self.options, path, self.status, self.busy) {
                    Ok(holds) => return Ok(Some(Found { path: path.clone(), holds })),
                    Err((_, rule @ Rule::Limit(_))) => return Err(limit(rule)),
                    Err((index, rule)) => self.note(Rank::Complete, index, rule),
                }
            } else if path.len() > most + 1 {
                self.note(Rank::Candidate, candidate, Rule::TooLong(most));
            } else if let Some(found) = self.extend(path)? {
                return Ok(Some(found));
            }
            path.pop();
        }
        let issuer = pool.certificates[tip].issuer().to_string();
        self.note(Rank::NoIssuer, tip, Rule::UnknownIssuer(issuer));
        Ok(None)
    }

    /// Certificates whose subject is the issuer: trust anchors first, then those whose key identifier matches (only a
    /// hint: RFC 5280, section 4.2.1.1).
    fn candidates(&self, tip: usize) -> Vec<usize> {
        let pool = self.pool;
        let wanted = pool.certificates[tip].issuer();
        let mut found: Vec<_> = (1..pool.certificates.len())
            .filter(|index| !pool.is_root(*index) || self.anchor.is_none_or(|only| only == *index))
            .filter(|index| {
                pool.certificates[*index].subject() == wanted
                    || pool.subject(*index) == pool.issuer(tip)
            })
            .collect();
        let hint = pool.facts(tip).ok().and_then(|facts| facts.authority_key_id.as_ref());
        found.sort_by_key(|index| {
            let id = pool.facts(*index).ok().and_then(|facts| facts.key_id.as_ref());
            (!pool.is_root(*index), hint.is_some() && id.is_some() && hint != id)
        });
        found
    }

    /// Keeps the first refusal of the path that came furthest.
    fn note(&mut self, rank: Rank, index: usize, rule: Rule) {
        if self.best.as_ref().is_none_or(|(known, _)| *known < rank) {
            self.best = Some((rank, self.pool.refusal(index, rule)));
        }
    }
}
