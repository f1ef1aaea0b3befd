//! `ListTagsForResource`: lists the tags of a resource of any kind.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListTagsForResource.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm::{Tag, authorize_resource, tag_list};
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct ListTagsForResource;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub resource_arn: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub tags: Vec<Tag>,
}

impl Operation for ListTagsForResource {
    const NAME: &'static str = "ListTagsForResource";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let (action, own) = (action::acm::ListTagsForResource, action::acm::ListTagsForCertificate);
        let found = authorize_resource(call, action, own, &input.resource_arn)?;
        Ok(Output { tags: tag_list(found.tags) })
    }
}
