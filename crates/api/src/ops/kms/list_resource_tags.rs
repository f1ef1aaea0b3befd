//! `ListResourceTags`: lists the tags of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListResourceTags.html>

use crate::model::kms::{Tag, find_key, marker};
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
        let mut rest: Vec<_> = key
            .tags()
            .iter()
            .filter(|(name, _)| after.as_ref().is_none_or(|after| *name > after))
            .map(|(name, value)| Tag { tag_key: name.clone(), tag_value: value.clone() })
            .collect();
        let truncated = rest.len() > limit;
        rest.truncate(limit);
        let last = rest.last().map(|tag| marker::wrap(&tag.tag_key));
        Ok(Output { next_marker: last.filter(|_| truncated), tags: rest, truncated })
    }
}
