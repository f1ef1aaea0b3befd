//! `GetPolicy`: returns the resource-based policy of a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_GetPolicy.html>

use outlast_domain::ca::policy;
use outlast_domain::identity::action;

pub use crate::aws::acm_pca::{GetPolicy, GetPolicyRequest as Input, GetPolicyResponse as Output};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority_as;
use crate::wire::ApiError;

impl Run for GetPolicy {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let authority = find_authority_as(call, "ResourceArn", &input.resource_arn)?;
        let allowed = call.authorize_authority(action::acm_pca::GetPolicy, &authority)?;
        Ok(Output { policy: policy::text(&mut call.work, &authority, &allowed)? })
    }
}
