//! `ScheduleKeyDeletion`: deletes a key after a waiting period.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ScheduleKeyDeletion.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::own_key;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Timestamp};

/// The operation.
pub struct ScheduleKeyDeletion;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub pending_window_in_days: Option<i64>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub deletion_date: Option<Timestamp>,
    pub key_state: String,
    pub pending_window_in_days: i64,
}

impl Operation for ScheduleKeyDeletion {
    const NAME: &'static str = "ScheduleKeyDeletion";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

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
