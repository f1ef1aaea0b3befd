//! `ListResourceTags`: lists the tags of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListResourceTags.html>

pub use crate::aws::kms::{
    ListResourceTags, ListResourceTagsRequest as Input, ListResourceTagsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::{Tag, own_key};
use crate::model::{marker, page_of_tags};
use crate::wire::{ApiError, validate};
use outlast_domain::identity::action;

impl Run for ListResourceTags {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_of("Limit", input.limit, 50, 50)?;
        let after = marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let key = own_key(call, action::kms::ListResourceTags, &input.key_id)?;
        call.authorize_key(action::kms::ListResourceTags, &key, None)?;
        let (page, next_marker) = page_of_tags(key.tags(), after.as_deref(), limit);
        let tags =
            page.into_iter().map(|(tag_key, tag_value)| Tag { tag_key, tag_value }).collect();
        Ok(Output { tags, truncated: next_marker.is_some(), next_marker })
    }
}
