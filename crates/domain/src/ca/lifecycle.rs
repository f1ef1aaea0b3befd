//! Lifecycle of an authority: enabled and disabled, deleted, restored, erased; and its tags.

use std::collections::BTreeMap;

use super::authority::{Authority, Record, Status, arn, check_tags};
use super::{CaError, Revocation, served};
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::work::{Sweep, Swept, Work};
use crate::{Fault, limits, tags};

/// Changes of an authority.
pub struct Update {
    /// `ACTIVE` or `DISABLED`.
    pub status: Option<Status>,
    /// New `RevocationConfiguration`.
    pub revocation: Option<Revocation>,
}

/// Enables or disables an authority, and replaces its revocation configuration.
pub fn set_status(
    work: &mut Work<'_>,
    mut authority: Authority,
    update: Update,
    permit: &Permit<action::acm_pca::UpdateCertificateAuthority>,
) -> Result<(), CaError> {
    permit.opens(&authority.arn())?;
    if !matches!(authority.status(), Status::Active | Status::Disabled) {
        return Err(authority.state_error("cannot be updated"));
    }
    if let Some(revocation) = update.revocation {
        authority.record.revocation_settings = revocation;
    }
    let status = match update.status {
        Some(status @ (Status::Active | Status::Disabled)) => status,
        Some(_) => {
            return Err(CaError::InvalidArgs("Status can be set to ACTIVE or DISABLED".into()));
        }
        None => authority.record.status,
    };
    authority.save(work, status)?;
    Ok(())
}

/// Deletes an authority that is not active; it can be restored for some days.
pub fn delete(
    work: &mut Work<'_>,
    mut authority: Authority,
    days: i64,
    permit: &Permit<action::acm_pca::DeleteCertificateAuthority>,
) -> Result<(), CaError> {
    permit.opens(&authority.arn())?;
    if !limits::DELETION_WINDOW_DAYS.contains(&days) {
        return Err(CaError::Validation(
            "PermanentDeletionTimeInDays must be between 7 and 30, inclusive.".into(),
        ));
    }
    match authority.status() {
        Status::Active => {
            return Err(authority.state_error("must be disabled before it is deleted"));
        }
        Status::Deleted => return Err(authority.state_error("is already deleted")),
        Status::PendingCertificate | Status::Disabled | Status::Expired => {}
    }
    authority.record.deleted_from = Some(authority.record.status);
    authority.record.restorable_until_ms = Some(work.now_ms() + days * 86_400_000);
    authority.save(work, Status::Deleted)?;
    Ok(())
}

/// Cancels a deletion: the authority is again disabled, pending or expired, as it was before.
pub fn restore(
    work: &mut Work<'_>,
    mut authority: Authority,
    permit: &Permit<action::acm_pca::RestoreCertificateAuthority>,
) -> Result<(), CaError> {
    permit.opens(&authority.arn())?;
    if authority.status() != Status::Deleted {
        return Err(authority.state_error("is not deleted"));
    }
    // Authorities that the first version deleted do not record their earlier status.
    let before = authority.record.deleted_from.take().unwrap_or(match authority.certificate() {
        Some(_) => Status::Disabled,
        None => Status::PendingCertificate,
    });
    authority.record.restorable_until_ms = None;
    authority.save(work, before)?;
    Ok(())
}

/// Adds or replaces tags.
pub fn add_tags(
    work: &mut Work<'_>,
    mut authority: Authority,
    tags: BTreeMap<String, String>,
    permit: &Permit<action::acm_pca::TagCertificateAuthority>,
) -> Result<(), CaError> {
    permit.opens(&authority.arn())?;
    authority.require_not_deleted()?;
    if let Some(clash) = tags::clash(&authority.record.tags, tags.keys()) {
        return Err(CaError::InvalidTag(tags::refusal(clash)));
    }
    authority.record.tags.extend(tags);
    check_tags(&authority.record.tags)?;
    let status = authority.record.status;
    authority.save(work, status)?;
    Ok(())
}

/// Removes tags by key; a value that is given must be the tag's, or the tag stays.
pub fn remove_tags(
    work: &mut Work<'_>,
    mut authority: Authority,
    tags: &[(String, Option<String>)],
    permit: &Permit<action::acm_pca::UntagCertificateAuthority>,
) -> Result<(), CaError> {
    permit.opens(&authority.arn())?;
    authority.require_not_deleted()?;
    for (key, value) in tags {
        let found = authority.record.tags.get(key);
        if found.is_some_and(|found| value.as_ref().is_none_or(|value| value == found)) {
            authority.record.tags.remove(key);
        }
    }
    let status = authority.record.status;
    authority.save(work, status)?;
    Ok(())
}

/// Erases deleted authorities whose time is over, with their keys, in all accounts and regions. What they
/// issued stays on record, and so does whose key it was.
pub const ERASE_EXPIRED: Sweep = Sweep {
    find: |work, after, limit| work.due("ca/authority/", after, limit, Record::is_over),
    handle: erase_expired,
};

fn erase_expired(work: &mut Work<'_>, record_key: &str, swept: &mut Swept) -> Result<(), Fault> {
    // Read as part of the work, so that a restoration in between wins.
    let Some(record) = work.get::<Record>(record_key)?.filter(|now| now.is_over(work.now_ms()))
    else {
        return Ok(());
    };
    let mut parts = record_key.trim_start_matches("ca/authority/").split('/');
    let (Some(account), Some(region)) = (parts.next(), parts.next()) else {
        return Err(Fault::Damaged(record_key.to_owned()));
    };
    let scope = Scope { account: account.to_owned(), region: region.to_owned() };
    let material = record_key.replacen("ca/authority/", "ca/material/", 1);
    work.delete(&material);
    work.delete(record_key);
    super::permission::erase(work, &scope, &record.id)?;
    super::policy::erase(work, &scope, &record.id)?;
    let certificate = record.certificate();
    served::forget(work, &scope, &record.id, certificate.as_ref(), swept)?;
    swept.erased.push(material);
    swept.done(&scope, arn(&scope, &record.id), "DeleteCertificateAuthority");
    Ok(())
}

impl Record {
    /// Whether it was deleted and can no longer be restored.
    fn is_over(&self, now_ms: i64) -> bool {
        self.restorable_until_ms.is_some_and(|until| until <= now_ms)
    }
}
