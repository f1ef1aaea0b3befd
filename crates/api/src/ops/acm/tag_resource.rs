//! `TagResource`: adds tags to a resource of any kind.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_TagResource.html>

use outlast_domain::acm::tags as resources;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm::{Tag, authorize_resource, resource_error, tags};
use crate::model::request_tags;
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct TagResource;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub resource_arn: String,
    pub tags: Vec<Tag>,
}

impl Operation for TagResource {
    const NAME: &'static str = "TagResource";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("Tags", input.tags.len(), 1, 50)?;
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
