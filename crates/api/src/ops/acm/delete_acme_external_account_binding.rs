//! `DeleteAcmeExternalAccountBinding`: deletes an external account binding with its key.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DeleteAcmeExternalAccountBinding.html>

use outlast_domain::acm::AcmError;
use outlast_domain::acme;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_acme::{BINDING, authorize_tagged};
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct DeleteAcmeExternalAccountBinding;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub acme_external_account_binding_arn: String,
}

impl Operation for DeleteAcmeExternalAccountBinding {
    const NAME: &'static str = "DeleteAcmeExternalAccountBinding";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let arn = input.acme_external_account_binding_arn.as_str();
        validate::length("AcmeExternalAccountBindingArn", arn.chars().count(), 1, 200)?;
        call.notes.parameter("acmeExternalAccountBindingArn", arn);
        let action = action::acm::DeleteAcmeExternalAccountBinding;
        match acme::find_binding(&mut call.work, &call.scope, arn) {
            Ok(binding) => {
                let arn = binding.arn();
                call.notes.resource(arn.clone(), BINDING);
                let allowed = authorize_tagged(call, action, &arn, binding.tags())?;
                acme::delete_binding(&mut call.work, &binding, &allowed)?;
            }
            // AWS's model has no ResourceNotFoundException here: what is gone may be deleted again.
            Err(AcmError::NotFound(_)) => {
                let arn = acme::absent(&call.scope, arn)?;
                call.authorize(action, &arn)?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Empty {})
    }
}
