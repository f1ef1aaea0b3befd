//! `GenerateDataKeyPairWithoutPlaintext`: returns a new key pair whose private key is only there encrypted under a
//! key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GenerateDataKeyPairWithoutPlaintext.html>

use outlast_domain::identity::action;

pub use crate::aws::kms::{
    GenerateDataKeyPairWithoutPlaintext, GenerateDataKeyPairWithoutPlaintextRequest as Input,
    GenerateDataKeyPairWithoutPlaintextResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::{data_key_pair, dry_run, encryption_context, find_key, grant_tokens};
use crate::wire::{ApiError, Blob};

impl Run for GenerateDataKeyPairWithoutPlaintext {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        let context = encryption_context(call, input.encryption_context)?;
        let key = find_key(call, &input.key_id)?;
        let pair = data_key_pair(
            call,
            action::kms::GenerateDataKeyPairWithoutPlaintext,
            &key,
            &context,
            &input.key_pair_spec,
        )?;
        dry_run(input.dry_run)?;
        let output = Output {
            private_key_ciphertext_blob: Blob(pair.ciphertext),
            public_key: Blob(pair.public),
            key_id: key.arn(),
            key_pair_spec: input.key_pair_spec,
            key_material_id: Some(key.material_id().to_owned()),
        };
        call.used.push(key);
        Ok(output)
    }
}
