//! `GetKeyPolicy`: gives the policy of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GetKeyPolicy.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::own_key;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct GetKeyPolicy;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub policy_name: Option<String>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub policy: String,
    pub policy_name: String,
}

impl Operation for GetKeyPolicy {
    const NAME: &'static str = "GetKeyPolicy";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

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
