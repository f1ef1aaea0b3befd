//! `GenerateRandom`: gives random bytes.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GenerateRandom.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{no_custom_key_store, refuse};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob};

/// The operation.
pub struct GenerateRandom;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub number_of_bytes: Option<i64>,
    pub custom_key_store_id: Option<String>,
    pub recipient: Option<serde_json::Value>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub plaintext: Blob,
}

impl Operation for GenerateRandom {
    const NAME: &'static str = "GenerateRandom";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        refuse("Recipient", input.recipient.as_ref())?;
        if let Some(id) = &input.custom_key_store_id {
            return Err(no_custom_key_store(id));
        }
        let len = usize::try_from(input.number_of_bytes.unwrap_or(0))
            .ok()
            .filter(|len| (1..=1024).contains(len))
            .ok_or_else(|| ApiError::validation("NumberOfBytes must be between 1 and 1024."))?;
        call.notes.parameter("numberOfBytes", len);
        call.authorize(action::kms::GenerateRandom, &call.scope.arn("kms", "*"))?;
        let random = outlast_crypto::random::secret(len).map_err(kms::KmsError::from)?;
        Ok(Output { plaintext: Blob(random.expose().to_vec()) })
    }
}
