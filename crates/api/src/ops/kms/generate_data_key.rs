//! `GenerateDataKey`: makes a data key, in the clear and encrypted under a KMS key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GenerateDataKey.html>

use outlast_domain::kms::{self, EncryptionContext};
use serde::{Deserialize, Serialize};

use crate::model::kms::{dry_run, encryption_context, find_key, refuse, refuse_grant_tokens};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, validate};

/// The operation.
pub struct GenerateDataKey;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_context: Option<EncryptionContext>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_of_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_spec: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_tokens: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub ciphertext_blob: Blob,
    pub plaintext: Blob,
    pub key_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_material_id: Option<String>,
}

impl Operation for GenerateDataKey {
    const NAME: &'static str = "GenerateDataKey";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        refuse_grant_tokens(input.grant_tokens.as_ref())?;
        refuse("Recipient", input.recipient.as_ref())?;
        let len = length(input.number_of_bytes, input.key_spec.as_deref())?;
        let context = encryption_context(call, input.encryption_context)?;
        call.notes.parameter("numberOfBytes", len);
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize("kms:GenerateDataKey", &key.arn())?;
        let data_key = outlast_crypto::random::secret(len).map_err(kms::KmsError::from)?;
        let plaintext = kms::PlaintextRef {
            algorithm: "SYMMETRIC_DEFAULT",
            context: &context,
            bytes: data_key.expose(),
        };
        let operation = "GenerateDataKey";
        let blob = kms::encrypt(&mut call.work, call.ring, &key, operation, plaintext, &allowed)?;
        dry_run(input.dry_run)?;
        Ok(Output {
            ciphertext_blob: Blob(blob),
            plaintext: Blob(data_key.expose().to_vec()),
            key_id: key.arn(),
            key_material_id: Some(key.material_id().to_owned()),
        })
    }
}

fn length(number_of_bytes: Option<i64>, key_spec: Option<&str>) -> Result<usize, ApiError> {
    match (number_of_bytes, key_spec) {
        (None, Some(spec)) => {
            validate::one_of("KeySpec", spec, &["AES_256", "AES_128"])?;
            Ok(if spec == "AES_128" { 16 } else { 32 })
        }
        (Some(number), None) => usize::try_from(number)
            .ok()
            .filter(|number| (1..=1024).contains(number))
            .ok_or_else(|| ApiError::validation("NumberOfBytes must be between 1 and 1024.")),
        _ => Err(ApiError::validation(
            "Please specify either number of bytes or key spec, and not both.",
        )),
    }
}
