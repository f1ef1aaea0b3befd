//! `ListTagsForResource`: lists the tags of a server, a user or a host key.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_ListTagsForResource.html>

use outlast_domain::identity::action;

pub use crate::aws::transfer::{
    ListTagsForResource, ListTagsForResourceRequest as Input, ListTagsForResourceResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::page_of_tags;
use crate::model::transfer::{
    authorize_tagged, find_taggable, invalid, next_token, page_size, tag_list,
};
use crate::wire::ApiError;

impl Run for ListTagsForResource {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.max_results)?;
        let after = next_token(input.next_token.as_deref())?;
        // AWS's operation has no error for what does not exist.
        let (arn, tags) = find_taggable(call, &input.arn).map_err(|error| match error.code {
            "ResourceNotFoundException" => invalid(error.message),
            _ => error,
        })?;
        let action = action::transfer::ListTagsForResource;
        let _ = authorize_tagged(call, action, &arn, &tags)?;
        let (page, next_token) = page_of_tags(&tags, after.as_deref(), limit);
        Ok(Output { arn, next_token, tags: tag_list(&page.into_iter().collect()) })
    }
}
