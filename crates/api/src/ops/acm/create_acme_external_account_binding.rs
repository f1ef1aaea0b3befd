//! `CreateAcmeExternalAccountBinding`: makes an external account binding, whose accounts act as a role.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_CreateAcmeExternalAccountBinding.html>

use outlast_domain::acme::{self, NewBinding};
use outlast_domain::identity::action;

pub use crate::aws::acm::{
    CreateAcmeExternalAccountBinding, CreateAcmeExternalAccountBindingRequest as Input,
    CreateAcmeExternalAccountBindingResponse as Output,
};
use crate::call::{Call, Run, input_digest};
use crate::model::acm_acme::{
    BINDING, SERVICE_PRINCIPAL, authorize_tagged, find_endpoint, idempotency, tags,
};
use crate::model::request_tags;
use crate::wire::ApiError;

impl Run for CreateAcmeExternalAccountBinding {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, mut input: Input) -> Result<Output, ApiError> {
        // A repeated request is recognised in whichever form it spells the role's ARN.
        let role_arn = acme::parse_role_arn(&input.role_arn)?;
        let given = std::mem::replace(&mut input.role_arn, role_arn.to_string());
        let token = idempotency(input.idempotency_token.clone(), input_digest(&input)?)?;
        let now_ms = call.work.now_ms();
        let expires_ms = input.expiration.map(|given| given.after(now_ms)).transpose()?;
        let tags = tags(input.tags)?;
        request_tags(&mut call.conditions, &tags);
        let endpoint = find_endpoint(call, &input.acme_endpoint_arn)?;
        call.notes.parameter("roleArn", given);
        let action = action::acm::CreateAcmeExternalAccountBinding;
        let allowed = authorize_tagged(call, action, &endpoint.arn(), endpoint.tags())?;
        if !tags.is_empty() {
            call.authorize(
                action::acm::TagResource,
                &format!("{}/acme-external-account-binding/*", endpoint.arn()),
            )?;
        }
        // Making a binding passes the role's permissions on.
        call.conditions.set("iam:PassedToService", SERVICE_PRINCIPAL);
        let may_pass = call.authorize(action::iam::PassRole, &input.role_arn)?;
        let new =
            NewBinding { role_arn: &role_arn, expires_ms, tags, token, policies: call.policies };
        let binding = acme::create_binding(&mut call.work, &endpoint, new, &allowed, &may_pass)?;
        call.notes.resource(binding.arn(), BINDING);
        call.notes.response("acmeExternalAccountBindingArn", binding.arn());
        Ok(Output { external_account_binding: (&binding).into() })
    }
}
