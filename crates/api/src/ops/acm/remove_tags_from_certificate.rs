//! `RemoveTagsFromCertificate`: removes tags from a certificate.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_RemoveTagsFromCertificate.html>

use outlast_domain::acm::tags as resources;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{RemoveTagsFromCertificate, RemoveTagsFromCertificateRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, find_certificate, tags};
use crate::wire::ApiError;

impl Run for RemoveTagsFromCertificate {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
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
