//! `CreateAlias`: gives a key an alias.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateAlias.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

use crate::aws::Empty;
pub use crate::aws::kms::{CreateAlias, CreateAliasRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::ApiError;

impl Run for CreateAlias {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        call.notes.parameter("aliasName", input.alias_name.as_str());
        if input.target_key_id.contains("alias/") {
            return Err(ApiError::validation(
                "TargetKeyId must be a key id or key ARN, not another alias.",
            ));
        }
        let key = own_key(call, action::kms::CreateAlias, &input.target_key_id)?;
        // Checked before the name becomes part of an ARN that policies are evaluated with.
        kms::check_new_alias_name(&input.alias_name)?;
        let arn = call.scope.arn("kms", &input.alias_name);
        let for_alias = call.authorize(action::kms::CreateAlias, &arn)?;
        let for_key = call.authorize_key(action::kms::CreateAlias, &key, None)?;
        let may = (&for_alias, &for_key);
        kms::create_alias(&mut call.work, &call.scope, &input.alias_name, &key, may)?;
        Ok(Empty {})
    }
}
