//! `AddTagsToCertificate`: adds tags to a certificate.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_AddTagsToCertificate.html>

use outlast_domain::acm::tags as resources;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{AddTagsToCertificate, AddTagsToCertificateRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, find_certificate, tags};
use crate::model::request_tags;
use crate::wire::ApiError;

impl Run for AddTagsToCertificate {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
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
