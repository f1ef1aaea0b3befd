//! `Encapsulate`: makes a shared secret, and the ciphertext from which the key's holder recovers it (FIPS 203).
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Encapsulate.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    Encapsulate, EncapsulateRequest as Input, EncapsulateResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::{dry_run, encapsulation_algorithm, find_key, grant_tokens};
use crate::wire::{ApiError, Blob};

impl Run for Encapsulate {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        encapsulation_algorithm(call, &input.encapsulation_algorithm);
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::Encapsulate, &key, None)?;
        let algorithm = input.encapsulation_algorithm.as_str();
        let (secret, ciphertext) =
            kms::encapsulate(&mut call.work, call.ring, &key, algorithm, &allowed)?;
        dry_run(input.dry_run)?;
        let output = Output {
            key_id: key.arn(),
            shared_secret: Blob(secret.expose().to_vec()),
            shared_secret_ciphertext_blob: Blob(ciphertext),
            encapsulation_algorithm: algorithm.to_owned(),
        };
        call.used.push(key);
        Ok(output)
    }
}
