//! `DescribeCertificate`: tells all about a certificate.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DescribeCertificate.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm::{authorize_certificate, find_certificate};
use crate::model::acm_certificate::CertificateDetail;
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct DescribeCertificate;

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
    pub certificate: CertificateDetail,
}

impl Operation for DescribeCertificate {
    const NAME: &'static str = "DescribeCertificate";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let allowed = authorize_certificate(call, action::acm::DescribeCertificate, &certificate)?;
        let text = certificate.text(&mut call.work, &allowed)?;
        let now_ms = call.work.now_ms();
        Ok(Output { certificate: CertificateDetail::new(&certificate, &text, now_ms) })
    }
}
