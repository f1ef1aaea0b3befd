//! `RevokeGrant`: takes a grant back.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_RevokeGrant.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{dry_run, key_by_id};
use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct RevokeGrant;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub grant_id: String,
    pub dry_run: Option<bool>,
}

impl Operation for RevokeGrant {
    const NAME: &'static str = "RevokeGrant";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let key = key_by_id(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::RevokeGrant, &key, None)?;
        let grant = kms::find_grant(&mut call.work, &key, &input.grant_id)?;
        call.notes.parameter("grantId", grant.id.as_str());
        dry_run(input.dry_run)?;
        kms::delete_grant(&mut call.work, key.scope(), &grant, &allowed)?;
        Ok(Empty {})
    }
}
