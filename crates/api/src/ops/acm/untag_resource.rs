//! `UntagResource`: removes tags from a resource of any kind.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_UntagResource.html>

use outlast_domain::acm::tags as resources;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{UntagResource, UntagResourceRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_resource, resource_error};
use crate::wire::ApiError;

impl Run for UntagResource {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        call.notes.parameter("tagKeys", input.tag_keys.clone());
        call.conditions.set_many("aws:TagKeys", input.tag_keys.clone());
        let own = action::acm::RemoveTagsFromCertificate;
        let found = authorize_resource(call, action::acm::UntagResource, own, &input.resource_arn)?;
        let which: Vec<_> = input.tag_keys.into_iter().map(|key| (key, None)).collect();
        resources::remove(&mut call.work, &call.scope, &found.arn, &which, &found.allowed)
            .map_err(resource_error)?;
        Ok(Empty {})
    }
}
