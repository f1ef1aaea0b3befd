//! `RevokeAcmeExternalAccountBinding`: revokes an external account binding; no account can be made with it any more.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_RevokeAcmeExternalAccountBinding.html>

use outlast_domain::acme;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{
    RevokeAcmeExternalAccountBinding, RevokeAcmeExternalAccountBindingRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::acm_acme::{authorize_tagged, find_binding};
use crate::wire::ApiError;

impl Run for RevokeAcmeExternalAccountBinding {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let binding = find_binding(call, &input.acme_external_account_binding_arn)?;
        let action = action::acm::RevokeAcmeExternalAccountBinding;
        let allowed = authorize_tagged(call, action, &binding.arn(), binding.tags())?;
        acme::revoke_binding(&mut call.work, binding, &allowed)?;
        Ok(Empty {})
    }
}
