//! Principals by their unique ids: a policy or a grant that names a user or role means the one that had the name when
//! it was stored. One that is deleted and created again under the name is another.
//!
//! Source: "AWS JSON policy elements: Principal", on what becomes of an ARN when the policy is saved, and of the id
//! when the principal is deleted. The id is stored beside the document, which stays as it was written. Documents of
//! earlier builds have no ids, and mean the current holder of the name, until they are stored again.

use std::collections::BTreeMap;

use serde_json::Value;

pub use super::directory::UniqueIds;
use super::directory::{Entry, IdentityError, Role, User};
use crate::Fault;
use crate::arn::Arn;
use crate::policy::Policy;
use crate::work::Work;

/// Why a document cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// It names this principal, as in `"AWS":"arn:..."`, which does not exist.
    #[error("Invalid principal in policy: {0}")]
    Unknown(String),
    /// The store failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Finds every principal of a policy. Accounts have no ids and are not checked: any twelve digits name one.
pub fn resolve(work: &mut Work<'_>, policy: &Policy) -> Result<UniqueIds, Unresolved> {
    if let Some(name) = policy.services().find(|name| !is_service(name)) {
        return Err(Unresolved::Unknown(format!("\"Service\":\"{}\"", shorten(name))));
    }
    let mut ids = UniqueIds::new();
    for arn in policy.principals() {
        let id = resolve_one(work, arn)?;
        ids.extend(id.map(|id| (arn.to_owned(), id)));
    }
    Ok(ids)
}

/// The unique id of the user, role or session's role with this ARN; `None` for the root of an account and for
/// service-linked roles, which cannot be deleted and created again.
pub fn resolve_one(work: &mut Work<'_>, arn: &str) -> Result<Option<String>, Unresolved> {
    let parsed = Arn::parse(arn);
    if parsed.is_some_and(|arn| arn.resource() == "root" || is_service_linked(&arn)) {
        return Ok(None);
    }
    match unique_id(work, arn)? {
        Some(id) => Ok(Some(id)),
        None => Err(Unresolved::Unknown(format!("\"AWS\":\"{}\"", shorten(arn)))),
    }
}

/// The unique id of the principal that has this ARN now, if there is one.
pub fn unique_id(work: &mut Work<'_>, arn: &str) -> Result<Option<String>, Fault> {
    let Some(arn) = Arn::parse(arn) else { return Ok(None) };
    let parts: Vec<_> = arn.resource().split('/').collect();
    match (arn.service(), parts.as_slice()) {
        ("iam", ["user", name]) => found(User::find(work, arn.account(), name), |user| user.id),
        ("iam", ["role", name]) | ("sts", ["assumed-role", name, _]) => {
            found(Role::find(work, arn.account(), name), |role| role.id)
        }
        _ => Ok(None),
    }
}

fn found<T>(
    found: Result<T, IdentityError>,
    id: impl FnOnce(T) -> String,
) -> Result<Option<String>, Fault> {
    match found {
        Ok(found) => Ok(Some(id(found))),
        Err(IdentityError::Fault(fault)) => Err(fault),
        Err(_) => Ok(None),
    }
}

/// A stored principal for display: its ARN, or its unique id if it no longer exists.
pub fn shown_principal(work: &mut Work<'_>, arn: &str, id: Option<&str>) -> Result<String, Fault> {
    match id {
        Some(id) if unique_id(work, arn)?.as_deref() != Some(id) => {
            let is_session = Arn::parse(arn).is_some_and(|arn| arn.service() == "sts");
            let session = arn.rsplit('/').next().filter(|_| is_session);
            Ok(session.map_or_else(|| id.to_owned(), |session| format!("{id}:{session}")))
        }
        _ => Ok(arn.to_owned()),
    }
}

/// A stored policy for display: as it was written, except that principals which no longer exist appear by their
/// unique ids.
pub fn shown_policy(work: &mut Work<'_>, text: &str, ids: &UniqueIds) -> Result<String, Fault> {
    let mut gone = BTreeMap::new();
    for (arn, id) in ids {
        let shown = shown_principal(work, arn, Some(id))?;
        if shown != *arn {
            gone.insert(arn.as_str(), shown);
        }
    }
    if gone.is_empty() {
        return Ok(text.to_owned());
    }
    let damaged = |_| Fault::Damaged("policy".to_owned());
    let mut document: Value = serde_json::from_str(text).map_err(damaged)?;
    let statements = match &mut document["Statement"] {
        Value::Array(list) => list.iter_mut().collect(),
        one => vec![one],
    };
    for statement in statements {
        for element in ["Principal", "NotPrincipal"] {
            let Some(named) = statement.get_mut(element).and_then(|names| names.get_mut("AWS"))
            else {
                continue;
            };
            let names = match named {
                Value::Array(list) => list.iter_mut().collect(),
                one => vec![one],
            };
            for name in names {
                // Ids are stored under the canonical ARN.
                let arn = name.as_str().and_then(Arn::principal).map(|arn| arn.to_string());
                if let Some(shown) = arn.and_then(|arn| gone.get(arn.as_str())) {
                    *name = Value::String(shown.clone());
                }
            }
        }
    }
    Ok(serde_json::to_string_pretty(&document).unwrap_or_else(|_| text.to_owned()))
}

/// Whether it looks like a service's name, such as `acm-acme.amazonaws.com`.
pub fn is_service(name: &str) -> bool {
    let suffixes = [".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".aws.internal"];
    let fits = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    name.len() <= 128
        && suffixes.iter().any(|suffix| name.ends_with(suffix))
        && name.split('.').all(fits)
}

/// Whether it is a role of this service that exists in each account without being made.
fn is_service_linked(arn: &Arn) -> bool {
    let roles = [
        crate::acm::SERVICE_ROLE,
        crate::tsa::ROLE,
        crate::ssh_ca::ROLE,
        crate::upload_signing::ROLE,
    ];
    let name = arn.resource().strip_prefix("role/");
    arn.service() == "iam" && name.is_some_and(|name| roles.contains(&name))
}

fn shorten(text: &str) -> String {
    text.chars().take(256).collect()
}
