//! `UpdateAcmeDomainValidation`: changes what a domain validation covers.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_UpdateAcmeDomainValidation.html>

use outlast_domain::acme;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{UpdateAcmeDomainValidation, UpdateAcmeDomainValidationRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm_acme::{PrevalidationOptions, authorize_tagged, find_validation, note_scope};
use crate::wire::ApiError;

impl Run for UpdateAcmeDomainValidation {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let options = input.prevalidation_options.map(PrevalidationOptions::read).transpose()?;
        let scope = options.flatten();
        if let Some(scope) = scope {
            note_scope(call, scope);
        }
        let validation = find_validation(call, &input.acme_domain_validation_arn)?;
        let action = action::acm::UpdateAcmeDomainValidation;
        let allowed = authorize_tagged(call, action, &validation.arn(), validation.tags())?;
        acme::update_validation(&mut call.work, validation, scope, &allowed)?;
        Ok(Empty {})
    }
}
