//! Managed renewal: a certificate gets a new key and a new end before it expires, and keeps its ARN.
//!
//! The old certificate stays until the new one is there: one write replaces both. A failed renewal changes only the
//! summary, and is tried again every hour until the certificate expires.

use std::collections::{BTreeMap, BTreeSet};

use outlast_store::StoreError;

use super::certificate::{self, Certificate, DUE, Origin, RenewalSummary, Status};
pub use super::obtain::renewal_time;
use super::obtain::{Failed, RenewalDue, attempt};
use super::public::{self, Ready};
use super::{AcmError, told};
use crate::ca::CaError;
use crate::identity::{Permit, action};
use crate::keyring::KeyRing;
use crate::work::{Due, Sweep, Swept, Work};
use crate::{Fault, limits};

/// Renews a certificate now, or begins to validate its names if its request named no CA. Its CA must permit Certificate
/// Manager to issue for the account, or be shared with the account.
pub fn renew(
    work: &mut Work<'_>,
    ring: &KeyRing,
    mut certificate: Certificate,
    permit: &Permit<action::acm::RenewCertificate>,
) -> Result<(), AcmError> {
    permit.opens(&certificate.arn())?;
    check_renewable(&certificate, work.now_ms())?;
    if certificate.record.renewal.as_ref().is_some_and(|renewal| renewal.validating) {
        return Err(AcmError::RequestInProgress(format!(
            "The names of certificate {} are being validated for its renewal.",
            certificate.arn()
        )));
    }
    match public::begin_renewal(work, &mut certificate)? {
        Ready::Now => {}
        Ready::Later => return Ok(certificate.save(work)?),
        Ready::Never => {
            return Err(AcmError::Validation(format!(
                "The certificate was not renewed: {}: its names are no longer approved.",
                public::DENIED
            )));
        }
    }
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
        (Origin::Managed, Status::Failed | Status::ValidationTimedOut) => {
            refuse("it was never issued")
        }
        (Origin::Managed, Status::PendingValidation) => certificate.check_issued(now_ms),
        (Origin::Managed, Status::Issued) => Ok(()),
    }
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
    let Some(mut certificate) = found else {
        work.delete(record_key);
        return Ok(());
    };
    if check_renewable(&certificate, now_ms).is_err() {
        // It was revoked or has expired: there is nothing to renew.
        work.delete(record_key);
        if certificate.record.renewal.as_ref().is_some_and(|renewal| renewal.validating) {
            certificate.record.renewal = Some(failed(None, now_ms));
            certificate.save(work)?;
        }
        return Ok(());
    }
    let again = RenewalDue { at_ms: now_ms + limits::RENEWAL_RETRY_MS };
    match public::begin_renewal(work, &mut certificate)? {
        Ready::Now => {}
        Ready::Later => {
            certificate.save(work)?;
            told::tell_not_renewed(work, &certificate, "PENDING_DOMAIN_VALIDATION")?;
            return work.put(record_key, &again);
        }
        Ready::Never => {
            certificate.record.renewal = Some(failed(Some(public::DENIED), now_ms));
            certificate.save(work)?;
            told::tell_not_renewed(work, &certificate, public::DENIED)?;
            return work.put(record_key, &again);
        }
    }
    // An unsealed CA key is not kept in memory: it is next needed in hours or days.
    match attempt(work, &KeyRing::default(), &mut certificate) {
        Ok(()) => swept.done(&certificate.scope, certificate.arn(), "RenewCertificate"),
        Err(Failed::Authority(CaError::Fault(fault))) => return Err(fault),
        Err(failed) => {
            certificate.record.renewal = Some(self::failed(Some(failed.reason()), now_ms));
            certificate.save(work)?;
            told::tell_not_renewed(work, &certificate, failed.reason())?;
            work.put(record_key, &again)?;
        }
    }
    Ok(())
}

fn failed(reason: Option<&str>, updated_ms: i64) -> RenewalSummary {
    let reason = reason.map(str::to_owned);
    RenewalSummary { succeeded: false, validating: false, reason, updated_ms }
}
