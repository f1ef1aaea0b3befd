//! `RevokeAcmeExternalAccountBinding`: revokes an external account binding: no further account is made with it.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_RevokeAcmeExternalAccountBinding.html>

use outlast_domain::acme;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_acme::{authorize_tagged, find_binding};
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct RevokeAcmeExternalAccountBinding;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub acme_external_account_binding_arn: String,
}

impl Operation for RevokeAcmeExternalAccountBinding {
    const NAME: &'static str = "RevokeAcmeExternalAccountBinding";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let binding = find_binding(call, &input.acme_external_account_binding_arn)?;
        let action = action::acm::RevokeAcmeExternalAccountBinding;
        let allowed = authorize_tagged(call, action, &binding.arn(), binding.tags())?;
        acme::revoke_binding(&mut call.work, binding, &allowed)?;
        Ok(Empty {})
    }
}
