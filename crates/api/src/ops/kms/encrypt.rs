//! `Encrypt`: encrypts up to 4096 bytes.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Encrypt.html>

use outlast_domain::identity::action;
use outlast_domain::kms::{self};

pub use crate::aws::kms::{Encrypt, EncryptRequest as Input, EncryptResponse as Output};
use crate::call::{Call, Run};
use crate::model::kms::{
    dry_run, encryption_algorithm, encryption_context, find_key, grant_tokens,
};
use crate::wire::{ApiError, Blob};

impl Run for Encrypt {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        let algorithm =
            encryption_algorithm(call, input.encryption_algorithm.as_deref()).to_owned();
        let context = encryption_context(call, input.encryption_context)?;
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::Encrypt, &key, Some(&context))?;
        let plaintext = kms::PlaintextRef {
            algorithm: &algorithm,
            context: &context,
            bytes: &input.plaintext.0,
        };
        let blob = kms::encrypt(&mut call.work, call.ring, &key, "Encrypt", plaintext, &allowed)?;
        dry_run(input.dry_run)?;
        let output = Output {
            ciphertext_blob: Blob(blob),
            key_id: key.arn(),
            encryption_algorithm: algorithm,
        };
        call.used.push(key);
        Ok(output)
    }
}
