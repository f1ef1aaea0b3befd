//! `Verify`: verifies a signature; an invalid one is an error.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Verify.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{Verify, VerifyRequest as Input, VerifyResponse as Output};
use crate::call::{Call, Run};
use crate::model::kms::{dry_run, find_key, grant_tokens, message, signing_algorithm};
use crate::wire::ApiError;

impl Run for Verify {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        signing_algorithm(call, &input.signing_algorithm);
        let message = message(call, &input.message, input.message_type.as_deref());
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::Verify, &key, None)?;
        kms::verify(
            &mut call.work,
            call.ring,
            &key,
            &input.signing_algorithm,
            message,
            &input.signature.0,
            &allowed,
        )?;
        dry_run(input.dry_run)?;
        let key_id = key.arn();
        call.used.push(key);
        Ok(Output { key_id, signature_valid: true, signing_algorithm: input.signing_algorithm })
    }
}
