//! `ListCertificates`: lists certificates; AWS promises no default order, here they come in order of id.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListCertificates.html>

use outlast_domain::acm::certificate::Record;
use outlast_domain::acm::search::{self, Search, SortKey};
use outlast_domain::identity::action;

pub use crate::aws::acm::{
    Filters, ListCertificates, ListCertificatesRequest as Input, ListCertificatesResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_certificate::CertificateSummary;
use crate::model::acm_search::{has_purpose, has_usage, position_text, read_position};
use crate::model::marker;
use crate::wire::{ApiError, validate};

impl Run for ListCertificates {
    const READ_ONLY: bool = true;
    // A page may read every certificate of the account.
    const SLOW: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("MaxItems", input.max_items)?;
        check(&input)?;
        let after = marker::unwrap(input.next_token.as_deref(), "ValidationException")?;
        let after = after.map(|text| {
            let wrong = || ApiError::validation("The NextToken was not issued by this service.");
            read_position(&text).ok_or_else(wrong)
        });
        let allowed =
            call.authorize(action::acm::ListCertificates, &call.scope.arn("acm", "certificate/*"))?;
        let now_ms = call.work.now_ms();
        let sorted = input.sort_by.is_some();
        let found = search::search(
            &call.work,
            &call.scope,
            &Search {
                matches: &|record| wanted(&input, record, now_ms),
                key: &|record| {
                    if sorted { SortKey::Number(record.created_ms) } else { SortKey::None }
                },
                descending: input.sort_order.as_deref() == Some("DESCENDING"),
                after: after.transpose()?,
                limit,
            },
            &allowed,
        )?;
        let summary = |found| CertificateSummary::new(found, now_ms);
        Ok(Output {
            next_token: found.next.as_ref().map(|position| marker::wrap(&position_text(position))),
            certificate_summary_list: found.items.iter().map(summary).collect(),
        })
    }
}

/// Key types that AWS lists if the request names none; and ours, which no program for AWS needs to know.
const DEFAULT_KEY_TYPES: &[&str] = &["RSA_1024", "RSA_2048", "ML_DSA_44", "ML_DSA_65", "ML_DSA_87"];
/// Origins that AWS lists if the request names none.
const DEFAULT_ORIGINS: &[&str] = &["AWS_MANAGED", "CUSTOMER_PROVIDED"];

fn check(input: &Input) -> Result<(), ApiError> {
    if input.sort_by.is_some() != input.sort_order.is_some() {
        return Err(ApiError::validation("SortBy and SortOrder must be given together."));
    }
    Ok(())
}

/// Whether a certificate passes all filters; a filter without values passes everything.
fn wanted(input: &Input, record: &Record, now_ms: i64) -> bool {
    let is = |values: Option<&Vec<String>>, test: &dyn Fn(&str) -> bool| {
        values.is_none_or(|values| values.is_empty() || values.iter().any(|value| test(value)))
    };
    let among = |values: Option<&Vec<String>>, default: &[&str], own: &str| match values {
        Some(values) if !values.is_empty() => values.iter().any(|value| value == own),
        _ => default.contains(&own),
    };
    let none = Filters::default();
    let includes = input.includes.as_ref().unwrap_or(&none);
    let origins = input.certificate_key_pair_origins.as_ref();
    let key_type = record.details.key_algorithm.as_str();
    is(input.certificate_statuses.as_ref(), &|name| record.status(now_ms).name() == name)
        && among(origins, DEFAULT_ORIGINS, record.origin.name())
        && among(includes.key_types.as_ref(), DEFAULT_KEY_TYPES, key_type)
        && is(includes.extended_key_usage.as_ref(), &|name| has_purpose(record, name))
        && is(includes.key_usage.as_ref(), &|name| has_usage(record, name))
        && includes.export_option.as_ref().is_none_or(|o| (o == "ENABLED") == record.exportable)
        // No other service manages certificates here.
        && includes.managed_by.is_none()
}
