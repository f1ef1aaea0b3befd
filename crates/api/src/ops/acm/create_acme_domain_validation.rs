//! `CreateAcmeDomainValidation`: begins to validate a domain for an ACME endpoint.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_CreateAcmeDomainValidation.html>

use outlast_domain::acme;
use outlast_domain::identity::action;

pub use crate::aws::acm::{
    CreateAcmeDomainValidation, CreateAcmeDomainValidationRequest as Input,
    CreateAcmeDomainValidationResponse as Output,
};
use crate::call::{Call, Run, input_digest};
use crate::model::acm_acme::{
    VALIDATION, authorize_tagged, find_endpoint, idempotency, note_scope, tags,
};
use crate::model::request_tags;
use crate::wire::ApiError;

impl Run for CreateAcmeDomainValidation {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let token = idempotency(input.idempotency_token.clone(), input_digest(&input)?)?;
        let scope = input.prevalidation_options.read()?.unwrap_or_default();
        let tags = tags(input.tags)?;
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
