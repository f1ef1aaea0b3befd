//! `DescribeCertificateAuthorityAuditReport`: returns the status of a report.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_DescribeCertificateAuthorityAuditReport.html>

use outlast_domain::ca::report;
use outlast_domain::identity::action;

pub use crate::aws::acm_pca::{
    DescribeCertificateAuthorityAuditReport,
    DescribeCertificateAuthorityAuditReportRequest as Input,
    DescribeCertificateAuthorityAuditReportResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::wire::{ApiError, Timestamp};

impl Run for DescribeCertificateAuthorityAuditReport {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
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
