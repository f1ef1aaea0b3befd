//! `TagCertificateAuthority`: adds or replaces tags of a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_TagCertificateAuthority.html>

use outlast_domain::ca;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_pca::{Tag, find_authority, request_tags, tags};
use crate::ops::{ACM_PCA, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct TagCertificateAuthority;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
    pub tags: Vec<Tag>,
}

impl Operation for TagCertificateAuthority {
    const NAME: &'static str = "TagCertificateAuthority";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("Tags", input.tags.len(), 1, outlast_domain::limits::MAX_TAGS)?;
        let tags = tags(input.tags)?;
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("tags", serde_json::json!(tags));
        request_tags(call, &tags);
        let action = action::acm_pca::TagCertificateAuthority;
        let allowed = call.authorize_authority(action, &authority)?;
        ca::add_tags(&mut call.work, authority, tags, &allowed)?;
        Ok(Empty {})
    }
}
