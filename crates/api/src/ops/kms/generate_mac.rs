//! `GenerateMac`: computes a message authentication code.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GenerateMac.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    GenerateMac, GenerateMacRequest as Input, GenerateMacResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::{dry_run, find_key, grant_tokens, mac_algorithm};
use crate::wire::{ApiError, Blob};

impl Run for GenerateMac {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        mac_algorithm(call, &input.mac_algorithm);
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::GenerateMac, &key, None)?;
        let (algorithm, message) = (&input.mac_algorithm, &input.message.0);
        let mac = kms::mac(&mut call.work, call.ring, &key, algorithm, message, &allowed)?;
        dry_run(input.dry_run)?;
        let key_id = key.arn();
        call.used.push(key);
        Ok(Output { mac: Blob(mac), mac_algorithm: input.mac_algorithm, key_id })
    }
}
