//! `UpdateAlias`: points an alias at another key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_UpdateAlias.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};

use crate::model::kms::own_key;
use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct UpdateAlias;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub alias_name: String,
    pub target_key_id: String,
}

impl Operation for UpdateAlias {
    const NAME: &'static str = "UpdateAlias";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("AliasName", input.alias_name.chars().count(), 1, 256)?;
        call.notes.parameter("aliasName", input.alias_name.as_str());
        kms::after_prefix(&input.alias_name)?;
        let scope = call.scope.clone();
        let current = kms::find(&mut call.work, &scope, &input.alias_name)?;
        let key = own_key(call, action::kms::UpdateAlias, &input.target_key_id)?;
        let for_alias =
            call.authorize(action::kms::UpdateAlias, &scope.arn("kms", &input.alias_name))?;
        let for_current = call.authorize_key(action::kms::UpdateAlias, &current, None)?;
        let for_key = call.authorize_key(action::kms::UpdateAlias, &key, None)?;
        let may = kms::MayUpdate { alias: &for_alias, current: &for_current, key: &for_key };
        kms::update_alias(&mut call.work, &input.alias_name, &key, &current, &may)?;
        Ok(Empty {})
    }
}
