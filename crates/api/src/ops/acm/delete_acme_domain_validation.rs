//! `DeleteAcmeDomainValidation`: deletes a domain validation; no certificate is issued for its domain any more.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DeleteAcmeDomainValidation.html>

use outlast_domain::acm::AcmError;
use outlast_domain::acme;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{DeleteAcmeDomainValidation, DeleteAcmeDomainValidationRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm_acme::{VALIDATION, authorize_tagged};
use crate::wire::ApiError;

impl Run for DeleteAcmeDomainValidation {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let arn = input.acme_domain_validation_arn.as_str();
        call.notes.parameter("acmeDomainValidationArn", arn);
        let action = action::acm::DeleteAcmeDomainValidation;
        match acme::find_validation(&mut call.work, &call.scope, arn) {
            Ok(validation) => {
                let arn = validation.arn();
                call.notes.resource(arn.clone(), VALIDATION);
                let allowed = authorize_tagged(call, action, &arn, validation.tags())?;
                acme::delete_validation(&mut call.work, &validation, &allowed)?;
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
