//! `UpdateKeyDescription`: replaces the description of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_UpdateKeyDescription.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};

use crate::model::kms::own_key;
use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct UpdateKeyDescription;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub description: String,
}

impl Operation for UpdateKeyDescription {
    const NAME: &'static str = "UpdateKeyDescription";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("Description", input.description.chars().count(), 0, 8192)?;
        let key = own_key(call, action::kms::UpdateKeyDescription, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::UpdateKeyDescription, &key, None)?;
        kms::describe(&mut call.work, key, input.description, &allowed)?;
        Ok(Empty {})
    }
}
