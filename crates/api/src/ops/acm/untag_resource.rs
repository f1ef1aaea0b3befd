//! `UntagResource`: takes tags from a resource of any kind.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_UntagResource.html>

use outlast_domain::acm::tags as resources;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm::{authorize_resource, resource_error};
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct UntagResource;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub resource_arn: String,
    pub tag_keys: Vec<String>,
}

impl Operation for UntagResource {
    const NAME: &'static str = "UntagResource";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("TagKeys", input.tag_keys.len(), 1, 50)?;
        for key in &input.tag_keys {
            validate::length("TagKeys", key.chars().count(), 1, 128)?;
        }
        call.notes.parameter("tagKeys", input.tag_keys.clone());
        call.conditions.set_many("aws:TagKeys", input.tag_keys.clone());
        let own = action::acm::RemoveTagsFromCertificate;
        let found = authorize_resource(call, action::acm::UntagResource, own, &input.resource_arn)?;
        let which: Vec<_> = input.tag_keys.into_iter().map(|key| (key, None)).collect();
        resources::remove(&mut call.work, &call.scope, &found.arn, &which, &found.allowed)
            .map_err(resource_error)?;
        Ok(Empty {})
    }
}
