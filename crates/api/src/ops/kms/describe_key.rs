//! `DescribeKey`: tells what there is to know of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DescribeKey.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{KeyMetadata, find_key, grant_tokens};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct DescribeKey;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
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
        grant_tokens(call, input.grant_tokens)?;
        let key = find_key(call, &input.key_id)?;
        call.authorize_key(action::kms::DescribeKey, &key, None)?;
        Ok(Output { key_metadata: KeyMetadata::from(&key) })
    }
}
