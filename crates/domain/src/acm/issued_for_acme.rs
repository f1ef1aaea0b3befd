//! Certificates that ACME issues: the client has the key, and the record is kept for a year after the end.

use std::collections::BTreeMap;

use outlast_pki::general_name::GeneralName;
use outlast_pki::name::Name;
use serde::{Deserialize, Serialize};

use super::certificate::{
    Acme, Certificate, Origin, Record, Text, at, ended_record_key, erase, file,
};
use super::details::Details;
use super::revoke::{REASONS, revoke};
use super::tags::check_tags;
use super::{AcmError, leaf, told};
use crate::arn::Scope;
use crate::ca::{Authority, Named, RevokeAt, Validity, ValidityType};
use crate::identity::{Permit, action};
use crate::keyring::KeyRing;
use crate::work::{Sweep, Work};
use crate::{ids, limits};

/// An order of an ACME client, whose names are proven.
pub struct AcmeOrder<'a> {
    /// The CA that issues.
    pub authority: &'a Authority,
    /// The client's certificate request, PEM or DER.
    pub csr: &'a [u8],
    /// Subject of the certificate. The request's subject is ignored: its holder has proven names, not an identity.
    pub subject: Name,
    /// Names of the order and of the certificate; the first becomes `DomainName`.
    pub names: &'a [String],
    /// Seconds since 1970; an hour ago when absent.
    pub not_before: Option<i64>,
    /// Seconds since 1970; by default the lifetime of Certificate Manager's certificates. Limited to what the CA can
    /// issue.
    pub not_after: Option<i64>,
    /// ARN of the endpoint.
    pub endpoint_arn: &'a str,
    /// Id of the account, a UUID.
    pub account_id: &'a str,
    /// Tags of the certificate.
    pub tags: BTreeMap<String, String>,
}

/// A certificate that ACME issues.
#[derive(Debug, Clone)]
pub struct AcmeIssued {
    /// The stored certificate.
    pub certificate: Certificate,
    /// Its text and chain.
    pub text: Text,
}

/// Issues a certificate for an ACME client, who keeps the key.
pub fn issue_for_acme(
    work: &mut Work<'_>,
    ring: &KeyRing,
    scope: &Scope,
    order: AcmeOrder<'_>,
    permit: &Permit<action::acm_pca::IssueCertificate>,
) -> Result<AcmeIssued, AcmError> {
    check_tags(&order.tags)?;
    let authority = order.authority;
    let end = leaf::end(work, authority, order.not_after);
    let until = Validity { value: end, kind: ValidityType::Absolute };
    let from = order.not_before.map(|value| Validity { value, kind: ValidityType::Absolute });
    let (period, account) = ((from, until), scope.account.as_str());
    let alternative = order.names.iter().cloned().map(GeneralName::DnsName).collect();
    let named = Named { subject: order.subject, alternative };
    let request = (order.csr, Some(named));
    let issued = leaf::issue(work, ring, authority, request, period, account, permit)
        .map_err(super::refused_by_authority)?;
    let (x509, text) = leaf::read(authority, issued)?;
    let record = Record {
        id: ids::uuid()?,
        origin: Origin::Acme,
        domain: order.names.first().cloned(),
        authority: Some(authority.arn()),
        material: None,
        details: Details::of(&x509),
        public: None,
        paired: None,
        created_ms: work.now_ms(),
        issued_ms: Some(work.now_ms()),
        imported_ms: None,
        exportable: false,
        exported: false,
        transparency: true,
        revoked: None,
        renewal: None,
        acme: Some(Acme {
            endpoint_arn: order.endpoint_arn.to_owned(),
            account_id: order.account_id.to_owned(),
        }),
        tags: order.tags,
    };
    let ended = Ended { at_ms: record.details.not_after * 1000 + limits::KEEP_ENDED_ACME_MS };
    work.put(&ended_record_key(scope, &record.id), &ended)?;
    let certificate = Certificate { scope: scope.clone(), record };
    file(work, &certificate, &text)?;
    told::tell_available(work, &certificate, "ISSUANCE")?;
    Ok(AcmeIssued { certificate, text })
}

/// Revokes a certificate that ACME issued. `reason` is in Private CA's spelling.
pub fn revoke_for_acme(
    work: &mut Work<'_>,
    certificate: Certificate,
    authority: &Authority,
    reason: &str,
    permit: &Permit<action::acm::RevokeCertificate>,
    at: RevokeAt<'_>,
) -> Result<(), AcmError> {
    let name =
        REASONS.iter().find(|(_, known)| *known == reason).map_or("UNSPECIFIED", |row| row.0);
    revoke(work, certificate, authority, name, permit, at)
}

/// When the record of a certificate that ACME issued is to be deleted.
#[derive(Serialize, Deserialize)]
struct Ended {
    at_ms: i64,
}

/// Forgets certificates that ACME issued, a year after their end.
pub const FORGET_ENDED: Sweep = Sweep {
    find: |work, after, limit| {
        work.due("acm/ended/", after, limit, |ended: &Ended, now_ms| ended.at_ms <= now_ms)
    },
    handle: |work, record_key, swept| {
        let now_ms = work.now_ms();
        if work.get::<Ended>(record_key)?.is_none_or(|ended| ended.at_ms > now_ms) {
            return Ok(());
        }
        match at(work, record_key, "acm/ended/")? {
            Some(certificate) => {
                erase(work, &certificate);
                swept.done(&certificate.scope, certificate.arn(), "DeleteCertificate");
            }
            None => work.delete(record_key),
        }
        Ok(())
    },
};
