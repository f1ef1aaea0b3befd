//! `ListCertificateDomainValidations`: lists the domain validations of a certificate; one from a CA that its request
//! named has none.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListCertificateDomainValidations.html>

use outlast_domain::identity::action;

pub use crate::aws::acm::{
    ListCertificateDomainValidations, ListCertificateDomainValidationsRequest as Input,
    ListCertificateDomainValidationsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, find_certificate};
use crate::model::acm_certificate::domain_validation_summaries;
use crate::model::marker;
use crate::wire::{ApiError, validate};

impl Run for ListCertificateDomainValidations {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("MaxItems", input.max_items)?;
        let after = marker::unwrap(input.next_token.as_deref(), "InvalidArgsException")?;
        let first = match after {
            None => 0,
            Some(text) => text.parse::<usize>().map_err(|_| {
                ApiError::new(
                    "InvalidArgsException",
                    "The NextToken was not issued by this service.",
                )
            })?,
        };
        // This operation has no InvalidArnException.
        let certificate = find_certificate(call, &input.certificate_arn).map_err(|error| {
            let code = error.code;
            ApiError {
                code: if code == "InvalidArnException" { "InvalidArgsException" } else { code },
                ..error
            }
        })?;
        authorize_certificate(call, action::acm::ListCertificateDomainValidations, &certificate)?;
        let all = domain_validation_summaries(certificate.record(), call.work.now_ms());
        let next = first.saturating_add(limit);
        let next_token = (next < all.len()).then(|| marker::wrap(&next.to_string()));
        let page = all.into_iter().skip(first).take(limit).collect();
        Ok(Output { domain_validation_summary_list: page, next_token })
    }
}
