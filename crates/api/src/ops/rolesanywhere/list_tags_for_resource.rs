//! `ListTagsForResource`: lists the tags of a resource of any kind.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_ListTagsForResource.html>

use outlast_domain::identity::action;

pub use crate::aws::rolesanywhere::{
    ListTagsForResource, ListTagsForResourceRequest as Input, ListTagsForResourceResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_taggable, tag_list};
use crate::wire::ApiError;

impl Run for ListTagsForResource {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let (arn, tags) = find_taggable(call, &input.resource_arn)?;
        let action = action::rolesanywhere::ListTagsForResource;
        let _ = authorize_tagged(call, action, &arn, &tags)?;
        Ok(Output { tags: tag_list(tags) })
    }
}
