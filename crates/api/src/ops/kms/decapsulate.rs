//! `Decapsulate`: recovers the shared secret from a ciphertext (FIPS 203).
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Decapsulate.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    Decapsulate, DecapsulateRequest as Input, DecapsulateResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::{dry_run, encapsulation_algorithm, find_key, grant_tokens};
use crate::wire::{ApiError, Blob};

impl Run for Decapsulate {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        let ciphertext = &input.shared_secret_ciphertext_blob.0;
        encapsulation_algorithm(call, &input.encapsulation_algorithm);
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::Decapsulate, &key, None)?;
        let algorithm = input.encapsulation_algorithm.as_str();
        let secret =
            kms::decapsulate(&mut call.work, call.ring, &key, algorithm, ciphertext, &allowed)?;
        dry_run(input.dry_run)?;
        let output = Output {
            key_id: key.arn(),
            shared_secret: Blob(secret.expose().to_vec()),
            encapsulation_algorithm: algorithm.to_owned(),
        };
        call.used.push(key);
        Ok(output)
    }
}
