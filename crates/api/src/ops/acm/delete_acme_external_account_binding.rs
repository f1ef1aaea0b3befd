//! `DeleteAcmeExternalAccountBinding`: deletes an external account binding with its key.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DeleteAcmeExternalAccountBinding.html>

use outlast_domain::acm::AcmError;
use outlast_domain::acme;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{
    DeleteAcmeExternalAccountBinding, DeleteAcmeExternalAccountBindingRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::acm_acme::{BINDING, authorize_tagged};
use crate::wire::ApiError;

impl Run for DeleteAcmeExternalAccountBinding {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let arn = input.acme_external_account_binding_arn.as_str();
        call.notes.parameter("acmeExternalAccountBindingArn", arn);
        let action = action::acm::DeleteAcmeExternalAccountBinding;
        match acme::find_binding(&mut call.work, &call.scope, arn) {
            Ok(binding) => {
                let arn = binding.arn();
                call.notes.resource(arn.clone(), BINDING);
                let allowed = authorize_tagged(call, action, &arn, binding.tags())?;
                acme::delete_binding(&mut call.work, &binding, &allowed)?;
            }
            // AWS's model has no ResourceNotFoundException here: deleting what is gone succeeds.
            Err(AcmError::NotFound(_)) => {
                let arn = acme::absent(&call.scope, arn)?;
                call.authorize(action, &arn)?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Empty {})
    }
}
