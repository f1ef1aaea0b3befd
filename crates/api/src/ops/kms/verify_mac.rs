//! `VerifyMac`: verifies a message authentication code; a wrong one is an error.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_VerifyMac.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{VerifyMac, VerifyMacRequest as Input, VerifyMacResponse as Output};
use crate::call::{Call, Run};
use crate::model::kms::{dry_run, find_key, grant_tokens, mac_algorithm};
use crate::wire::ApiError;

impl Run for VerifyMac {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        mac_algorithm(call, &input.mac_algorithm);
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::VerifyMac, &key, None)?;
        let (algorithm, message, mac) = (&input.mac_algorithm, &input.message.0, &input.mac.0);
        kms::verify_mac(&mut call.work, call.ring, &key, algorithm, message, mac, &allowed)?;
        dry_run(input.dry_run)?;
        let key_id = key.arn();
        call.used.push(key);
        Ok(Output { key_id, mac_valid: true, mac_algorithm: input.mac_algorithm })
    }
}
