//! Imported key material, and rotation.

use aws_lc_rs::rsa::{OAEP_SHA256_MGF1SHA256, OaepPublicEncryptingKey, PublicEncryptingKey};
use aws_sdk_kms::operation::get_key_rotation_status::GetKeyRotationStatusOutput;
use aws_sdk_kms::operation::get_parameters_for_import::GetParametersForImportOutput;
use aws_sdk_kms::operation::import_key_material::builders::ImportKeyMaterialFluentBuilder;
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{
    AlgorithmSpec, ExpirationModelType, KeyState, OriginType, RotationType, RotationsListEntry,
    WrappingKeySpec,
};

use crate::common::{DAY, HOUR, Key, Outcome, World, bytes, equal, now, present, random, within};

async fn external_key(world: &World) -> Outcome<Key> {
    let key = world.key_of(|new| new.origin(OriginType::External)).await?;
    equal(key.metadata.key_state(), Some(&KeyState::PendingImport), "KeyState")?;
    equal(key.metadata.origin(), Some(&OriginType::External), "Origin")?;
    Ok(key)
}

async fn parameters_for_import(world: &World, key: &Key) -> Outcome<GetParametersForImportOutput> {
    let call = world.kms.get_parameters_for_import().key_id(&key.id);
    Ok(call
        .wrapping_algorithm(AlgorithmSpec::RsaesOaepSha256)
        .wrapping_key_spec(WrappingKeySpec::Rsa3072)
        .send()
        .await?)
}

async fn importing(
    world: &World,
    key: &Key,
    material: &[u8],
) -> Outcome<ImportKeyMaterialFluentBuilder> {
    let parameters = parameters_for_import(world, key).await?;
    let wrapping = PublicEncryptingKey::from_der(&bytes(parameters.public_key, "PublicKey")?)?;
    let mut wrapped = vec![0; wrapping.key_size_bytes()];
    let oaep = OaepPublicEncryptingKey::new(wrapping)?;
    let wrapped = oaep.encrypt(&OAEP_SHA256_MGF1SHA256, material, &mut wrapped, None)?;
    Ok(world
        .kms
        .import_key_material()
        .key_id(&key.id)
        .set_import_token(parameters.import_token)
        .encrypted_key_material(Blob::new(&*wrapped))
        .expiration_model(ExpirationModelType::KeyMaterialDoesNotExpire))
}

async fn import(world: &World, key: &Key, material: &[u8]) -> Outcome {
    importing(world, key, material).await?.send().await?;
    Ok(())
}

pub async fn get_parameters_for_import(world: &World) -> Outcome {
    let key = external_key(world).await?;
    let answer = parameters_for_import(world, &key).await?;
    equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
    within(answer.parameters_valid_to(), now() + DAY, HOUR, "ParametersValidTo")?;
    check!(!bytes(answer.import_token, "ImportToken")?.is_empty(), "no ImportToken");
    let wrapping = PublicEncryptingKey::from_der(&bytes(answer.public_key, "PublicKey")?)?;
    equal(wrapping.key_size_bits(), 3072, "key size")
}

pub async fn import_key_material(world: &World) -> Outcome {
    let key = external_key(world).await?;
    import(world, &key, &random(32)).await?;
    let metadata = world.describe(&key.id).await?;
    equal(metadata.key_state(), Some(&KeyState::Enabled), "KeyState")?;
    equal(
        metadata.expiration_model(),
        Some(&ExpirationModelType::KeyMaterialDoesNotExpire),
        "ExpirationModel",
    )?;
    equal(
        world.decrypt(&world.encrypt(&key.id, "plaintext").await?).await?,
        "plaintext",
        "Plaintext",
    )
}

pub async fn delete_imported_key_material(world: &World) -> Outcome {
    let key = external_key(world).await?;
    let material = random(32);
    import(world, &key, &material).await?;
    let blob = world.encrypt(&key.id, "plaintext").await?;
    world.kms.delete_imported_key_material().key_id(&key.id).send().await?;
    equal(world.describe(&key.id).await?.key_state(), Some(&KeyState::PendingImport), "KeyState")?;
    let encrypt = world.kms.encrypt().key_id(&key.id).plaintext(Blob::new("plaintext"));
    refused!(encrypt.send(), is_kms_invalid_state_exception);
    refused!(
        world.kms.decrypt().ciphertext_blob(blob.clone()).send(),
        is_kms_invalid_state_exception
    );
    import(world, &key, &material).await?;
    equal(world.decrypt(&blob).await?, "plaintext", "Plaintext")
}

pub async fn import_other_key_material(world: &World) -> Outcome {
    let key = external_key(world).await?;
    import(world, &key, &random(32)).await?;
    world.kms.delete_imported_key_material().key_id(&key.id).send().await?;
    refused!(
        importing(world, &key, &random(32)).await?.send(),
        is_incorrect_key_material_exception
    );
    Ok(())
}

async fn status(world: &World, key: &str) -> Outcome<GetKeyRotationStatusOutput> {
    Ok(world.kms.get_key_rotation_status().key_id(key).send().await?)
}

async fn rotations(world: &World, key: &str) -> Outcome<Vec<RotationsListEntry>> {
    Ok(world.kms.list_key_rotations().key_id(key).send().await?.rotations.unwrap_or_default())
}

pub async fn key_rotation(world: &World) -> Outcome {
    let key = world.key().await?.id;
    world.kms.enable_key_rotation().key_id(&key).rotation_period_in_days(90).send().await?;
    let enabled = status(world, &key).await?;
    equal(enabled.key_rotation_enabled(), true, "KeyRotationEnabled")?;
    equal(enabled.rotation_period_in_days(), Some(90), "RotationPeriodInDays")?;
    within(enabled.next_rotation_date(), now() + 90 * DAY, 2 * DAY, "NextRotationDate")?;
    equal(rotations(world, &key).await?.len(), 0, "number of rotations")?;
    world.kms.disable_key_rotation().key_id(&key).send().await?;
    equal(status(world, &key).await?.key_rotation_enabled(), false, "KeyRotationEnabled")
}

pub async fn rotate_key_on_demand(world: &World) -> Outcome {
    let key = world.key().await?.id;
    world.kms.enable_key_rotation().key_id(&key).rotation_period_in_days(90).send().await?;
    let old = world.encrypt(&key, "old").await?;
    let material =
        present(world.describe(&key).await?.current_key_material_id, "CurrentKeyMaterialId")?;
    world.kms.rotate_key_on_demand().key_id(&key).send().await?;
    eventually!("rotation", !rotations(world, &key).await?.is_empty());
    let done = rotations(world, &key).await?;
    equal(done.len(), 1, "number of rotations")?;
    equal(done[0].rotation_type(), Some(&RotationType::OnDemand), "RotationType")?;
    within(done[0].rotation_date(), now(), HOUR, "RotationDate")?;
    eventually!(
        "new key material",
        world.describe(&key).await?.current_key_material_id.as_ref() != Some(&material)
    );
    equal(world.decrypt(&old).await?, "old", "old Plaintext")?;
    equal(world.decrypt(&world.encrypt(&key, "new").await?).await?, "new", "new Plaintext")?;
    equal(status(world, &key).await?.rotation_period_in_days(), Some(90), "RotationPeriodInDays")?;
    world.kms.disable_key_rotation().key_id(&key).send().await?;
    Ok(())
}
