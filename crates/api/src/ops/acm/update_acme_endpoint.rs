//! `UpdateAcmeEndpoint`: changes the settings of an ACME endpoint.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_UpdateAcmeEndpoint.html>

use outlast_domain::acme::{self, UpdateEndpoint};
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{UpdateAcmeEndpoint, UpdateAcmeEndpointRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm_acme::{
    CertificateAuthority, authorization, authorize_issuing, authorize_tagged, contact,
    find_endpoint, note_key_algorithms,
};
use crate::wire::ApiError;

impl Run for UpdateAcmeEndpoint {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let authorization =
            input.authorization_behavior.as_deref().map(authorization).transpose()?;
        let contact = input.contact.as_deref().map(contact).transpose()?;
        let wanted = input.certificate_authority.map(CertificateAuthority::read).transpose()?;
        for (name, given) in
            [("authorizationBehavior", &input.authorization_behavior), ("contact", &input.contact)]
        {
            if let Some(given) = given {
                call.notes.parameter(name, given.as_str());
            }
        }
        if let Some(wanted) = &wanted {
            note_key_algorithms(call, wanted);
        }
        let endpoint = find_endpoint(call, &input.acme_endpoint_arn)?;
        let action = action::acm::UpdateAcmeEndpoint;
        let allowed = authorize_tagged(call, action, &endpoint.arn(), endpoint.tags())?;
        let (mut authority, mut may_issue) = (None, None);
        if let Some(wanted) = wanted {
            let mut changed = endpoint.authority().clone();
            changed.key_algorithms = wanted.key_algorithms.unwrap_or_default();
            if let Some(arn) = wanted.arn {
                call.notes.parameter("certificateAuthorityArn", arn.as_str());
                (changed.arn, changed.by_tag) = (arn, false);
                may_issue = Some(authorize_issuing(call, &mut changed)?);
            }
            authority = Some(changed);
        }
        let update = UpdateEndpoint { authorization, contact, authority };
        acme::update_endpoint(&mut call.work, endpoint, update, &allowed, may_issue.as_ref())?;
        Ok(Empty {})
    }
}
