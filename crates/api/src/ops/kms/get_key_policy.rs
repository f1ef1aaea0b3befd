//! `GetKeyPolicy`: returns the policy of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GetKeyPolicy.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    GetKeyPolicy, GetKeyPolicyRequest as Input, GetKeyPolicyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::ApiError;

impl Run for GetKeyPolicy {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        if input.policy_name.as_deref().is_some_and(|name| name != "default") {
            return Err(kms::KmsError::NotFound(
                "The only policy of a key has the name default.".into(),
            )
            .into());
        }
        let key = own_key(call, action::kms::GetKeyPolicy, &input.key_id)?;
        call.authorize_key(action::kms::GetKeyPolicy, &key, None)?;
        let policy = kms::shown_policy(&mut call.work, &key)?;
        Ok(Output { policy, policy_name: "default".to_owned() })
    }
}
