//! `GetSecretValue`: decrypts and returns the value of a version.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html>

use outlast_domain::identity::action;
use outlast_domain::secrets::{self, Selector};

pub use crate::aws::secretsmanager::{
    GetSecretValue, GetSecretValueRequest as Input, GetSecretValueResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{reveal, secret, shown};
use crate::wire::{ApiError, Timestamp};

impl Run for GetSecretValue {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let selector = Selector {
            version_id: input.version_id.as_deref(),
            stage: input.version_stage.as_deref(),
        };
        if let Some(id) = selector.version_id {
            call.notes.parameter("versionId", id);
            call.conditions.set("secretsmanager:VersionId", id);
        }
        // AWS sets it to the default, too: policies that allow one label must see it.
        let by_default = selector.version_id.is_none().then_some(secrets::CURRENT);
        if let Some(stage) = selector.stage.or(by_default) {
            call.notes.parameter("versionStage", stage);
            call.conditions.set("secretsmanager:VersionStage", stage);
        }
        let action = action::secretsmanager::GetSecretValue;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        let selected = secrets::select(&secret, selector)?;
        let value = reveal(call, &mut secret, &selected, &allowed)?;
        let (secret_string, secret_binary) = shown(&value)?;
        Ok(Output {
            arn: secret.arn(),
            name: secret.name().to_owned(),
            version_stages: selected.version.labels(),
            created_date: Timestamp::from_ms(selected.version.created_ms),
            version_id: selected.id,
            secret_string,
            secret_binary,
        })
    }
}
