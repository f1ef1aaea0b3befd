//! `DisableKeyRotation`: switches automatic rotation off.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DisableKeyRotation.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};

use crate::model::kms::own_key;
use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct DisableKeyRotation;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
}

impl Operation for DisableKeyRotation {
    const NAME: &'static str = "DisableKeyRotation";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let key = own_key(call, action::kms::DisableKeyRotation, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::DisableKeyRotation, &key, None)?;
        kms::disable_rotation(&mut call.work, key, &allowed)?;
        Ok(Empty {})
    }
}
