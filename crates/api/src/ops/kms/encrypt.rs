//! `Encrypt`: encrypts up to 4096 bytes.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Encrypt.html>

use outlast_domain::identity::action;
use outlast_domain::kms::{self, EncryptionContext};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{
    dry_run, encryption_algorithm, encryption_context, find_key, grant_tokens,
};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, validate};

/// The operation.
pub struct Encrypt;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub plaintext: Blob,
    pub encryption_context: Option<EncryptionContext>,
    pub grant_tokens: Option<Vec<String>>,
    pub encryption_algorithm: Option<String>,
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
        grant_tokens(call, input.grant_tokens)?;
        validate::length("Plaintext", input.plaintext.0.len(), 1, 4096)?;
        let algorithm =
            encryption_algorithm(call, input.encryption_algorithm.as_deref())?.to_owned();
        let context = encryption_context(call, input.encryption_context)?;
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::Encrypt, &key, Some(&context))?;
        let plaintext = kms::PlaintextRef {
            algorithm: &algorithm,
            context: &context,
            bytes: &input.plaintext.0,
        };
        let blob = kms::encrypt(&mut call.work, call.ring, &key, "Encrypt", plaintext, &allowed)?;
        dry_run(input.dry_run)?;
        let output = Output {
            ciphertext_blob: Blob(blob),
            key_id: key.arn(),
            encryption_algorithm: algorithm,
        };
        call.used.push(key);
        Ok(output)
    }
}
