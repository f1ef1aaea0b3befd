//! `PutKeyPolicy`: replaces the policy of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_PutKeyPolicy.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

use crate::aws::Empty;
pub use crate::aws::kms::{PutKeyPolicy, PutKeyPolicyRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::{check_policy, own_key};
use crate::wire::ApiError;

impl Run for PutKeyPolicy {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        if input.policy_name.as_deref().is_some_and(|name| name != "default") {
            return Err(kms::KmsError::NotFound(
                "The only policy of a key has the name default.".into(),
            )
            .into());
        }
        let key = own_key(call, action::kms::PutKeyPolicy, &input.key_id)?;
        let bypass = input.bypass_policy_lockout_safety_check;
        let text = if bypass == Some(true) { "true" } else { "false" };
        call.conditions.set("kms:BypassPolicyLockoutSafetyCheck", text);
        call.notes.parameter("bypassPolicyLockoutSafetyCheck", bypass.unwrap_or(false));
        let allowed = call.authorize_key(action::kms::PutKeyPolicy, &key, None)?;
        check_policy(call, &input.policy, &key.arn(), bypass)?;
        call.notes.parameter("policy", input.policy.as_str());
        kms::put_policy(&mut call.work, key, input.policy, &allowed)?;
        Ok(Empty {})
    }
}
