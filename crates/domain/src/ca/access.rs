//! Who may use an authority: identity policies, and the policy of the authority itself.

use super::authority::Authority;
use super::{CaError, policy};
use crate::identity::Permit;
use crate::identity::action::{self, Action};
use crate::kms::Access;
use crate::policy::ConditionKeys;
use crate::work::Work;

/// The action that takes a template.
pub(super) const ISSUE: &str = action::acm_pca::IssueCertificate::NAME;

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
    // Whatever a policy from before says, it shares these templates only.
    let template = conditions.get("acm-pca:TemplateArn").and_then(|values| values.first());
    let shared = caller.principal.account == account
        || A::NAME != ISSUE
        || template.is_some_and(|arn| policy::is_shareable_template(arn));
    let policy = policy.filter(|_| shared);
    Ok(caller.decide(policy.as_deref(), account, false, &conditions, action, &arn)?)
}

/// What policies can ask about the authority; the operation has put in what is asked of it.
pub(super) fn conditions(request: &ConditionKeys, authority: &Authority) -> ConditionKeys {
    let mut keys = request.clone();
    keys.set("aws:ResourceAccount", authority.scope().account.as_str());
    keys.set_tags("aws:ResourceTag", authority.tags());
    keys
}
