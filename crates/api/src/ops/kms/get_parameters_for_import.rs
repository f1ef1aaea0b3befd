//! `GetParametersForImport`: returns a wrapping key and an import token for key material.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GetParametersForImport.html>

use outlast_crypto::keys::KeySpec;
use outlast_crypto::wrap::WrappingAlgorithm;
use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    GetParametersForImport, GetParametersForImportRequest as Input,
    GetParametersForImportResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::{ApiError, Blob, Timestamp};

impl Run for GetParametersForImport {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let invalid = || ApiError::validation("WrappingAlgorithm or WrappingKeySpec is unknown");
        let algorithm =
            WrappingAlgorithm::by_name(&input.wrapping_algorithm).ok_or_else(invalid)?;
        let spec = KeySpec::by_name(&input.wrapping_key_spec).ok_or_else(invalid)?;
        call.notes.parameter("wrappingAlgorithm", algorithm.name);
        call.notes.parameter("wrappingKeySpec", spec.name);
        call.conditions.set("kms:WrappingAlgorithm", algorithm.name);
        call.conditions.set("kms:WrappingKeySpec", spec.name);
        let key = own_key(call, action::kms::GetParametersForImport, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::GetParametersForImport, &key, None)?;
        let parameters = kms::import_parameters(&mut call.work, &key, algorithm, spec, &allowed)?;
        Ok(Output {
            key_id: key.arn(),
            import_token: Blob(parameters.token),
            public_key: Blob(parameters.public_key),
            parameters_valid_to: Timestamp::from_ms(parameters.expires_ms),
        })
    }
}

/// `WrappingKeySpec`, except SM2, which AWS offers in the China Regions only.
pub const WRAPPING_KEYS: &[&str] = &["RSA_2048", "RSA_3072", "RSA_4096"];
