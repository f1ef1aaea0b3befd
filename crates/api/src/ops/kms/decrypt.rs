//! `Decrypt`: decrypts what Encrypt or GenerateDataKey made.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html>

use outlast_domain::identity::action;
use outlast_domain::kms::{self};

pub use crate::aws::kms::{Decrypt, DecryptRequest as Input, DecryptResponse as Output};
use crate::call::{Call, Run};
use crate::model::kms::{
    ciphertext, dry_run, encryption_algorithm, encryption_context, grant_tokens,
    ignores_ciphertext, source_key,
};
use crate::wire::{ApiError, Blob};

impl Run for Decrypt {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        let ignores_ciphertext =
            ignores_ciphertext(input.dry_run, input.dry_run_modifiers.as_deref())?;
        let blob = ciphertext(input.ciphertext_blob.as_ref(), ignores_ciphertext)?;
        let algorithm = encryption_algorithm(call, input.encryption_algorithm.as_deref());
        let context = encryption_context(call, input.encryption_context)?;
        let key = source_key(call, input.key_id.as_deref(), algorithm, blob, ignores_ciphertext)?;
        let allowed = call.authorize_key(action::kms::Decrypt, &key, Some(&context))?;
        if ignores_ciphertext {
            dry_run(input.dry_run)?;
        }
        let ciphertext = kms::CiphertextRef { algorithm, context: &context, blob };
        let plaintext =
            kms::decrypt(&mut call.work, call.ring, &key, "Decrypt", ciphertext, &allowed)?;
        dry_run(input.dry_run)?;
        let output = Output {
            key_id: key.arn(),
            plaintext: Blob(plaintext.bytes.expose().to_vec()),
            encryption_algorithm: algorithm.to_owned(),
            key_material_id: plaintext.material_id,
        };
        call.used.push(key);
        Ok(output)
    }
}
