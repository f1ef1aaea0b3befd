//! `ValidateResourcePolicy`: says what is wrong with a resource policy, without setting it.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_ValidateResourcePolicy.html>

use outlast_domain::identity::action;
use outlast_domain::secrets::policy;

pub use crate::aws::secretsmanager::{
    ValidateResourcePolicy, ValidateResourcePolicyRequest as Input,
    ValidateResourcePolicyResponse as Output, ValidationErrorsEntry,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::secret;
use crate::wire::ApiError;

impl Run for ValidateResourcePolicy {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let action = action::secretsmanager::ValidateResourcePolicy;
        let found = match &input.secret_id {
            Some(id) => Some(secret(call, action, id)?.0),
            None => {
                call.authorize(action, &call.scope.arn("secretsmanager", "secret:*"))?;
                None
            }
        };
        let (_, access) = call.split();
        let findings = policy::validate(access, found.as_ref(), &input.resource_policy)?;
        let validation_errors: Vec<_> = findings
            .into_iter()
            .map(|finding| ValidationErrorsEntry {
                check_name: finding.check.to_owned(),
                error_message: finding.message,
            })
            .collect();
        Ok(Output { policy_validation_passed: validation_errors.is_empty(), validation_errors })
    }
}
