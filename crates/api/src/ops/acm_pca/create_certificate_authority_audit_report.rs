//! `CreateCertificateAuthorityAuditReport`: writes a report of all issued certificates to a bucket.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_CreateCertificateAuthorityAuditReport.html>

use outlast_domain::ca::report;
use outlast_domain::identity::action;

pub use crate::aws::acm_pca::{
    CreateCertificateAuthorityAuditReport, CreateCertificateAuthorityAuditReportRequest as Input,
    CreateCertificateAuthorityAuditReportResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::{check_bucket, find_authority};
use crate::wire::ApiError;

impl Run for CreateCertificateAuthorityAuditReport {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        check_bucket(&input.s3_bucket_name)?;
        let format = input.audit_report_response_format.as_str();
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
