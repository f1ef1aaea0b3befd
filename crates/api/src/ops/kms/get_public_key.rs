//! `GetPublicKey`: returns the public key of an asymmetric key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GetPublicKey.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    GetPublicKey, GetPublicKeyRequest as Input, GetPublicKeyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::{Algorithms, find_key, grant_tokens};
use crate::wire::{ApiError, Blob};

impl Run for GetPublicKey {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::GetPublicKey, &key, None)?;
        let public_key = kms::public_key(&mut call.work, call.ring, &key, &allowed)?;
        let algorithms = Algorithms::from(&key);
        Ok(Output {
            key_id: key.arn(),
            public_key: Blob(public_key),
            customer_master_key_spec: key.spec().name.to_owned(),
            key_spec: key.spec().name.to_owned(),
            key_usage: key.usage().name().to_owned(),
            encryption_algorithms: algorithms.encryption,
            signing_algorithms: algorithms.signing,
            key_agreement_algorithms: algorithms.key_agreement,
            encapsulation_algorithms: algorithms.encapsulation,
        })
    }
}
