//! `GenerateDataKeyPair`: returns a new key pair: public key, private key, and private key encrypted under a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GenerateDataKeyPair.html>

use outlast_domain::identity::action;

pub use crate::aws::kms::{
    GenerateDataKeyPair, GenerateDataKeyPairRequest as Input, GenerateDataKeyPairResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::{data_key_pair, dry_run, encryption_context, find_key, grant_tokens};
use crate::wire::{ApiError, Blob};

impl Run for GenerateDataKeyPair {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        let context = encryption_context(call, input.encryption_context)?;
        let key = find_key(call, &input.key_id)?;
        let pair = data_key_pair(
            call,
            action::kms::GenerateDataKeyPair,
            &key,
            &context,
            &input.key_pair_spec,
        )?;
        dry_run(input.dry_run)?;
        let output = Output {
            private_key_ciphertext_blob: Blob(pair.ciphertext),
            private_key_plaintext: Blob(pair.private.expose().to_vec()),
            public_key: Blob(pair.public),
            key_id: key.arn(),
            key_pair_spec: input.key_pair_spec,
            key_material_id: Some(key.material_id().to_owned()),
        };
        call.used.push(key);
        Ok(output)
    }
}
