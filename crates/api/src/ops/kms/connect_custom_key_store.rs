//! `ConnectCustomKeyStore`: connects a custom key store, of which there are none.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ConnectCustomKeyStore.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::kms::no_custom_key_store;
use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct ConnectCustomKeyStore;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub custom_key_store_id: String,
}

impl Operation for ConnectCustomKeyStore {
    const NAME: &'static str = "ConnectCustomKeyStore";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let id = input.custom_key_store_id;
        validate::length("CustomKeyStoreId", id.chars().count(), 1, 64)?;
        call.authorize(action::kms::ConnectCustomKeyStore, &call.scope.arn("kms", "*"))?;
        Err(no_custom_key_store(&id))
    }
}
