//! `CreateCustomKeyStore`: makes a custom key store; there is nothing here that one could stand for.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateCustomKeyStore.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Discarded, validate};

/// The operation.
pub struct CreateCustomKeyStore;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub custom_key_store_name: String,
    pub cloud_hsm_cluster_id: Option<String>,
    pub trust_anchor_certificate: Option<String>,
    pub key_store_password: Option<Discarded>,
    pub custom_key_store_type: Option<String>,
    pub xks_proxy_uri_endpoint: Option<String>,
    pub xks_proxy_uri_path: Option<String>,
    pub xks_proxy_vpc_endpoint_service_name: Option<String>,
    pub xks_proxy_vpc_endpoint_service_owner: Option<String>,
    pub xks_proxy_authentication_credential: Option<Discarded>,
    pub xks_proxy_connectivity: Option<String>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub custom_key_store_id: Option<String>,
}

impl Operation for CreateCustomKeyStore {
    const NAME: &'static str = "CreateCustomKeyStore";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::length(
            "CustomKeyStoreName",
            input.custom_key_store_name.chars().count(),
            1,
            256,
        )?;
        let kind = input.custom_key_store_type.as_deref().unwrap_or("AWS_CLOUDHSM");
        validate::one_of("CustomKeyStoreType", kind, &["AWS_CLOUDHSM", "EXTERNAL_KEY_STORE"])?;
        call.authorize(action::kms::CreateCustomKeyStore, &call.scope.arn("kms", "*"))?;
        if kind == "AWS_CLOUDHSM" {
            return Err(ApiError::new(
                "CloudHsmClusterNotFoundException",
                "There is no such CloudHSM cluster: custom key stores are not served.",
            ));
        }
        Err(ApiError::new(
            "XksProxyUriUnreachableException",
            "External key store proxies are not called: custom key stores are not served.",
        ))
    }
}
