//! `DescribeCustomKeyStores`: lists custom key stores, of which there are none.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DescribeCustomKeyStores.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::no_custom_key_store;
use crate::model::marker;
use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct DescribeCustomKeyStores;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub custom_key_store_id: Option<String>,
    pub custom_key_store_name: Option<String>,
    pub limit: Option<i64>,
    pub marker: Option<String>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub custom_key_stores: Vec<Empty>,
    pub next_marker: Option<String>,
    pub truncated: bool,
}

impl Operation for DescribeCustomKeyStores {
    const NAME: &'static str = "DescribeCustomKeyStores";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::page_limit("Limit", input.limit)?;
        marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        call.authorize(action::kms::DescribeCustomKeyStores, &call.scope.arn("kms", "*"))?;
        if let Some(name) = input.custom_key_store_id.or(input.custom_key_store_name) {
            return Err(no_custom_key_store(&name));
        }
        Ok(Output { custom_key_stores: Vec::new(), next_marker: None, truncated: false })
    }
}
