//! `DeriveSharedSecret`: agrees on a secret with the holder of another key on the same curve.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DeriveSharedSecret.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{dry_run, find_key, grant_tokens, refuse};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, validate};

/// The operation.
pub struct DeriveSharedSecret;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub key_agreement_algorithm: String,
    pub public_key: Blob,
    pub grant_tokens: Option<Vec<String>>,
    pub dry_run: Option<bool>,
    pub recipient: Option<serde_json::Value>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub shared_secret: Blob,
    pub key_agreement_algorithm: String,
    pub key_origin: String,
}

impl Operation for DeriveSharedSecret {
    const NAME: &'static str = "DeriveSharedSecret";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens)?;
        refuse("Recipient", input.recipient.as_ref())?;
        validate::length("PublicKey", input.public_key.0.len(), 1, 8192)?;
        validate::one_of("KeyAgreementAlgorithm", &input.key_agreement_algorithm, &["ECDH"])?;
        let algorithm = input.key_agreement_algorithm.as_str();
        call.notes.parameter("keyAgreementAlgorithm", algorithm);
        call.conditions.set("kms:KeyAgreementAlgorithm", algorithm);
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::DeriveSharedSecret, &key, None)?;
        let peer = &input.public_key.0;
        let secret =
            kms::derive_shared_secret(&mut call.work, call.ring, &key, algorithm, peer, &allowed)?;
        dry_run(input.dry_run)?;
        let output = Output {
            key_id: key.arn(),
            shared_secret: Blob(secret.expose().to_vec()),
            key_agreement_algorithm: algorithm.to_owned(),
            key_origin: key.origin().name().to_owned(),
        };
        call.used.push(key);
        Ok(output)
    }
}
