//! `PutResourcePolicy`: sets the resource policy of a secret.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_PutResourcePolicy.html>

use outlast_domain::identity::action;
use outlast_domain::secrets::policy;

pub use crate::aws::secretsmanager::{
    PutResourcePolicy, PutResourcePolicyRequest as Input, PutResourcePolicyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{POLICY_NAME, check_policy_name, secret, sync_replicas};
use crate::wire::ApiError;

impl Run for PutResourcePolicy {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        check_policy_name(input.policy_name.as_deref())?;
        let block = input.block_public_policy == Some(true);
        call.conditions
            .set("secretsmanager:BlockPublicPolicy", if block { "true" } else { "false" });
        call.notes.parameter("resourcePolicy", input.resource_policy.as_str());
        let action = action::secretsmanager::PutResourcePolicy;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        let (work, access) = call.split();
        let put = policy::put(work, access, &mut secret, &input.resource_policy, block, &allowed)?;
        call.notes.policy_findings(&put);
        sync_replicas(call, &mut secret, &allowed, &[])?;
        let policy_name = Some(POLICY_NAME.to_owned());
        Ok(Output { arn: secret.arn(), name: secret.name().to_owned(), policy_name })
    }
}
