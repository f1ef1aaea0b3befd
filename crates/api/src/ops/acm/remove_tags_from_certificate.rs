//! `RemoveTagsFromCertificate`: takes tags from a certificate.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_RemoveTagsFromCertificate.html>

use outlast_domain::acm::tags as resources;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm::{Tag, authorize_certificate, find_certificate, tags};
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct RemoveTagsFromCertificate;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_arn: String,
    pub tags: Vec<Tag>,
}

impl Operation for RemoveTagsFromCertificate {
    const NAME: &'static str = "RemoveTagsFromCertificate";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("Tags", input.tags.len(), 1, 50)?;
        tags(input.tags.clone(), "InvalidTagException")?;
        let which: Vec<_> = input.tags.into_iter().map(|tag| (tag.key, tag.value)).collect();
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let keys: Vec<_> = which.iter().map(|(key, _)| key.clone()).collect();
        call.notes.parameter("tagKeys", keys.clone());
        call.conditions.set_many("aws:TagKeys", keys);
        let allowed =
            authorize_certificate(call, action::acm::RemoveTagsFromCertificate, &certificate)?;
        let arn = certificate.arn();
        resources::remove(&mut call.work, &call.scope, &arn, &which, &allowed)?;
        Ok(Empty {})
    }
}
