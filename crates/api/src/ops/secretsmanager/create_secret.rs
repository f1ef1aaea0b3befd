//! `CreateSecret`: makes a secret, with its first version if the request has a value.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_CreateSecret.html>

use std::collections::BTreeSet;

use outlast_domain::identity::action;
use outlast_domain::secrets::{self, NewSecret, NewValue, Secret, SecretValue};

pub use crate::aws::secretsmanager::{
    CreateSecret, CreateSecretRequest as Input, CreateSecretResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{
    SECRET, is_repeated, new_replicas, overwritten, protect, shown_replicas, sync_replicas, tags,
    token, value,
};
use crate::wire::ApiError;

impl Run for CreateSecret {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        call.notes.parameter("name", input.name.as_str());
        let given = value(input.secret_string, input.secret_binary, true)?;
        let version_id = token(call, input.client_request_token)?;
        let tags = tags(call, input.tags)?;
        let overwrite = input.force_overwrite_replica_secret;
        let replicas =
            new_replicas(call, input.add_replica_regions.unwrap_or_default(), overwrite)?;
        let mut new = NewSecret::named(input.name)?;
        new.description = input.description.filter(|text| !text.is_empty());
        new.kms_key = input.kms_key_id.filter(|key| !key.is_empty());
        call.conditions.set("secretsmanager:Name", new.name.as_str());
        if let Some(text) = &new.description {
            call.conditions.set("secretsmanager:Description", text.as_str());
        }
        if let Some(key) = &new.kms_key {
            call.conditions.set("secretsmanager:KmsKeyId", key.as_str());
            call.notes.parameter("kmsKeyId", key.as_str());
        }
        if let (Some(value), Some(there)) = (&given, existing(call, &new)?)
            && let Some(output) = repeated(call, there, &version_id, value)?
        {
            return Ok(output);
        }
        let scope = call.scope.clone();
        let (_, access) = call.split();
        let allowed =
            secrets::authorize_new(access, &scope, action::secretsmanager::CreateSecret, &new)?;
        if !tags.is_empty() {
            let action = action::secretsmanager::TagResource;
            secrets::authorize_new(access, &scope, action, &new)?;
        }
        if !replicas.is_empty() {
            let action = action::secretsmanager::ReplicateSecretToRegions;
            secrets::authorize_new(access, &scope, action, &new)?;
        }
        new.tags = tags;
        let mut secret = secrets::create(&mut call.work, &scope, new, &allowed)?;
        call.notes.resource(secret.arn(), SECRET);
        // The key must exist even if there is no value yet.
        let key = secrets::key(&mut call.work, &scope, secret.kms_key())?;
        let mut output = Output {
            arn: secret.arn(),
            name: secret.name().to_owned(),
            version_id: None,
            replication_status: None,
        };
        if let Some(value) = given {
            let protected = protect(call, &key, (&secret.arn(), &version_id), &value)?;
            let stages = BTreeSet::from([secrets::CURRENT.to_owned()]);
            let new = NewValue { version_id: version_id.clone(), protected, stages };
            secrets::put_value(&mut call.work, &mut secret, new, &allowed)?;
            output.version_id = Some(version_id);
        }
        if !replicas.is_empty() {
            secrets::add_replicas(&mut call.work, &mut secret, &replicas, &allowed)?;
            sync_replicas(call, &mut secret, &allowed, &overwritten(&replicas, overwrite))?;
            output.replication_status = Some(shown_replicas(&secret));
        }
        call.notes.response("arn", output.arn.as_str());
        Ok(output)
    }
}

/// The secret that has the name already.
fn existing(call: &mut Call<'_>, new: &NewSecret) -> Result<Option<Secret>, ApiError> {
    let named = secrets::Named::parse(&call.scope, &new.name)?;
    Ok(secrets::find(&mut call.work, &named)?.filter(|found| found.erase_ms().is_none()))
}

/// The answer to a repeated request: same name, token and value. Another value under the token is refused; another token
/// means another request.
fn repeated(
    call: &mut Call<'_>,
    mut there: Secret,
    version_id: &str,
    value: &SecretValue,
) -> Result<Option<Output>, ApiError> {
    if !there.versions().contains_key(version_id) {
        return Ok(None);
    }
    let (work, access) = call.split();
    let allowed = secrets::authorize(work, access, action::secretsmanager::CreateSecret, &there)?;
    call.notes.resource(there.arn(), SECRET);
    if !is_repeated(call, &mut there, version_id, value, &allowed)? {
        return Ok(None);
    }
    Ok(Some(Output {
        arn: there.arn(),
        name: there.name().to_owned(),
        version_id: Some(version_id.to_owned()),
        replication_status: Some(shown_replicas(&there)).filter(|replicas| !replicas.is_empty()),
    }))
}
