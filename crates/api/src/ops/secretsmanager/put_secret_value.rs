//! `PutSecretValue`: adds a version with a new value.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_PutSecretValue.html>

use std::collections::BTreeSet;

use outlast_domain::identity::action;
use outlast_domain::secrets::{self, NewValue, rotation};

pub use crate::aws::secretsmanager::{
    PutSecretValue, PutSecretValueRequest as Input, PutSecretValueResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{
    is_repeated, key_of, protect, secret, sync_replicas, token, value,
};
use crate::wire::ApiError;

impl Run for PutSecretValue {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let given = value(input.secret_string, input.secret_binary, false)?;
        let version_id = token(call, input.client_request_token)?;
        let by_default = || BTreeSet::from([secrets::CURRENT.to_owned()]);
        let stages =
            input.version_stages.map_or_else(by_default, |stages| stages.into_iter().collect());
        call.notes.parameter("versionStages", stages.iter().cloned().collect::<Vec<_>>());
        let action = action::secretsmanager::PutSecretValue;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        if let Some(token) = &input.rotation_token {
            rotation::check_token(&mut call.work, &secret, token)?;
        }
        let Some(given) = given else { return Err(ApiError::validation("There is no value.")) };
        let name = secret.name().to_owned();
        if is_repeated(call, &mut secret, &version_id, &given, &allowed)? {
            let version = secret.versions().get(&version_id);
            let version_stages = version.map(secrets::Version::labels).unwrap_or_default();
            return Ok(Output { arn: secret.arn(), name, version_id, version_stages });
        }
        let key = key_of(call, &secret)?;
        let protected = protect(call, &key, (&secret.arn(), &version_id), &given)?;
        let new = NewValue { version_id: version_id.clone(), protected, stages };
        secrets::put_value(&mut call.work, &mut secret, new, &allowed)?;
        sync_replicas(call, &mut secret, &allowed, &[])?;
        let version = secret.versions().get(&version_id);
        let version_stages = version.map(secrets::Version::labels).unwrap_or_default();
        Ok(Output { arn: secret.arn(), name, version_id, version_stages })
    }
}
