//! `GetPolicy`: gives the resource-based policy of a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_GetPolicy.html>

use outlast_domain::ca::policy;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_pca::find_authority_as;
use crate::ops::{ACM_PCA, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct GetPolicy;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub resource_arn: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub policy: String,
}

impl Operation for GetPolicy {
    const NAME: &'static str = "GetPolicy";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let authority = find_authority_as(call, "ResourceArn", &input.resource_arn)?;
        let allowed = call.authorize_authority(action::acm_pca::GetPolicy, &authority)?;
        Ok(Output { policy: policy::text(&mut call.work, &authority, &allowed)? })
    }
}
