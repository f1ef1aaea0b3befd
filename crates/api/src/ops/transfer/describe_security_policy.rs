//! `DescribeSecurityPolicy`: describes a security policy.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DescribeSecurityPolicy.html>

use outlast_domain::identity::action;

pub use crate::aws::transfer::{
    DescribeSecurityPolicy, DescribeSecurityPolicyRequest as Input,
    DescribeSecurityPolicyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::security_policy;
use crate::wire::ApiError;

impl Run for DescribeSecurityPolicy {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        call.notes.parameter("securityPolicyName", input.security_policy_name.as_str());
        let resource = call.scope.arn("transfer", "*");
        call.authorize(action::transfer::DescribeSecurityPolicy, &resource)?;
        Ok(Output { security_policy: security_policy(&input.security_policy_name)?.into() })
    }
}
