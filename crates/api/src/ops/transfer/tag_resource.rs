//! `TagResource`: adds tags to a server, a user or a host key.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_TagResource.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::add_tags;

use crate::aws::Empty;
pub use crate::aws::transfer::{TagResource, TagResourceRequest as Input};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, find_taggable, new_tags};
use crate::wire::ApiError;

impl Run for TagResource {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let (arn, there) = find_taggable(call, &input.arn)?;
        let tags = new_tags(call, Some(input.tags))?;
        let allowed = authorize_tagged(call, action::transfer::TagResource, &arn, &there)?;
        add_tags(&mut call.work, &call.scope, &arn, tags, &allowed)?;
        Ok(Empty {})
    }
}
