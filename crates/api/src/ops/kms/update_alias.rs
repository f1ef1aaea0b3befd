//! `UpdateAlias`: points an alias at another key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_UpdateAlias.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

use crate::aws::Empty;
pub use crate::aws::kms::{UpdateAlias, UpdateAliasRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::ApiError;

impl Run for UpdateAlias {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
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
