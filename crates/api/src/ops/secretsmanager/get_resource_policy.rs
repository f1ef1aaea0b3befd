//! `GetResourcePolicy`: returns the resource policy of a secret.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetResourcePolicy.html>

use outlast_domain::identity::action;
use outlast_domain::secrets::policy;

pub use crate::aws::secretsmanager::{
    GetResourcePolicy, GetResourcePolicyRequest as Input, GetResourcePolicyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{POLICY_NAME, check_policy_name, secret};
use crate::wire::ApiError;

impl Run for GetResourcePolicy {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        check_policy_name(input.policy_name.as_deref())?;
        let action = action::secretsmanager::GetResourcePolicy;
        let (secret, allowed) = secret(call, action, &input.secret_id)?;
        let resource_policy = policy::text(&mut call.work, &secret, &allowed)?;
        let policy_name = resource_policy.is_some().then(|| POLICY_NAME.to_owned());
        Ok(Output {
            arn: secret.arn(),
            name: secret.name().to_owned(),
            resource_policy,
            policy_name,
        })
    }
}
