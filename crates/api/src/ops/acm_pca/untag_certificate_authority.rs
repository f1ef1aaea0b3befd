//! `UntagCertificateAuthority`: removes tags from a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_UntagCertificateAuthority.html>

use outlast_domain::ca;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_pca::{Tag, find_authority};
use crate::ops::{ACM_PCA, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct UntagCertificateAuthority;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
    pub tags: Vec<Tag>,
}

impl Operation for UntagCertificateAuthority {
    const NAME: &'static str = "UntagCertificateAuthority";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("Tags", input.tags.len(), 1, outlast_domain::limits::MAX_TAGS)?;
        let keys: Vec<_> = input.tags.iter().map(|tag| tag.key.clone()).collect();
        for key in &keys {
            validate::length("Key", key.chars().count(), 1, outlast_domain::limits::MAX_TAG_KEY)?;
        }
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("tags", serde_json::json!(keys));
        call.conditions.set_many("aws:TagKeys", keys);
        let action = action::acm_pca::UntagCertificateAuthority;
        let allowed = call.authorize_authority(action, &authority)?;
        let tags: Vec<_> = input.tags.into_iter().map(|tag| (tag.key, tag.value)).collect();
        ca::remove_tags(&mut call.work, authority, &tags, &allowed)?;
        Ok(Empty {})
    }
}
