//! `GetPublicKey`: gives the public half of an asymmetric key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_GetPublicKey.html>

use outlast_domain::kms;
use serde::{Deserialize, Serialize};

use crate::model::kms::{encryption_algorithms, find_key, refuse_grant_tokens, signing_algorithms};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob};

/// The operation.
pub struct GetPublicKey;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_tokens: Option<Vec<String>>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub public_key: Blob,
    pub customer_master_key_spec: String,
    pub key_spec: String,
    pub key_usage: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_algorithms: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_algorithms: Option<Vec<String>>,
}

impl Operation for GetPublicKey {
    const NAME: &'static str = "GetPublicKey";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        refuse_grant_tokens(input.grant_tokens.as_ref())?;
        let key = find_key(call, &input.key_id)?;
        let allowed = call.authorize("kms:GetPublicKey", &key.arn())?;
        let public_key = kms::public_key(&mut call.work, call.ring, &key, &allowed)?;
        Ok(Output {
            key_id: key.arn(),
            public_key: Blob(public_key),
            customer_master_key_spec: key.spec().name.to_owned(),
            key_spec: key.spec().name.to_owned(),
            key_usage: key.usage().name().to_owned(),
            encryption_algorithms: encryption_algorithms(&key),
            signing_algorithms: signing_algorithms(&key),
        })
    }
}
