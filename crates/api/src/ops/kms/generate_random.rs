//! `GenerateRandom`: returns random bytes.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GenerateRandom.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    GenerateRandom, GenerateRandomRequest as Input, GenerateRandomResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::no_custom_key_store;
use crate::wire::{ApiError, Blob};

impl Run for GenerateRandom {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        if let Some(id) = &input.custom_key_store_id {
            return Err(no_custom_key_store(id));
        }
        let len = usize::try_from(input.number_of_bytes.unwrap_or(0))
            .ok()
            .filter(|len| (1..=1024).contains(len))
            .ok_or_else(|| ApiError::validation("NumberOfBytes must be between 1 and 1024."))?;
        call.notes.parameter("numberOfBytes", len);
        call.authorize(action::kms::GenerateRandom, &call.scope.arn("kms", "*"))?;
        let random = outlast_crypto::random::secret(len).map_err(kms::KmsError::from)?;
        Ok(Output { plaintext: Blob(random.expose().to_vec()) })
    }
}
