//! `CreatePermission`: lets Certificate Manager renew by itself.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_CreatePermission.html>

use outlast_domain::ca::permission;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_pca::find_authority;
use crate::ops::{ACM_PCA, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct CreatePermission;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
    pub principal: String,
    pub source_account: Option<String>,
    pub actions: Vec<String>,
}

impl Operation for CreatePermission {
    const NAME: &'static str = "CreatePermission";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("Principal", input.principal.chars().count(), 0, 128)?;
        validate::length("Actions", input.actions.len(), 1, permission::ACTIONS.len())?;
        for action in &input.actions {
            validate::one_of("Actions", action, permission::ACTIONS)?;
        }
        if let Some(account) = &input.source_account {
            validate::length("SourceAccount", account.chars().count(), 12, 12)?;
        }
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("principal", input.principal.as_str());
        call.notes.parameter("actions", serde_json::json!(input.actions));
        let allowed = call.authorize_authority(action::acm_pca::CreatePermission, &authority)?;
        let account = input.source_account.unwrap_or_else(|| call.scope.account.clone());
        let actions = input.actions.into_iter().collect();
        let (work, principal) = (&mut call.work, &input.principal);
        permission::create(work, &authority, principal, &account, actions, &allowed)?;
        Ok(Empty {})
    }
}
