//! `Sign`: signs a message, its digest, or the message representative of ML-DSA.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Sign.html>

use outlast_crypto::digests::sha256;
use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{Sign, SignRequest as Input, SignResponse as Output};
use crate::call::{Call, Run};
use crate::model::kms::{dry_run, find_key, grant_tokens, message, signing_algorithm};
use crate::wire::{ApiError, Blob};

impl Run for Sign {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        signing_algorithm(call, &input.signing_algorithm);
        let message = message(call, &input.message, input.message_type.as_deref());
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::Sign, &key, None)?;
        let algorithm = &input.signing_algorithm;
        let signed =
            kms::sign_approved(&mut call.work, call.ring, &key, algorithm, message, &allowed)?;
        dry_run(input.dry_run)?;
        // By this the owner of a key finds each signature of it; it tells nothing about what was signed.
        call.notes.additional("signatureSha256", hex::encode(sha256(&signed.signature)));
        if let Some(request) = signed.request {
            // CloudTrail has no member for approvals.
            call.notes.additional("signingRequestId", request);
        }
        let key_id = key.arn();
        call.used.push(key);
        Ok(Output {
            key_id,
            signature: Blob(signed.signature),
            signing_algorithm: input.signing_algorithm,
        })
    }
}
