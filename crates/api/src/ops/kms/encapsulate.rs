//! `Encapsulate`: makes a shared secret and the ciphertext that gives it to the holder of a key (FIPS 203).
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Encapsulate.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{dry_run, encapsulation_algorithm, find_key, grant_tokens};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob};

/// The operation.
pub struct Encapsulate;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub encapsulation_algorithm: String,
    pub grant_tokens: Option<Vec<String>>,
    pub dry_run: Option<bool>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub shared_secret: Blob,
    pub shared_secret_ciphertext_blob: Blob,
    pub encapsulation_algorithm: String,
}

impl Operation for Encapsulate {
    const NAME: &'static str = "Encapsulate";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens)?;
        encapsulation_algorithm(call, &input.encapsulation_algorithm)?;
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::Encapsulate, &key, None)?;
        let algorithm = input.encapsulation_algorithm.as_str();
        let (secret, ciphertext) =
            kms::encapsulate(&mut call.work, call.ring, &key, algorithm, &allowed)?;
        dry_run(input.dry_run)?;
        let output = Output {
            key_id: key.arn(),
            shared_secret: Blob(secret.expose().to_vec()),
            shared_secret_ciphertext_blob: Blob(ciphertext),
            encapsulation_algorithm: algorithm.to_owned(),
        };
        call.used.push(key);
        Ok(output)
    }
}
