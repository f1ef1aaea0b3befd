//! `CreateCustomKeyStore`: always refused: the service has no counterpart of a custom key store.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateCustomKeyStore.html>

use outlast_domain::identity::action;

pub use crate::aws::kms::{
    CreateCustomKeyStore, CreateCustomKeyStoreRequest as Input,
    CreateCustomKeyStoreResponse as Output,
};
use crate::call::{Call, Run};
use crate::wire::ApiError;

impl Run for CreateCustomKeyStore {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let kind = input.custom_key_store_type.as_deref().unwrap_or("AWS_CLOUDHSM");
        call.authorize(action::kms::CreateCustomKeyStore, &call.scope.arn("kms", "*"))?;
        if kind == "AWS_CLOUDHSM" {
            return Err(ApiError::new(
                "CloudHsmClusterNotFoundException",
                "There is no such CloudHSM cluster: outlast does not support custom key stores.",
            ));
        }
        Err(ApiError::new(
            "XksProxyUriUnreachableException",
            "outlast does not call external key store proxies: it does not support custom key stores.",
        ))
    }
}
