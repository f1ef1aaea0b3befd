//! `SearchCertificates`: finds certificates by what they say and what is known of them, in any order.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_SearchCertificates.html>

use outlast_domain::acm::certificate::Record;
use outlast_domain::acm::search::{self, Search};
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm::{SORT_ORDERS, enabled};
use crate::model::acm_certificate::eligibility;
use crate::model::acm_search::{FilterStatement, ORDERS, X509Attributes, place_text, read_place};
use crate::model::marker;
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::{ApiError, Timestamp, validate};

/// The operation.
pub struct SearchCertificates;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub filter_statement: Option<FilterStatement>,
    pub max_results: Option<i64>,
    pub next_token: Option<String>,
    pub sort_by: Option<String>,
    pub sort_order: Option<String>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub results: Vec<SearchResult>,
    pub next_token: Option<String>,
}

impl Operation for SearchCertificates {
    const NAME: &'static str = "SearchCertificates";
    const READ_ONLY: bool = true;
    // A page may look at all certificates of the account.
    const SLOW: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("MaxResults", input.max_results)?;
        if limit > MAX_RESULTS {
            return Err(ApiError::validation(format!(
                "1 validation error detected: Value '{limit}' at 'maxResults' failed to satisfy constraint: Member must \
                 have value less than or equal to {MAX_RESULTS}"
            )));
        }
        let names: Vec<_> = ORDERS.iter().map(|row| row.name).collect();
        let by = input.sort_by.as_deref().unwrap_or("CREATED_AT");
        validate::one_of("SortBy", by, &names)?;
        // AWS does not say which it is by default: the newest are first.
        let order = input.sort_order.as_deref().unwrap_or("DESCENDING");
        validate::one_of("SortOrder", order, SORT_ORDERS)?;
        let row = ORDERS.iter().find(|row| row.name == by).unwrap_or(&ORDERS[0]);
        let test = input.filter_statement.map(FilterStatement::test).transpose()?;
        let after = marker::unwrap(input.next_token.as_deref(), "ValidationException")?;
        let after = after.map(|text| {
            let wrong = || ApiError::validation("The NextToken is not one that this service gave.");
            read_place(&text).ok_or_else(wrong)
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
            results.push(SearchResult {
                certificate_arn: certificate.arn(),
                x509_attributes: X509Attributes::new(certificate.record(), pem),
                certificate_metadata: Metadata::AcmCertificateMetadata(Box::new(
                    CertificateMetadata::new(certificate.record(), now_ms),
                )),
            });
        }
        let next_token = found.next.as_ref().map(|place| marker::wrap(&place_text(place)));
        Ok(Output { results, next_token })
    }
}

/// Most results of a page.
const MAX_RESULTS: usize = 500;

/// `CertificateSearchResult`
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct SearchResult {
    pub certificate_arn: String,
    pub x509_attributes: X509Attributes,
    pub certificate_metadata: Metadata,
}

/// `CertificateMetadata`
#[derive(Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub enum Metadata {
    AcmCertificateMetadata(Box<CertificateMetadata>),
}

/// `AcmCertificateMetadata`
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct CertificateMetadata {
    pub created_at: Timestamp,
    pub exported: bool,
    pub imported_at: Option<Timestamp>,
    pub in_use: bool,
    pub issued_at: Option<Timestamp>,
    pub renewal_eligibility: String,
    pub revoked_at: Option<Timestamp>,
    pub status: String,
    pub renewal_status: Option<String>,
    #[serde(rename = "Type")]
    pub kind: String,
    pub export_option: String,
    pub certificate_key_pair_origin: String,
    pub acme_endpoint_arn: Option<String>,
    pub acme_account_id: Option<String>,
}

impl CertificateMetadata {
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
            kind: record.origin.kind().to_owned(),
            export_option: enabled(record.exportable),
            certificate_key_pair_origin: record.origin.name().to_owned(),
            acme_endpoint_arn: acme.map(|acme| acme.endpoint_arn.clone()),
            acme_account_id: acme.map(|acme| acme.account_id.clone()),
        }
    }
}
