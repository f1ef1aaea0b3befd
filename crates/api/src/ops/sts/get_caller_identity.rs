//! `GetCallerIdentity`: tells who signed the request.
//!
//! <https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html>

use outlast_domain::arn::shown_in;
use serde::{Deserialize, Serialize};

use crate::ops::{Call, Operation, STS, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct GetCallerIdentity;

/// Request members: none.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Input {}

/// Response members.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub user_id: String,
    pub account: String,
    pub arn: String,
}

impl Operation for GetCallerIdentity {
    const NAME: &'static str = "GetCallerIdentity";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &STS;
    type Input = Input;
    type Output = Output;

    // No permission is needed, as on AWS: whoever can sign may know who it is.
    fn run(call: &mut Call<'_>, _: Input) -> Result<Output, ApiError> {
        let principal = &call.caller.principal;
        Ok(Output {
            user_id: principal.unique_id(),
            account: principal.account.clone(),
            arn: shown_in(&call.scope.region, &principal.arn()),
        })
    }
}
