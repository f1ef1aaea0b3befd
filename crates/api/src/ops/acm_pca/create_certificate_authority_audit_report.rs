//! `CreateCertificateAuthorityAuditReport`: has a report of all issued certificates written.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_CreateCertificateAuthorityAuditReport.html>

use outlast_domain::ca::report;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_pca::{REPORT_FORMATS, check_bucket, find_authority};
use crate::ops::{ACM_PCA, Call, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct CreateCertificateAuthorityAuditReport;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
    #[serde(rename = "S3BucketName")]
    pub s3_bucket_name: String,
    pub audit_report_response_format: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub audit_report_id: String,
    #[serde(rename = "S3Key")]
    pub s3_key: String,
}

impl Operation for CreateCertificateAuthorityAuditReport {
    const NAME: &'static str = "CreateCertificateAuthorityAuditReport";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        check_bucket(&input.s3_bucket_name)?;
        let format = input.audit_report_response_format.as_str();
        validate::one_of("AuditReportResponseFormat", format, REPORT_FORMATS)?;
        let format = if format == "CSV" { report::Format::Csv } else { report::Format::Json };
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("s3BucketName", input.s3_bucket_name.as_str());
        let action = action::acm_pca::CreateCertificateAuthorityAuditReport;
        let allowed = call.authorize_authority(action, &authority)?;
        let bucket = input.s3_bucket_name;
        let made = report::create(&mut call.work, &authority, bucket, format, &allowed)?;
        call.notes.response("auditReportId", made.id.as_str());
        call.notes.response("s3Key", made.key.as_str());
        Ok(Output { audit_report_id: made.id, s3_key: made.key })
    }
}
