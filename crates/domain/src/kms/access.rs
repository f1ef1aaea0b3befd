//! Authorization for keys: key policy, identity policies, grants.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::asker::Access;
use super::grant::{self, Grant, Way};
use super::record::Key;
use super::{KmsError, alias, usage};
use crate::Fault;
use crate::arn::{self, Scope};
use crate::identity::action::{self, Action};
use crate::identity::unique::{self, UniqueIds, Unresolved};
use crate::identity::{Permit, PolicyCache};
use crate::policy::{ConditionKeys, Kind, Policy};
use crate::work::Work;

/// The default key policy: identity policies of the account decide.
fn default_policy(scope: &Scope) -> String {
    let root = arn::shown_in(&scope.region, &arn::iam(&scope.account, "root"));
    format!(
        "{{\n  \"Version\" : \"2012-10-17\",\n  \"Id\" : \"key-default-1\",\n  \"Statement\" : [ {{\n    \
         \"Sid\" : \"Enable IAM User Permissions\",\n    \"Effect\" : \"Allow\",\n    \
         \"Principal\" : {{\n      \"AWS\" : \"{root}\"\n    }},\n    \
         \"Action\" : \"kms:*\",\n    \"Resource\" : \"*\"\n  }} ]\n}}"
    )
}

/// Authorizes `action` on the key.
pub fn authorize<A: Action>(
    work: &mut Work<'_>,
    access: Access<'_>,
    action: A,
    key: &Key,
) -> Result<Permit<A>, KmsError> {
    let named = grant::check_tokens(work, key, access.tokens)?;
    let policy = policy_of(access.policies, key)?;
    let conditions = conditions(work, access, A::NAME, key, &policy)?;
    let arn = key.arn();
    let first =
        access.caller.decide(Some(&policy), key.account(), false, &conditions, action, &arn);
    let denied = match first {
        Ok(allowed) => return Ok(allowed),
        Err(denied) => denied,
    };
    // A grant allows what policies do not allow, and nothing that a policy denies.
    if denied.explicit {
        return Err(denied.into());
    }
    match grant::allows(work, access, A::OPERATION, key, &named)? {
        None => return Err(denied.into()),
        Some(Way::Direct) => {}
        // As in a key policy, an account as grantee leaves the decision to its own identity policies.
        Some(Way::Account) => {
            let account = access.caller.principal.account.as_str();
            access.caller.judge(None, account, false, &conditions, A::NAME, &arn)?;
        }
    }
    Ok(access.caller.decide(Some(&policy), key.account(), true, &conditions, action, &arn)?)
}

/// Authorizes the retirement of a grant. The grant itself decides: its retiring principal may retire it, and its
/// grantee if RetireGrant is one of its operations. The accounts of the key, of the issuer and of a retiring account
/// may delegate it by identity policies; an `Allow` in a key policy has no effect ("Retiring and revoking grants"). A
/// `Deny` has.
pub fn authorize_retire(
    work: &mut Work<'_>,
    access: Access<'_>,
    key: &Key,
    found: &Grant,
) -> Result<Permit<action::kms::RetireGrant>, KmsError> {
    let policy = policy_of(access.policies, key)?;
    let (action, arn) = (action::kms::RetireGrant, key.arn());
    let conditions = conditions(work, access, action::kms::RetireGrant::NAME, key, &policy)?;
    let caller = access.caller;
    let way = found
        .retired_by(caller)
        .or_else(|| (caller.principal.account == key.account()).then_some(Way::Account));
    if way != Some(Way::Direct) {
        // No other account's policies count; in none of these cases the answer is the denial.
        let own = if way.is_some() { caller.principal.account.as_str() } else { "" };
        caller.decide(None, own, false, &conditions, action, &arn)?;
    }
    Ok(caller.decide(Some(&policy), key.account(), true, &conditions, action, &arn)?)
}

/// Checks a key policy that a caller wants to set: it can be parsed, and it would let the caller set another one,
/// unless `bypass` turns that check off.
pub fn check_policy(
    access: Access<'_>,
    account: &str,
    key_arn: &str,
    text: &str,
    bypass: bool,
) -> Result<Policy, KmsError> {
    let policy = Policy::parse(text, Kind::Key)
        .map_err(|error| KmsError::MalformedPolicy(error.to_string()))?;
    if bypass {
        return Ok(policy);
    }
    let decision = access.caller.judge(
        Some(&policy),
        account,
        false,
        access.conditions,
        "kms:PutKeyPolicy",
        key_arn,
    );
    match decision {
        Ok(_) => Ok(policy),
        Err(_) => Err(KmsError::MalformedPolicy(
            "The new key policy will not allow you to update the key policy in the future.".into(),
        )),
    }
}

/// A key's policy for display: principals that no longer exist appear by their unique ids.
pub fn shown_policy(work: &mut Work<'_>, key: &Key) -> Result<String, Fault> {
    unique::shown_policy(work, &policy_text(key), &key.record.principals)
}

/// Finds every principal of a key policy: they must exist.
pub(super) fn resolve(work: &mut Work<'_>, text: Option<&str>) -> Result<UniqueIds, KmsError> {
    let Some(text) = text else { return Ok(UniqueIds::new()) };
    let policy = Policy::parse(text, Kind::Key)
        .map_err(|error| KmsError::MalformedPolicy(error.to_string()))?;
    unique::resolve(work, &policy).map_err(|error| match error {
        Unresolved::Fault(fault) => fault.into(),
        Unresolved::Unknown(_) => KmsError::MalformedPolicy(
            "Policy contains a statement with one or more invalid principals.".into(),
        ),
    })
}

fn policy_text(key: &Key) -> String {
    key.record.policy.clone().unwrap_or_else(|| default_policy(key.scope()))
}

/// Replaces the policy of a key with one that [`check_policy`] has passed.
pub fn put_policy(
    work: &mut Work<'_>,
    mut key: Key,
    text: String,
    permit: &Permit<action::kms::PutKeyPolicy>,
) -> Result<(), KmsError> {
    permit.opens(&key.arn())?;
    key.record.principals = resolve(work, Some(&text))?;
    key.record.policy = Some(text);
    Ok(key.save(work)?)
}

fn policy_of(cache: &PolicyCache, key: &Key) -> Result<Arc<Policy>, KmsError> {
    Ok(cache.bound(Kind::Key, &policy_text(key), &key.record.principals, &key.arn())?)
}

/// The condition keys about the key and the request.
fn conditions(
    work: &mut Work<'_>,
    access: Access<'_>,
    action: &str,
    key: &Key,
    policy: &Policy,
) -> Result<ConditionKeys, KmsError> {
    let mut keys = access.conditions.clone();
    keys.set("aws:ResourceAccount", key.account());
    keys.set("kms:CallerAccount", access.caller.principal.account.as_str());
    keys.set("kms:KeySpec", key.spec().name);
    keys.set("kms:KeyUsage", key.usage().name());
    keys.set("kms:KeyOrigin", key.origin().name());
    keys.set("kms:MultiRegion", if key.regions().is_some() { "true" } else { "false" });
    if key.regions().is_some() {
        keys.set("kms:MultiRegionKeyType", if key.is_replica() { "REPLICA" } else { "PRIMARY" });
    }
    if let Some(alias) = key.alias() {
        keys.set("kms:RequestAlias", alias);
    }
    keys.set_tags("aws:ResourceTag", key.tags());
    if let Some(context) = access.context.filter(|context| !context.is_empty()) {
        // Names of condition keys ignore case, and an encryption context does not: all context keys that differ only
        // in case are values of one condition key.
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in context {
            values.entry(name.to_ascii_lowercase()).or_default().push(value.clone());
        }
        for (name, values) in values {
            keys.set_many(&format!("kms:EncryptionContext:{name}"), values);
        }
        keys.set_many("kms:EncryptionContextKeys", context.keys().cloned().collect());
    }
    // Read only for callers whose policies need them.
    let asks_for = |name: &str| policy.asks_for(name) || access.caller.asks_for(name);
    if matches!(action, "kms:DisableKey" | "kms:ScheduleKeyDeletion")
        && asks_for("kms:trailingdayswithoutkeyusage")
    {
        let days = usage::unused_days(work, key)?;
        keys.set("kms:TrailingDaysWithoutKeyUsage", days.to_string());
    }
    if asks_for("kms:resourcealiases") {
        keys.set_many("kms:ResourceAliases", alias::names_of(work, key.scope(), key.id())?);
    }
    Ok(keys)
}
