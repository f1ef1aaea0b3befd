//! `UpdateCustomKeyStore`: changes a custom key store, of which there are none.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_UpdateCustomKeyStore.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::no_custom_key_store;
use crate::ops::{Call, Empty, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Discarded, validate};

/// The operation.
pub struct UpdateCustomKeyStore;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub custom_key_store_id: String,
    pub new_custom_key_store_name: Option<String>,
    pub key_store_password: Option<Discarded>,
    pub cloud_hsm_cluster_id: Option<String>,
    pub xks_proxy_uri_endpoint: Option<String>,
    pub xks_proxy_uri_path: Option<String>,
    pub xks_proxy_vpc_endpoint_service_name: Option<String>,
    pub xks_proxy_vpc_endpoint_service_owner: Option<String>,
    pub xks_proxy_authentication_credential: Option<Discarded>,
    pub xks_proxy_connectivity: Option<String>,
}

impl Operation for UpdateCustomKeyStore {
    const NAME: &'static str = "UpdateCustomKeyStore";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let id = input.custom_key_store_id;
        validate::length("CustomKeyStoreId", id.chars().count(), 1, 64)?;
        call.authorize(action::kms::UpdateCustomKeyStore, &call.scope.arn("kms", "*"))?;
        Err(no_custom_key_store(&id))
    }
}
