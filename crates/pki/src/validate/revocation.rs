//! Revocation by the given CRLs and OCSP responses: RFC 5280, section 6.3, and RFC 6960.
//!
//! A certificate that any of them calls revoked is revoked. Delta and indirect CRLs are not used; CRLs for some
//! reasons count for those reasons only.

use der::flagset::FlagSet;
use x509_cert::ext::pkix::crl::dp::{DistributionPoint, IssuingDistributionPoint, Reasons};
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralName};
use x509_cert::name::{Name, RdnSequence};

use super::build::Search;
use super::facts::Facts;
use super::names::{self, Comparable};
use super::pool::Pool;
use super::{Options, Proof, Revocation, Rule, Standing, rules};
use crate::crl::{Crl, Revoked};
use crate::ocsp::verify::CLOCK_SKEW_SECONDS;
use crate::ocsp::{OcspError, Single, Status};
use crate::seen::Seen;

/// Most CRL signers that may depend on each other.
const MAX_SIGNER_DEPTH: usize = 2;

/// Checks the certificate at `index` of `path` (leaf first, trust anchor last).
pub fn check(
    pool: &Pool<'_>,
    options: &Options<'_>,
    path: &[usize],
    index: usize,
    busy: &[usize],
) -> Result<Standing, Rule> {
    let (Some(index), Some(issuer)) = (path.get(index), path.get(index + 1)) else {
        return Ok(Standing::Exempt);
    };
    let target = Target { pool, options, path, index: *index, issuer: *issuer, busy };
    let facts = pool.facts(*index)?;
    // RFC 9608, section 4: only for certificates that are not a CA's.
    if facts.no_revocation && !facts.is_ca() {
        return Ok(Standing::Exempt);
    }
    let mut why = "there is no CRL or OCSP response for it".to_owned();
    let by_ocsp = target.ocsp(&mut why)?;
    let by_crls = target.crls(facts, &mut why)?;
    // A later revocation is more than the absence of one.
    let later =
        |known: &&Option<Standing>| matches!(known, Some(Standing::Known { later: Some(_), .. }));
    let known = [&by_ocsp, &by_crls].into_iter().find(later).cloned().flatten();
    match known.or(by_ocsp).or(by_crls) {
        Some(known) => Ok(known),
        None if options.revocation == Revocation::Required => Err(Rule::RevocationUnknown(why)),
        None => Ok(Standing::Unknown(why)),
    }
}

struct Target<'p, 'a> {
    pool: &'p Pool<'a>,
    options: &'p Options<'p>,
    path: &'p [usize],
    index: usize,
    issuer: usize,
    busy: &'p [usize],
}

impl Target<'_, '_> {
    /// What OCSP responses say of it, if they say anything that counts.
    fn ocsp(&self, why: &mut String) -> Result<Option<Standing>, Rule> {
        let certificate = self.pool.certificates[self.index];
        let issuer = self.pool.certificates[self.issuer];
        let mut known = None;
        for (index, response) in self.pool.material.ocsp.iter().enumerate() {
            let about = |single: &&Single| single.id.has_serial_of(certificate);
            let Some(single) = response.responses.iter().find(about) else { continue };
            // The response's and the delegate's.
            self.pool.spend_signatures(2)?;
            // Evidence about a signature may be older or younger than it: the responder must have been authorized
            // when it answered.
            let made = response.produced_at.max(single.this_update);
            let at = self.options.signature.map_or(self.options.at, |_| made);
            let seen = self.pool.material.seen;
            let verified = response.verify_seen(issuer, certificate, None, at, seen);
            self.pool.material.check_message()?;
            match verified {
                Ok(verified) => {
                    let updates = (verified.this_update, verified.next_update);
                    let standing =
                        |later| Standing::Known { by: Proof::Ocsp(index), as_of: updates.0, later };
                    match verified.status {
                        Status::Good => match self.counts(updates, "OCSP response") {
                            Ok(()) => known = known.or(Some(standing(None))),
                            Err(reason) => *why = reason,
                        },
                        Status::Revoked { at, reason } => {
                            let invalid_since = verified.invalid_since;
                            let revoked = Revoked { at, reason, invalid_since };
                            known = Some(standing(Some(self.judge(revoked)?)));
                        }
                        Status::Unknown => *why = "the OCSP responder does not know it".into(),
                    }
                }
                Err(OcspError::OtherCertificate) => {}
                Err(error) => *why = error.to_string(),
            }
        }
        Ok(known)
    }

    /// What CRLs say of it: that they list it, or that they cover it for all reasons and do not.
    fn crls(&self, facts: &Facts, why: &mut String) -> Result<Option<Standing>, Rule> {
        let certificate = self.pool.certificates[self.index];
        let mut covered = 0;
        let (mut good, mut later) = (None, None);
        for (index, crl) in self.pool.material.crls.iter().enumerate() {
            if !names::same(crl.issuer(), certificate.issuer()) {
                continue;
            }
            match self.usable(crl, facts) {
                Err(reason) => *why = reason,
                Ok(reasons) => {
                    if let Some(reason) = self.not_signed(index, crl)? {
                        *why = reason;
                        continue;
                    }
                    let (by, as_of) = (Proof::Crl(index), crl.this_update());
                    if let Some(revoked) = crl.revocation_of(certificate) {
                        let later_one = Some(self.judge(revoked)?);
                        later = Some(Standing::Known { by, as_of, later: later_one });
                        continue;
                    }
                    // A CRL that lists a certificate says so for ever; one that does not list it, only for its time.
                    match self.counts((as_of, crl.next_update()), "CRL") {
                        Ok(()) => {
                            covered |= reasons;
                            good = good.or(Some(Standing::Known { by, as_of, later: None }));
                        }
                        Err(reason) => *why = reason,
                    }
                }
            }
        }
        let all = all_reasons();
        if covered != 0 && covered & all != all {
            *why = "its CRLs do not cover all reasons".into();
        }
        Ok(later.or(good.filter(|_| covered & all == all)))
    }

    /// The reasons for which the CRL covers the certificate, and for what is not a signature, at the time of the
    /// check.
    fn usable(&self, crl: &Crl, facts: &Facts) -> Result<u16, String> {
        if let Some(reason) = crl.unusable() {
            return Err(format!("its CRL cannot be used: {reason}"));
        }
        let at = self.options.signature.map_or(self.options.at, |signature| signature.now);
        if crl.this_update() > at + CLOCK_SKEW_SECONDS {
            return Err("its CRL is not valid yet".into());
        }
        // RFC 5280, section 5.1.2.5: nextUpdate is required.
        if self.options.signature.is_none() && crl.next_update().is_none_or(|next| next < at) {
            return Err("its CRL is too old".into());
        }
        let issuer = self.pool.certificates[self.index].issuer();
        scope(crl.issuing_distribution_point(), facts, issuer)
            .ok_or_else(|| "its CRL covers other certificates only".to_owned())
    }

    /// Whether evidence that the certificate is not revoked counts, by the times of the evidence.
    fn counts(&self, updates: (i64, Option<i64>), what: &str) -> Result<(), String> {
        let Some(signature) = self.options.signature else { return Ok(()) };
        let not_after = self.pool.certificates[self.index].not_after();
        let required = self.options.revocation == Revocation::Required;
        signature.counts(self.options.at, updates, not_after, required, what)
    }

    /// Refuses the certificate if its revocation matters; otherwise returns it.
    fn judge(&self, revoked: Revoked) -> Result<Revoked, Rule> {
        match self.options.signature {
            Some(signature) => signature.judge(self.options.at, revoked),
            None => Err(Rule::Revoked { at: revoked.at, reason: revoked.reason }),
        }
    }

    /// RFC 5280, section 6.3.3 (f), (g): the CRL must be signed by the CA, or by a signer of the same name that has a
    /// valid path of its own. Otherwise returns what is wrong.
    fn not_signed(&self, index: usize, crl: &Crl) -> Result<Option<String>, Rule> {
        let pool = self.pool;
        let name = Comparable::new(crl.issuer());
        let mut signers: Vec<_> = (1..pool.certificates.len())
            .filter(|index| *index != self.index && *index != self.issuer)
            .filter(|index| *pool.subject(*index) == name)
            .collect();
        let wanted = crl.authority_key_identifier();
        let key_id = |index: usize| pool.facts(index).ok().and_then(|facts| facts.key_id.clone());
        signers.sort_by_key(|index| wanted.is_some() && key_id(*index) != wanted);
        signers.insert(0, self.issuer);
        let mut why = "its CRL is not signed by a valid CRL signer";
        for signer in signers {
            let Ok(facts) = pool.facts(signer) else { continue };
            if !self.signature(index, crl, signer)? {
                continue;
            }
            if facts.key_usage.as_ref().is_some_and(|usage| !usage.crl_sign()) {
                why = "its CRL is signed by a key whose certificate does not allow cRLSign (key usage), and is not used";
                continue;
            }
            // CAs above on the path are being checked anyway. Those below are not used: a revoked CA must not vouch
            // for itself through certificates that it issued.
            if self.above().contains(&signer) || self.has_own_path(signer)? {
                return Ok(None);
            }
        }
        Ok(Some(why.to_owned()))
    }

    /// The issuer of the certificate and the CAs above it.
    fn above(&self) -> &[usize] {
        let index = self.path.iter().position(|index| *index == self.issuer);
        index.and_then(|index| self.path.get(index..)).unwrap_or_default()
    }

    fn signature(&self, index: usize, crl: &Crl, signer: usize) -> Result<bool, Rule> {
        let known = self.pool.crl_signatures.borrow().get(&(index, signer)).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let key = &self.pool.facts(signer)?.public_key;
        let seen = self.pool.material.seen;
        let mut spent = Ok(());
        let valid = Seen::or_verify(seen, key, crl.der(), || {
            // What need not be verified again costs nothing.
            spent = self.pool.spend_signatures(1);
            spent.is_ok() && crl.signed_with(key)
        });
        spent?;
        self.pool.material.check_message()?;
        self.pool.crl_signatures.borrow_mut().insert((index, signer), valid);
        Ok(valid)
    }

    /// Whether a CRL signer with a key of its own has a valid path. RFC 5280 only requires the same trust anchor, and
    /// so would trust any CA that certifies a signer with another CA's name. Here the CA itself must have certified
    /// the signer, or the CA that certified it.
    fn has_own_path(&self, signer: usize) -> Result<bool, Rule> {
        let pool = self.pool;
        // Only this path's trust anchor counts, and it was checked before.
        if self.busy.contains(&signer)
            || self.busy.len() >= MAX_SIGNER_DEPTH
            || pool.is_root(signer)
            || rules::validity(pool.certificates[signer], self.options.at).is_err()
        {
            return Ok(false);
        }
        let options = Options {
            revocation: self.options.revocation,
            signature: self.options.signature,
            max_intermediates: self.options.max_intermediates,
            ..Options::at(self.options.at)
        };
        let busy: Vec<_> = self.busy.iter().copied().chain([signer]).collect();
        let anchor = self.path.last().copied();
        match Search::new(pool, &options, check, anchor, &busy).run(signer) {
            Ok(found) => Ok(found.path.get(1).is_some_and(|by| {
                self.above().iter().take(2).any(|known| pool.is_same_entity(*known, *by))
            })),
            Err(refusal) => match refusal.rule {
                limit @ Rule::Limit(_) => Err(limit),
                _ => Ok(false),
            },
        }
    }
}

/// All reasons (RFC 5280, section 5.2.5: bit 0 is unused).
fn all_reasons() -> u16 {
    (FlagSet::<Reasons>::full() - Reasons::Unused).bits()
}

/// RFC 5280, section 6.3.3 (b)(2), (d): the reasons for which a CRL with this issuing distribution point covers the
/// certificate.
fn scope(point: Option<&IssuingDistributionPoint>, facts: &Facts, issuer: &Name) -> Option<u16> {
    let Some(idp) = point else { return Some(all_reasons()) };
    if idp.only_contains_attribute_certs
        || (idp.only_contains_user_certs && facts.is_ca())
        || (idp.only_contains_ca_certs && !facts.is_ca())
    {
        return None;
    }
    let reasons = idp.only_some_reasons.map_or(all_reasons(), FlagSet::bits);
    let Some(name) = &idp.distribution_point else { return Some(reasons) };
    let published = full_names(name, issuer);
    if facts.crl_points.is_empty() {
        // As with a distribution point that has the issuer's name (RFC 5280, section 6.3.3, last paragraph).
        let own = GeneralName::DirectoryName(issuer.clone());
        return published.iter().any(|name| same_name(name, &own)).then_some(reasons);
    }
    facts
        .crl_points
        .iter()
        .filter(|point| is_of(point, issuer))
        .filter(|point| {
            let named = match (&point.distribution_point, &point.crl_issuer) {
                (Some(name), _) => full_names(name, issuer),
                (None, Some(issuers)) => issuers.clone(),
                (None, None) => Vec::new(),
            };
            named.iter().any(|name| published.iter().any(|other| same_name(name, other)))
        })
        .map(|point| reasons & point.reasons.map_or(all_reasons(), FlagSet::bits))
        .reduce(|all, one| all | one)
}

/// Whether the certificate's own issuer issues the CRLs of the point.
fn is_of(point: &DistributionPoint, issuer: &Name) -> bool {
    let own = GeneralName::DirectoryName(issuer.clone());
    point.crl_issuer.as_ref().is_none_or(|issuers| issuers.iter().any(|one| same_name(one, &own)))
}

/// The full names of a distribution point; a relative one is below the CRL's issuer.
fn full_names(name: &DistributionPointName, issuer: &Name) -> Vec<GeneralName> {
    match name {
        DistributionPointName::FullName(names) => names.clone(),
        DistributionPointName::NameRelativeToCRLIssuer(relative) => {
            let mut sequence = RdnSequence::from(issuer.clone());
            sequence.push(relative.clone());
            use der::{Decode, Encode};
            let whole = sequence.to_der().and_then(|der| Name::from_der(&der));
            whole.map(GeneralName::DirectoryName).into_iter().collect()
        }
    }
}

fn same_name(a: &GeneralName, b: &GeneralName) -> bool {
    match (a, b) {
        (GeneralName::DirectoryName(a), GeneralName::DirectoryName(b)) => names::same(a, b),
        _ => a == b,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use der::asn1::Ia5String;
    use x509_cert::ext::pkix::BasicConstraints;

    use super::*;
    use crate::name::common_name;

    fn url(text: &str) -> GeneralName {
        GeneralName::UniformResourceIdentifier(Ia5String::new(text).unwrap())
    }

    fn full(names: &[GeneralName]) -> Option<DistributionPointName> {
        Some(DistributionPointName::FullName(names.to_vec()))
    }

    fn idp(names: Option<DistributionPointName>) -> IssuingDistributionPoint {
        IssuingDistributionPoint {
            distribution_point: names,
            only_contains_user_certs: false,
            only_contains_ca_certs: false,
            only_some_reasons: None,
            indirect_crl: false,
            only_contains_attribute_certs: false,
        }
    }

    fn point(names: Option<DistributionPointName>) -> DistributionPoint {
        DistributionPoint { distribution_point: names, reasons: None, crl_issuer: None }
    }

    #[test]
    fn crl_scope_limits_certificates_and_reasons() {
        let issuer = common_name("CA").unwrap();
        let own = GeneralName::DirectoryName(issuer.clone());
        let some: FlagSet<Reasons> = Reasons::KeyCompromise | Reasons::Superseded;
        let other: FlagSet<Reasons> = Reasons::Superseded | Reasons::CaCompromise;
        let relative = issuer.iter_rdn().next().unwrap().clone();
        let users = IssuingDistributionPoint { only_contains_user_certs: true, ..idp(None) };
        let cas = IssuingDistributionPoint { only_contains_ca_certs: true, ..idp(None) };
        let attributes =
            IssuingDistributionPoint { only_contains_attribute_certs: true, ..idp(None) };
        let partial = IssuingDistributionPoint { only_some_reasons: Some(some), ..idp(None) };
        let partial_here = IssuingDistributionPoint {
            only_some_reasons: Some(some),
            ..idp(full(&[url("http://a/1")]))
        };
        let by_reason =
            DistributionPoint { reasons: Some(other), ..point(full(&[url("http://a/1")])) };
        let of_other = DistributionPoint {
            crl_issuer: Some(vec![GeneralName::DirectoryName(common_name("Other").unwrap())]),
            ..point(full(&[url("http://a/1")]))
        };
        let by_issuer = DistributionPoint { crl_issuer: Some(vec![own.clone()]), ..point(None) };
        let all = Some(all_reasons());
        // (the CRL's point, the certificate's points, for a CA, the reasons)
        let cases = [
            (None, vec![], false, all),
            (None, vec![point(full(&[url("http://a/1")]))], false, all),
            (Some(users.clone()), vec![], false, all),
            (Some(users), vec![], true, None),
            (Some(cas.clone()), vec![], true, all),
            (Some(cas), vec![], false, None),
            (Some(attributes), vec![], false, None),
            (Some(partial), vec![], false, Some(some.bits())),
            (Some(idp(full(&[url("http://a/1")]))), vec![], false, None),
            (Some(idp(full(std::slice::from_ref(&own)))), vec![], false, all),
            (
                Some(idp(full(&[url("http://a/0"), url("http://a/1")]))),
                vec![point(full(&[url("http://a/2")])), point(full(&[url("http://a/1")]))],
                false,
                all,
            ),
            (
                Some(idp(full(&[url("http://a/1")]))),
                vec![point(full(&[url("http://a/2")]))],
                false,
                None,
            ),
            (
                Some(partial_here),
                vec![by_reason],
                false,
                Some(FlagSet::from(Reasons::Superseded).bits()),
            ),
            (Some(idp(full(&[url("http://a/1")]))), vec![of_other], false, None),
            (Some(idp(full(&[own]))), vec![by_issuer], false, all),
            (
                Some(idp(Some(DistributionPointName::NameRelativeToCRLIssuer(relative.clone())))),
                vec![point(Some(DistributionPointName::NameRelativeToCRLIssuer(relative)))],
                false,
                all,
            ),
        ];
        for (number, (idp, crl_points, ca, expected)) in cases.into_iter().enumerate() {
            let basic_constraints = Some(BasicConstraints { ca, path_len_constraint: None });
            let facts = Facts { crl_points, basic_constraints, ..Facts::default() };
            assert_eq!(scope(idp.as_ref(), &facts, &issuer), expected, "case {number}");
        }
        assert_eq!(all_reasons(), 0b1_1111_1110);
    }
}
