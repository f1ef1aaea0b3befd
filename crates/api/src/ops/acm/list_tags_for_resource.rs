//! `ListTagsForResource`: lists the tags of a resource of any kind.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListTagsForResource.html>

use outlast_domain::identity::action;

pub use crate::aws::acm::{
    ListTagsForResource, ListTagsForResourceRequest as Input, ListTagsForResourceResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_resource, tag_list};
use crate::wire::ApiError;

impl Run for ListTagsForResource {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let (action, own) = (action::acm::ListTagsForResource, action::acm::ListTagsForCertificate);
        let found = authorize_resource(call, action, own, &input.resource_arn)?;
        Ok(Output { tags: tag_list(found.tags) })
    }
}
