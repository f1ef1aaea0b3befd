//! `CreateAcmeEndpoint`: makes an ACME endpoint.
//!
//! Beyond AWS, the endpoint issues from a private CA: the tag `outlast:certificate-authority-arn` names it, or the
//! member `PrivateCertificateAuthority` of the union, which AWS lacks.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_CreateAcmeEndpoint.html>

use outlast_domain::acme::{self, NewEndpoint};
use outlast_domain::identity::action;

pub use crate::aws::acm::{
    CreateAcmeEndpoint, CreateAcmeEndpointRequest as Input, CreateAcmeEndpointResponse as Output,
};
use crate::call::{Call, Run, input_digest};
use crate::model::acm_acme::{
    AUTHORITY_TAG, ENDPOINT, authorization, authorize_issuing, contact, idempotency,
    note_key_algorithms, tags,
};
use crate::model::request_tags;
use crate::wire::ApiError;

impl Run for CreateAcmeEndpoint {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let token = idempotency(input.idempotency_token.clone(), input_digest(&input)?)?;
        let authorization = authorization(&input.authorization_behavior)?;
        let contact = contact(input.contact.as_deref().unwrap_or("NOT_REQUIRED"))?;
        let wanted = input.certificate_authority.read()?;
        let tags = tags(input.tags)?;
        let certificate_tags = self::tags(input.certificate_tags)?;
        request_tags(&mut call.conditions, &tags);
        call.notes.parameter("authorizationBehavior", input.authorization_behavior.as_str());
        if let Some(contact) = &input.contact {
            call.notes.parameter("contact", contact.as_str());
        }
        note_key_algorithms(call, &wanted);
        let resource = call.scope.arn("acm", "acme-endpoint/*");
        let allowed = call.authorize(action::acm::CreateAcmeEndpoint, &resource)?;
        if !tags.is_empty() {
            call.authorize(action::acm::TagResource, &resource)?;
        }
        let by_tag = wanted.arn.is_none();
        let Some(arn) = wanted.arn.or_else(|| tags.get(AUTHORITY_TAG).cloned()) else {
            return Err(ApiError::validation(format!(
                "An ACME endpoint of outlast issues from a private CA: name the CA in the tag {AUTHORITY_TAG}, or in \
                 CertificateAuthority.PrivateCertificateAuthority.CertificateAuthorityArn."
            )));
        };
        call.notes.parameter("certificateAuthorityArn", arn.as_str());
        let key_algorithms = wanted.key_algorithms.unwrap_or_default();
        let mut authority = acme::Authority { arn, by_tag, key_algorithms };
        let may_issue = authorize_issuing(call, &mut authority)?;
        let new = NewEndpoint { authorization, contact, authority, tags, certificate_tags, token };
        let arn = acme::create_endpoint(&mut call.work, &call.scope, new, &allowed, &may_issue)?;
        call.notes.resource(arn.clone(), ENDPOINT);
        call.notes.response("acmeEndpointArn", arn.as_str());
        Ok(Output { acme_endpoint_arn: arn })
    }
}
