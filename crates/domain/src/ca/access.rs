//! Who may use an authority: identity policies, and the policy of the authority itself.

use super::authority::Authority;
use super::{CaError, policy};
use crate::identity::Permit;
use crate::identity::action::Action;
use crate::kms::Access;
use crate::policy::ConditionKeys;
use crate::work::Work;

/// Decides whether the caller may do `action` with the authority. In its own
/// account an identity policy suffices; from another one, the authority's policy must allow it, too.
pub fn authorize<A: Action>(
    work: &mut Work<'_>,
    access: Access<'_>,
    action: A,
    authority: &Authority,
) -> Result<Permit<A>, CaError> {
    let policy = policy::parsed(work, access.policies, authority)?;
    let account = authority.scope().account.as_str();
    let conditions = conditions(access.conditions, authority);
    let arn = authority.arn();
    let caller = access.caller;
    Ok(caller.decide(policy.as_deref(), account, false, &conditions, action, &arn)?)
}

/// What policies can ask about the authority; the operation has put in what is asked of it.
pub(super) fn conditions(request: &ConditionKeys, authority: &Authority) -> ConditionKeys {
    let mut keys = request.clone();
    keys.set("aws:ResourceAccount", authority.scope().account.as_str());
    for (name, value) in authority.tags() {
        keys.set(&format!("aws:ResourceTag/{name}"), value.as_str());
    }
    keys
}
