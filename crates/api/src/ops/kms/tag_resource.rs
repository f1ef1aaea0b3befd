//! `TagResource`: adds or replaces tags of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_TagResource.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

use crate::aws::Empty;
pub use crate::aws::kms::{TagResource, TagResourceRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::{own_key, request_tags, tags};
use crate::wire::ApiError;

impl Run for TagResource {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let tags = tags(input.tags)?;
        let key = own_key(call, action::kms::TagResource, &input.key_id)?;
        call.notes.parameter("tags", serde_json::json!(tags));
        request_tags(call, &tags);
        let allowed = call.authorize_key(action::kms::TagResource, &key, None)?;
        kms::add_tags(&mut call.work, key, tags, &allowed)?;
        Ok(Empty {})
    }
}
