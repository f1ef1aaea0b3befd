//! Resource policies of secrets.
//!
//! Source: "Resource-based policies" of the Secrets Manager user guide; PutResourcePolicy and ValidateResourcePolicy of
//! the API reference.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::SecretError;
use super::conditions::conditions;
use super::secret::{PREFIX, Secret};
use crate::Fault;
use crate::identity::unique::{self, UniqueIds, Unresolved};
use crate::identity::{Permit, PolicyCache, action};
use crate::kms::Access;
use crate::policy::{Kind, Policy};
use crate::work::Work;

/// A policy as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    text: String,
    /// Unique ids of the principals that it names.
    #[serde(default, skip_serializing_if = "UniqueIds::is_empty")]
    principals: UniqueIds,
}

/// A check that a policy does not pass: AWS's name of it, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `CheckName`
    pub check: &'static str,
    /// `ErrorMessage`
    pub message: String,
}

/// Sets the policy of a secret; returns it parsed. `block_public` refuses one that lets everyone in.
pub fn put(
    work: &mut Work<'_>,
    access: Access<'_>,
    secret: &mut Secret,
    text: &str,
    block_public: bool,
    permit: &Permit<action::secretsmanager::PutResourcePolicy>,
) -> Result<Policy, SecretError> {
    permit.opens(&secret.arn())?;
    secret.require_kept()?;
    secret.require_primary()?;
    let policy = parse(text)?;
    if block_public && policy.allows_everyone() {
        return Err(SecretError::PublicPolicy(PUBLIC.into()));
    }
    let principals = unique::resolve(work, &policy).map_err(|error| match error {
        Unresolved::Fault(fault) => SecretError::Fault(fault),
        Unresolved::Unknown(_) => SecretError::MalformedPolicy(
            "This resource policy contains an unsupported principal.".into(),
        ),
    })?;
    if locks_out(access, secret, &policy) {
        return Err(SecretError::MalformedPolicy(
            "This resource policy would keep you from managing this secret: you could not replace or delete it.".into(),
        ));
    }
    work.put(&record_key(secret), &Record { text: text.to_owned(), principals })?;
    secret.save(work)?;
    Ok(policy)
}

/// The findings of a policy that is not set: for `secret`, if one is given.
pub fn validate(
    access: Access<'_>,
    secret: Option<&Secret>,
    text: &str,
) -> Result<Vec<Finding>, SecretError> {
    let policy = parse(text)?;
    let mut findings = Vec::new();
    if policy.allows_everyone() {
        findings.push(Finding { check: "BLOCK_PUBLIC_POLICY", message: PUBLIC.into() });
    }
    if secret.is_some_and(|secret| locks_out(access, secret, &policy)) {
        let message = "This resource policy would keep you from managing this secret.".into();
        findings.push(Finding { check: "LOCKOUT", message });
    }
    findings
        .extend(policy.findings().into_iter().map(|message| Finding { check: "SYNTAX", message }));
    Ok(findings)
}

/// A secret's policy for display: principals that no longer exist appear by their unique ids. `None` if it has none.
pub fn text(
    work: &mut Work<'_>,
    secret: &Secret,
    permit: &Permit<action::secretsmanager::GetResourcePolicy>,
) -> Result<Option<String>, SecretError> {
    permit.opens(&secret.arn())?;
    let Some(found) = work.get::<Record>(&record_key(secret))? else { return Ok(None) };
    Ok(Some(unique::shown_policy(work, &found.text, &found.principals)?))
}

/// Whether a secret has a policy.
pub fn exists(
    work: &mut Work<'_>,
    secret: &Secret,
    permit: &Permit<action::secretsmanager::ListResourcePolicies>,
) -> Result<bool, SecretError> {
    permit.opens(&secret.arn())?;
    Ok(work.exists(&record_key(secret))?)
}

/// Deletes a secret's policy, if it has one.
pub fn delete(
    work: &mut Work<'_>,
    secret: &mut Secret,
    permit: &Permit<action::secretsmanager::DeleteResourcePolicy>,
) -> Result<(), SecretError> {
    permit.opens(&secret.arn())?;
    secret.require_kept()?;
    secret.require_primary()?;
    erase(work, secret)?;
    Ok(secret.save(work)?)
}

/// The policy of a secret, if it has one.
pub(super) fn parsed(
    work: &mut Work<'_>,
    cache: &PolicyCache,
    secret: &Secret,
) -> Result<Option<Arc<Policy>>, Fault> {
    let record_key = record_key(secret);
    let Some(record) = work.get::<Record>(&record_key)? else { return Ok(None) };
    Ok(Some(cache.bound(Kind::Secret, &record.text, &record.principals, &record_key)?))
}

/// Forgets the policy of a secret.
pub(super) fn erase(work: &mut Work<'_>, secret: &Secret) -> Result<(), Fault> {
    let record_key = record_key(secret);
    if work.exists(&record_key)? {
        work.delete(&record_key);
    }
    Ok(())
}

/// Gives a replica the policy of its primary secret.
pub(super) fn copy(work: &mut Work<'_>, primary: &Secret, replica: &Secret) -> Result<(), Fault> {
    match work.get::<Record>(&record_key(primary))? {
        Some(record) => work.put(&record_key(replica), &record),
        None => erase(work, replica),
    }
}

/// Whether a policy would deny its author the operations that replace it, which the author has without it.
fn locks_out(access: Access<'_>, secret: &Secret, policy: &Policy) -> bool {
    let conditions = conditions(access.conditions, secret);
    let (account, arn) = (secret.scope().account.as_str(), secret.arn());
    let may = |policy: Option<&Policy>, action: &str| {
        access.caller.judge(policy, account, false, &conditions, action, &arn).is_ok()
    };
    ["secretsmanager:PutResourcePolicy", "secretsmanager:DeleteResourcePolicy"]
        .iter()
        .any(|action| may(None, action) && !may(Some(policy), action))
}

fn parse(text: &str) -> Result<Policy, SecretError> {
    Policy::parse(text, Kind::Secret)
        .map_err(|error| SecretError::MalformedPolicy(error.to_string()))
}

fn record_key(secret: &Secret) -> String {
    super::secret::record_key(secret.scope(), secret.name()).replacen(PREFIX, "secrets/policy/", 1)
}

const PUBLIC: &str = "This resource policy is public: it lets everyone use the secret. Name principals, or add a condition \
                      that identifies the caller.";
