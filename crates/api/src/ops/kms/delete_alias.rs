//! `DeleteAlias`: deletes an alias.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DeleteAlias.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

use crate::aws::Empty;
pub use crate::aws::kms::{DeleteAlias, DeleteAliasRequest as Input};
use crate::call::{Call, Run};
use crate::wire::ApiError;

impl Run for DeleteAlias {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
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
