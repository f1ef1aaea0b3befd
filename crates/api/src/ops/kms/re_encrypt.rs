//! `ReEncrypt`: decrypts a ciphertext and encrypts the plaintext under another key, inside the service.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ReEncrypt.html>

use outlast_domain::identity::action;
use outlast_domain::kms::{self, Key};

pub use crate::aws::kms::{ReEncrypt, ReEncryptRequest as Input, ReEncryptResponse as Output};
use crate::call::{Call, Run};
use crate::model::kms::{
    ciphertext, dry_run, encryption_algorithm, encryption_context, find_key, grant_tokens,
    ignores_ciphertext, source_key,
};
use crate::wire::{ApiError, Blob};

impl Run for ReEncrypt {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let ignores_ciphertext =
            ignores_ciphertext(input.dry_run, input.dry_run_modifiers.as_deref())?;
        let blob = ciphertext(input.ciphertext_blob.as_ref(), ignores_ciphertext)?;
        let from_algorithm =
            encryption_algorithm(call, input.source_encryption_algorithm.as_deref());
        let from_context = encryption_context(call, input.source_encryption_context)?;
        call.notes.rename_parameter("encryptionAlgorithm", "sourceEncryptionAlgorithm");
        call.notes.rename_parameter("encryptionContext", "sourceEncryptionContext");
        let to_algorithm =
            encryption_algorithm(call, input.destination_encryption_algorithm.as_deref());
        let to_context = encryption_context(call, input.destination_encryption_context)?;
        call.notes.rename_parameter("encryptionAlgorithm", "destinationEncryptionAlgorithm");
        call.notes.rename_parameter("encryptionContext", "destinationEncryptionContext");
        let from = source_key(
            call,
            input.source_key_id.as_deref(),
            from_algorithm,
            blob,
            ignores_ciphertext,
        )?;
        call.notes.rename_parameter("keyId", "sourceKeyId");
        let to = find_key(call, &input.destination_key_id)?;
        call.notes.rename_parameter("keyId", "destinationKeyId");
        let same = if from.arn() == to.arn() { "true" } else { "false" };
        call.conditions.set("kms:ReEncryptOnSameKey", same);
        // Each token may be for either key.
        let tokens = input.grant_tokens.unwrap_or_default();
        let of = |key: &Key| {
            let is_of = |token: &&String| kms::is_token_of(token, key);
            tokens.iter().filter(is_of).cloned().collect::<Vec<_>>()
        };
        let (for_from, for_to) = (of(&from), of(&to));
        if let Some(foreign) = tokens.iter().find(|t| !for_from.contains(t) && !for_to.contains(t))
        {
            kms::by_token(&mut call.work, &call.scope.region, foreign)?;
            let text = "A grant token names a grant of another key.".to_owned();
            return Err(kms::KmsError::InvalidGrantToken(text).into());
        }
        grant_tokens(call, Some(for_from));
        call.conditions.set("kms:EncryptionAlgorithm", from_algorithm);
        let may_decrypt =
            call.authorize_key(action::kms::ReEncryptFrom, &from, Some(&from_context))?;
        grant_tokens(call, Some(for_to));
        call.conditions.set("kms:EncryptionAlgorithm", to_algorithm);
        let may_encrypt = call.authorize_key(action::kms::ReEncryptTo, &to, Some(&to_context))?;
        if ignores_ciphertext {
            dry_run(input.dry_run)?;
        }
        let ciphertext =
            kms::CiphertextRef { algorithm: from_algorithm, context: &from_context, blob };
        let plaintext =
            kms::decrypt(&mut call.work, call.ring, &from, "ReEncrypt", ciphertext, &may_decrypt)?;
        let bytes = plaintext.bytes.expose();
        let new = kms::PlaintextRef { algorithm: to_algorithm, context: &to_context, bytes };
        let blob = kms::encrypt(&mut call.work, call.ring, &to, "ReEncrypt", new, &may_encrypt)?;
        dry_run(input.dry_run)?;
        let output = Output {
            ciphertext_blob: Blob(blob),
            source_key_id: from.arn(),
            key_id: to.arn(),
            source_encryption_algorithm: from_algorithm.to_owned(),
            destination_encryption_algorithm: to_algorithm.to_owned(),
            source_key_material_id: plaintext.material_id,
            destination_key_material_id: to
                .is_symmetric_encryption()
                .then(|| to.material_id().to_owned()),
        };
        call.used.extend([from, to]);
        Ok(output)
    }
}
