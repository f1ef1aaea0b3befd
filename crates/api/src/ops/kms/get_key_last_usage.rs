//! `GetKeyLastUsage`: returns when a key was last used.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GetKeyLastUsage.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    GetKeyLastUsage, GetKeyLastUsageRequest as Input, GetKeyLastUsageResponse as Output,
    KeyLastUsageData,
};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::{ApiError, Timestamp};

impl Run for GetKeyLastUsage {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = own_key(call, action::kms::GetKeyLastUsage, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::GetKeyLastUsage, &key, None)?;
        let last = kms::last_use(&mut call.work, &key, &allowed)?;
        let created = Timestamp::from_ms(key.created_ms());
        Ok(Output {
            key_id: key.arn(),
            key_last_usage: last.map_or_else(KeyLastUsageData::default, |last| KeyLastUsageData {
                operation: Some(last.operation),
                timestamp: Some(Timestamp::from_ms(last.at_ms)),
                cloud_trail_event_id: Some(last.event_id),
                kms_request_id: Some(last.request_id),
            }),
            // Every use of a key is recorded from its creation on.
            tracking_start_date: created,
            key_creation_date: created,
        })
    }
}
