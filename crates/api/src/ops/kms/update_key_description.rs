//! `UpdateKeyDescription`: replaces the description of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_UpdateKeyDescription.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

use crate::aws::Empty;
pub use crate::aws::kms::{UpdateKeyDescription, UpdateKeyDescriptionRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::ApiError;

impl Run for UpdateKeyDescription {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let key = own_key(call, action::kms::UpdateKeyDescription, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::UpdateKeyDescription, &key, None)?;
        kms::describe(&mut call.work, key, input.description, &allowed)?;
        Ok(Empty {})
    }
}
