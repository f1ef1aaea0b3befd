//! `EnableKeyRotation`: switches automatic rotation on.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_EnableKeyRotation.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use outlast_domain::limits::DEFAULT_ROTATION_PERIOD_DAYS;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::own_key;
use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct EnableKeyRotation;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub rotation_period_in_days: Option<i64>,
}

impl Operation for EnableKeyRotation {
    const NAME: &'static str = "EnableKeyRotation";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let key = own_key(call, action::kms::EnableKeyRotation, &input.key_id)?;
        let days = input.rotation_period_in_days.unwrap_or(DEFAULT_ROTATION_PERIOD_DAYS);
        call.notes.parameter("rotationPeriodInDays", days);
        call.conditions.set("kms:RotationPeriodInDays", days.to_string());
        let allowed = call.authorize_key(action::kms::EnableKeyRotation, &key, None)?;
        kms::enable_rotation(&mut call.work, key, days, &allowed)?;
        Ok(Empty {})
    }
}
