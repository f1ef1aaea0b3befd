//! `GenerateMac`: makes a message authentication code.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GenerateMac.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{dry_run, find_key, grant_tokens, mac_algorithm};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, validate};

/// The operation.
pub struct GenerateMac;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub message: Blob,
    pub key_id: String,
    pub mac_algorithm: String,
    pub grant_tokens: Option<Vec<String>>,
    pub dry_run: Option<bool>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub mac: Blob,
    pub mac_algorithm: String,
    pub key_id: String,
}

impl Operation for GenerateMac {
    const NAME: &'static str = "GenerateMac";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens)?;
        validate::length("Message", input.message.0.len(), 1, 4096)?;
        mac_algorithm(call, &input.mac_algorithm)?;
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::GenerateMac, &key, None)?;
        let (algorithm, message) = (&input.mac_algorithm, &input.message.0);
        let mac = kms::mac(&mut call.work, call.ring, &key, algorithm, message, &allowed)?;
        dry_run(input.dry_run)?;
        let key_id = key.arn();
        call.used.push(key);
        Ok(Output { mac: Blob(mac), mac_algorithm: input.mac_algorithm, key_id })
    }
}
