//! `DisableKey`: disables a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DisableKey.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

use crate::aws::Empty;
pub use crate::aws::kms::{DisableKey, DisableKeyRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::ApiError;

impl Run for DisableKey {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let key = own_key(call, action::kms::DisableKey, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::DisableKey, &key, None)?;
        kms::disable(&mut call.work, key, &allowed)?;
        Ok(Empty {})
    }
}
