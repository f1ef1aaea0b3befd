//! Resource policies: what other accounts, and principals of the own account, may do with an authority.
//!
//! Source: "Resource-based policies" of the Private CA user guide. An `Allow` is limited to what other accounts can
//! be given; a `Deny` may name anything, unless it would lock its author out.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::authority::Authority;
use super::{CaError, find, template_of};
use crate::Fault;
use crate::arn::{Arn, Scope, is_account_id};
use crate::identity::action::{self, Action};
use crate::identity::unique::{self, UniqueIds, Unresolved};
use crate::identity::{Permit, PolicyCache};
use crate::kms::Access;
use crate::policy::{ConditionKeys, Kind, Policy};
use crate::work::{Page, Work};

/// What a policy can allow.
pub const SHAREABLE: &[&str] = &[
    "acm-pca:DescribeCertificateAuthority",
    "acm-pca:GetCertificate",
    "acm-pca:GetCertificateAuthorityCertificate",
    "acm-pca:IssueCertificate",
    "acm-pca:ListPermissions",
    "acm-pca:ListTags",
    "acm-pca:RevokeCertificate",
];

/// The templates that other accounts can issue from.
pub const SHAREABLE_TEMPLATES: &[&str] = &[
    "EndEntityCertificate",
    "EndEntityClientAuthCertificate",
    "EndEntityServerAuthCertificate",
    "BlankEndEntityCertificate_APIPassthrough",
    "BlankEndEntityCertificate_APICSRPassthrough",
    "SubordinateCACertificate_PathLen0",
];

/// The action that is limited to these templates.
pub(super) const ISSUE: &str = action::acm_pca::IssueCertificate::NAME;

/// Adds the condition keys about the authority to those of the request.
pub(super) fn conditions(request: &ConditionKeys, authority: &Authority) -> ConditionKeys {
    let mut keys = request.clone();
    keys.set("aws:ResourceAccount", authority.scope().account.as_str());
    keys.set_tags("aws:ResourceTag", authority.tags());
    keys
}

/// Whether this is the ARN of a template that other accounts can issue from.
pub fn is_shareable_template(arn: &str) -> bool {
    template_of(arn).is_some_and(|row| SHAREABLE_TEMPLATES.contains(&row.name))
}

#[derive(Serialize, Deserialize)]
struct Record {
    text: String,
    /// Unique ids of the principals that it names.
    #[serde(default, skip_serializing_if = "UniqueIds::is_empty")]
    principals: UniqueIds,
    /// Accounts that it names, other than the owner's.
    accounts: BTreeSet<String>,
}

/// Where to find an authority that is shared with an account.
#[derive(Serialize, Deserialize)]
struct Shared {
    #[serde(deserialize_with = "crate::arn::stored")]
    arn: String,
}

/// Sets the policy of an authority; returns it parsed.
pub fn put(
    work: &mut Work<'_>,
    access: Access<'_>,
    authority: &Authority,
    text: &str,
    permit: &Permit<action::acm_pca::PutPolicy>,
) -> Result<Policy, CaError> {
    permit.opens(&authority.arn())?;
    authority.require_not_deleted()?;
    let invalid = |error: String| CaError::InvalidPolicy(error);
    let policy =
        Policy::parse(text, Kind::Authority).map_err(|error| invalid(error.to_string()))?;
    let accounts = check(text, authority).map_err(invalid)?;
    check_sharing(&policy, authority).map_err(invalid)?;
    let principals = unique::resolve(work, &policy).map_err(|error| match error {
        Unresolved::Fault(fault) => CaError::Fault(fault),
        Unresolved::Unknown(_) => invalid(error.to_string()),
    })?;
    let conditions = conditions(access.conditions, authority);
    let account = authority.scope().account.as_str();
    for action in ["acm-pca:PutPolicy", "acm-pca:DeletePolicy"] {
        let (arn, caller) = (authority.arn(), access.caller);
        let may = |policy: Option<&Policy>| {
            caller.judge(policy, account, false, &conditions, action, &arn).is_ok()
        };
        // What identity policies do not allow anyway cannot be lost.
        if may(None) && !may(Some(&policy)) {
            return Err(CaError::LockoutPrevented(format!(
                "The policy would deny you {action}: you could not replace or delete the policy."
            )));
        }
    }
    unshare(work, authority.scope(), authority.id())?;
    for account in &accounts {
        let shared = Shared { arn: authority.arn() };
        work.put(&shared_record_key(account, authority.scope(), authority.id()), &shared)?;
    }
    let record = Record { text: text.to_owned(), principals, accounts };
    work.put(&record_key(authority.scope(), authority.id()), &record)?;
    Ok(policy)
}

/// An authority's policy for display: principals that no longer exist appear by their unique ids.
pub fn text(
    work: &mut Work<'_>,
    authority: &Authority,
    permit: &Permit<action::acm_pca::GetPolicy>,
) -> Result<String, CaError> {
    permit.opens(&authority.arn())?;
    authority.require_not_deleted()?;
    let found = work.get::<Record>(&record_key(authority.scope(), authority.id()))?;
    let found = found.ok_or_else(|| {
        CaError::NotFound(format!("The certificate authority {} has no policy.", authority.arn()))
    })?;
    Ok(unique::shown_policy(work, &found.text, &found.principals)?)
}

/// Deletes an authority's policy, if it has one.
pub fn delete(
    work: &mut Work<'_>,
    authority: &Authority,
    permit: &Permit<action::acm_pca::DeletePolicy>,
) -> Result<(), CaError> {
    permit.opens(&authority.arn())?;
    authority.require_not_deleted()?;
    Ok(erase(work, authority.scope(), authority.id())?)
}

/// The authorities of the Region that others share with an account, after the marker of the previous page.
pub fn shared_with(
    work: &mut Work<'_>,
    scope: &Scope,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::acm_pca::ListCertificateAuthorities>,
) -> Result<Page<Authority>, CaError> {
    permit.opens(&scope.arn("acm-pca", "certificate-authority/*"))?;
    let prefix = format!("ca/shared/{}/{}/", scope.account, scope.region);
    let page = work.page::<Shared>(&prefix, marker, limit)?;
    let mut items = Vec::new();
    for shared in page.items {
        match find(work, scope, &shared.arn) {
            Ok(authority) if authority.require_not_deleted().is_ok() => items.push(authority),
            Ok(_) | Err(CaError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Page { items, next: page.next })
}

/// The policy of an authority, if it has one.
pub(super) fn parsed(
    work: &mut Work<'_>,
    cache: &PolicyCache,
    authority: &Authority,
) -> Result<Option<Arc<Policy>>, CaError> {
    let record_key = record_key(authority.scope(), authority.id());
    let Some(record) = work.get::<Record>(&record_key)? else { return Ok(None) };
    Ok(Some(cache.bound(Kind::Authority, &record.text, &record.principals, &record_key)?))
}

/// Forgets the policy of an authority.
pub(super) fn erase(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<(), Fault> {
    let record_key = record_key(scope, id);
    if work.exists(&record_key)? {
        unshare(work, scope, id)?;
        work.delete(&record_key);
    }
    Ok(())
}

fn unshare(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<(), Fault> {
    let before = work.get::<Record>(&record_key(scope, id))?;
    for account in before.map(|record| record.accounts).unwrap_or_default() {
        work.delete(&shared_record_key(&account, scope, id));
    }
    Ok(())
}

/// Checks Private CA's requirements on a policy whose grammar is already checked; returns the other accounts that it
/// names.
fn check(text: &str, authority: &Authority) -> Result<BTreeSet<String>, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let statements = match &document["Statement"] {
        Value::Array(list) => list.iter().collect(),
        one => vec![one],
    };
    let mut accounts = BTreeSet::new();
    for statement in statements {
        let wrong = |what: &str| Err(format!("A statement {what}."));
        let allows = statement["Effect"] == "Allow";
        if each(&statement["Resource"]).any(|resource| resource != authority.arn())
            || statement.get("NotResource").is_some()
        {
            return wrong("names a resource other than this certificate authority");
        }
        if each(&statement["Action"]).any(|action| !action.starts_with("acm-pca:")) {
            return wrong("has an action that does not belong to Private CA");
        }
        if allows
            && (statement.get("NotAction").is_some()
                || each(&statement["Action"]).any(|action| !SHAREABLE.contains(&action)))
        {
            return Err(format!(
                "A statement allows an action that cannot be shared. Actions that can be shared are: {}.",
                SHAREABLE.join(", ")
            ));
        }
        if allows {
            let named = each(&statement["Principal"]["AWS"]).filter_map(|name| {
                let account = if is_account_id(name) {
                    name.to_owned()
                } else {
                    Arn::parse(name)?.account().to_owned()
                };
                (account != authority.scope().account).then_some(account)
            });
            accounts.extend(named);
        }
    }
    Ok(accounts)
}

/// Checks with whom a policy shares, and which templates. [`super::authorize`] applies the same to policies that were
/// put before.
fn check_sharing(policy: &Policy, authority: &Authority) -> Result<(), String> {
    if policy.allows_everyone() {
        return Err("A statement allows everyone: give it a condition that restricts the callers, such as StringEquals \
                    on aws:PrincipalAccount, aws:PrincipalOrgID or aws:SourceAccount."
            .into());
    }
    let account = &authority.scope().account;
    let key = "acm-pca:templatearn";
    if policy.allows_others(account, ISSUE, key, is_shareable_template) {
        return Err(format!(
            "A statement lets other accounts issue certificates: it must have the condition StringEquals on \
             acm-pca:TemplateArn with templates that can be shared, which are: {}.",
            SHAREABLE_TEMPLATES.join(", ")
        ));
    }
    Ok(())
}

/// The texts of a value, or of a list of values.
fn each(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    list.iter().filter_map(Value::as_str)
}

fn record_key(scope: &Scope, id: &str) -> String {
    format!("ca/policy/{}/{}/{id}", scope.account, scope.region)
}

fn shared_record_key(account: &str, scope: &Scope, id: &str) -> String {
    format!("ca/shared/{account}/{}/{}/{id}", scope.region, scope.account)
}
