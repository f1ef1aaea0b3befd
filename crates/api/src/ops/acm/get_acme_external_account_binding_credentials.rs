//! `GetAcmeExternalAccountBindingCredentials`: the id and key of an external account binding, for a client.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_GetAcmeExternalAccountBindingCredentials.html>

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlast_domain::acme;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_acme::{authorize_tagged, find_binding};
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct GetAcmeExternalAccountBindingCredentials;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub acme_external_account_binding_arn: String,
}

/// Response body. It has a secret: no `Debug`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub mac_key: String,
}

impl Operation for GetAcmeExternalAccountBindingCredentials {
    const NAME: &'static str = "GetAcmeExternalAccountBindingCredentials";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

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
