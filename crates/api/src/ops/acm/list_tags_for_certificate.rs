//! `ListTagsForCertificate`: lists the tags of a certificate.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListTagsForCertificate.html>

use outlast_domain::identity::action;

pub use crate::aws::acm::{
    ListTagsForCertificate, ListTagsForCertificateRequest as Input,
    ListTagsForCertificateResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, find_certificate, tag_list};
use crate::wire::ApiError;

impl Run for ListTagsForCertificate {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let certificate = find_certificate(call, &input.certificate_arn)?;
        authorize_certificate(call, action::acm::ListTagsForCertificate, &certificate)?;
        Ok(Output { tags: tag_list(certificate.record().tags.clone()) })
    }
}
