//! `DisconnectCustomKeyStore`: always refused: no custom key store exists here.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DisconnectCustomKeyStore.html>

use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::kms::{DisconnectCustomKeyStore, DisconnectCustomKeyStoreRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::no_custom_key_store;
use crate::wire::ApiError;

impl Run for DisconnectCustomKeyStore {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let id = input.custom_key_store_id;
        call.authorize(action::kms::DisconnectCustomKeyStore, &call.scope.arn("kms", "*"))?;
        Err(no_custom_key_store(&id))
    }
}
