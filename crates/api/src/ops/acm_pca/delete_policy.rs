//! `DeletePolicy`: takes the resource-based policy of a CA away.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_DeletePolicy.html>

use outlast_domain::ca::policy;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_pca::find_authority_as;
use crate::ops::{ACM_PCA, Call, Empty, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct DeletePolicy;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub resource_arn: String,
}

impl Operation for DeletePolicy {
    const NAME: &'static str = "DeletePolicy";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let authority = find_authority_as(call, "ResourceArn", &input.resource_arn)?;
        let allowed = call.authorize_authority(action::acm_pca::DeletePolicy, &authority)?;
        policy::delete(&mut call.work, &authority, &allowed)?;
        Ok(Empty {})
    }
}
