//! `ListKeys`: lists the keys of the account in the region.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListKeys.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::marker;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct ListKeys;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub limit: Option<i64>,
    pub marker: Option<String>,
    pub resource_owners: Option<Vec<String>>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub keys: Vec<KeyListEntry>,
    pub next_marker: Option<String>,
    pub truncated: bool,
}

impl Operation for ListKeys {
    const NAME: &'static str = "ListKeys";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("Limit", input.limit)?;
        let after = marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let allowed = call.authorize(action::kms::ListKeys, &call.scope.arn("kms", "key/*"))?;
        let owners = input.resource_owners.unwrap_or_else(|| vec!["SELF".to_owned()]);
        validate::length("ResourceOwners", owners.len(), 1, 2)?;
        for owner in &owners {
            let known = ["SELF", "OTHER_ACCOUNTS_VIA_RAM"];
            validate::one_of("ResourceOwners", owner, &known)?;
        }
        // Nobody shares keys by Resource Access Manager here.
        if !owners.iter().any(|owner| owner == "SELF") {
            return Ok(Output { keys: Vec::new(), next_marker: None, truncated: false });
        }
        let page = kms::keys(&call.work, &call.scope, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            keys: page
                .items
                .iter()
                .map(|key| KeyListEntry { key_id: key.id().to_owned(), key_arn: key.arn() })
                .collect(),
            truncated: page.next.is_some(),
            next_marker: page.next.as_deref().map(marker::wrap),
        })
    }
}

/// `KeyListEntry`
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct KeyListEntry {
    /// Key id.
    pub key_id: String,
    /// Key ARN.
    pub key_arn: String,
}
