//! `DeleteResourcePolicy`: deletes the resource policy of a secret.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_DeleteResourcePolicy.html>

use outlast_domain::identity::action;
use outlast_domain::secrets::policy;

pub use crate::aws::secretsmanager::{
    DeleteResourcePolicy, DeleteResourcePolicyRequest as Input,
    DeleteResourcePolicyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{POLICY_NAME, check_policy_name, secret, sync_replicas};
use crate::wire::ApiError;

impl Run for DeleteResourcePolicy {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        check_policy_name(input.policy_name.as_deref())?;
        let action = action::secretsmanager::DeleteResourcePolicy;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        policy::delete(&mut call.work, &mut secret, &allowed)?;
        sync_replicas(call, &mut secret, &allowed, &[])?;
        let policy_name = Some(POLICY_NAME.to_owned());
        Ok(Output { arn: secret.arn(), name: secret.name().to_owned(), policy_name })
    }
}
