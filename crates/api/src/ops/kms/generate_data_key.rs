//! `GenerateDataKey`: makes a data key: its plaintext, and the same under a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GenerateDataKey.html>

use outlast_domain::identity::action;
use outlast_domain::kms::{self, EncryptionContext};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{
    data_key, data_key_length, dry_run, encryption_context, find_key, grant_tokens, refuse,
};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob};

/// The operation.
pub struct GenerateDataKey;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub encryption_context: Option<EncryptionContext>,
    pub number_of_bytes: Option<i64>,
    pub key_spec: Option<String>,
    pub grant_tokens: Option<Vec<String>>,
    pub recipient: Option<serde_json::Value>,
    pub dry_run: Option<bool>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub ciphertext_blob: Blob,
    pub plaintext: Blob,
    pub key_id: String,
    pub key_material_id: Option<String>,
}

impl Operation for GenerateDataKey {
    const NAME: &'static str = "GenerateDataKey";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens)?;
        refuse("Recipient", input.recipient.as_ref())?;
        let len = data_key_length(input.number_of_bytes, input.key_spec.as_deref())?;
        let context = encryption_context(call, input.encryption_context)?;
        call.notes.parameter("numberOfBytes", len);
        let key = find_key(call, &input.key_id)?;
        let plaintext = outlast_crypto::random::secret(len).map_err(kms::KmsError::from)?;
        let blob = data_key(call, action::kms::GenerateDataKey, &key, &context, &plaintext)?;
        dry_run(input.dry_run)?;
        let output = Output {
            ciphertext_blob: Blob(blob),
            plaintext: Blob(plaintext.expose().to_vec()),
            key_id: key.arn(),
            key_material_id: Some(key.material_id().to_owned()),
        };
        call.used.push(key);
        Ok(output)
    }
}
