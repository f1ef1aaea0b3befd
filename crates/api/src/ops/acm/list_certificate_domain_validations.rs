//! `ListCertificateDomainValidations`: lists the domain validations of a certificate; private certificates have none.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListCertificateDomainValidations.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

pub use crate::aws::acm::{
    ListCertificateDomainValidations, ListCertificateDomainValidationsRequest as Input,
    ListCertificateDomainValidationsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, find_certificate};
use crate::model::marker;
use crate::wire::{ApiError, validate};

impl Run for ListCertificateDomainValidations {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::page_limit("MaxItems", input.max_items)?;
        marker::unwrap(input.next_token.as_deref(), "InvalidArgsException")?;
        // This operation has no InvalidArnException.
        let certificate = find_certificate(call, &input.certificate_arn).map_err(|error| {
            let code = error.code;
            ApiError {
                code: if code == "InvalidArnException" { "InvalidArgsException" } else { code },
                ..error
            }
        })?;
        authorize_certificate(call, action::acm::ListCertificateDomainValidations, &certificate)?;
        Ok(Output { domain_validation_summary_list: Vec::new(), next_token: None })
    }
}

/// `DomainValidationSummary`: no certificate here has one.
#[derive(Debug, Serialize, Deserialize)]
pub struct DomainValidationSummary {}
