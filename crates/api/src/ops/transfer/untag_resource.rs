//! `UntagResource`: removes tags from a server, a user or a host key.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_UntagResource.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::remove_tags;

use crate::aws::Empty;
pub use crate::aws::transfer::{UntagResource, UntagResourceRequest as Input};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, find_taggable};
use crate::wire::ApiError;

impl Run for UntagResource {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let (arn, there) = find_taggable(call, &input.arn)?;
        call.notes.parameter("tagKeys", input.tag_keys.clone());
        call.conditions.set_many("aws:TagKeys", input.tag_keys.clone());
        let allowed = authorize_tagged(call, action::transfer::UntagResource, &arn, &there)?;
        remove_tags(&mut call.work, &call.scope, &arn, &input.tag_keys, &allowed)?;
        Ok(Empty {})
    }
}
