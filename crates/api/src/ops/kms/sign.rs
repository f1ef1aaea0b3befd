//! `Sign`: signs a message, its digest, or the message representative of ML-DSA.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Sign.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{dry_run, find_key, grant_tokens, message, signing_algorithm};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob};

/// The operation.
pub struct Sign;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub message: Blob,
    pub message_type: Option<String>,
    pub grant_tokens: Option<Vec<String>>,
    pub signing_algorithm: String,
    pub dry_run: Option<bool>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub signature: Blob,
    pub signing_algorithm: String,
}

impl Operation for Sign {
    const NAME: &'static str = "Sign";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens)?;
        signing_algorithm(call, &input.signing_algorithm)?;
        let message = message(call, &input.message, input.message_type.as_deref())?;
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::Sign, &key, None)?;
        let algorithm = &input.signing_algorithm;
        let signature = kms::sign(&mut call.work, call.ring, &key, algorithm, message, &allowed)?;
        dry_run(input.dry_run)?;
        let key_id = key.arn();
        call.used.push(key);
        Ok(Output {
            key_id,
            signature: Blob(signature),
            signing_algorithm: input.signing_algorithm,
        })
    }
}
