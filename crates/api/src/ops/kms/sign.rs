//! `Sign`: signs a message, a digest or an ML-DSA message representative.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Sign.html>

use outlast_domain::kms;
use serde::{Deserialize, Serialize};

use crate::model::kms::{check_signing_algorithm, dry_run, find_key, message, refuse_grant_tokens};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob};

/// The operation.
pub struct Sign;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub message: Blob,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_tokens: Option<Vec<String>>,
    pub signing_algorithm: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
        refuse_grant_tokens(input.grant_tokens.as_ref())?;
        check_signing_algorithm(&input.signing_algorithm)?;
        let message = message(&input.message, input.message_type.as_deref())?;
        call.notes.parameter("signingAlgorithm", input.signing_algorithm.as_str());
        call.notes.parameter("messageType", input.message_type.as_deref().unwrap_or("RAW"));
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize("kms:Sign", &key.arn())?;
        let algorithm = &input.signing_algorithm;
        let signature = kms::sign(&mut call.work, call.ring, &key, algorithm, message, &allowed)?;
        dry_run(input.dry_run)?;
        Ok(Output {
            key_id: key.arn(),
            signature: Blob(signature),
            signing_algorithm: input.signing_algorithm,
        })
    }
}
