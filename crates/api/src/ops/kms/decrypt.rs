//! `Decrypt`: decrypts what Encrypt or GenerateDataKey made.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html>

use outlast_domain::identity::action;
use outlast_domain::kms::{self, EncryptionContext};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{
    ciphertext, dry_run, encryption_algorithm, encryption_context, grant_tokens,
    ignores_ciphertext, refuse, source_key,
};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob};

/// The operation.
pub struct Decrypt;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub ciphertext_blob: Option<Blob>,
    pub encryption_context: Option<EncryptionContext>,
    pub grant_tokens: Option<Vec<String>>,
    pub key_id: Option<String>,
    pub encryption_algorithm: Option<String>,
    pub recipient: Option<serde_json::Value>,
    pub dry_run: Option<bool>,
    pub dry_run_modifiers: Option<Vec<String>>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub plaintext: Blob,
    pub encryption_algorithm: String,
    pub key_material_id: Option<String>,
}

impl Operation for Decrypt {
    const NAME: &'static str = "Decrypt";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens)?;
        refuse("Recipient", input.recipient.as_ref())?;
        let ignores_ciphertext =
            ignores_ciphertext(input.dry_run, input.dry_run_modifiers.as_deref())?;
        let blob = ciphertext(input.ciphertext_blob.as_ref(), ignores_ciphertext)?;
        let algorithm = encryption_algorithm(call, input.encryption_algorithm.as_deref())?;
        let context = encryption_context(call, input.encryption_context)?;
        let key = source_key(call, input.key_id.as_deref(), algorithm, blob, ignores_ciphertext)?;
        let allowed = call.authorize_key(action::kms::Decrypt, &key, Some(&context))?;
        if ignores_ciphertext {
            dry_run(input.dry_run)?;
        }
        let ciphertext = kms::CiphertextRef { algorithm, context: &context, blob };
        let plaintext =
            kms::decrypt(&mut call.work, call.ring, &key, "Decrypt", ciphertext, &allowed)?;
        dry_run(input.dry_run)?;
        let output = Output {
            key_id: key.arn(),
            plaintext: Blob(plaintext.bytes.expose().to_vec()),
            encryption_algorithm: algorithm.to_owned(),
            key_material_id: plaintext.material_id,
        };
        call.used.push(key);
        Ok(output)
    }
}
