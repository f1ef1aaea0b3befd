//! `TagResource`: adds tags to a resource of any kind.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_TagResource.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere;

use crate::aws::Empty;
pub use crate::aws::rolesanywhere::{TagResource, TagResourceRequest as Input};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_taggable, new_tags};
use crate::wire::ApiError;

impl Run for TagResource {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let (arn, there) = find_taggable(call, &input.resource_arn)?;
        let tags = new_tags(call, Some(input.tags))?;
        let allowed = authorize_tagged(call, action::rolesanywhere::TagResource, &arn, &there)?;
        rolesanywhere::add_tags(&mut call.work, &call.scope, &arn, tags, &allowed)?;
        Ok(Empty {})
    }
}
