//! `DeletePermission`: takes permissions from Certificate Manager.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_DeletePermission.html>

use outlast_domain::ca::permission;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_pca::find_authority;
use crate::ops::{ACM_PCA, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct DeletePermission;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
    pub principal: String,
    pub source_account: Option<String>,
}

impl Operation for DeletePermission {
    const NAME: &'static str = "DeletePermission";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("Principal", input.principal.chars().count(), 0, 128)?;
        if let Some(account) = &input.source_account {
            validate::length("SourceAccount", account.chars().count(), 12, 12)?;
        }
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("principal", input.principal.as_str());
        let allowed = call.authorize_authority(action::acm_pca::DeletePermission, &authority)?;
        let account = input.source_account.unwrap_or_else(|| call.scope.account.clone());
        permission::delete(&mut call.work, &authority, &input.principal, &account, &allowed)?;
        Ok(Empty {})
    }
}
