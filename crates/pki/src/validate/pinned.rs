//! Revocation of a certificate that is trusted by itself. There is no path: its issuer serves to verify the evidence alone,
//! and is not asked whether it may issue now or is trusted.

use super::names;
use super::pool::Pool;
use super::{Material, Options, Refusal, Revocation, Rule, Standing, revocation};
use crate::certificate::Certificate;
use crate::seen::Seen;

/// What the CRLs and OCSP responses of the material say of a certificate whose issuer is among `material.intermediates`.
/// `None` if revocation is not checked, or none of the evidence is about the certificate or its issuer.
///
/// # Errors
///
/// It is revoked, or not known not to be although that is required.
pub fn standing(
    leaf: &Certificate,
    material: &Material<'_>,
    options: &Options<'_>,
) -> Result<Option<Standing>, Refusal> {
    if options.revocation == Revocation::Off || !has_evidence(leaf, material) {
        return Ok(None);
    }
    material.check_counts(leaf)?;
    let issuer = issuer_of(leaf, material);
    material.check_message().map_err(|rule| Refusal::new(leaf, rule))?;
    let issuer = match issuer {
        Some(issuer) => issuer.clone(),
        None if options.revocation == Revocation::Required => {
            return Err(Refusal::new(leaf, Rule::RevocationUnknown(no_issuer(leaf))));
        }
        None => return Ok(Some(Standing::Unknown(no_issuer(leaf)))),
    };
    let roots = [issuer];
    let material = Material { roots: &roots, ..*material };
    let pool = Pool::new(leaf, &material);
    let path = [0, pool.certificates.len() - 1];
    let outcome = revocation::check(&pool, options, &path, 0, &[]);
    outcome.map(Some).map_err(|rule| Refusal::new(leaf, rule))
}

fn no_issuer(leaf: &Certificate) -> String {
    format!(
        "to verify the evidence, the certificate of its CA \"{}\" is needed; give it with --certificates",
        leaf.issuer()
    )
}

/// Whether a CRL is by an issuer of this name, or an OCSP response is about this serial number.
fn has_evidence(leaf: &Certificate, material: &Material<'_>) -> bool {
    material.crls.iter().any(|crl| names::same(crl.issuer(), leaf.issuer()))
        || material
            .ocsp
            .iter()
            .flat_map(|response| &response.responses)
            .any(|single| single.id.has_serial_of(leaf))
}

/// The CA whose key signed the certificate.
fn issuer_of<'a>(leaf: &Certificate, material: &Material<'a>) -> Option<&'a Certificate> {
    let named = |found: &&Certificate| names::same(found.subject(), leaf.issuer());
    let signed = |found: &&Certificate| {
        let Ok(key) = found.public_key() else { return false };
        Seen::or_verify(material.seen, &key, leaf.der(), || leaf.signed_with(&key))
    };
    material.intermediates.iter().filter(named).filter(|found| found.may_issue()).find(signed)
}
