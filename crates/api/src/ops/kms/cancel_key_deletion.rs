//! `CancelKeyDeletion`: takes a deletion back; the key is disabled afterwards.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_CancelKeyDeletion.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};

use crate::model::kms::own_key;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct CancelKeyDeletion;

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
}

impl Operation for CancelKeyDeletion {
    const NAME: &'static str = "CancelKeyDeletion";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = own_key(call, action::kms::CancelKeyDeletion, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::CancelKeyDeletion, &key, None)?;
        let key = kms::cancel_deletion(&mut call.work, key, &allowed)?;
        Ok(Output { key_id: key.arn() })
    }
}
