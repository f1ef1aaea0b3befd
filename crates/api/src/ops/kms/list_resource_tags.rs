//! `ListResourceTags`: lists the tags of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListResourceTags.html>

use crate::model::kms::{Tag, find_key};
use crate::model::{marker, page_of_tags};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};
use serde::{Deserialize, Serialize};

/// The operation.
pub struct ListResourceTags;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<String>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub tags: Vec<Tag>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
        let key = find_key(call, &input.key_id)?;
        call.authorize("kms:ListResourceTags", &key.arn())?;
        let (page, next_marker) = page_of_tags(key.tags(), after.as_deref(), limit);
        let tags =
            page.into_iter().map(|(tag_key, tag_value)| Tag { tag_key, tag_value }).collect();
        Ok(Output { tags, truncated: next_marker.is_some(), next_marker })
    }
}
