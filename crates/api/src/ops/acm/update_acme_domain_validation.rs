//! `UpdateAcmeDomainValidation`: changes what a domain validation covers.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_UpdateAcmeDomainValidation.html>

use outlast_domain::acme;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_acme::{PrevalidationOptions, authorize_tagged, find_validation, note_scope};
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct UpdateAcmeDomainValidation;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub acme_domain_validation_arn: String,
    pub prevalidation_options: Option<PrevalidationOptions>,
}

impl Operation for UpdateAcmeDomainValidation {
    const NAME: &'static str = "UpdateAcmeDomainValidation";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

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
