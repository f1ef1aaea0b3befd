//! `PutPolicy`: gives a CA a resource-based policy.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_PutPolicy.html>

use outlast_domain::ca::policy;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_pca::find_authority_as;
use crate::ops::{ACM_PCA, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct PutPolicy;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub resource_arn: String,
    pub policy: String,
}

impl Operation for PutPolicy {
    const NAME: &'static str = "PutPolicy";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("Policy", input.policy.chars().count(), 1, 81_920)?;
        let authority = find_authority_as(call, "ResourceArn", &input.resource_arn)?;
        let allowed = call.authorize_authority(action::acm_pca::PutPolicy, &authority)?;
        let (work, access) = call.split();
        let policy = policy::put(work, access, &authority, &input.policy, &allowed)?;
        call.notes.policy_findings(&policy);
        Ok(Empty {})
    }
}
