//! Revocation: by imported CRLs, by the records of private CAs, and by the deletion of those CAs.

use outlast_pki::certificate::Certificate;
use outlast_pki::name;

use super::certificate::UNTRUSTED;
use super::trust_anchor::{self, Source, TrustAnchor};
use super::{TRUST_ANCHOR, crl};
use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::ca::{self, Authority, CaError, Status};
use crate::identity::session::{Link, SessionCertificate};
use crate::work::Work;

/// What has to be known of the certificates of a path to find out later whether one is revoked. The root is its own issuer, and
/// is trusted as long as the anchor has it.
pub(super) fn links(
    work: &mut Work<'_>,
    anchor: &TrustAnchor,
    path: &[Certificate],
) -> Result<Vec<Link>, Fault> {
    let mut links = Vec::new();
    for (place, pair) in path.windows(2).enumerate() {
        let [certificate, issuer] = pair else { continue };
        let authority = match anchor.source() {
            Source::PrivateCa(arn) if place + 2 == path.len() => Some(arn.clone()),
            _ => ca::arn_by_key_of(work, issuer)?,
        };
        links.push(Link {
            issuer: hex::encode(name::to_der(certificate.issuer())?),
            serial: hex::encode(certificate.serial_number().as_bytes()),
            authority,
        });
    }
    Ok(links)
}

/// Why one of the certificates does not authenticate any more, in AWS's words: it is revoked, or the private CA that has
/// issued it is deleted or erased. Nobody can revoke what such a CA has issued, so none of it is trusted, whichever anchor
/// the path leads to. A CA that is restored is trusted again.
///
/// An enabled CRL counts even when it has expired: that it was not replaced makes nothing that it lists good again. Its
/// signature was verified when it was imported.
pub(super) fn objection(
    work: &mut Work<'_>,
    anchor: &TrustAnchor,
    links: &[Link],
) -> Result<Option<&'static str>, Fault> {
    for link in links {
        let Some(arn) = &link.authority else { continue };
        let Some(authority) = authority(work, arn)? else { return Ok(Some(UNTRUSTED)) };
        // As a CA's records have it: without the zero of a number whose first bit is set.
        let serial = link.serial.strip_prefix("00").unwrap_or(&link.serial);
        match ca::revoked(work, &authority, serial) {
            Ok(None) if authority.status() == Status::Deleted => return Ok(Some(UNTRUSTED)),
            Ok(None) => {}
            Ok(Some(_)) => return Ok(Some(REVOKED)),
            Err(CaError::Fault(fault)) => return Err(fault),
            Err(error) => return Err(Fault::Encoding(error.to_string())),
        }
    }
    for id in &anchor.record.crls {
        let record_key = super::CRL.record_key(anchor.scope(), id);
        let crl = crl::by_id(work, anchor.scope(), id)?.ok_or(Fault::Damaged(record_key))?;
        if !crl.enabled() {
            continue;
        }
        let parsed = crl.parsed()?;
        for link in links {
            let issuer = name::from_der(&unhex(&link.issuer)?)?;
            if parsed.is_of(&issuer) && parsed.lists(&unhex(&link.serial)?) {
                return Ok(Some(REVOKED));
            }
        }
    }
    Ok(None)
}

const REVOKED: &str = "Certificate revoked";

/// The private CA that has issued a certificate; none if it is gone.
fn authority(work: &mut Work<'_>, text: &str) -> Result<Option<Authority>, Fault> {
    let Some(arn) = Arn::parse(text) else { return Err(Fault::Encoding(text.to_owned())) };
    let scope = Scope { account: arn.account().to_owned(), region: arn.region().to_owned() };
    match ca::find(work, &scope, text) {
        Ok(authority) => Ok(Some(authority)),
        Err(CaError::Fault(fault)) => Err(fault),
        Err(_) => Ok(None),
    }
}

/// Whether the certificate that a session began with does not authenticate any more: it was revoked, or its trust anchor or
/// its CA is gone, so that nobody can say.
pub fn has_ended(work: &mut Work<'_>, began: &SessionCertificate) -> Result<bool, Fault> {
    let damaged = || Fault::Encoding(began.trust_anchor.clone());
    let arn = Arn::parse(&began.trust_anchor).ok_or_else(damaged)?;
    let id = TRUST_ANCHOR.id_in(&arn).ok_or_else(damaged)?;
    let scope = Scope { account: arn.account().to_owned(), region: arn.region().to_owned() };
    match trust_anchor::by_id(work, &scope, &id)? {
        Some(anchor) => Ok(objection(work, &anchor, &began.links)?.is_some()),
        None => Ok(true),
    }
}

fn unhex(text: &str) -> Result<Vec<u8>, Fault> {
    hex::decode(text).map_err(|error| Fault::Encoding(error.to_string()))
}
