//! `ListTagsForCertificate`: lists the tags of a certificate.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListTagsForCertificate.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm::{Tag, authorize_certificate, find_certificate, tag_list};
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct ListTagsForCertificate;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_arn: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub tags: Vec<Tag>,
}

impl Operation for ListTagsForCertificate {
    const NAME: &'static str = "ListTagsForCertificate";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let certificate = find_certificate(call, &input.certificate_arn)?;
        authorize_certificate(call, action::acm::ListTagsForCertificate, &certificate)?;
        Ok(Output { tags: tag_list(certificate.record().tags.clone()) })
    }
}
