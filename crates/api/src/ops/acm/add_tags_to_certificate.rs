//! `AddTagsToCertificate`: adds tags to a certificate.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_AddTagsToCertificate.html>

use outlast_domain::acm::tags as resources;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm::{Tag, authorize_certificate, find_certificate, tags};
use crate::model::request_tags;
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct AddTagsToCertificate;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_arn: String,
    pub tags: Vec<Tag>,
}

impl Operation for AddTagsToCertificate {
    const NAME: &'static str = "AddTagsToCertificate";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("Tags", input.tags.len(), 1, 50)?;
        let tags = tags(input.tags, "InvalidTagException")?;
        let certificate = find_certificate(call, &input.certificate_arn)?;
        call.notes.parameter("tags", serde_json::json!(tags));
        request_tags(&mut call.conditions, &tags);
        let allowed = authorize_certificate(call, action::acm::AddTagsToCertificate, &certificate)?;
        let arn = certificate.arn();
        resources::add(&mut call.work, &call.scope, &arn, tags, &allowed)?;
        Ok(Empty {})
    }
}
