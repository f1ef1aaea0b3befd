//! `RetireGrant`: gives a grant back.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_RetireGrant.html>

use outlast_domain::arn::Scope;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{dry_run, find_key, key_by_id};
use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct RetireGrant;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub grant_token: Option<String>,
    pub key_id: Option<String>,
    pub grant_id: Option<String>,
    pub dry_run: Option<bool>,
}

impl Operation for RetireGrant {
    const NAME: &'static str = "RetireGrant";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let (key, grant) = match (&input.grant_token, &input.key_id, &input.grant_id) {
            (Some(token), None, None) => {
                validate::length("GrantToken", token.chars().count(), 1, 8192)?;
                let region = call.scope.region.clone();
                let grant = kms::by_token(&mut call.work, &region, token)?;
                let of = Scope { account: grant.account.clone(), region };
                (find_key(call, &of.arn("kms", &format!("key/{}", grant.key_id)))?, grant)
            }
            (None, Some(key), Some(id)) => {
                let key = key_by_id(call, key)?;
                let grant = kms::find_grant(&mut call.work, &key, id)?;
                (key, grant)
            }
            _ => {
                return Err(ApiError::validation(
                    "Specify either GrantToken, or both KeyId and GrantId.",
                ));
            }
        };
        call.notes.parameter("grantId", grant.id.as_str());
        let (work, access) = call.split();
        let allowed = kms::authorize_retire(work, access, &key, &grant)?;
        dry_run(input.dry_run)?;
        kms::delete_grant(&mut call.work, key.scope(), &grant, &allowed)?;
        Ok(Empty {})
    }
}
