//! Secrets Manager structures, and what its operations share.

use std::collections::BTreeMap;

use outlast_crypto::Secret as Plain;
use outlast_domain::identity::action::{self, Action, ChangesSecret, ReadsSecretValue};
use outlast_domain::identity::{Permit, authorize};
use outlast_domain::kms::{self, Access, EncryptionContext, Key};
use outlast_domain::secrets::rotation::Rules;
use outlast_domain::secrets::{
    self, Filter, FilterKey, Named, NewReplica, Protected, Secret, SecretError, SecretValue,
    Selected, Version,
};
use outlast_domain::{Fault, ids, limits};

pub use crate::aws::secretsmanager::{
    ReplicaRegionType, ReplicationStatusType, RotationRulesType, SecretListEntry, Tag,
};
use crate::call::{Call, Forwarded};
use crate::wire::{ApiError, Blob, Timestamp};

/// CloudTrail's type of a secret.
pub const SECRET: &str = "AWS::SecretsManager::Secret";
/// Name of the only policy of a secret.
pub const POLICY_NAME: &str = "default";
/// Name of the service that asks KMS and Lambda.
const SERVICE: &str = "secretsmanager.amazonaws.com";

/// Finds the secret that a `SecretId` names, and authorizes `action` on it.
pub fn secret<A: Action>(
    call: &mut Call<'_>,
    action: A,
    id: &str,
) -> Result<(Secret, Permit<A>), ApiError> {
    call.notes.parameter("secretId", id);
    let named = Named::parse(&call.scope, id)?;
    let Some(secret) = secrets::find(&mut call.work, &named)? else {
        let (_, access) = call.split();
        return Err(secrets::authorize_absent(access, action, &named).into());
    };
    call.notes.resource(secret.arn(), SECRET);
    let (work, access) = call.split();
    let permit = secrets::authorize(work, access, action, &secret)?;
    Ok((secret, permit))
}

/// Authorizes `action` on a KMS key for this service, which asks with the caller's rights, and notes the call for the
/// audit trail.
fn at_kms<A: Action>(
    call: &mut Call<'_>,
    action: A,
    key: &Key,
    context: &EncryptionContext,
) -> Result<Permit<A>, ApiError> {
    let mut conditions = call.conditions.clone();
    conditions.forward(SERVICE);
    conditions.set("kms:ViaService", kms::SECRETS_MANAGER.via(&key.scope().region));
    conditions.set("kms:EncryptionAlgorithm", "SYMMETRIC_DEFAULT");
    let access = Access {
        caller: &call.caller,
        conditions: &conditions,
        policies: call.policies,
        tokens: &[],
        context: Some(context),
    };
    let decided = kms::authorize(&mut call.work, access, action, key);
    let mut forwarded = Forwarded::new(&crate::aws::kms::SERVICE, A::OPERATION, Some(SERVICE));
    forwarded.notes.parameter("keyId", key.arn());
    forwarded.notes.parameter("encryptionContext", serde_json::json!(context));
    forwarded.notes.resource(key.arn(), "AWS::KMS::Key");
    forwarded.region = key.scope().region.clone();
    match &decided {
        Ok(_) => forwarded.key = Some(key.clone()),
        Err(kms::KmsError::Fault(_)) => {}
        Err(error) => forwarded.error = Some(error.clone().into()),
    }
    call.forwarded.push(forwarded);
    decided.map_err(|error| match error {
        kms::KmsError::Fault(fault) => SecretError::Fault(fault).into(),
        _ => SecretError::KmsDenied.into(),
    })
}

/// Encrypts a value for a version of the secret with this ARN.
pub fn protect(
    call: &mut Call<'_>,
    key: &Key,
    (arn, version_id): (&str, &str),
    value: &SecretValue,
) -> Result<Protected, ApiError> {
    let context = secrets::context(arn, version_id);
    let allowed = at_kms(call, action::kms::GenerateDataKey, key, &context)?;
    let (work, ring) = (&mut call.work, call.ring);
    Ok(secrets::protect(work, ring, key, &context, value, &allowed)?)
}

/// Reads and decrypts the value of a version.
pub fn reveal(
    call: &mut Call<'_>,
    secret: &mut Secret,
    selected: &Selected,
    permit: &Permit<impl ReadsSecretValue>,
) -> Result<SecretValue, ApiError> {
    let selected = &secrets::holder(secret, selected)?;
    let protected = secrets::read(&mut call.work, secret, selected, permit)?;
    let key = kms::find(&mut call.work, secret.scope(), &selected.version.key)
        .map_err(SecretError::cannot_decrypt)?;
    let context = secrets::context(&secret.arn(), &selected.id);
    let allowed = at_kms(call, action::kms::Decrypt, &key, &context)?;
    let (work, ring) = (&mut call.work, call.ring);
    Ok(secrets::open(work, ring, &key, &context, &protected, &allowed)?)
}

/// Reads and decrypts the current value of a secret, as `GetSecretValue` does.
pub fn current_value(call: &mut Call<'_>, id: &str) -> Result<SecretValue, ApiError> {
    call.notes.parameter("versionStage", secrets::CURRENT);
    call.conditions.set("secretsmanager:VersionStage", secrets::CURRENT);
    let (mut secret, allowed) = secret(call, action::secretsmanager::GetSecretValue, id)?;
    let selected = secrets::select(&secret, secrets::Selector { version_id: None, stage: None })?;
    reveal(call, &mut secret, &selected, &allowed)
}

/// The KMS key of a secret.
pub fn key_of(call: &mut Call<'_>, secret: &Secret) -> Result<Key, ApiError> {
    Ok(secrets::key(&mut call.work, secret.scope(), secret.kms_key())?)
}

/// `KmsKeyIds` of the versions of a secret: AWS has a name for the default key. Empty for a version without a value.
pub fn shown_key(
    call: &mut Call<'_>,
    secret: &Secret,
) -> Result<impl Fn(&Version) -> Vec<String> + use<>, ApiError> {
    let default = match kms::find(&mut call.work, secret.scope(), &kms::SECRETS_MANAGER.alias()) {
        Ok(key) => Some(key.arn()),
        Err(kms::KmsError::Fault(fault)) => return Err(SecretError::Fault(fault).into()),
        Err(_) => None,
    };
    Ok(move |version: &Version| match version.key.as_str() {
        "" => Vec::new(),
        key if default.as_deref() == Some(key) => vec!["DefaultEncryptionKey".to_owned()],
        key => vec![key.to_owned()],
    })
}

/// Authorizes the caller to invoke a rotation function: "You also need lambda:InvokeFunction permissions on the rotation
/// function" (RotateSecret of the API reference).
pub fn may_invoke(call: &mut Call<'_>, function: &str) -> Result<(), ApiError> {
    let mut conditions = call.conditions.clone();
    conditions.forward(SERVICE);
    authorize(&call.caller, &conditions, action::lambda::InvokeFunction, function)?;
    Ok(())
}

/// The value of a request: exactly one of `SecretString` and `SecretBinary`, or none if that is allowed.
pub fn value(
    text: Option<String>,
    binary: Option<Blob>,
    may_be_absent: bool,
) -> Result<Option<SecretValue>, ApiError> {
    let invalid = |text: &str| ApiError::new("InvalidParameterException", text);
    let value = match (text, binary) {
        (Some(_), Some(_)) => {
            return Err(invalid(
                "You can't specify both SecretString and SecretBinary in the same request.",
            ));
        }
        (Some(text), None) => {
            Some(SecretValue { bytes: Plain::new(text.into_bytes()), is_text: true })
        }
        (None, Some(binary)) => Some(SecretValue { bytes: Plain::new(binary.0), is_text: false }),
        (None, None) if may_be_absent => None,
        (None, None) => {
            return Err(invalid("You must provide either SecretString or SecretBinary."));
        }
    };
    // The model counts characters of a text.
    if value.as_ref().is_some_and(|value| value.bytes.len() > MAX_VALUE) {
        return Err(ApiError::validation(format!("The value has more than {MAX_VALUE} bytes.")));
    }
    Ok(value)
}

/// Bytes of a value.
const MAX_VALUE: usize = 65_536;

/// `SecretString` and `SecretBinary` of an answer.
pub fn shown(value: &SecretValue) -> Result<(Option<String>, Option<Blob>), ApiError> {
    let bytes = value.bytes.expose().to_vec();
    if !value.is_text {
        return Ok((None, Some(Blob(bytes))));
    }
    let text = String::from_utf8(bytes).map_err(|_| Fault::Damaged("a SecretString".into()));
    Ok((Some(text.map_err(SecretError::from)?), None))
}

/// `ClientRequestToken`, or a new one.
pub fn token(call: &mut Call<'_>, given: Option<String>) -> Result<String, ApiError> {
    let token = match given {
        Some(token) => token,
        None => ids::uuid().map_err(SecretError::from)?,
    };
    call.notes.parameter("clientRequestToken", token.as_str());
    Ok(token)
}

/// Whether a version has exactly this value: then a repeated request is answered as the first one was. Another value
/// under the same token is refused. A version that a rotation has made may have no value yet.
pub fn is_repeated<A: ReadsSecretValue>(
    call: &mut Call<'_>,
    secret: &mut Secret,
    version_id: &str,
    value: &SecretValue,
    permit: &Permit<A>,
) -> Result<bool, ApiError> {
    let there = secret.versions().get(version_id).filter(|version| !version.awaits_value());
    let Some(version) = there.cloned() else { return Ok(false) };
    let selected = Selected { id: version_id.to_owned(), version };
    if reveal(call, secret, &selected, permit)?.is_same(value) {
        return Ok(true);
    }
    Err(SecretError::Exists(format!(
        "You can't use ClientRequestToken {version_id} because that value is already in use for a version of secret {}.",
        secret.arn()
    ))
    .into())
}

/// Converts tags to the domain's type, and sets the condition keys about them.
pub fn tags(
    call: &mut Call<'_>,
    list: Option<Vec<Tag>>,
) -> Result<BTreeMap<String, String>, ApiError> {
    let pairs = list.unwrap_or_default().into_iter().map(|tag| {
        let key = tag
            .key
            .ok_or_else(|| ApiError::new("InvalidParameterException", "A tag has no Key."))?;
        Ok((key, tag.value.unwrap_or_default()))
    });
    let pairs = pairs.collect::<Result<Vec<_>, ApiError>>()?;
    let tags = super::unique_tags(pairs, "InvalidParameterException")?;
    super::request_tags(&mut call.conditions, &tags);
    Ok(tags)
}

/// Tags of an answer.
pub fn shown_tags(secret: &Secret) -> Option<Vec<Tag>> {
    let tags = secret.tags().iter();
    Some(
        tags.map(|(key, value)| Tag { key: Some(key.clone()), value: Some(value.clone()) })
            .collect(),
    )
}

/// Labels by version of an answer: only of versions that have some.
pub fn stages(secret: &Secret) -> Option<BTreeMap<String, Vec<String>>> {
    let staged = secret.versions().iter().filter(|(_, version)| !version.stages.is_empty());
    let stages: BTreeMap<_, _> =
        staged.map(|(id, version)| (id.clone(), version.labels())).collect();
    (!stages.is_empty()).then_some(stages)
}

/// Filters of a request.
pub fn filters(
    list: Option<Vec<crate::aws::secretsmanager::Filter>>,
) -> Result<Vec<Filter>, ApiError> {
    let invalid = |text: &str| ApiError::new("InvalidParameterException", text);
    list.unwrap_or_default()
        .into_iter()
        .map(|filter| {
            let key = filter.key.as_deref().and_then(FilterKey::by_name);
            Ok(Filter {
                key: key.ok_or_else(|| invalid("A filter has no Key."))?,
                values: filter.values.ok_or_else(|| invalid("A filter has no Values."))?,
            })
        })
        .collect()
}

/// Rules of a request.
pub fn rules(given: RotationRulesType) -> Result<Rules, ApiError> {
    let rules = Rules {
        after_days: given.automatically_after_days,
        duration: given.duration,
        expression: given.schedule_expression,
    };
    rules.check()?;
    Ok(rules)
}

/// Rules of an answer.
pub fn shown_rules(secret: &Secret) -> Option<RotationRulesType> {
    let rules = &secret.rotation()?.rules;
    Some(RotationRulesType {
        automatically_after_days: rules.days(),
        duration: rules.duration.clone(),
        schedule_expression: rules.expression.clone(),
    })
}

/// Replicas of a request, and the condition keys about them.
pub fn new_replicas(
    call: &mut Call<'_>,
    list: Vec<ReplicaRegionType>,
    overwrite: Option<bool>,
) -> Result<Vec<NewReplica>, ApiError> {
    let replicas = list.into_iter().map(|replica| {
        let region = replica.region.ok_or_else(|| {
            ApiError::new("InvalidParameterException", "A replica has no Region.")
        })?;
        Ok(NewReplica { region, kms_key: replica.kms_key_id.filter(|key| !key.is_empty()) })
    });
    let replicas = replicas.collect::<Result<Vec<_>, ApiError>>()?;
    if replicas.len() > limits::MAX_REPLICAS {
        return Err(ApiError::new(
            "LimitExceededException",
            format!("A secret has at most {} replicas.", limits::MAX_REPLICAS),
        ));
    }
    let regions: Vec<_> = replicas.iter().map(|replica| replica.region.clone()).collect();
    call.notes.parameter("addReplicaRegions", regions.clone());
    if !regions.is_empty() {
        call.conditions.set_many("secretsmanager:AddReplicaRegions", regions);
        let overwrite = if overwrite == Some(true) { "true" } else { "false" };
        call.conditions.set("secretsmanager:ForceOverwriteReplicaSecret", overwrite);
    }
    Ok(replicas)
}

/// The Regions of a request in which replicas may overwrite secrets with their name.
pub fn overwritten(replicas: &[NewReplica], overwrite: Option<bool>) -> Vec<String> {
    let named = replicas.iter().filter(|_| overwrite == Some(true));
    named.map(|replica| replica.region.clone()).collect()
}

/// Brings the replicas up to date. A replica that cannot follow, because its key may not be used or the name is taken,
/// has the status `Failed` then; the change of the primary secret stands. In the Regions `overwritten` the replica takes the
/// place of a secret with its name.
pub fn sync_replicas<A: ChangesSecret + ReadsSecretValue>(
    call: &mut Call<'_>,
    secret: &mut Secret,
    permit: &Permit<A>,
    overwritten: &[String],
) -> Result<(), ApiError> {
    let regions: Vec<_> = secret.replicas().keys().cloned().collect();
    for region in regions {
        let overwrite = overwritten.contains(&region);
        let outcome = match values_for(call, secret, permit, &region, overwrite) {
            Ok(values) => Ok(values),
            Err(error) if error.fault.is_some() => return Err(error),
            Err(error) => Err(error.message),
        };
        secrets::sync(&mut call.work, secret, &region, outcome, permit)?;
    }
    Ok(())
}

fn values_for<A: ReadsSecretValue>(
    call: &mut Call<'_>,
    secret: &mut Secret,
    permit: &Permit<A>,
    region: &str,
    overwrite: bool,
) -> Result<Vec<(String, Protected)>, ApiError> {
    let needs = secrets::prepare_replica(&mut call.work, secret, region, overwrite)?;
    if needs.lacks.is_empty() {
        return Ok(Vec::new());
    }
    let key = secrets::key(&mut call.work, &needs.scope, needs.kms_key.as_deref())?;
    let mut values = Vec::new();
    for id in needs.lacks {
        let Some(version) = secret.versions().get(&id).cloned() else { continue };
        let selected = Selected { id: id.clone(), version };
        let value = reveal(call, secret, &selected, permit)?;
        let protected = protect(call, &key, (&needs.arn, &id), &value)?;
        values.push((id, protected));
    }
    Ok(values)
}

/// Replicas of an answer.
pub fn shown_replicas(secret: &Secret) -> Vec<ReplicationStatusType> {
    let replicas = secret.replicas().iter();
    replicas
        .map(|(region, replica)| ReplicationStatusType {
            region: region.clone(),
            kms_key_id: Some(
                replica.kms_key.clone().unwrap_or_else(|| kms::SECRETS_MANAGER.alias()),
            ),
            status: replica.status.name().to_owned(),
            status_message: replica.message.clone(),
        })
        .collect()
}

/// Refuses a policy name other than the only one.
pub fn check_policy_name(name: Option<&str>) -> Result<(), ApiError> {
    match name {
        None | Some(POLICY_NAME) => Ok(()),
        Some(_) => Err(ApiError::new(
            "InvalidParameterException",
            format!("A secret has one resource policy here, whose PolicyName is {POLICY_NAME}."),
        )),
    }
}

impl From<&Secret> for SecretListEntry {
    fn from(secret: &Secret) -> Self {
        let rotation = secret.rotation();
        Self {
            arn: secret.arn(),
            name: secret.name().to_owned(),
            description: secret.description().map(str::to_owned),
            kms_key_id: secret.kms_key().map(str::to_owned),
            rotation_enabled: rotation.map(|rotation| rotation.enabled),
            rotation_lambda_arn: rotation.map(|rotation| rotation.function.clone()),
            rotation_rules: shown_rules(secret),
            last_rotated_date: secret.rotated_ms().map(Timestamp::from_ms),
            last_changed_date: Some(Timestamp::from_ms(secret.changed_ms())),
            last_accessed_date: secret.accessed_ms().map(Timestamp::from_ms),
            deleted_date: secret.erase_ms().map(Timestamp::from_ms),
            next_rotation_date: next_rotation(secret),
            tags: shown_tags(secret),
            secret_versions_to_stages: stages(secret),
            created_date: Timestamp::from_ms(secret.created_ms()),
            primary_region: secret.primary_region().map(str::to_owned),
        }
    }
}

/// `NextRotationDate`
pub fn next_rotation(secret: &Secret) -> Option<Timestamp> {
    secret.rotation()?.next_ms.map(Timestamp::from_ms)
}

/// Labels of an answer about one version.
pub fn labels(version: &Version) -> Option<Vec<String>> {
    Some(version.labels()).filter(|labels| !labels.is_empty())
}
