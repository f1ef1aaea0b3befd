//! `ListPermissions`: lists what Certificate Manager may do with a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_ListPermissions.html>

use outlast_domain::ca::permission;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_pca::find_authority;
use crate::model::marker;
use crate::ops::{ACM_PCA, Call, Operation, ServiceRow};
use crate::wire::{ApiError, Timestamp, validate};

/// The operation.
pub struct ListPermissions;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub max_results: Option<i64>,
    pub next_token: Option<String>,
    pub certificate_authority_arn: String,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub next_token: Option<String>,
    pub permissions: Vec<Permission>,
}

impl Operation for ListPermissions {
    const NAME: &'static str = "ListPermissions";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("MaxResults", input.max_results)?;
        let after = marker::unwrap(input.next_token.as_deref(), "InvalidNextTokenException")?;
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        let allowed = call.authorize_authority(action::acm_pca::ListPermissions, &authority)?;
        let page = permission::list(&call.work, &authority, after.as_deref(), limit, &allowed)?;
        let permissions = page.items.into_iter().map(|found| Permission {
            certificate_authority_arn: authority.arn(),
            created_at: Timestamp::from_ms(found.created_ms),
            policy: found.policy(&authority),
            principal: found.principal,
            source_account: found.source_account,
            actions: found.actions.into_iter().collect(),
        });
        Ok(Output {
            permissions: permissions.collect(),
            next_token: page.next.as_deref().map(marker::wrap),
        })
    }
}

/// `Permission`
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Permission {
    pub certificate_authority_arn: String,
    pub created_at: Timestamp,
    pub principal: String,
    pub source_account: String,
    pub actions: Vec<String>,
    pub policy: String,
}
