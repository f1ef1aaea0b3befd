//! `DeletePolicy`: deletes the resource-based policy of a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_DeletePolicy.html>

use outlast_domain::ca::policy;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm_pca::{DeletePolicy, DeletePolicyRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority_as;
use crate::wire::ApiError;

impl Run for DeletePolicy {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let authority = find_authority_as(call, "ResourceArn", &input.resource_arn)?;
        let allowed = call.authorize_authority(action::acm_pca::DeletePolicy, &authority)?;
        policy::delete(&mut call.work, &authority, &allowed)?;
        Ok(Empty {})
    }
}
