//! `ListSecurityPolicies`: lists the security policies that cover SSH.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_ListSecurityPolicies.html>

use outlast_domain::identity::action;

pub use crate::aws::transfer::{
    ListSecurityPolicies, ListSecurityPoliciesRequest as Input,
    ListSecurityPoliciesResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::transfer::{next_token, page_size, security_policies};
use crate::wire::ApiError;

impl Run for ListSecurityPolicies {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.max_results)?;
        let after = next_token(input.next_token.as_deref())?;
        let resource = call.scope.arn("transfer", "*");
        call.authorize(action::transfer::ListSecurityPolicies, &resource)?;
        let is_next = |name: &&str| after.as_deref().is_none_or(|after| *name > after);
        let mut rest = security_policies().into_iter().filter(is_next);
        let names: Vec<_> = rest.by_ref().take(limit).map(str::to_owned).collect();
        let last = names.last().filter(|_| rest.next().is_some());
        let next_token = last.map(|last| marker::wrap(last));
        Ok(Output { next_token, security_policy_names: names })
    }
}
