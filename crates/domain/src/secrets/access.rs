//! Authorization for a secret: identity policies, and the policy of the secret itself.

use super::conditions::conditions;
use super::create::NewSecret;
use super::lookup::Named;
use super::secret::Secret;
use super::{SecretError, policy};
use crate::arn::Scope;
use crate::identity::Permit;
use crate::identity::action::Action;
use crate::kms::Access;
use crate::work::Work;

/// Authorizes `action` on the secret. In its own account an identity policy or the secret's policy suffices; from
/// another account both are needed.
pub fn authorize<A: Action>(
    work: &mut Work<'_>,
    access: Access<'_>,
    action: A,
    secret: &Secret,
) -> Result<Permit<A>, SecretError> {
    let policy = policy::parsed(work, access.policies, secret)?;
    let conditions = conditions(access.conditions, secret);
    let (account, arn) = (secret.scope().account.as_str(), secret.arn());
    Ok(access.caller.decide(policy.as_deref(), account, false, &conditions, action, &arn)?)
}

/// Authorizes `action` on a secret that is to be made, which has no policy yet.
pub fn authorize_new<A: Action>(
    access: Access<'_>,
    scope: &Scope,
    action: A,
    new: &NewSecret,
) -> Result<Permit<A>, SecretError> {
    let (account, arn) = (scope.account.as_str(), new.arn(scope));
    Ok(access.caller.decide(None, account, false, access.conditions, action, &arn)?)
}

/// The error of a call about a secret that does not exist: only callers who may carry `action` out on a secret of that
/// name learn that it does not exist.
pub fn authorize_absent<A: Action>(access: Access<'_>, action: A, named: &Named) -> SecretError {
    let (account, arn) = (named.scope.account.as_str(), named.arn());
    let decided = access.caller.decide(None, account, false, access.conditions, action, &arn);
    decided.map_or_else(SecretError::from, |_| SecretError::not_found())
}
