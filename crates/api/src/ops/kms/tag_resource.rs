//! `TagResource`: adds or replaces tags of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_TagResource.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};

use crate::model::kms::{Tag, own_key, request_tags, tags};
use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct TagResource;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub tags: Vec<Tag>,
}

impl Operation for TagResource {
    const NAME: &'static str = "TagResource";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Empty;

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
