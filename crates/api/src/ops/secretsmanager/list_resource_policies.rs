//! `ListResourcePolicies`: lists the names of a secret's resource policies: one, or none.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_ListResourcePolicies.html>

use outlast_domain::identity::action;
use outlast_domain::secrets::policy;

pub use crate::aws::secretsmanager::{
    ListResourcePolicies, ListResourcePoliciesRequest as Input,
    ListResourcePoliciesResponse as Output, ResourcePolicySummary,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::secretsmanager::{POLICY_NAME, secret};
use crate::wire::ApiError;

impl Run for ListResourcePolicies {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let after = marker::unwrap(input.next_token.as_deref(), "InvalidNextTokenException")?;
        let action = action::secretsmanager::ListResourcePolicies;
        let (secret, allowed) = secret(call, action, &input.secret_id)?;
        let has_one = after.is_none() && policy::exists(&mut call.work, &secret, &allowed)?;
        let name = has_one.then(|| ResourcePolicySummary { policy_name: POLICY_NAME.to_owned() });
        Ok(Output { resource_policies: name.into_iter().collect(), next_token: None })
    }
}
