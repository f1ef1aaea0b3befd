//! `Encrypt`: encrypts up to 4096 bytes.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Encrypt.html>

use outlast_domain::kms::{self, EncryptionContext};
use serde::{Deserialize, Serialize};

use crate::model::kms::{
    dry_run, encryption_algorithm, encryption_context, find_key, refuse_grant_tokens,
};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, validate};

/// The operation.
pub struct Encrypt;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub plaintext: Blob,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_context: Option<EncryptionContext>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_tokens: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_algorithm: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub ciphertext_blob: Blob,
    pub key_id: String,
    pub encryption_algorithm: String,
}

impl Operation for Encrypt {
    const NAME: &'static str = "Encrypt";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        refuse_grant_tokens(input.grant_tokens.as_ref())?;
        validate::length("Plaintext", input.plaintext.0.len(), 1, 4096)?;
        let algorithm = encryption_algorithm(input.encryption_algorithm.as_deref())?;
        let context = encryption_context(call, input.encryption_context)?;
        call.notes.parameter("encryptionAlgorithm", algorithm);
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize("kms:Encrypt", &key.arn())?;
        let plaintext =
            kms::PlaintextRef { algorithm, context: &context, bytes: &input.plaintext.0 };
        let blob = kms::encrypt(&mut call.work, call.ring, &key, "Encrypt", plaintext, &allowed)?;
        dry_run(input.dry_run)?;
        Ok(Output {
            ciphertext_blob: Blob(blob),
            key_id: key.arn(),
            encryption_algorithm: algorithm.to_owned(),
        })
    }
}
