//! `ListTags`: lists the tags of a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_ListTags.html>

use outlast_domain::identity::action;

pub use crate::aws::acm_pca::{ListTags, ListTagsRequest as Input, ListTagsResponse as Output};
use crate::call::{Call, Run};
use crate::model::acm_pca::{Tag, find_authority};
use crate::model::{marker, page_of_tags};
use crate::wire::{ApiError, validate};

impl Run for ListTags {
    const READ_ONLY: bool = true;

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
