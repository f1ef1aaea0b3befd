//! `CreateAcmeDomainValidation`: begins to validate a domain for an ACME endpoint.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_CreateAcmeDomainValidation.html>

use outlast_domain::acme;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_acme::{
    PrevalidationOptions, VALIDATION, authorize_tagged, find_endpoint, idempotency, note_scope,
    tags,
};
use crate::model::acm_pca::Tag;
use crate::model::request_tags;
use crate::ops::{ACM, Call, Operation, ServiceRow, input_digest};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct CreateAcmeDomainValidation;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub idempotency_token: Option<String>,
    pub acme_endpoint_arn: String,
    pub domain_name: String,
    pub prevalidation_options: PrevalidationOptions,
    pub tags: Option<Vec<Tag>>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub acme_domain_validation_arn: String,
}

impl Operation for CreateAcmeDomainValidation {
    const NAME: &'static str = "CreateAcmeDomainValidation";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let token = idempotency(input.idempotency_token.clone(), input_digest(&input)?)?;
        validate::length("DomainName", input.domain_name.chars().count(), 1, 253)?;
        let scope = input.prevalidation_options.read()?.unwrap_or_default();
        let tags = tags("Tags", input.tags)?;
        request_tags(&mut call.conditions, &tags);
        let endpoint = find_endpoint(call, &input.acme_endpoint_arn)?;
        call.notes.parameter("domainName", input.domain_name.as_str());
        note_scope(call, scope);
        let action = action::acm::CreateAcmeDomainValidation;
        let allowed = authorize_tagged(call, action, &endpoint.arn(), endpoint.tags())?;
        if !tags.is_empty() {
            call.authorize(
                action::acm::TagResource,
                &format!("{}/acme-domain-validation/*", endpoint.arn()),
            )?;
        }
        let domain = &input.domain_name;
        let arn = acme::create_validation(
            &mut call.work,
            &endpoint,
            domain,
            scope,
            tags,
            &token,
            &allowed,
        )?;
        call.notes.resource(arn.clone(), VALIDATION);
        call.notes.response("acmeDomainValidationArn", arn.as_str());
        Ok(Output { acme_domain_validation_arn: arn })
    }
}
