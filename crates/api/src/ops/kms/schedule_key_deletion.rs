//! `ScheduleKeyDeletion`: deletes a key after a waiting period.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ScheduleKeyDeletion.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    ScheduleKeyDeletion, ScheduleKeyDeletionRequest as Input, ScheduleKeyDeletionResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::{ApiError, Timestamp};

impl Run for ScheduleKeyDeletion {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let days = input.pending_window_in_days.unwrap_or(30);
        call.notes.parameter("pendingWindowInDays", days);
        call.conditions.set("kms:ScheduleKeyDeletionPendingWindowInDays", days.to_string());
        let key = own_key(call, action::kms::ScheduleKeyDeletion, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::ScheduleKeyDeletion, &key, None)?;
        let key = kms::schedule_deletion(&mut call.work, key, days, &allowed)?;
        Ok(Output {
            key_id: key.arn(),
            deletion_date: key.deletion().map(|deletion| Timestamp::from_ms(deletion.at_ms)),
            key_state: key.state().name().to_owned(),
            pending_window_in_days: days,
        })
    }
}
