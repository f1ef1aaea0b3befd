//! `UntagResource`: removes tags from a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_UntagResource.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use outlast_domain::limits::MAX_TAGS;
use serde::{Deserialize, Serialize};

use crate::model::kms::own_key;
use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct UntagResource;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub tag_keys: Vec<String>,
}

impl Operation for UntagResource {
    const NAME: &'static str = "UntagResource";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("TagKeys", input.tag_keys.len(), 0, MAX_TAGS)?;
        for name in &input.tag_keys {
            validate::length("TagKeys", name.chars().count(), 1, 128)?;
        }
        let key = own_key(call, action::kms::UntagResource, &input.key_id)?;
        call.notes.parameter("tagKeys", input.tag_keys.clone());
        call.conditions.set_many("aws:TagKeys", input.tag_keys.clone());
        let allowed = call.authorize_key(action::kms::UntagResource, &key, None)?;
        kms::remove_tags(&mut call.work, key, &input.tag_keys, &allowed)?;
        Ok(Empty {})
    }
}
