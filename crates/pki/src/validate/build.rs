//! Path building: from the leaf upwards, by name and signature, depth first.
//!
//! Every path that reaches a trust anchor is checked as a whole; the first that holds is taken. What the search may
//! cost is limited, since whoever offers certificates may be an adversary: signatures, steps and name
//! comparisons are counted over the whole validation.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;

use super::facts::Facts;
use super::names::Comparable;
use super::{
    MAX_INTERMEDIATES, MAX_NAME_COMPARISONS, MAX_SIGNATURES, MAX_STEPS, Material, Options, Refusal,
    Rule, Validated, check,
};
use crate::certificate::Certificate;

/// All certificates of one validation, what is known of them, and what may still be spent.
pub struct Pool<'a> {
    /// The leaf, then intermediates, then trust anchors.
    pub certificates: Vec<&'a Certificate>,
    first_root: usize,
    facts: Vec<OnceCell<Result<Facts, String>>>,
    names: Vec<OnceCell<[Comparable; 2]>>,
    signatures: RefCell<HashMap<(usize, usize), bool>>,
    signatures_left: Cell<u32>,
    steps_left: Cell<u32>,
    pub comparisons_left: Cell<u32>,
    pub material: Material<'a>,
    /// Which key made a CRL's signature, by the CRL's place.
    pub crl_signatures: RefCell<HashMap<(usize, usize), bool>>,
}

/// See [`super::validate`].
pub fn find<'a>(
    leaf: &'a Certificate,
    material: &Material<'a>,
    options: &Options<'_>,
) -> Result<Validated<'a>, Refusal> {
    let pool = Pool::new(leaf, material);
    let Found { path, holds } = Search::new(&pool, options, None, &[]).run(0)?;
    let certificate = |index: usize| pool.certificates[index];
    let undetermined = holds.undetermined.into_iter().map(|(index, why)| (certificate(index), why));
    Ok(Validated {
        path: path.into_iter().map(certificate).collect(),
        policies: holds.policies,
        undetermined: undetermined.collect(),
    })
}

impl<'a> Pool<'a> {
    fn new(leaf: &'a Certificate, material: &Material<'a>) -> Self {
        let certificates: Vec<_> =
            std::iter::once(leaf).chain(material.intermediates).chain(material.roots).collect();
        let count = certificates.len();
        Self {
            certificates,
            first_root: 1 + material.intermediates.len(),
            facts: (0..count).map(|_| OnceCell::new()).collect(),
            names: (0..count).map(|_| OnceCell::new()).collect(),
            signatures: RefCell::default(),
            signatures_left: Cell::new(MAX_SIGNATURES),
            steps_left: Cell::new(MAX_STEPS),
            comparisons_left: Cell::new(MAX_NAME_COMPARISONS),
            material: *material,
            crl_signatures: RefCell::default(),
        }
    }

    pub fn is_root(&self, index: usize) -> bool {
        index >= self.first_root
    }

    pub fn facts(&self, index: usize) -> Result<&Facts, Rule> {
        self.facts[index]
            .get_or_init(|| Facts::read(self.certificates[index]))
            .as_ref()
            .map_err(|reason| Rule::Malformed(reason.clone()))
    }

    pub fn refusal(&self, index: usize, rule: Rule) -> Refusal {
        Refusal::new(self.certificates[index], rule)
    }

    fn names(&self, index: usize) -> &[Comparable; 2] {
        self.names[index].get_or_init(|| {
            let certificate = self.certificates[index];
            [Comparable::new(certificate.subject()), Comparable::new(certificate.issuer())]
        })
    }

    pub fn subject(&self, index: usize) -> &Comparable {
        &self.names(index)[0]
    }

    pub fn issuer(&self, index: usize) -> &Comparable {
        &self.names(index)[1]
    }

    /// RFC 5280, section 6.1: the same name as subject and issuer.
    pub fn is_self_issued(&self, index: usize) -> bool {
        self.subject(index) == self.issuer(index)
    }

    /// Whether two certificates are for the same name and key.
    pub fn is_same_entity(&self, a: usize, b: usize) -> bool {
        let key = |index| self.facts(index).ok().map(|facts| &facts.public_key);
        a == b || (key(a) == key(b) && self.subject(a) == self.subject(b))
    }

    /// Takes `count` signatures off what may be verified.
    pub fn spend_signatures(&self, count: u32) -> Result<(), Rule> {
        let left = self.signatures_left.get().checked_sub(count);
        self.signatures_left.set(left.ok_or(Rule::Limit("too many signatures to verify"))?);
        Ok(())
    }

    fn step(&self) -> Result<(), Rule> {
        let left = self.steps_left.get().checked_sub(1);
        self.steps_left.set(left.ok_or(Rule::Limit("too many paths to try"))?);
        Ok(())
    }

    /// Whether the key of `issuer` signed `child`.
    fn signed(&self, child: usize, issuer: usize) -> Result<bool, Rule> {
        if let Some(known) = self.signatures.borrow().get(&(child, issuer)) {
            return Ok(*known);
        }
        self.spend_signatures(1)?;
        let valid = self.certificates[child].signed_with(&self.facts(issuer)?.public_key);
        self.signatures.borrow_mut().insert((child, issuer), valid);
        Ok(valid)
    }

    /// What an issuer must be, whoever it issues to: cheap, and so asked before any signature.
    fn check_issuer(&self, index: usize, at: i64) -> Result<(), Rule> {
        let facts = self.facts(index)?;
        check::validity(self.certificates[index], at)?;
        check::may_issue(facts)?;
        facts.unknown_critical.map_or(Ok(()), |oid| Err(Rule::CriticalExtension(oid)))
    }
}

/// A path that was found.
pub struct Found {
    /// Leaf first.
    pub path: Vec<usize>,
    holds: check::Holds,
}

/// One search for a path.
pub struct Search<'p, 'a> {
    pool: &'p Pool<'a>,
    options: &'p Options<'p>,
    /// The only trust anchor that will do, if there is one.
    anchor: Option<usize>,
    /// CRL signers whose own path is being looked for.
    busy: &'p [usize],
    best: Option<(Rank, Refusal)>,
}

/// How far a path came that was refused.
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
        anchor: Option<usize>,
        busy: &'p [usize],
    ) -> Self {
        Self { pool, options, anchor, busy, best: None }
    }

    /// Looks for a path from `target`.
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

    /// Tries all ways on from the end of `path`. Errors end the whole search.
    fn extend(&mut self, path: &mut Vec<usize>) -> Result<Option<Found>, Refusal> {
        let pool = self.pool;
        let Some(tip) = path.last().copied() else { return Ok(None) };
        let limit = |rule| pool.refusal(tip, rule);
        let most = self.options.max_intermediates.min(MAX_INTERMEDIATES);
        for candidate in self.candidates(tip) {
            pool.step().map_err(limit)?;
            let is_root = pool.is_root(candidate);
            // The same certificate twice, or another certificate of the same subject and key, leads nowhere.
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
                match check::path(pool, self.options, path, self.busy) {
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

    /// Certificates whose subject is the issuer: trust anchors first, then those whose key identifier fits
    /// (a hint only: RFC 5280, section 4.2.1.1).
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
