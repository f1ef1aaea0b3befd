//! `GenerateDataKey`: returns a new data key, in plaintext and encrypted under a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GenerateDataKey.html>

use outlast_domain::identity::action;
use outlast_domain::kms::{self};

pub use crate::aws::kms::{
    GenerateDataKey, GenerateDataKeyRequest as Input, GenerateDataKeyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::{
    data_key, data_key_length, dry_run, encryption_context, find_key, grant_tokens,
};
use crate::wire::{ApiError, Blob};

impl Run for GenerateDataKey {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        let len = data_key_length(input.number_of_bytes, input.key_spec.as_deref())?;
        let context = encryption_context(call, input.encryption_context)?;
        call.notes.parameter("numberOfBytes", len);
        let key = find_key(call, &input.key_id)?;
        let plaintext = outlast_crypto::random::secret(len).map_err(kms::KmsError::from)?;
        let blob = data_key(call, action::kms::GenerateDataKey, &key, &context, &plaintext)?;
        dry_run(input.dry_run)?;
        let output = Output {
            ciphertext_blob: Blob(blob),
            plaintext: Blob(plaintext.expose().to_vec()),
            key_id: key.arn(),
            key_material_id: Some(key.material_id().to_owned()),
        };
        call.used.push(key);
        Ok(output)
    }
}
