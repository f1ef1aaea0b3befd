//! `DisableKeyRotation`: disables automatic rotation of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DisableKeyRotation.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

use crate::aws::Empty;
pub use crate::aws::kms::{DisableKeyRotation, DisableKeyRotationRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::ApiError;

impl Run for DisableKeyRotation {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let key = own_key(call, action::kms::DisableKeyRotation, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::DisableKeyRotation, &key, None)?;
        kms::disable_rotation(&mut call.work, key, &allowed)?;
        Ok(Empty {})
    }
}
