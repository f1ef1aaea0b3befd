//! `UntagResource`: removes tags from a resource of any kind.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_UntagResource.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere;

use crate::aws::Empty;
pub use crate::aws::rolesanywhere::{UntagResource, UntagResourceRequest as Input};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_taggable};
use crate::wire::ApiError;

impl Run for UntagResource {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let (arn, there) = find_taggable(call, &input.resource_arn)?;
        call.notes.parameter("tagKeys", input.tag_keys.clone());
        call.conditions.set_many("aws:TagKeys", input.tag_keys.clone());
        let allowed = authorize_tagged(call, action::rolesanywhere::UntagResource, &arn, &there)?;
        let (work, scope, keys) = (&mut call.work, &call.scope, &input.tag_keys);
        rolesanywhere::remove_tags(work, scope, &arn, keys, &allowed)?;
        Ok(Empty {})
    }
}
