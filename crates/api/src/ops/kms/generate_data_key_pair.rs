//! `GenerateDataKeyPair`: makes a key pair: its public key, its private key, and the latter under a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GenerateDataKeyPair.html>

use outlast_domain::identity::action;
use outlast_domain::kms::EncryptionContext;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{
    data_key_pair, dry_run, encryption_context, find_key, grant_tokens, refuse,
};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob};

/// The operation.
pub struct GenerateDataKeyPair;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub encryption_context: Option<EncryptionContext>,
    pub key_id: String,
    pub key_pair_spec: String,
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
    pub private_key_ciphertext_blob: Blob,
    pub private_key_plaintext: Blob,
    pub public_key: Blob,
    pub key_id: String,
    pub key_pair_spec: String,
    pub key_material_id: Option<String>,
}

impl Operation for GenerateDataKeyPair {
    const NAME: &'static str = "GenerateDataKeyPair";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens)?;
        refuse("Recipient", input.recipient.as_ref())?;
        let context = encryption_context(call, input.encryption_context)?;
        let key = find_key(call, &input.key_id)?;
        let pair = data_key_pair(
            call,
            action::kms::GenerateDataKeyPair,
            &key,
            &context,
            &input.key_pair_spec,
        )?;
        dry_run(input.dry_run)?;
        let output = Output {
            private_key_ciphertext_blob: Blob(pair.ciphertext),
            private_key_plaintext: Blob(pair.private.expose().to_vec()),
            public_key: Blob(pair.public),
            key_id: key.arn(),
            key_pair_spec: input.key_pair_spec,
            key_material_id: Some(key.material_id().to_owned()),
        };
        call.used.push(key);
        Ok(output)
    }
}
