//! Managed renewal: a certificate gets a new key and a new end before it expires, and keeps its ARN.
//!
//! The old certificate stays until the new one is there: one write replaces both. A failed renewal changes only the
//! summary, and is tried again every hour until the certificate expires.

use std::collections::{BTreeMap, BTreeSet};

use outlast_crypto::keys::KeySpec;
use outlast_store::StoreError;
use serde::{Deserialize, Serialize};

use super::certificate::{self, Certificate, DUE, Origin, RenewalSummary, Status, due_record_key};
use super::details::{Details, requestable};
use super::leaf::{Issuers, template_arn};
use super::{AcmError, failure_reason};
use crate::ca::{self, Authority, CaError, permission};
use crate::identity::access::by_permission;
use crate::identity::action::{self, Action};
use crate::identity::{Caller, Permit, PolicyCache};
use crate::keyring::KeyRing;
use crate::kms::Access;
use crate::policy::ConditionKeys;
use crate::work::{Due, Sweep, Swept, Work};
use crate::{Fault, limits};

/// When a certificate is to be renewed: a small record, so that the search for due certificates reads little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct RenewalDue {
    /// Milliseconds since 1970.
    at_ms: i64,
}

/// When to renew a certificate with this validity, seconds since 1970: 60 days before its end, or after two thirds of
/// a shorter lifetime.
pub fn renewal_time(not_before: i64, not_after: i64) -> i64 {
    let two_thirds = not_before + (not_after - not_before) / 3 * 2;
    two_thirds.max(not_after - limits::RENEW_BEFORE_SECONDS)
}

/// Notes when a certificate is to be renewed.
pub(super) fn schedule(work: &mut Work<'_>, certificate: &Certificate) -> Result<(), Fault> {
    let details = &certificate.record.details;
    let at_ms = renewal_time(details.not_before, details.not_after) * 1000;
    work.put(&due_record_key(&certificate.scope, &certificate.record.id), &RenewalDue { at_ms })
}

/// Renews a certificate now. Its CA must permit Certificate Manager to issue for the account, or be shared with the
/// account.
pub fn renew(
    work: &mut Work<'_>,
    ring: &KeyRing,
    mut certificate: Certificate,
    permit: &Permit<action::acm::RenewCertificate>,
) -> Result<(), AcmError> {
    permit.opens(&certificate.arn())?;
    check_renewable(&certificate, work.now_ms())?;
    let (reason, text) = match attempt(work, ring, &mut certificate) {
        Ok(()) => return Ok(()),
        Err(Failed::Authority(CaError::Fault(fault))) => return Err(fault.into()),
        Err(failed) => (failed.reason(), failed.to_string()),
    };
    Err(AcmError::Validation(format!("The certificate was not renewed: {reason}: {text}")))
}

/// Checks that a certificate can be renewed at all.
pub fn check_renewable(certificate: &Certificate, now_ms: i64) -> Result<(), AcmError> {
    let refuse = |why: &str| {
        Err(AcmError::Validation(format!(
            "Certificate {} cannot be renewed: {why}.",
            certificate.arn()
        )))
    };
    match (certificate.record.origin, certificate.status(now_ms)) {
        (Origin::Imported, _) => refuse("it was imported; reimport it to replace it"),
        (Origin::Acme, _) => refuse("an ACME client holds its private key and renews it"),
        (Origin::Managed, Status::Revoked) => refuse("it is revoked"),
        (Origin::Managed, Status::Expired) => refuse("it has expired"),
        (Origin::Managed, Status::Issued) => Ok(()),
    }
}

/// Replaces keys and certificates.
fn replace(
    work: &mut Work<'_>,
    ring: &KeyRing,
    certificate: &mut Certificate,
    issuers: &Issuers<'_>,
) -> Result<(), CaError> {
    let now_ms = work.now_ms();
    let record = &certificate.record;
    issuers.check_active()?;
    if issuers.end(work) <= record.details.not_after {
        return Err(CaError::Validation(
            "The certificate authority expires too soon for the certificate to be renewed.".into(),
        ));
    }
    let paired = record.paired.as_ref().map(|paired| key_spec(&paired.details)).transpose()?;
    let specs = (key_spec(&record.details)?, paired);
    let names: Vec<_> = record.names().into_iter().map(str::to_owned).collect();
    let leaves = issuers.certify(work, ring, specs, &names, &certificate.scope.account)?;
    let record = &mut certificate.record;
    record.issued_ms = Some(now_ms);
    record.exported = false;
    record.renewal = Some(RenewalSummary { succeeded: true, reason: None, updated_ms: now_ms });
    certificate.take(work, leaves, issuers.partner.map(|(partner, _)| partner))?;
    Ok(schedule(work, certificate)?)
}

fn key_spec(details: &Details) -> Result<&'static KeySpec, Fault> {
    requestable(&details.key_algorithm).ok_or_else(|| Fault::Damaged(details.serial.clone()))
}

/// Renews what is due in all accounts and Regions: up to [`limits::RENEWALS_PER_ROUND`] in a round, since making keys
/// takes long. Accounts take turns, so that none waits for all of another's; within an account the longest overdue
/// comes first.
pub const RENEW_DUE: Sweep = Sweep { find: find_due, handle: renew_due };

fn find_due(work: &Work<'_>, after: &str, limit: usize) -> Result<Due, Fault> {
    let most = limits::RENEWALS_PER_ROUND;
    let mut due = Due { record_keys: Vec::new(), damaged: Vec::new(), next: None };
    let mut waiting: BTreeMap<String, BTreeSet<(i64, String)>> = BTreeMap::new();
    let mut from = after.to_owned();
    loop {
        let found = work.store().scan(DUE, &from, limit)?;
        let last =
            found.last().filter(|_| found.len() == limit).map(|(record_key, _)| record_key.clone());
        for (record_key, record) in found {
            match work.scanned::<RenewalDue>(&record_key, record) {
                Ok(renewal) if renewal.at_ms <= work.now_ms() => {
                    let account = record_key[DUE.len()..].split('/').next().unwrap_or_default();
                    let of_account = waiting.entry(account.to_owned()).or_default();
                    of_account.insert((renewal.at_ms, record_key));
                    if of_account.len() > most {
                        of_account.pop_last();
                    }
                }
                Ok(_) | Err(Fault::Store(StoreError::Conflict)) => {}
                Err(Fault::Damaged(_) | Fault::Forged(_)) => due.damaged.push(record_key),
                Err(fault) => return Err(fault),
            }
        }
        let Some(last) = last else { break };
        from = last;
    }
    let turns = waiting.into_values().flat_map(|of_account| of_account.into_iter().enumerate());
    let mut turns: Vec<_> =
        turns.map(|(turn, (at_ms, record_key))| (turn, at_ms, record_key)).collect();
    turns.sort();
    due.record_keys = turns.into_iter().take(most).map(|(_, _, record_key)| record_key).collect();
    Ok(due)
}

fn renew_due(work: &mut Work<'_>, record_key: &str, swept: &mut Swept) -> Result<(), Fault> {
    let now_ms = work.now_ms();
    // Read as part of the work, so that another server's renewal wins.
    if work.get::<RenewalDue>(record_key)?.is_none_or(|due| due.at_ms > now_ms) {
        return Ok(());
    }
    let found = certificate::at(work, record_key, DUE)?;
    let Some(mut certificate) = found.filter(|found| check_renewable(found, now_ms).is_ok()) else {
        // It was deleted, revoked or has expired: there is nothing to renew.
        work.delete(record_key);
        return Ok(());
    };
    // An unsealed CA key is not kept in memory: it is next needed in hours or days.
    match attempt(work, &KeyRing::default(), &mut certificate) {
        Ok(()) => swept.done(&certificate.scope, certificate.arn(), "RenewCertificate"),
        Err(Failed::Authority(CaError::Fault(fault))) => return Err(fault),
        Err(failed) => {
            let reason = Some(failed.reason().to_owned());
            certificate.record.renewal =
                Some(RenewalSummary { succeeded: false, reason, updated_ms: now_ms });
            certificate.save(work)?;
            work.put(record_key, &RenewalDue { at_ms: now_ms + limits::RENEWAL_RETRY_MS })?;
        }
    }
    Ok(())
}

/// Why a renewal failed.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(
        "The certificate authority does not permit acm.amazonaws.com to issue and get certificates; see \
         CreatePermission of Private CA, and PutPolicy if it belongs to another account."
    )]
    NotPermitted,
    #[error(transparent)]
    Authority(#[from] CaError),
}

impl Failed {
    /// `RenewalStatusReason`
    fn reason(&self) -> &'static str {
        match self {
            Self::NotPermitted => "PCA_ACCESS_DENIED",
            Self::Authority(error) => failure_reason(error),
        }
    }
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::Authority(fault.into())
    }
}

/// Renews with what the CA permits Certificate Manager to do for the account of the certificate.
fn attempt(
    work: &mut Work<'_>,
    ring: &KeyRing,
    certificate: &mut Certificate,
) -> Result<(), Failed> {
    let arn = certificate.record.authority.clone().unwrap_or_default();
    let (authority, allowed) = permitted(work, certificate, &arn)?;
    let partner = certificate.record.paired.as_ref().map(|paired| paired.authority.clone());
    let partner = partner.map(|arn| permitted(work, certificate, &arn)).transpose()?;
    let issuers = Issuers {
        authority: (&authority, &allowed),
        partner: partner.as_ref().map(|(partner, allowed)| (partner, allowed)),
    };
    Ok(replace(work, ring, certificate, &issuers)?)
}

/// The permit of an authority that lets Certificate Manager issue for the account of the certificate and retrieve
/// what it issued. In the CA's own account a permission of Private CA grants it; for other accounts its policy does,
/// which is evaluated for Certificate Manager's service-linked role there.
fn permitted(
    work: &mut Work<'_>,
    certificate: &Certificate,
    arn: &str,
) -> Result<(Authority, Permit<action::acm_pca::IssueCertificate>), Failed> {
    let authority = ca::find(work, &certificate.scope, arn)?;
    let account = certificate.scope.account.as_str();
    let may_get = held(work, &authority, account, action::acm_pca::GetCertificate)?;
    let may_issue = held(work, &authority, account, action::acm_pca::IssueCertificate)?;
    may_issue
        .filter(|_| may_get.is_some())
        .map(|permit| (authority, permit))
        .ok_or(Failed::NotPermitted)
}

/// Whether Certificate Manager may do `action` on an authority for an account.
fn held<A: Action>(
    work: &mut Work<'_>,
    authority: &Authority,
    account: &str,
    action: A,
) -> Result<Option<Permit<A>>, CaError> {
    if authority.scope().account != account {
        return shared(work, authority, account, action);
    }
    by_permission(work, authority, permission::CERTIFICATE_MANAGER, account, action)
}

/// Whether the policy of an authority lets Certificate Manager's service-linked role in another account do `action`.
fn shared<A: Action>(
    work: &mut Work<'_>,
    authority: &Authority,
    account: &str,
    action: A,
) -> Result<Option<Permit<A>>, CaError> {
    let mut conditions = ConditionKeys::new();
    conditions.set_time(work.now_ms());
    conditions.set("aws:RequestedRegion", authority.scope().region.as_str());
    if A::OPERATION == "IssueCertificate" {
        conditions.set("acm-pca:TemplateArn", template_arn());
    }
    let policies = PolicyCache::default();
    let caller = Caller::service_linked_role(account, SERVICE_ROLE, ROLE_POLICY, &policies)?;
    let access = Access {
        caller: &caller,
        conditions: &conditions,
        policies: &policies,
        tokens: &[],
        context: None,
    };
    match ca::authorize(work, access, action, authority) {
        Ok(allowed) => Ok(Some(allowed)),
        Err(CaError::Denied(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// AWS's name of the role, with its path.
pub(crate) const SERVICE_ROLE: &str =
    "aws-service-role/acm.amazonaws.com/AWSServiceRoleForCertificateManager";
/// AWS's policy of the role (`CertificateManagerServiceRolePolicy`).
const ROLE_POLICY: &str = r#"{
    "Version": "2012-10-17",
    "Statement": [{
        "Effect": "Allow", "Action": ["acm-pca:IssueCertificate", "acm-pca:GetCertificate"], "Resource": "*"
    }]
}"#;
