//! The steps of SECRETS_STEPS.md.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::config::Region;
use aws_sdk_secretsmanager::error::SdkError;
use aws_sdk_secretsmanager::operation::create_secret::CreateSecretOutput;
use aws_sdk_secretsmanager::operation::create_secret::builders::CreateSecretFluentBuilder;
use aws_sdk_secretsmanager::operation::describe_secret::DescribeSecretOutput;
use aws_sdk_secretsmanager::operation::get_secret_value::{
    GetSecretValueError, GetSecretValueOutput,
};
use aws_sdk_secretsmanager::primitives::Blob;
use aws_sdk_secretsmanager::types::{
    Filter, FilterNameStringType, ReplicaRegionType, RotationRulesType, StatusType, Tag,
};

use crate::common::{
    DAY, HOUR, Outcome, Stop, World, equal, hex, now, present, random, variable, within,
};

const LOGIN: &str = r#"{"username":"user","password":"first"}"#;

/// A secret as CreateSecret answers it.
struct Made {
    name: String,
    arn: String,
    version: String,
}

impl TryFrom<CreateSecretOutput> for Made {
    type Error = Stop;

    fn try_from(answer: CreateSecretOutput) -> Outcome<Self> {
        Ok(Self {
            name: present(answer.name, "Name")?,
            arn: present(answer.arn, "ARN")?,
            version: present(answer.version_id, "VersionId")?,
        })
    }
}

fn name_of(world: &World, what: &str) -> String {
    format!("secrets-whole/{}/{what}", world.run)
}

async fn new_secret_of(
    world: &World,
    what: &str,
    with: impl FnOnce(CreateSecretFluentBuilder) -> CreateSecretFluentBuilder,
) -> Outcome<Made> {
    let name = name_of(world, what);
    world.note_secret(&name);
    with(world.secrets.create_secret().name(name)).send().await?.try_into()
}

async fn new_secret(world: &World, what: &str, value: &str) -> Outcome<Made> {
    new_secret_of(world, what, |new| new.secret_string(value)).await
}

async fn put(world: &World, name: &str, value: &str) -> Outcome<String> {
    let answer =
        world.secrets.put_secret_value().secret_id(name).secret_string(value).send().await?;
    present(answer.version_id, "VersionId")
}

async fn get(
    client: &Client,
    name: &str,
) -> Result<GetSecretValueOutput, SdkError<GetSecretValueError>> {
    client.get_secret_value().secret_id(name).send().await
}

async fn read(client: &Client, name: &str) -> Outcome<String> {
    present(get(client, name).await?.secret_string, "SecretString")
}

async fn staged(world: &World, name: &str, stage: &str) -> Outcome<GetSecretValueOutput> {
    Ok(world.secrets.get_secret_value().secret_id(name).version_stage(stage).send().await?)
}

async fn describe(client: &Client, name: &str) -> Outcome<DescribeSecretOutput> {
    Ok(client.describe_secret().secret_id(name).send().await?)
}

type Stages = HashMap<String, Vec<String>>;

fn stages_of(versions: &[(&str, &str)]) -> Stages {
    let stages =
        versions.iter().map(|(version, stage)| ((*version).to_owned(), vec![(*stage).to_owned()]));
    stages.collect()
}

async fn stages(world: &World, name: &str) -> Outcome<Stages> {
    present(describe(&world.secrets, name).await?.version_ids_to_stages, "VersionIdsToStages")
}

async fn rotates(world: &World, name: &str) -> Outcome<bool> {
    Ok(describe(&world.secrets, name).await?.rotation_enabled() == Some(true))
}

fn rotation_function() -> Outcome<String> {
    variable("OUTLAST_ROTATION_FUNCTION")
        .map_err(|_| Stop::Skipped("OUTLAST_ROTATION_FUNCTION is not set".to_owned()))
}

fn tag(key: &str, value: &str) -> Tag {
    Tag::builder().key(key).value(value).build()
}

pub async fn create_secret(world: &World) -> Outcome {
    let (name, token) = (name_of(world, "create"), hex(&random(16)));
    let create = || {
        new_secret_of(world, "create", |new| {
            new.secret_string("first")
                .description("first ä")
                .tags(tag("run", &world.run))
                .client_request_token(&token)
        })
    };
    let made = create().await?;
    equal((&made.name, &made.version), (&name, &token), "answer")?;
    let start = format!("arn:aws:secretsmanager:{}:", world.region);
    let rest = present(made.arn.strip_prefix(start.as_str()), "such start of the ARN")?;
    let (account, rest) = present(rest.split_once(":secret:"), "such ARN")?;
    let suffix = rest
        .strip_prefix(name.as_str())
        .and_then(|rest| rest.strip_prefix('-'))
        .unwrap_or_default();
    check!(account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit()), "ARN {}", made.arn);
    check!(
        suffix.len() == 6 && suffix.bytes().all(|b| b.is_ascii_alphanumeric()),
        "ARN {}",
        made.arn
    );
    let secret = describe(&world.secrets, &made.arn).await?;
    equal((secret.arn(), secret.name()), (Some(made.arn.as_str()), Some(name.as_str())), "secret")?;
    equal(secret.description(), Some("first ä"), "Description")?;
    equal(secret.tags(), [tag("run", &world.run)].as_slice(), "Tags")?;
    equal(
        secret.version_ids_to_stages(),
        Some(&stages_of(&[(&token, "AWSCURRENT")])),
        "VersionIdsToStages",
    )?;
    within(secret.created_date(), now(), HOUR, "CreatedDate")?;
    within(secret.last_changed_date(), now(), HOUR, "LastChangedDate")?;
    check!(secret.rotation_enabled() != Some(true), "RotationEnabled");
    check!(secret.deleted_date().is_none(), "DeletedDate");
    let again = create().await?;
    equal((again.arn, again.version), (made.arn, token), "answer to the same token again")?;
    refused!(
        world.secrets.create_secret().name(&name).secret_string("other").send(),
        is_resource_exists_exception
    );
    Ok(())
}

pub async fn get_secret_value(world: &World) -> Outcome {
    let made = new_secret(world, "get", "first ä").await?;
    for name in [&made.name, &made.arn] {
        let got = get(&world.secrets, name).await?;
        equal(got.arn(), Some(made.arn.as_str()), "ARN")?;
        equal(got.name(), Some(made.name.as_str()), "Name")?;
        equal(got.version_id(), Some(made.version.as_str()), "VersionId")?;
        equal(got.secret_string(), Some("first ä"), "SecretString")?;
        equal(got.version_stages(), ["AWSCURRENT"].as_slice(), "VersionStages")?;
        within(got.created_date(), now(), HOUR, "CreatedDate")?;
        check!(got.secret_binary().is_none(), "SecretBinary");
    }
    Ok(())
}

pub async fn put_secret_value(world: &World) -> Outcome {
    let made = new_secret(world, "put", "first").await?;
    let token = hex(&random(16));
    let request = |value: &str| {
        let request = world.secrets.put_secret_value().secret_id(&made.name);
        request.secret_string(value).client_request_token(&token)
    };
    for _ in 0..2 {
        let answer = request("second").send().await?;
        equal(answer.arn(), Some(made.arn.as_str()), "ARN")?;
        equal(answer.name(), Some(made.name.as_str()), "Name")?;
        equal(answer.version_id(), Some(token.as_str()), "VersionId")?;
        equal(answer.version_stages(), ["AWSCURRENT"].as_slice(), "VersionStages")?;
    }
    refused!(request("third").send(), is_resource_exists_exception);
    equal(read(&world.secrets, &made.name).await?, "second", "SecretString")?;
    let want = stages_of(&[(&token, "AWSCURRENT"), (&made.version, "AWSPREVIOUS")]);
    equal(stages(world, &made.name).await?, want, "VersionIdsToStages")
}

pub async fn previous_version(world: &World) -> Outcome {
    let made = new_secret(world, "previous", "first").await?;
    put(world, &made.name, "second").await?;
    let got = staged(world, &made.name, "AWSPREVIOUS").await?;
    equal(got.secret_string(), Some("first"), "SecretString")?;
    equal(got.version_id(), Some(made.version.as_str()), "VersionId")?;
    equal(got.version_stages(), ["AWSPREVIOUS"].as_slice(), "VersionStages")?;
    let by_id = world.secrets.get_secret_value().secret_id(&made.name).version_id(&made.version);
    equal(by_id.send().await?.secret_string(), Some("first"), "SecretString by VersionId")?;
    refused!(
        world.secrets.get_secret_value().secret_id(&made.name).version_stage("AWSPENDING").send(),
        is_resource_not_found_exception
    );
    Ok(())
}

pub async fn binary_value(world: &World) -> Outcome {
    let value: Vec<u8> = (0..=255).collect();
    let made =
        new_secret_of(world, "binary", |new| new.secret_binary(Blob::new(value.clone()))).await?;
    let got = get(&world.secrets, &made.name).await?;
    check!(got.secret_string().is_none(), "SecretString");
    equal(present(got.secret_binary, "SecretBinary")?.into_inner(), value, "SecretBinary")
}

pub async fn update_secret_version_stage(world: &World) -> Outcome {
    let Made { name, version: first, .. } = new_secret(world, "stage", "first").await?;
    let second = put(world, &name, "second").await?;
    let update = |stage: &str, to: &str| {
        let update = world.secrets.update_secret_version_stage().secret_id(&name);
        update.version_stage(stage).move_to_version_id(to)
    };
    update("AWSCURRENT", &first).remove_from_version_id(&second).send().await?;
    let want = stages_of(&[(&first, "AWSCURRENT"), (&second, "AWSPREVIOUS")]);
    equal(stages(world, &name).await?, want, "VersionIdsToStages")?;
    equal(read(&world.secrets, &name).await?, "first", "SecretString")?;
    update("kept", &second).send().await?;
    let kept = staged(world, &name, "kept").await?;
    equal(kept.secret_string(), Some("second"), "SecretString by a stage of one's own")?;
    refused!(update("AWSCURRENT", &second).send(), is_invalid_parameter_exception);
    Ok(())
}

pub async fn replicate_secret(world: &World) -> Outcome {
    let made = new_secret(world, "replicate", "first").await?;
    let other = if world.region == "eu-central-1" { "eu-west-1" } else { "eu-central-1" };
    let config = world.config.to_builder().region(Region::new(other)).build();
    let there = Client::new(&config);
    let replica = ReplicaRegionType::builder().region(other).build();
    let replicate = world.secrets.replicate_secret_to_regions().secret_id(&made.name);
    let answer = replicate.add_replica_regions(replica).send().await?;
    equal(answer.arn(), Some(made.arn.as_str()), "ARN")?;
    let regions: Vec<_> =
        answer.replication_status().iter().filter_map(|status| status.region()).collect();
    equal(regions, [other], "ReplicationStatus")?;
    eventually!("the replica is InSync", {
        let secret = describe(&world.secrets, &made.name).await?;
        let status: Vec<_> =
            secret.replication_status().iter().map(|status| status.status()).collect();
        status == [Some(&StatusType::InSync)]
    });
    let got = get(&there, &made.name).await?;
    let arn = made.arn.replacen(&format!(":{}:", world.region), &format!(":{other}:"), 1);
    equal(got.arn(), Some(arn.as_str()), "ARN of the replica")?;
    equal(got.secret_string(), Some("first"), "the replica's value")?;
    equal(got.version_id(), Some(made.version.as_str()), "the replica's version")?;
    let primary = describe(&there, &made.name).await?.primary_region;
    equal(primary, Some(world.region.clone()), "PrimaryRegion")?;
    put(world, &made.name, "second").await?;
    eventually!("the replica has the new value", read(&there, &made.name).await? == "second");
    refused!(
        there.put_secret_value().secret_id(&made.name).secret_string("third").send(),
        is_invalid_request_exception
    );
    let remove = world.secrets.remove_regions_from_replication().secret_id(&made.name);
    remove.remove_replica_regions(other).send().await?;
    eventually!("the replica is gone", {
        match get(&there, &made.name).await {
            Ok(_) => false,
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(|e| e.is_resource_not_found_exception()) =>
            {
                true
            }
            Err(error) => return Err(error.into()),
        }
    });
    Ok(())
}

fn login(value: &str) -> Outcome<(String, String)> {
    let value: serde_json::Value = serde_json::from_str(value)?;
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    Ok((text("username"), text("password")))
}

pub async fn rotate_secret(world: &World) -> Outcome {
    let function = rotation_function()?;
    let made = new_secret(world, "rotate", LOGIN).await?;
    let rotate = world.secrets.rotate_secret().secret_id(&made.name).rotation_lambda_arn(function);
    let version = present(rotate.send().await?.version_id, "VersionId")?;
    eventually!(
        "the new version is current",
        stages(world, &made.name)
            .await?
            .get(&version)
            .is_some_and(|stages| stages == &["AWSCURRENT"])
    );
    let secret = describe(&world.secrets, &made.name).await?;
    within(secret.last_rotated_date(), now(), HOUR, "LastRotatedDate")?;
    let first = secret.version_ids_to_stages().and_then(|stages| stages.get(&made.version));
    equal(first, Some(&vec!["AWSPREVIOUS".to_owned()]), "stages of the first version")?;
    let (user, password) = login(&read(&world.secrets, &made.name).await?)?;
    equal(user, "user", "username")?;
    check!(password != "first", "the password is still the first");
    let previous = staged(world, &made.name, "AWSPREVIOUS").await?;
    equal(previous.secret_string(), Some(LOGIN), "the previous value")
}

pub async fn rotate_secret_later(world: &World) -> Outcome {
    let function = rotation_function()?;
    let made = new_secret(world, "rotate-later", LOGIN).await?;
    let rules = RotationRulesType::builder().automatically_after_days(30).build();
    let rotate = world.secrets.rotate_secret().secret_id(&made.name).rotation_lambda_arn(&function);
    let answer = rotate.rotation_rules(rules.clone()).rotate_immediately(false).send().await?;
    equal(answer.arn(), Some(made.arn.as_str()), "ARN")?;
    equal(answer.name(), Some(made.name.as_str()), "Name")?;
    let secret = describe(&world.secrets, &made.name).await?;
    equal(secret.rotation_enabled(), Some(true), "RotationEnabled")?;
    equal(secret.rotation_lambda_arn(), Some(function.as_str()), "RotationLambdaARN")?;
    equal(secret.rotation_rules(), Some(&rules), "RotationRules")?;
    within(secret.next_rotation_date(), now() + 30 * DAY, 2 * DAY, "NextRotationDate")?;
    let cancelled = world.secrets.cancel_rotate_secret().secret_id(&made.name).send().await?;
    equal(cancelled.arn(), Some(made.arn.as_str()), "ARN")?;
    check!(!rotates(world, &made.name).await?, "RotationEnabled after CancelRotateSecret");
    equal(read(&world.secrets, &made.name).await?, LOGIN, "SecretString")
}

async fn listed(world: &World, filter: Filter) -> Outcome<Vec<String>> {
    let mut pages =
        world.secrets.list_secrets().max_results(2).filters(filter).into_paginator().send();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page?;
        check!(page.secret_list().len() <= 2, "a page of more than 2");
        found.extend(
            page.secret_list().iter().filter_map(|secret| secret.name().map(str::to_owned)),
        );
    }
    found.sort();
    Ok(found)
}

pub async fn list_secrets(world: &World) -> Outcome {
    let key = format!("list-{}", world.run);
    let mut names = Vec::new();
    for number in ["0", "1", "2"] {
        let with =
            |new: CreateSecretFluentBuilder| new.secret_string("first").tags(tag(&key, number));
        names.push(new_secret_of(world, &format!("list-{number}"), with).await?.name);
    }
    let filter = |key, value: &str| Filter::builder().key(key).values(value).build();
    let by_name = filter(FilterNameStringType::Name, &name_of(world, "list-"));
    let by_tag = filter(FilterNameStringType::TagKey, &key);
    eventually!("all are listed once, by name", listed(world, by_name.clone()).await? == names);
    eventually!("all are listed once, by tag", listed(world, by_tag.clone()).await? == names);
    let one = filter(FilterNameStringType::Name, &names[1]);
    let answer = world.secrets.list_secrets().filters(one).send().await?;
    let entry = present(answer.secret_list().first(), "entry")?;
    equal(entry.tags(), [tag(&key, "1")].as_slice(), "Tags")?;
    within(entry.created_date(), now(), HOUR, "CreatedDate")?;
    let stages: Vec<_> =
        present(entry.secret_versions_to_stages(), "SecretVersionsToStages")?.values().collect();
    equal(stages, [&["AWSCURRENT".to_owned()]], "SecretVersionsToStages")
}

pub async fn batch_get_secret_value(world: &World) -> Outcome {
    let first = new_secret(world, "batch-1", "1").await?.name;
    let second = new_secret(world, "batch-2", "2").await?.name;
    let missing = name_of(world, "missing");
    let get = world.secrets.batch_get_secret_value().secret_id_list(&first).secret_id_list(&second);
    let answer = get.secret_id_list(&missing).send().await?;
    let values: BTreeMap<_, _> = answer
        .secret_values()
        .iter()
        .map(|secret| (secret.name(), secret.secret_string()))
        .collect();
    let want = [(Some(first.as_str()), Some("1")), (Some(second.as_str()), Some("2"))];
    equal(values, BTreeMap::from(want), "SecretValues")?;
    let errors: Vec<_> =
        answer.errors().iter().map(|error| (error.secret_id(), error.error_code())).collect();
    equal(errors, [(Some(missing.as_str()), Some("ResourceNotFoundException"))], "Errors")
}

pub async fn get_random_password(world: &World) -> Outcome {
    let request = || world.secrets.get_random_password();
    let first = present(request().send().await?.random_password, "RandomPassword")?;
    equal(first.chars().count(), 32, "length")?;
    let second = present(request().send().await?.random_password, "RandomPassword")?;
    check!(first != second, "the same password twice");
    let letters = request().password_length(100).exclude_punctuation(true).exclude_numbers(true);
    let letters = present(letters.send().await?.random_password, "RandomPassword")?;
    check!(
        letters.len() == 100 && letters.bytes().all(|b| b.is_ascii_alphabetic()),
        "password {letters}"
    );
    Ok(())
}

pub async fn not_found(world: &World) -> Outcome {
    let missing = name_of(world, "missing");
    refused!(get(&world.secrets, &missing), is_resource_not_found_exception);
    refused!(
        world.secrets.put_secret_value().secret_id(&missing).secret_string("value").send(),
        is_resource_not_found_exception
    );
    refused!(
        world.secrets.describe_secret().secret_id(&missing).send(),
        is_resource_not_found_exception
    );
    Ok(())
}

pub async fn invalid_parameter(world: &World) -> Outcome {
    let name = new_secret(world, "invalid", "first").await?.name;
    let delete = || world.secrets.delete_secret().secret_id(&name);
    refused!(delete().recovery_window_in_days(6).send(), is_invalid_parameter_exception);
    refused!(
        delete().recovery_window_in_days(7).force_delete_without_recovery(true).send(),
        is_invalid_parameter_exception
    );
    refused!(
        world.secrets.list_secrets().next_token("no token").send(),
        is_invalid_next_token_exception
    );
    equal(read(&world.secrets, &name).await?, "first", "SecretString")
}

pub async fn delete_and_restore(world: &World) -> Outcome {
    let made = new_secret(world, "delete", "first").await?;
    let delete = world.secrets.delete_secret().secret_id(&made.name).recovery_window_in_days(7);
    let deleted = delete.send().await?;
    equal(deleted.arn(), Some(made.arn.as_str()), "ARN")?;
    equal(deleted.name(), Some(made.name.as_str()), "Name")?;
    within(deleted.deletion_date(), now() + 7 * DAY, HOUR, "DeletionDate")?;
    refused!(get(&world.secrets, &made.name), is_invalid_request_exception);
    let secret = describe(&world.secrets, &made.name).await?;
    within(secret.deleted_date(), now(), 8 * DAY, "DeletedDate")?;
    let restored = world.secrets.restore_secret().secret_id(&made.name).send().await?;
    equal(restored.arn(), Some(made.arn.as_str()), "ARN")?;
    equal(read(&world.secrets, &made.name).await?, "first", "SecretString")?;
    let secret = describe(&world.secrets, &made.name).await?;
    check!(secret.deleted_date().is_none(), "DeletedDate after RestoreSecret");
    Ok(())
}

pub async fn force_delete(world: &World) -> Outcome {
    let made = new_secret(world, "force", "first").await?;
    let delete =
        world.secrets.delete_secret().secret_id(&made.name).force_delete_without_recovery(true);
    let deleted = delete.send().await?;
    equal(deleted.arn(), Some(made.arn.as_str()), "ARN")?;
    within(deleted.deletion_date(), now(), HOUR, "DeletionDate")?;
    eventually!("the secret is gone", {
        match world.secrets.describe_secret().secret_id(&made.name).send().await {
            Ok(_) => false,
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(|e| e.is_resource_not_found_exception()) =>
            {
                true
            }
            Err(error) => return Err(error.into()),
        }
    });
    Ok(())
}
