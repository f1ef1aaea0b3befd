//! `GetCallerIdentity`: returns who signed the request.
//!
//! <https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html>

use outlast_domain::arn::shown_in;

use crate::aws::Empty;
pub use crate::aws::sts::{GetCallerIdentity, GetCallerIdentityResponse as Output};
use crate::call::{Call, Run};
use crate::wire::ApiError;

impl Run for GetCallerIdentity {
    const READ_ONLY: bool = true;

    // No permission is needed, as on AWS: a caller who can sign may know its own identity.
    fn run(call: &mut Call<'_>, _: Empty) -> Result<Output, ApiError> {
        let principal = &call.caller.principal;
        Ok(Output {
            user_id: principal.unique_id(),
            account: principal.account.clone(),
            arn: shown_in(&call.scope.region, &principal.arn()),
        })
    }
}
