//! Trust policies of roles.

use std::collections::BTreeMap;

use super::directory::{Entry, IdentityError, Role, check_document, check_record_key, record_key};
use super::unique::{self, UniqueIds, Unresolved, shown_policy};
use crate::policy::Kind;
use crate::work::Work;
use crate::{Fault, ids, limits};

impl Role {
    /// Replaces the trust policy.
    pub fn put_trust(mut self, work: &mut Work<'_>, text: &str) -> Result<Self, IdentityError> {
        self.trusted = check_trust(work, text)?;
        text.clone_into(&mut self.trust);
        self.save(work)?;
        Ok(self)
    }

    /// The trust policy for display: principals that no longer exist appear by their unique ids.
    pub fn shown_trust(&self, work: &mut Work<'_>) -> Result<String, Fault> {
        shown_policy(work, &self.trust, &self.trusted)
    }
}

/// Makes a role that the principals of `trust` may assume.
pub fn create_role(
    work: &mut Work<'_>,
    account: &str,
    name: &str,
    trust: &str,
    max_session_seconds: i64,
) -> Result<Role, IdentityError> {
    check_record_key(account, name)?;
    let trusted = check_trust(work, trust)?;
    if !limits::MAX_SESSION_SECONDS.contains(&max_session_seconds) {
        return Err(IdentityError::Invalid(
            "the longest session of a role must be between 3600 and 43200 seconds".into(),
        ));
    }
    if work.exists(&record_key::<Role>(account, name))? {
        return Err(IdentityError::AlreadyExists(format!("role {name} of account {account}")));
    }
    let role = Role {
        account: account.to_owned(),
        name: name.to_owned(),
        id: ids::base32("AROA", 17)?,
        created_ms: work.now_ms(),
        trust: trust.to_owned(),
        trusted,
        policies: BTreeMap::new(),
        tags: BTreeMap::new(),
        max_session_seconds,
    };
    role.save(work)?;
    Ok(role)
}

/// Checks that a trust policy is valid and that its principals exist.
fn check_trust(work: &mut Work<'_>, text: &str) -> Result<UniqueIds, IdentityError> {
    let policy = check_document(text, Kind::Trust)?;
    unique::resolve(work, &policy).map_err(|error| match error {
        Unresolved::Fault(fault) => IdentityError::Fault(fault),
        Unresolved::Unknown(_) => {
            IdentityError::Invalid(format!("the policy is not valid: {error}"))
        }
    })
}
