//! `GetKeyRotationStatus`: returns whether and when a key rotates.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GetKeyRotationStatus.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    GetKeyRotationStatus, GetKeyRotationStatusRequest as Input,
    GetKeyRotationStatusResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::key_by_id;
use crate::wire::{ApiError, Timestamp};

impl Run for GetKeyRotationStatus {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = key_by_id(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::GetKeyRotationStatus, &key, None)?;
        let rotation = kms::rotation_status(&mut call.work, &key, &allowed)?;
        Ok(Output {
            key_rotation_enabled: rotation.is_some(),
            key_id: key.arn(),
            rotation_period_in_days: rotation.map(|rotation| rotation.period_days),
            next_rotation_date: rotation.map(|rotation| Timestamp::from_ms(rotation.next_ms)),
            // A rotation on demand is finished when its call returns.
            on_demand_rotation_start_date: None,
        })
    }
}
