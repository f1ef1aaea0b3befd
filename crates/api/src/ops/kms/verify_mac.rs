//! `VerifyMac`: verifies a message authentication code; a wrong one is an error.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_VerifyMac.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{dry_run, find_key, grant_tokens, mac_algorithm};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, validate};

/// The operation.
pub struct VerifyMac;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub message: Blob,
    pub key_id: String,
    pub mac_algorithm: String,
    pub mac: Blob,
    pub grant_tokens: Option<Vec<String>>,
    pub dry_run: Option<bool>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub mac_valid: bool,
    pub mac_algorithm: String,
}

impl Operation for VerifyMac {
    const NAME: &'static str = "VerifyMac";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens)?;
        validate::length("Message", input.message.0.len(), 1, 4096)?;
        validate::length("Mac", input.mac.0.len(), 1, 6144)?;
        mac_algorithm(call, &input.mac_algorithm)?;
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::VerifyMac, &key, None)?;
        let (algorithm, message, mac) = (&input.mac_algorithm, &input.message.0, &input.mac.0);
        kms::verify_mac(&mut call.work, call.ring, &key, algorithm, message, mac, &allowed)?;
        dry_run(input.dry_run)?;
        let key_id = key.arn();
        call.used.push(key);
        Ok(Output { key_id, mac_valid: true, mac_algorithm: input.mac_algorithm })
    }
}
