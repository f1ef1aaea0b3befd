//! `SearchCertificates`: finds certificates by their contents and by what the service knows of them, in any order.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_SearchCertificates.html>

use outlast_domain::acm::certificate::Record;
use outlast_domain::acm::search::{self, Search};
use outlast_domain::identity::action;

pub use crate::aws::acm::{
    AcmCertificateMetadata, CertificateMetadata, CertificateSearchResult, SearchCertificates,
    SearchCertificatesRequest as Input, SearchCertificatesResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm::enabled;
use crate::model::acm_certificate::eligibility;
use crate::model::acm_search::{
    CertificateFilterStatement, ORDERS, X509Attributes, position_text, read_position,
};
use crate::model::marker;
use crate::wire::{ApiError, Timestamp, validate};

impl Run for SearchCertificates {
    const READ_ONLY: bool = true;
    // A page may read every certificate of the account.
    const SLOW: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("MaxResults", input.max_results)?;
        if limit > MAX_RESULTS {
            return Err(ApiError::validation(format!(
                "1 validation error detected: Value '{limit}' at 'maxResults' failed to satisfy constraint: Member must \
                 have value less than or equal to {MAX_RESULTS}"
            )));
        }
        let by = input.sort_by.as_deref().unwrap_or("CREATED_AT");
        // AWS documents no default order: the newest come first.
        let order = input.sort_order.as_deref().unwrap_or("DESCENDING");
        let row = ORDERS.iter().find(|row| row.name == by).unwrap_or(&ORDERS[0]);
        let test = input.filter_statement.map(CertificateFilterStatement::test).transpose()?;
        let after = marker::unwrap(input.next_token.as_deref(), "ValidationException")?;
        let after = after.map(|text| {
            let wrong = || ApiError::validation("The NextToken was not issued by this service.");
            read_position(&text).ok_or_else(wrong)
        });
        let allowed = call
            .authorize(action::acm::SearchCertificates, &call.scope.arn("acm", "certificate/*"))?;
        let now_ms = call.work.now_ms();
        let found = search::search(
            &call.work,
            &call.scope,
            &Search {
                matches: &|record| test.as_ref().is_none_or(|test| test(record, now_ms)),
                key: &|record| (row.key)(record, now_ms),
                descending: order == "DESCENDING",
                after: after.transpose()?,
                limit,
            },
            &allowed,
        )?;
        let mut results = Vec::with_capacity(found.items.len());
        for certificate in &found.items {
            let text = certificate.text_if_there(&mut call.work, &allowed)?;
            let pem = text.as_ref().map(|text| text.certificate.as_str());
            results.push(CertificateSearchResult {
                certificate_arn: certificate.arn(),
                x509_attributes: X509Attributes::new(certificate.record(), pem),
                certificate_metadata: CertificateMetadata {
                    acm_certificate_metadata: Some(AcmCertificateMetadata::new(
                        certificate.record(),
                        now_ms,
                    )),
                },
            });
        }
        let next_token = found.next.as_ref().map(|position| marker::wrap(&position_text(position)));
        Ok(Output { results, next_token })
    }
}

/// Most results of a page.
const MAX_RESULTS: usize = 500;

impl AcmCertificateMetadata {
    fn new(record: &Record, now_ms: i64) -> Self {
        let acme = record.acme.as_ref();
        Self {
            created_at: Timestamp::from_ms(record.created_ms),
            exported: record.exported,
            imported_at: record.imported_ms.map(Timestamp::from_ms),
            in_use: false,
            issued_at: record.issued_ms.map(Timestamp::from_ms),
            renewal_eligibility: eligibility(record),
            revoked_at: record.revoked.as_ref().map(|revoked| Timestamp::from_ms(revoked.at_ms)),
            status: record.status(now_ms).name().to_owned(),
            renewal_status: record.renewal.as_ref().map(|summary| summary.status().to_owned()),
            kind: record.kind().to_owned(),
            validation_method: record.public.as_ref().map(|public| public.method.name().to_owned()),
            export_option: enabled(record.exportable),
            certificate_key_pair_origin: record.origin.name().to_owned(),
            acme_endpoint_arn: acme.map(|acme| acme.endpoint_arn.clone()),
            acme_account_id: acme.map(|acme| acme.account_id.clone()),
        }
    }
}
