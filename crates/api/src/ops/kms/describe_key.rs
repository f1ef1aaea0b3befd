//! `DescribeKey`: tells all about a key but its material.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DescribeKey.html>

use crate::model::kms::{KeyMetadata, find_key, refuse_grant_tokens};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::ApiError;
use serde::{Deserialize, Serialize};

/// The operation.
pub struct DescribeKey;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_tokens: Option<Vec<String>>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_metadata: KeyMetadata,
}

impl Operation for DescribeKey {
    const NAME: &'static str = "DescribeKey";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        refuse_grant_tokens(input.grant_tokens.as_ref())?;
        let key = find_key(call, &input.key_id)?;
        call.authorize("kms:DescribeKey", &key.arn())?;
        Ok(Output { key_metadata: KeyMetadata::from(&key) })
    }
}
