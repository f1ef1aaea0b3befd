//! `GetKeyRotationStatus`: tells whether and when a key rotates.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GetKeyRotationStatus.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::key_by_id;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Timestamp};

/// The operation.
pub struct GetKeyRotationStatus;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_rotation_enabled: bool,
    pub key_id: String,
    pub rotation_period_in_days: Option<i64>,
    pub next_rotation_date: Option<Timestamp>,
    pub on_demand_rotation_start_date: Option<Timestamp>,
}

impl Operation for GetKeyRotationStatus {
    const NAME: &'static str = "GetKeyRotationStatus";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = key_by_id(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::GetKeyRotationStatus, &key, None)?;
        let rotation = kms::rotation_status(&mut call.work, &key, &allowed)?;
        Ok(Output {
            key_rotation_enabled: rotation.is_some(),
            key_id: key.arn(),
            rotation_period_in_days: rotation.map(|rotation| rotation.period_days),
            next_rotation_date: rotation.map(|rotation| Timestamp::from_ms(rotation.next_ms)),
            // A rotation on demand is done when its call returns.
            on_demand_rotation_start_date: None,
        })
    }
}
