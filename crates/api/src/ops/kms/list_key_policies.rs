//! `ListKeyPolicies`: lists the names of the policies of a key: there is one.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListKeyPolicies.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::own_key;
use crate::model::marker;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct ListKeyPolicies;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub limit: Option<i64>,
    pub marker: Option<String>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub policy_names: Vec<String>,
    pub next_marker: Option<String>,
    pub truncated: bool,
}

impl Operation for ListKeyPolicies {
    const NAME: &'static str = "ListKeyPolicies";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::page_limit("Limit", input.limit)?;
        marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let key = own_key(call, action::kms::ListKeyPolicies, &input.key_id)?;
        call.authorize_key(action::kms::ListKeyPolicies, &key, None)?;
        let policy_names = match input.marker {
            None => vec!["default".to_owned()],
            Some(_) => Vec::new(),
        };
        Ok(Output { policy_names, next_marker: None, truncated: false })
    }
}
