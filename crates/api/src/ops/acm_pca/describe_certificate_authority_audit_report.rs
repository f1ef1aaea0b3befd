//! `DescribeCertificateAuthorityAuditReport`: tells how far a report is.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_DescribeCertificateAuthorityAuditReport.html>

use outlast_domain::ca::report;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_pca::find_authority;
use crate::ops::{ACM_PCA, Call, Operation, ServiceRow};
use crate::wire::{ApiError, Timestamp, validate};

/// The operation.
pub struct DescribeCertificateAuthorityAuditReport;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
    pub audit_report_id: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub audit_report_status: String,
    #[serde(rename = "S3BucketName")]
    pub s3_bucket_name: String,
    #[serde(rename = "S3Key")]
    pub s3_key: String,
    pub created_at: Timestamp,
}

impl Operation for DescribeCertificateAuthorityAuditReport {
    const NAME: &'static str = "DescribeCertificateAuthorityAuditReport";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::length("AuditReportId", input.audit_report_id.chars().count(), 36, 36)?;
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("auditReportId", input.audit_report_id.as_str());
        let action = action::acm_pca::DescribeCertificateAuthorityAuditReport;
        let allowed = call.authorize_authority(action, &authority)?;
        let found = report::find(&mut call.work, &authority, &input.audit_report_id, &allowed)?;
        Ok(Output {
            audit_report_status: found.status.name().to_owned(),
            s3_bucket_name: found.bucket,
            s3_key: found.key,
            created_at: Timestamp::from_ms(found.created_ms),
        })
    }
}
