//! `ListAliases`: lists aliases, of one key or of all.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListAliases.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::own_key;
use crate::model::marker;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Timestamp, validate};

/// The operation.
pub struct ListAliases;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: Option<String>,
    pub limit: Option<i64>,
    pub marker: Option<String>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub aliases: Vec<AliasListEntry>,
    pub next_marker: Option<String>,
    pub truncated: bool,
}

impl Operation for ListAliases {
    const NAME: &'static str = "ListAliases";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("Limit", input.limit)?;
        let after = marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let key = match &input.key_id {
            Some(name) => Some(own_key(call, action::kms::ListAliases, name)?),
            None => None,
        };
        let resource = call.scope.arn("kms", "alias/*");
        let allowed = call.authorize(action::kms::ListAliases, &resource)?;
        let page = kms::aliases(
            &mut call.work,
            &call.scope,
            key.as_ref(),
            after.as_deref(),
            limit,
            &allowed,
        )?;
        Ok(Output {
            aliases: page
                .items
                .iter()
                .map(|alias| AliasListEntry {
                    alias_name: alias.name.clone(),
                    alias_arn: alias.arn(&call.scope),
                    target_key_id: alias.target.clone(),
                    creation_date: Timestamp::from_ms(alias.created_ms),
                    last_updated_date: Timestamp::from_ms(alias.updated_ms),
                })
                .collect(),
            truncated: page.next.is_some(),
            next_marker: page.next.as_deref().map(marker::wrap),
        })
    }
}

/// `AliasListEntry`
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AliasListEntry {
    /// Name with `alias/`.
    pub alias_name: String,
    /// ARN.
    pub alias_arn: String,
    /// Id of the key.
    pub target_key_id: String,
    /// When it was made.
    pub creation_date: Timestamp,
    /// When it last got another key.
    pub last_updated_date: Timestamp,
}
