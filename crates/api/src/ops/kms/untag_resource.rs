//! `UntagResource`: removes tags from a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_UntagResource.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use outlast_domain::limits::MAX_TAGS;

use crate::aws::Empty;
pub use crate::aws::kms::{UntagResource, UntagResourceRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::{ApiError, validate};

impl Run for UntagResource {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("TagKeys", input.tag_keys.len(), 0, MAX_TAGS)?;
        let key = own_key(call, action::kms::UntagResource, &input.key_id)?;
        call.notes.parameter("tagKeys", input.tag_keys.clone());
        call.conditions.set_many("aws:TagKeys", input.tag_keys.clone());
        let allowed = call.authorize_key(action::kms::UntagResource, &key, None)?;
        kms::remove_tags(&mut call.work, key, &input.tag_keys, &allowed)?;
        Ok(Empty {})
    }
}
