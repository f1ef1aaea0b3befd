//! `Verify`: verifies a signature; an invalid one is an error.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Verify.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{dry_run, find_key, grant_tokens, message, signing_algorithm};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, validate};

/// The operation.
pub struct Verify;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub message: Blob,
    pub message_type: Option<String>,
    pub signature: Blob,
    pub signing_algorithm: String,
    pub grant_tokens: Option<Vec<String>>,
    pub dry_run: Option<bool>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub signature_valid: bool,
    pub signing_algorithm: String,
}

impl Operation for Verify {
    const NAME: &'static str = "Verify";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens)?;
        signing_algorithm(call, &input.signing_algorithm)?;
        validate::length("Signature", input.signature.0.len(), 1, MAX_SIGNATURE)?;
        let message = message(call, &input.message, input.message_type.as_deref())?;
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::Verify, &key, None)?;
        kms::verify(
            &mut call.work,
            call.ring,
            &key,
            &input.signing_algorithm,
            message,
            &input.signature.0,
            &allowed,
        )?;
        dry_run(input.dry_run)?;
        let key_id = key.arn();
        call.used.push(key);
        Ok(Output { key_id, signature_valid: true, signing_algorithm: input.signing_algorithm })
    }
}

/// AWS's limit is 6144 bytes; a signature of `SLH_DSA_SHA2_256S`, which AWS lacks, has 29,792 (FIPS 205, table 2).
const MAX_SIGNATURE: usize = 32_768;
