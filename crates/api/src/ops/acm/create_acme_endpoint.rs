//! `CreateAcmeEndpoint`: makes an ACME endpoint.
//!
//! Beyond AWS, the endpoint issues from a private CA: the tag `outlast:certificate-authority-arn` names it, or the
//! member `PrivateCertificateAuthority` of the union, which AWS lacks.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_CreateAcmeEndpoint.html>

use outlast_domain::acme::{self, NewEndpoint};
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_acme::{
    AUTHORITY_TAG, CertificateAuthority, ENDPOINT, authorization, authorize_issuing, contact,
    idempotency, note_key_algorithms, tags,
};
use crate::model::acm_pca::Tag;
use crate::model::request_tags;
use crate::ops::{ACM, Call, Operation, ServiceRow, input_digest};
use crate::wire::ApiError;

/// The operation.
pub struct CreateAcmeEndpoint;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub idempotency_token: Option<String>,
    pub authorization_behavior: String,
    pub contact: Option<String>,
    pub certificate_authority: CertificateAuthority,
    pub tags: Option<Vec<Tag>>,
    pub certificate_tags: Option<Vec<Tag>>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub acme_endpoint_arn: String,
}

impl Operation for CreateAcmeEndpoint {
    const NAME: &'static str = "CreateAcmeEndpoint";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let token = idempotency(input.idempotency_token.clone(), input_digest(&input)?)?;
        let authorization = authorization(&input.authorization_behavior)?;
        let contact = contact(input.contact.as_deref().unwrap_or("NOT_REQUIRED"))?;
        let wanted = input.certificate_authority.read()?;
        let tags = tags("Tags", input.tags)?;
        let certificate_tags = self::tags("CertificateTags", input.certificate_tags)?;
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
                "An ACME endpoint of outlast issues from a private CA: name it by the tag {AUTHORITY_TAG}, or by \
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
