//! `PutKeyPolicy`: replaces the policy of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_PutKeyPolicy.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{check_policy, own_key};
use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct PutKeyPolicy;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub policy_name: Option<String>,
    pub policy: String,
    pub bypass_policy_lockout_safety_check: Option<bool>,
}

impl Operation for PutKeyPolicy {
    const NAME: &'static str = "PutKeyPolicy";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Empty;

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
