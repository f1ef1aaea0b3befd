//! `TagResource`: adds tags to a resource of any kind.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_TagResource.html>

use outlast_domain::acm::tags as resources;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{TagResource, TagResourceRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_resource, resource_error, tags};
use crate::model::request_tags;
use crate::wire::ApiError;

impl Run for TagResource {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let tags = tags(input.tags, "ValidationException")?;
        call.notes.parameter("tags", serde_json::json!(tags));
        request_tags(&mut call.conditions, &tags);
        let arn = &input.resource_arn;
        let found = authorize_resource(
            call,
            action::acm::TagResource,
            action::acm::AddTagsToCertificate,
            arn,
        )?;
        resources::add(&mut call.work, &call.scope, &found.arn, tags, &found.allowed)
            .map_err(resource_error)?;
        Ok(Empty {})
    }
}
