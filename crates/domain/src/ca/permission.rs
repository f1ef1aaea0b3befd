//! Permissions: what Certificate Manager may do with an authority for its account, to renew without a caller.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::CaError;
use super::authority::Authority;
use crate::Fault;
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::work::{Page, Work};

/// The only service that can be given permissions.
pub const CERTIFICATE_MANAGER: &str = "acm.amazonaws.com";
/// The actions that can be permitted.
pub const ACTIONS: &[&str] = &["IssueCertificate", "GetCertificate", "ListPermissions"];

/// What a service may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// The service.
    pub principal: String,
    /// The account that it works for.
    pub source_account: String,
    /// Some of [`ACTIONS`].
    pub actions: BTreeSet<String>,
    /// Milliseconds since 1970.
    pub created_ms: i64,
}

impl Permission {
    /// The permission as a policy statement, as Private CA shows it.
    pub fn policy(&self, authority: &Authority) -> String {
        let actions: Vec<_> = self.actions.iter().map(|name| format!("acm-pca:{name}")).collect();
        serde_json::json!({
            "Version": "2012-10-17",
            "Statement": [{
                "Effect": "Allow",
                "Principal": { "Service": self.principal },
                "Action": actions,
                "Resource": authority.arn(),
                "Condition": { "StringEquals": { "aws:SourceAccount": self.source_account } },
            }],
        })
        .to_string()
    }
}

/// Grants a service permissions; it must have none yet.
pub fn create(
    work: &mut Work<'_>,
    authority: &Authority,
    principal: &str,
    source_account: &str,
    actions: BTreeSet<String>,
    permit: &Permit<action::acm_pca::CreatePermission>,
) -> Result<(), CaError> {
    permit.opens(&authority.arn())?;
    authority.require_not_deleted()?;
    check_principal(principal)?;
    if source_account != authority.scope().account {
        return Err(CaError::Validation(
            "The permission is for the certificate authority's own account; another account gets access by a \
             resource-based policy (PutPolicy)."
                .into(),
        ));
    }
    let record_key = record_key(authority.scope(), authority.id(), principal, source_account);
    if work.exists(&record_key)? {
        return Err(CaError::PermissionExists(format!(
            "The principal {principal} already has permissions on {}.",
            authority.arn()
        )));
    }
    let permission = Permission {
        principal: principal.to_owned(),
        source_account: source_account.to_owned(),
        actions,
        created_ms: work.now_ms(),
    };
    Ok(work.put(&record_key, &permission)?)
}

/// Revokes a service's permissions.
pub fn delete(
    work: &mut Work<'_>,
    authority: &Authority,
    principal: &str,
    source_account: &str,
    permit: &Permit<action::acm_pca::DeletePermission>,
) -> Result<(), CaError> {
    permit.opens(&authority.arn())?;
    authority.require_not_deleted()?;
    let record_key = record_key(authority.scope(), authority.id(), principal, source_account);
    if !work.exists(&record_key)? {
        return Err(CaError::NotFound(format!(
            "The principal {principal} has no permissions on {}.",
            authority.arn()
        )));
    }
    work.delete(&record_key);
    Ok(())
}

/// Lists permissions, after the marker of the previous page.
pub fn list(
    work: &Work<'_>,
    authority: &Authority,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::acm_pca::ListPermissions>,
) -> Result<Page<Permission>, CaError> {
    permit.opens(&authority.arn())?;
    authority.require_not_deleted()?;
    Ok(work.page(&prefix(authority.scope(), authority.id()), marker, limit)?)
}

/// Whether a service may do `action` (such as `IssueCertificate`) with the authority for `account`.
pub fn holds(
    work: &mut Work<'_>,
    authority: &Authority,
    principal: &str,
    account: &str,
    action: &str,
) -> Result<bool, CaError> {
    let record_key = record_key(authority.scope(), authority.id(), principal, account);
    let found = work.get::<Permission>(&record_key)?;
    Ok(found.is_some_and(|permission| permission.actions.contains(action)))
}

/// Deletes the permissions of an authority that is erased.
pub(super) fn erase(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<(), Fault> {
    let record_key = record_key(scope, id, CERTIFICATE_MANAGER, &scope.account);
    if work.exists(&record_key)? {
        work.delete(&record_key);
    }
    Ok(())
}

fn check_principal(principal: &str) -> Result<(), CaError> {
    if principal == CERTIFICATE_MANAGER {
        return Ok(());
    }
    Err(CaError::Validation(format!("The principal must be {CERTIFICATE_MANAGER}.")))
}

fn prefix(scope: &Scope, id: &str) -> String {
    format!("ca/permission/{}/{}/{id}/", scope.account, scope.region)
}

fn record_key(scope: &Scope, id: &str, principal: &str, source_account: &str) -> String {
    format!("{}{principal}/{source_account}", prefix(scope, id))
}
