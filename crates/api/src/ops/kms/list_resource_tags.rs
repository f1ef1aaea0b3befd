//! `ListResourceTags`: lists the tags of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListResourceTags.html>

use crate::model::kms::{Tag, own_key};
use crate::model::{marker, page_of_tags};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The operation.
pub struct ListResourceTags;

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
    pub tags: Vec<Tag>,
    pub next_marker: Option<String>,
    pub truncated: bool,
}

impl Operation for ListResourceTags {
    const NAME: &'static str = "ListResourceTags";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("Limit", input.limit)?;
        let after = marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let key = own_key(call, action::kms::ListResourceTags, &input.key_id)?;
        call.authorize_key(action::kms::ListResourceTags, &key, None)?;
        let (page, next_marker) = page_of_tags(key.tags(), after.as_deref(), limit);
        let tags =
            page.into_iter().map(|(tag_key, tag_value)| Tag { tag_key, tag_value }).collect();
        Ok(Output { tags, truncated: next_marker.is_some(), next_marker })
    }
}
