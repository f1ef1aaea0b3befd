//! `GetParametersForImport`: gives a wrapping key and a token, with which key material can be imported.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GetParametersForImport.html>

use outlast_crypto::keys::KeySpec;
use outlast_crypto::wrap::{WRAPPING, WrappingAlgorithm};
use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};

use crate::model::kms::own_key;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, Timestamp, validate};

/// The operation.
pub struct GetParametersForImport;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub wrapping_algorithm: String,
    pub wrapping_key_spec: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub import_token: Blob,
    pub public_key: Blob,
    pub parameters_valid_to: Timestamp,
}

impl Operation for GetParametersForImport {
    const NAME: &'static str = "GetParametersForImport";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let names: Vec<_> = WRAPPING.iter().map(|row| row.name).collect();
        validate::one_of("WrappingAlgorithm", &input.wrapping_algorithm, &names)?;
        validate::one_of("WrappingKeySpec", &input.wrapping_key_spec, WRAPPING_KEYS)?;
        let invalid = || ApiError::validation("WrappingAlgorithm or WrappingKeySpec is not known");
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

/// `WrappingKeySpec`, but for SM2, which is for regions in China only.
pub const WRAPPING_KEYS: &[&str] = &["RSA_2048", "RSA_3072", "RSA_4096"];
