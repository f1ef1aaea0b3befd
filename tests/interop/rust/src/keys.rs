//! Keys, tags and aliases.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_kms::types::{
    EncryptionAlgorithmSpec, KeyManagerType, KeySpec, KeyState, KeyUsageType, OriginType, Tag,
};

use crate::common::{HOUR, Outcome, World, equal, now, within};

fn tag(key: &str, value: &str) -> Outcome<Tag> {
    Ok(Tag::builder().tag_key(key).tag_value(value).build()?)
}

async fn tags_of(world: &World, key: &str) -> Outcome<BTreeMap<String, String>> {
    let mut pages = world.kms.list_resource_tags().key_id(key).into_paginator().items().send();
    let mut found = BTreeMap::new();
    while let Some(tag) = pages.next().await {
        let tag = tag?;
        found.insert(tag.tag_key, tag.tag_value);
    }
    Ok(found)
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

pub async fn create_symmetric(world: &World) -> Outcome {
    let tag = tag("run", &world.run)?;
    let key = world.key_of(|new| new.description("first ä").tags(tag)).await?;
    let metadata = &key.metadata;
    equal(metadata.key_spec(), Some(&KeySpec::SymmetricDefault), "KeySpec")?;
    equal(metadata.key_usage(), Some(&KeyUsageType::EncryptDecrypt), "KeyUsage")?;
    equal(
        metadata.encryption_algorithms(),
        [EncryptionAlgorithmSpec::SymmetricDefault],
        "EncryptionAlgorithms",
    )?;
    equal(metadata.key_state(), Some(&KeyState::Enabled), "KeyState")?;
    equal(metadata.enabled(), true, "Enabled")?;
    equal(metadata.origin(), Some(&OriginType::AwsKms), "Origin")?;
    equal(metadata.key_manager(), Some(&KeyManagerType::Customer), "KeyManager")?;
    equal(metadata.multi_region(), Some(false), "MultiRegion")?;
    equal(metadata.description(), Some("first ä"), "Description")?;
    let digits = key.account.len() == 12 && key.account.bytes().all(|byte| byte.is_ascii_digit());
    check!(digits, "AWSAccountId {}", key.account);
    let arn = format!("arn:aws:kms:{}:{}:key/{}", world.region, key.account, key.id);
    equal(&key.arn, &arn, "Arn")?;
    within(metadata.creation_date(), now(), HOUR, "CreationDate")?;
    equal(tags_of(world, &key.id).await?, map(&[("run", &world.run)]), "tags")
}

pub async fn describe_key(world: &World) -> Outcome {
    let key = world.key().await?;
    for name in [&key.id, &key.arn] {
        equal(&world.describe(name).await?, &key.metadata, "metadata")?;
    }
    Ok(())
}

pub async fn list_keys(world: &World) -> Outcome {
    let mut wanted = BTreeSet::new();
    for _ in 0..3 {
        wanted.insert(world.key().await?.arn);
    }
    let mut listed = BTreeSet::new();
    let mut pages = world.kms.list_keys().limit(2).into_paginator().send();
    while let Some(page) = pages.next().await {
        let page = page?;
        check!(page.keys().len() <= 2, "a page of more than 2");
        for entry in page.keys() {
            let arn = entry.key_arn().unwrap_or_default().to_owned();
            check!(listed.insert(arn.clone()), "{arn} listed twice");
        }
    }
    let missing: Vec<_> = wanted.difference(&listed).collect();
    check!(missing.is_empty(), "not listed: {missing:?}");
    Ok(())
}

pub async fn update_key_description(world: &World) -> Outcome {
    let key = world.key().await?.id;
    world.kms.update_key_description().key_id(&key).description("second ä").send().await?;
    equal(world.describe(&key).await?.description(), Some("second ä"), "Description")
}

pub async fn tags(world: &World) -> Outcome {
    let key = world.key().await?.id;
    let (team, stage) = (tag("team", "ä/+ 1")?, tag("stage", "test")?);
    world.kms.tag_resource().key_id(&key).tags(team).tags(stage).send().await?;
    equal(tags_of(world, &key).await?, map(&[("team", "ä/+ 1"), ("stage", "test")]), "tags")?;
    world.kms.untag_resource().key_id(&key).tag_keys("stage").send().await?;
    equal(tags_of(world, &key).await?, map(&[("team", "ä/+ 1")]), "tags after UntagResource")
}

pub async fn enable_disable(world: &World) -> Outcome {
    let key = world.key().await?.id;
    world.kms.disable_key().key_id(&key).send().await?;
    let metadata = world.describe(&key).await?;
    equal(metadata.key_state(), Some(&KeyState::Disabled), "KeyState")?;
    equal(metadata.enabled(), false, "Enabled")?;
    let encrypt = world.kms.encrypt().key_id(&key).plaintext(b"plaintext".to_vec().into());
    refused!(encrypt.clone().send(), is_disabled_exception);
    world.kms.enable_key().key_id(&key).send().await?;
    let metadata = world.describe(&key).await?;
    equal(metadata.key_state(), Some(&KeyState::Enabled), "KeyState")?;
    equal(metadata.enabled(), true, "Enabled")?;
    encrypt.send().await?;
    Ok(())
}

pub async fn alias(world: &World) -> Outcome {
    let (first, second) = (world.key().await?, world.key().await?);
    let name = format!("alias/kms-whole-{}", world.run);
    let create = world.kms.create_alias().alias_name(&name).target_key_id(&first.id);
    create.clone().send().await?;
    equal(world.describe(&name).await?.key_id(), first.id, "KeyId by the alias")?;
    refused!(create.send(), is_already_exists_exception);
    world.kms.update_alias().alias_name(&name).target_key_id(&second.id).send().await?;
    equal(
        world.describe(&name).await?.key_id(),
        &second.id,
        "KeyId by the alias after UpdateAlias",
    )?;

    let of_key = world.kms.list_aliases().key_id(&second.id).send().await?;
    let of_key: Vec<_> =
        of_key.aliases().iter().map(|a| (a.alias_name(), a.target_key_id())).collect();
    equal(of_key, [(Some(name.as_str()), Some(second.id.as_str()))], "aliases of the key")?;
    let mut listed = Vec::new();
    let mut pages = world.kms.list_aliases().limit(2).into_paginator().items().send();
    while let Some(entry) = pages.next().await {
        let entry = entry?;
        if entry.alias_name() == Some(&name) {
            listed.push(entry.alias_arn.unwrap_or_default());
        }
    }
    let arn = second.arn.replace(&format!("key/{}", second.id), &name);
    equal(listed, [arn], "listed alias")?;

    world.kms.delete_alias().alias_name(&name).send().await?;
    refused!(world.kms.describe_key().key_id(&name).send(), is_not_found_exception);
    Ok(())
}
