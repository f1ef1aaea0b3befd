//! `GetPublicKey`: gives the public half of an asymmetric key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GetPublicKey.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{Algorithms, find_key, grant_tokens};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob};

/// The operation.
pub struct GetPublicKey;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub grant_tokens: Option<Vec<String>>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub public_key: Blob,
    pub customer_master_key_spec: String,
    pub key_spec: String,
    pub key_usage: String,
    pub encryption_algorithms: Option<Vec<String>>,
    pub signing_algorithms: Option<Vec<String>>,
    pub key_agreement_algorithms: Option<Vec<String>>,
    pub encapsulation_algorithms: Option<Vec<String>>,
}

impl Operation for GetPublicKey {
    const NAME: &'static str = "GetPublicKey";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens)?;
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
