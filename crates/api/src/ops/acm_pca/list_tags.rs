//! `ListTags`: lists the tags of a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_ListTags.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_pca::{Tag, find_authority};
use crate::model::{marker, page_of_tags};
use crate::ops::{ACM_PCA, Call, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct ListTags;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub max_results: Option<i64>,
    pub next_token: Option<String>,
    pub certificate_authority_arn: String,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub tags: Vec<Tag>,
    pub next_token: Option<String>,
}

impl Operation for ListTags {
    const NAME: &'static str = "ListTags";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("MaxResults", input.max_results)?;
        let after = marker::unwrap(input.next_token.as_deref(), "InvalidNextTokenException")?;
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.authorize_authority(action::acm_pca::ListTags, &authority)?;
        let (page, next_token) = page_of_tags(authority.tags(), after.as_deref(), limit);
        let tags = page.into_iter().map(|(key, value)| Tag { key, value: Some(value) }).collect();
        Ok(Output { tags, next_token })
    }
}
