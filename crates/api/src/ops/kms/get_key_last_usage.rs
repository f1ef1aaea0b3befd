//! `GetKeyLastUsage`: tells when a key was last used.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GetKeyLastUsage.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::own_key;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Timestamp};

/// The operation.
pub struct GetKeyLastUsage;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub key_last_usage: KeyLastUsageData,
    pub tracking_start_date: Timestamp,
    pub key_creation_date: Timestamp,
}

/// `KeyLastUsageData`
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct KeyLastUsageData {
    pub operation: Option<String>,
    pub timestamp: Option<Timestamp>,
    pub cloud_trail_event_id: Option<String>,
    pub kms_request_id: Option<String>,
}

impl Operation for GetKeyLastUsage {
    const NAME: &'static str = "GetKeyLastUsage";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

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
            // Every use of a key is recorded from its first day on.
            tracking_start_date: created,
            key_creation_date: created,
        })
    }
}
