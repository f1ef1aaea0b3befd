//! `GetAcmeExternalAccountBindingCredentials`: the id and key of an external account binding, for a client.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_GetAcmeExternalAccountBindingCredentials.html>

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlast_domain::acme;
use outlast_domain::identity::action;

pub use crate::aws::acm::{
    GetAcmeExternalAccountBindingCredentials,
    GetAcmeExternalAccountBindingCredentialsRequest as Input,
    GetAcmeExternalAccountBindingCredentialsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_acme::{authorize_tagged, find_binding};
use crate::wire::ApiError;

impl Run for GetAcmeExternalAccountBindingCredentials {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let binding = find_binding(call, &input.acme_external_account_binding_arn)?;
        let action = action::acm::GetAcmeExternalAccountBindingCredentials;
        let allowed = authorize_tagged(call, action, &binding.arn(), binding.tags())?;
        let key = acme::credentials(&mut call.work, &binding, &allowed)?;
        // base64url without padding is what certbot, lego and others take.
        let mac_key = URL_SAFE_NO_PAD.encode(key.expose());
        Ok(Output { key_id: binding.id().to_owned(), mac_key })
    }
}
