//! Issued certificates, as they are stored and found.

use serde::{Deserialize, Serialize};

use super::authority::{Authority, Status};
use super::revocation::{Revoked, revoked_record_key};
use super::{CaError, chain};
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::work::Work;

/// An issued certificate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Issued {
    /// PEM.
    pub certificate: String,
    /// Issuer first, root last; PEM. Absent for a root. Records contain it only if the first version imported the
    /// authority's certificate; [`certificate`] always returns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// Id of the chain in [`super::chain`] otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) chain_id: Option<String>,
    /// Template's name.
    pub template: String,
    /// Milliseconds since 1970.
    pub issued_ms: i64,
    /// The account that requested it, if it is not the authority's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The service that requested it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// ARN of the other certificate of the pair, from the authority's partner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "crate::arn::stored_option")]
    pub paired_with: Option<String>,
}

/// The certificate with this ARN.
pub fn certificate(
    work: &mut Work<'_>,
    authority: &Authority,
    arn: &str,
    permit: &Permit<action::acm_pca::GetCertificate>,
) -> Result<Issued, CaError> {
    permit.opens(&authority.arn())?;
    if authority.status() == Status::Deleted {
        return Err(authority.wrong_state("have issued certificates"));
    }
    issued(work, authority, arn)
}

/// The same, for the caller that has just requested it.
pub(crate) fn issued(
    work: &mut Work<'_>,
    authority: &Authority,
    arn: &str,
) -> Result<Issued, CaError> {
    let invalid = || CaError::InvalidArn(format!("{arn} is not the ARN of a certificate"));
    let (owner, serial) = arn.split_once("/certificate/").ok_or_else(invalid)?;
    if serial.is_empty() || serial.len() > 40 || !serial.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(invalid());
    }
    let missing = || CaError::NotFound(format!("Could not find Certificate with Arn {arn}"));
    if owner != authority.arn() {
        return Err(missing());
    }
    let mut issued = by_serial(work, authority, serial)?.ok_or_else(missing)?;
    if let Some(id) = issued.chain_id.take() {
        let chain = chain::read(work, authority.scope(), authority.id(), &id)?;
        issued.chain = Some(chain);
    }
    Ok(issued)
}

/// The stored certificate with this serial number, in lower-case hexadecimal.
pub(super) fn by_serial(
    work: &mut Work<'_>,
    authority: &Authority,
    serial: &str,
) -> Result<Option<Issued>, CaError> {
    Ok(work.get(&record_key(authority, serial))?)
}

/// Whether, when and why a certificate was revoked; `serial` in lower-case hexadecimal.
pub fn revoked(
    work: &mut Work<'_>,
    authority: &Authority,
    serial: &str,
) -> Result<Option<Revoked>, CaError> {
    Ok(work.get(&revoked_record_key(authority.scope(), authority.id(), serial))?)
}

/// Prefix of the records of an authority's certificates, by serial number.
pub(super) fn issued_prefix(scope: &Scope, authority: &str) -> String {
    format!("ca/certificate/{}/{}/{authority}/", scope.account, scope.region)
}

pub(super) fn record_key(authority: &Authority, serial: &str) -> String {
    format!("{}{serial}", issued_prefix(authority.scope(), authority.id()))
}
