//! `ListCertificateDomainValidations`: lists how domains were validated: private certificates have none.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListCertificateDomainValidations.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm::{authorize_certificate, find_certificate};
use crate::model::marker;
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct ListCertificateDomainValidations;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_arn: String,
    pub next_token: Option<String>,
    pub max_items: Option<i64>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub domain_validation_summary_list: Vec<DomainValidationSummary>,
    pub next_token: Option<String>,
}

impl Operation for ListCertificateDomainValidations {
    const NAME: &'static str = "ListCertificateDomainValidations";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::page_limit("MaxItems", input.max_items)?;
        marker::unwrap(input.next_token.as_deref(), "InvalidArgsException")?;
        let certificate = find_certificate(call, &input.certificate_arn)?;
        authorize_certificate(call, action::acm::ListCertificateDomainValidations, &certificate)?;
        Ok(Output { domain_validation_summary_list: Vec::new(), next_token: None })
    }
}

/// `DomainValidationSummary`: never there.
#[derive(Debug, Serialize, Deserialize)]
pub struct DomainValidationSummary {}
