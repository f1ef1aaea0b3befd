//! Keys of several regions.

use aws_sdk_kms::Client;
use aws_sdk_kms::config::Region;
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{KeyState, MultiRegionConfiguration, MultiRegionKeyType};

use crate::common::{Key, Outcome, World, bytes, describe_by, equal, present};

struct Replicated {
    key: Key,
    other: String,
    there: Client,
}

/// The key's ARN as it is in another region.
pub fn moved(world: &World, key: &Key, other: &str) -> String {
    key.arn.replacen(&format!(":{}:", world.region), &format!(":{other}:"), 1)
}

fn kind(configuration: Option<&MultiRegionConfiguration>) -> Option<&MultiRegionKeyType> {
    configuration?.multi_region_key_type()
}

/// A multi-region key, its replica's region, and a client there.
async fn replicated_key(world: &World) -> Outcome<Replicated> {
    let other = if world.region == "eu-west-1" { "eu-central-1" } else { "eu-west-1" }.to_owned();
    let config = world.config.to_builder().region(Region::new(other.clone())).build();
    let there = Client::new(&config);
    let key = world.key_of(|new| new.multi_region(true)).await?;
    check!(key.id.starts_with("mrk-"), "KeyId {}", key.id);
    let configuration =
        present(key.metadata.multi_region_configuration(), "MultiRegionConfiguration")?;
    equal(kind(Some(configuration)), Some(&MultiRegionKeyType::Primary), "MultiRegionKeyType")?;
    let primary = present(configuration.primary_key(), "PrimaryKey")?;
    equal(
        (primary.arn(), primary.region()),
        (Some(key.arn.as_str()), Some(world.region.as_str())),
        "PrimaryKey",
    )?;
    let answer = world.kms.replicate_key().key_id(&key.id).replica_region(&other).send().await?;
    world.note(&there, &key.id);
    let replica = present(answer.replica_key_metadata, "ReplicaKeyMetadata")?;
    equal(replica.key_id(), &key.id, "KeyId of the replica")?;
    equal(replica.arn(), Some(moved(world, &key, &other).as_str()), "Arn of the replica")?;
    equal(
        kind(replica.multi_region_configuration()),
        Some(&MultiRegionKeyType::Replica),
        "MultiRegionKeyType",
    )?;
    eventually!(
        "replica enabled",
        describe_by(&there, &key.id).await?.key_state() == Some(&KeyState::Enabled)
    );
    Ok(Replicated { key, other, there })
}

pub async fn replicate_key(world: &World) -> Outcome {
    let Replicated { key, other, there } = replicated_key(world).await?;
    let blob = world.encrypt(&key.id, "plaintext").await?;
    let answer = there.decrypt().ciphertext_blob(blob).key_id(&key.id).send().await?;
    equal(answer.key_id(), Some(moved(world, &key, &other).as_str()), "KeyId")?;
    equal(bytes(answer.plaintext, "Plaintext")?, b"plaintext", "Plaintext")?;
    let back = there.encrypt().key_id(&key.id).plaintext(Blob::new("back")).send().await?;
    let back = present(back.ciphertext_blob, "CiphertextBlob")?;
    equal(world.decrypt(&back).await?, "back", "Plaintext of the way back")?;
    let metadata = world.describe(&key.id).await?;
    let configuration = present(metadata.multi_region_configuration(), "MultiRegionConfiguration")?;
    let regions: Vec<_> =
        configuration.replica_keys().iter().filter_map(|replica| replica.region()).collect();
    equal(regions, [other.as_str()], "regions of the replicas")
}

pub async fn update_primary_region(world: &World) -> Outcome {
    let Replicated { key, other, there } = replicated_key(world).await?;
    world.kms.update_primary_region().key_id(&key.id).primary_region(&other).send().await?;
    eventually!(
        "the replica is the primary",
        is(&there, &key, &MultiRegionKeyType::Primary, &other).await?
    );
    eventually!(
        "the primary is a replica",
        is(&world.kms, &key, &MultiRegionKeyType::Replica, &other).await?
    );
    Ok(())
}

async fn is(
    client: &Client,
    key: &Key,
    wanted: &MultiRegionKeyType,
    primary: &str,
) -> Outcome<bool> {
    let metadata = describe_by(client, &key.id).await?;
    let configuration = metadata.multi_region_configuration();
    Ok(metadata.key_state() == Some(&KeyState::Enabled)
        && kind(configuration) == Some(wanted)
        && configuration.and_then(|c| c.primary_key()?.region()) == Some(primary))
}
