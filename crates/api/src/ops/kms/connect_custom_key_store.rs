//! `ConnectCustomKeyStore`: always refused: no custom key store exists here.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ConnectCustomKeyStore.html>

use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::kms::{ConnectCustomKeyStore, ConnectCustomKeyStoreRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::no_custom_key_store;
use crate::wire::ApiError;

impl Run for ConnectCustomKeyStore {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let id = input.custom_key_store_id;
        call.authorize(action::kms::ConnectCustomKeyStore, &call.scope.arn("kms", "*"))?;
        Err(no_custom_key_store(&id))
    }
}
