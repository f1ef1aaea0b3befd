//! `DeleteAlias`: takes a second name away.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DeleteAlias.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};

use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct DeleteAlias;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub alias_name: String,
}

impl Operation for DeleteAlias {
    const NAME: &'static str = "DeleteAlias";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("AliasName", input.alias_name.chars().count(), 1, 256)?;
        call.notes.parameter("aliasName", input.alias_name.as_str());
        let arn = call.scope.arn("kms", &input.alias_name);
        kms::after_prefix(&input.alias_name)?;
        let scope = call.scope.clone();
        let key = kms::find(&mut call.work, &scope, &input.alias_name)?;
        let for_key = call.authorize_key(action::kms::DeleteAlias, &key, None)?;
        let for_alias = call.authorize(action::kms::DeleteAlias, &arn)?;
        let may = (&for_alias, &for_key);
        kms::delete_alias(&mut call.work, &call.scope, &input.alias_name, may)?;
        call.notes.resource(arn, "AWS::KMS::Alias");
        Ok(Empty {})
    }
}
