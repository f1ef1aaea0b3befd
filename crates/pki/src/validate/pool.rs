//! The data of one validation, and its limits.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;

use super::facts::Facts;
use super::names::Comparable;
use super::{MAX_NAME_COMPARISONS, MAX_SIGNATURES, MAX_STEPS, Material, Refusal, Rule, rules};
use crate::certificate::Certificate;
use crate::seen::Seen;

/// All certificates of a validation, what is known of them, and what is left of the limits.
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
    /// Which key made a CRL's signature, by the CRL's index.
    pub crl_signatures: RefCell<HashMap<(usize, usize), bool>>,
}

impl<'a> Pool<'a> {
    /// The pool of a leaf, with full limits.
    pub fn new(leaf: &'a Certificate, material: &Material<'a>) -> Self {
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

    /// RFC 5280, section 6.1: subject and issuer are the same name.
    pub fn is_self_issued(&self, index: usize) -> bool {
        self.subject(index) == self.issuer(index)
    }

    /// Whether two certificates have the same subject and key.
    pub fn is_same_entity(&self, a: usize, b: usize) -> bool {
        let key = |index| self.facts(index).ok().map(|facts| &facts.public_key);
        a == b || (key(a) == key(b) && self.subject(a) == self.subject(b))
    }

    /// Takes `count` signatures off the limit.
    pub fn spend_signatures(&self, count: u32) -> Result<(), Rule> {
        let left = self.signatures_left.get().checked_sub(count);
        self.signatures_left.set(left.ok_or(Rule::Limit("too many signatures to verify"))?);
        Ok(())
    }

    /// Takes a step off the limit.
    pub fn step(&self) -> Result<(), Rule> {
        let left = self.steps_left.get().checked_sub(1);
        self.steps_left.set(left.ok_or(Rule::Limit("too many paths to try"))?);
        Ok(())
    }

    /// Whether the key of `issuer` signed `child`.
    pub fn signed(&self, child: usize, issuer: usize) -> Result<bool, Rule> {
        if let Some(known) = self.signatures.borrow().get(&(child, issuer)) {
            return Ok(*known);
        }
        self.spend_signatures(1)?;
        let (certificate, key) = (self.certificates[child], &self.facts(issuer)?.public_key);
        let verify = || certificate.signed_with(key);
        let valid = Seen::or_verify(self.material.seen, key, certificate.der(), verify);
        self.material.check_message()?;
        self.signatures.borrow_mut().insert((child, issuer), valid);
        Ok(valid)
    }

    /// Requirements on an issuer, whatever it issues: cheap, so they are checked before any signature.
    pub fn check_issuer(&self, index: usize, at: i64) -> Result<(), Rule> {
        let facts = self.facts(index)?;
        rules::validity(self.certificates[index], at)?;
        rules::may_issue(facts)?;
        facts.unknown_critical.map_or(Ok(()), |oid| Err(Rule::CriticalExtension(oid)))
    }
}
