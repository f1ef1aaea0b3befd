//! `EnableKeyRotation`: enables automatic rotation of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_EnableKeyRotation.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use outlast_domain::limits::DEFAULT_ROTATION_PERIOD_DAYS;

use crate::aws::Empty;
pub use crate::aws::kms::{EnableKeyRotation, EnableKeyRotationRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::ApiError;

impl Run for EnableKeyRotation {
    const READ_ONLY: bool = false;

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
