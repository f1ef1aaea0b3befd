//! Authorization for an authority: identity policies, and the policy of the authority itself.

use super::authority::Authority;
use super::{CaError, policy};
use crate::identity::Permit;
use crate::identity::action::Action;
use crate::kms::Access;
use crate::work::Work;

/// Authorizes `action` on the authority. In its own account an identity policy suffices; from another account the
/// authority's policy must allow it, too.
pub fn authorize<A: Action>(
    work: &mut Work<'_>,
    access: Access<'_>,
    action: A,
    authority: &Authority,
) -> Result<Permit<A>, CaError> {
    let policy = policy::parsed(work, access.policies, authority)?;
    let account = authority.scope().account.as_str();
    let conditions = policy::conditions(access.conditions, authority);
    let arn = authority.arn();
    let caller = access.caller;
    // Only these templates are shared, even by a policy that was put before that was checked.
    let template = conditions.get("acm-pca:TemplateArn").and_then(|values| values.first());
    let shared = caller.principal.account == account
        || A::NAME != policy::ISSUE
        || template.is_some_and(|arn| policy::is_shareable_template(arn));
    let policy = policy.filter(|_| shared);
    Ok(caller.decide(policy.as_deref(), account, false, &conditions, action, &arn)?)
}
