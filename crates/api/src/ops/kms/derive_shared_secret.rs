//! `DeriveSharedSecret`: agrees on a secret with the holder of another key on the same curve.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DeriveSharedSecret.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    DeriveSharedSecret, DeriveSharedSecretRequest as Input, DeriveSharedSecretResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::{dry_run, find_key, grant_tokens};
use crate::wire::{ApiError, Blob};

impl Run for DeriveSharedSecret {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        let algorithm = input.key_agreement_algorithm.as_str();
        call.notes.parameter("keyAgreementAlgorithm", algorithm);
        call.conditions.set("kms:KeyAgreementAlgorithm", algorithm);
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::DeriveSharedSecret, &key, None)?;
        let peer = &input.public_key.0;
        let secret =
            kms::derive_shared_secret(&mut call.work, call.ring, &key, algorithm, peer, &allowed)?;
        dry_run(input.dry_run)?;
        let output = Output {
            key_id: key.arn(),
            shared_secret: Blob(secret.expose().to_vec()),
            key_agreement_algorithm: algorithm.to_owned(),
            key_origin: key.origin().name().to_owned(),
        };
        call.used.push(key);
        Ok(output)
    }
}
