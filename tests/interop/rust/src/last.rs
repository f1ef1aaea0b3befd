//! Dry runs, last usage, custom key stores, errors and deletion.

use aws_sdk_kms::operation::create_custom_key_store::CreateCustomKeyStoreError;
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{
    DataKeySpec, KeyLastUsageTrackingOperation, KeySpec, KeyState, KeyUsageType,
};

use crate::common::{DAY, HOUR, Outcome, Stop, World, equal, hex, now, present, random, within};
use crate::regions::moved;

pub async fn dry_run(world: &World) -> Outcome {
    let key = world.key().await?.id;
    let encrypt = world.kms.encrypt().key_id(&key).plaintext(Blob::new("plaintext"));
    refused!(encrypt.clone().dry_run(true).send(), is_dry_run_operation_exception);
    let generate = world.kms.generate_data_key().key_id(&key).key_spec(DataKeySpec::Aes256);
    refused!(generate.dry_run(true).send(), is_dry_run_operation_exception);
    let blob = present(encrypt.dry_run(false).send().await?.ciphertext_blob, "CiphertextBlob")?;
    world.decrypt(&blob).await?;
    Ok(())
}

pub async fn get_key_last_usage(world: &World) -> Outcome {
    let key = world.key().await?;
    let usage = world.kms.get_key_last_usage().key_id(&key.id);
    let unused = usage.clone().send().await?;
    check!(
        unused.key_last_usage().is_none_or(|used| used.timestamp().is_none()),
        "KeyLastUsage of an unused key"
    );
    let created = present(key.metadata.creation_date(), "CreationDate")?.secs();
    within(unused.key_creation_date(), created, 1, "KeyCreationDate")?;
    check!(unused.tracking_start_date().is_some(), "no TrackingStartDate");
    world.encrypt(&key.id, "plaintext").await?;
    eventually!(
        "usage recorded",
        usage.clone().send().await?.key_last_usage().is_some_and(|u| u.timestamp().is_some())
    );
    let used = present(usage.send().await?.key_last_usage, "KeyLastUsage")?;
    equal(used.operation(), Some(&KeyLastUsageTrackingOperation::Encrypt), "Operation")?;
    within(used.timestamp(), now(), HOUR, "Timestamp")
}

pub async fn describe_custom_key_stores(world: &World) -> Outcome {
    let stores = present(
        world.kms.describe_custom_key_stores().send().await?.custom_key_stores,
        "CustomKeyStores",
    )?;
    equal(stores.len(), 0, "number of custom key stores")
}

pub async fn create_custom_key_store(world: &World) -> Outcome {
    let call = world
        .kms
        .create_custom_key_store()
        .custom_key_store_name(format!("store-{}", world.run))
        .cloud_hsm_cluster_id("cluster-2a23b4cdefg")
        .trust_anchor_certificate("no certificate")
        .key_store_password("kmsPswd1");
    let Err(error) = call.send().await else {
        return Err(Stop::Failed("no error".to_owned()));
    };
    // Whatever the operation's model does not have is "unhandled".
    #[expect(deprecated, reason = "there is no other way to ask for just this")]
    let modelled = error.as_service_error().is_some_and(|e| {
        !matches!(e, CreateCustomKeyStoreError::Unhandled(_)) && !e.is_kms_internal_exception()
    });
    check!(modelled, "got {}", Stop::from(error).text());
    Ok(())
}

pub async fn not_found(world: &World) -> Outcome {
    let hex = hex(&random(16));
    let unknown =
        format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..]);
    refused!(world.kms.describe_key().key_id(&unknown).send(), is_not_found_exception);
    let encrypt = world.kms.encrypt().key_id(&unknown).plaintext(Blob::new("plaintext"));
    refused!(encrypt.send(), is_not_found_exception);
    let alias = format!("alias/unknown-{}", world.run);
    refused!(world.kms.describe_key().key_id(alias).send(), is_not_found_exception);
    Ok(())
}

pub async fn validation(world: &World) -> Outcome {
    let create = world.kms.create_key();
    let unknown =
        create.clone().key_spec(KeySpec::from("RSA_1024")).key_usage(KeyUsageType::SignVerify);
    refused_as!(unknown.send(), "ValidationException");
    refused_as!(create.key_spec(KeySpec::MlDsa65).send(), "ValidationException");
    Ok(())
}

pub async fn foreign_arn(world: &World) -> Outcome {
    let key = world.key().await?;
    let other_account = key.arn.replacen(&format!(":{}:", key.account), ":999999999999:", 1);
    for arn in [moved(world, &key, "ap-southeast-2"), other_account] {
        refused_as!(
            world.kms.describe_key().key_id(arn).send(),
            "NotFoundException",
            "InvalidArnException"
        );
    }
    Ok(())
}

pub async fn schedule_key_deletion(world: &World) -> Outcome {
    let key = world.key().await?;
    let answer =
        world.kms.schedule_key_deletion().key_id(&key.id).pending_window_in_days(7).send().await?;
    equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
    equal(answer.key_state(), Some(&KeyState::PendingDeletion), "KeyState")?;
    equal(answer.pending_window_in_days(), Some(7), "PendingWindowInDays")?;
    within(answer.deletion_date(), now() + 7 * DAY, DAY, "DeletionDate")?;
    equal(
        world.describe(&key.id).await?.key_state(),
        Some(&KeyState::PendingDeletion),
        "KeyState",
    )?;
    let encrypt = world.kms.encrypt().key_id(&key.id).plaintext(Blob::new("plaintext"));
    refused!(encrypt.send(), is_kms_invalid_state_exception);
    Ok(())
}

pub async fn cancel_key_deletion(world: &World) -> Outcome {
    let key = world.key().await?;
    let blob = world.encrypt(&key.id, "plaintext").await?;
    world.kms.schedule_key_deletion().key_id(&key.id).pending_window_in_days(7).send().await?;
    let answer = world.kms.cancel_key_deletion().key_id(&key.id).send().await?;
    equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
    equal(world.describe(&key.id).await?.key_state(), Some(&KeyState::Disabled), "KeyState")?;
    world.kms.enable_key().key_id(&key.id).send().await?;
    equal(world.decrypt(&blob).await?, "plaintext", "Plaintext")
}
