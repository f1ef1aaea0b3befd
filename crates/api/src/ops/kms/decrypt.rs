//! `Decrypt`: decrypts what Encrypt or GenerateDataKey made.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html>

use outlast_domain::kms::{self, EncryptionContext};
use serde::{Deserialize, Serialize};

use crate::model::kms::{
    dry_run, encryption_algorithm, encryption_context, find_key, refuse, refuse_grant_tokens,
};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, validate};

/// The operation.
pub struct Decrypt;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub ciphertext_blob: Blob,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_context: Option<EncryptionContext>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_tokens: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_algorithm: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run_modifiers: Option<Vec<String>>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub plaintext: Blob,
    pub encryption_algorithm: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_material_id: Option<String>,
}

impl Operation for Decrypt {
    const NAME: &'static str = "Decrypt";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        refuse_grant_tokens(input.grant_tokens.as_ref())?;
        refuse("Recipient", input.recipient.as_ref())?;
        refuse("DryRunModifiers", input.dry_run_modifiers.as_ref())?;
        let blob = &input.ciphertext_blob.0;
        validate::length("CiphertextBlob", blob.len(), 1, 6144)?;
        let algorithm = encryption_algorithm(input.encryption_algorithm.as_deref())?;
        let context = encryption_context(call, input.encryption_context)?;
        call.notes.parameter("encryptionAlgorithm", algorithm);
        let symmetric = algorithm == "SYMMETRIC_DEFAULT";
        let named = match &input.key_id {
            Some(name) => Some(find_key(call, name)?),
            None if symmetric => None,
            None => {
                return Err(ApiError::validation(
                    "KeyId is required to decrypt with an asymmetric key.",
                ));
            }
        };
        let key = match named {
            Some(key) => {
                // The ciphertext names its key; another one is refused before anything is tried.
                if symmetric && key.spec().name == "SYMMETRIC_DEFAULT" {
                    let inside = kms::decryption_key(&mut call.work, &call.scope, blob)?;
                    if inside.arn() != key.arn() {
                        return Err(kms::KmsError::IncorrectKey.into());
                    }
                }
                key
            }
            None => {
                let key = kms::decryption_key(&mut call.work, &call.scope, blob)?;
                call.notes.resource(key.arn(), "AWS::KMS::Key");
                key
            }
        };
        let allowed = call.authorize("kms:Decrypt", &key.arn())?;
        let plaintext = kms::decrypt(
            &mut call.work,
            call.ring,
            &key,
            kms::CiphertextRef { algorithm, context: &context, blob },
            &allowed,
        )?;
        dry_run(input.dry_run)?;
        Ok(Output {
            key_id: key.arn(),
            plaintext: Blob(plaintext.bytes.expose().to_vec()),
            encryption_algorithm: algorithm.to_owned(),
            key_material_id: plaintext.material_id,
        })
    }
}
