//! Grants and key policies.

use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{GrantConstraints, GrantOperation};
use serde_json::{Value, json};

use crate::common::{HOUR, Key, Outcome, World, bytes, equal, now, present, within};

struct Grant {
    key: Key,
    caller: String,
    id: String,
    token: String,
}

/// A key, and a grant for the caller on it.
async fn new_grant(world: &World) -> Outcome<Grant> {
    let key = world.key().await?;
    let caller = present(world.sts.get_caller_identity().send().await?.arn, "Arn")?;
    let answer = world
        .kms
        .create_grant()
        .key_id(&key.id)
        .grantee_principal(&caller)
        .retiring_principal(&caller)
        .operations(GrantOperation::Encrypt)
        .operations(GrantOperation::Decrypt)
        .constraints(GrantConstraints::builder().encryption_context_equals("tenant", "42").build())
        .name(format!("grant-{}", world.run))
        .send()
        .await?;
    let (id, token) =
        (present(answer.grant_id, "GrantId")?, present(answer.grant_token, "GrantToken")?);
    check!(!id.is_empty() && !token.is_empty(), "no GrantToken or no GrantId");
    Ok(Grant { key, caller, id, token })
}

async fn is_listed(world: &World, grant: &Grant) -> Outcome<bool> {
    let mut pages = world.kms.list_grants().key_id(&grant.key.id).into_paginator().items().send();
    while let Some(entry) = pages.next().await {
        if entry?.grant_id() == Some(&grant.id) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub async fn create_grant(world: &World) -> Outcome {
    let grant = new_grant(world).await?;
    let answer = world.kms.list_grants().key_id(&grant.key.id).grant_id(&grant.id).send().await?;
    equal(answer.grants().len(), 1, "number of grants")?;
    let entry = &answer.grants()[0];
    equal(entry.grant_id(), Some(grant.id.as_str()), "GrantId")?;
    equal(entry.key_id(), Some(grant.key.arn.as_str()), "KeyId")?;
    equal(entry.grantee_principal(), Some(grant.caller.as_str()), "GranteePrincipal")?;
    equal(entry.retiring_principal(), Some(grant.caller.as_str()), "RetiringPrincipal")?;
    let constraints = GrantConstraints::builder().encryption_context_equals("tenant", "42").build();
    equal(entry.constraints(), Some(&constraints), "Constraints")?;
    equal(entry.name(), Some(format!("grant-{}", world.run).as_str()), "Name")?;
    let mut operations: Vec<_> = entry.operations().iter().map(GrantOperation::as_str).collect();
    operations.sort_unstable();
    equal(operations, ["Decrypt", "Encrypt"], "Operations")?;
    within(entry.creation_date(), now(), HOUR, "CreationDate")
}

pub async fn list_retirable_grants(world: &World) -> Outcome {
    let grant = new_grant(world).await?;
    let call = world.kms.list_retirable_grants().retiring_principal(&grant.caller);
    let mut pages = call.into_paginator().items().send();
    let mut found = 0;
    while let Some(entry) = pages.next().await {
        found += u32::from(entry?.grant_id() == Some(&grant.id));
    }
    equal(found, 1, "occurrences of the grant")
}

pub async fn grant_token(world: &World) -> Outcome {
    let grant = new_grant(world).await?;
    let encrypt = world.kms.encrypt().key_id(&grant.key.id).plaintext(Blob::new("plaintext"));
    let encrypt = encrypt.encryption_context("tenant", "42");
    let encrypted = encrypt.clone().grant_tokens(&grant.token).send().await?;
    let decrypted = world
        .kms
        .decrypt()
        .set_ciphertext_blob(encrypted.ciphertext_blob)
        .encryption_context("tenant", "42")
        .grant_tokens(&grant.token)
        .send()
        .await?;
    equal(bytes(decrypted.plaintext, "Plaintext")?, b"plaintext", "Plaintext")?;
    refused!(encrypt.grant_tokens("no-grant-token").send(), is_invalid_grant_token_exception);
    Ok(())
}

pub async fn retire_grant(world: &World) -> Outcome {
    let grant = new_grant(world).await?;
    check!(is_listed(world, &grant).await?, "the grant is not listed");
    world.kms.retire_grant().grant_token(&grant.token).send().await?;
    eventually!("grant gone", !is_listed(world, &grant).await?);
    Ok(())
}

pub async fn revoke_grant(world: &World) -> Outcome {
    let grant = new_grant(world).await?;
    let call = world.kms.revoke_grant().key_id(&grant.key.id).grant_id(&grant.id);
    call.clone().send().await?;
    eventually!("grant gone", !is_listed(world, &grant).await?);
    refused_as!(call.send(), "NotFoundException", "InvalidGrantIdException");
    Ok(())
}

async fn policy_of(world: &World, key: &str) -> Outcome<String> {
    present(
        world.kms.get_key_policy().key_id(key).policy_name("default").send().await?.policy,
        "Policy",
    )
}

pub async fn get_key_policy(world: &World) -> Outcome {
    let key = world.key().await?.id;
    let names = world.kms.list_key_policies().key_id(&key).send().await?;
    equal(names.policy_names(), ["default"], "PolicyNames")?;
    let policy: Value = serde_json::from_str(&policy_of(world, &key).await?)?;
    check!(policy["Version"].is_string() && !policy["Statement"].is_null(), "policy {policy}");
    Ok(())
}

pub async fn put_key_policy(world: &World) -> Outcome {
    let key = world.key().await?.id;
    let policy = policy_of(world, &key).await?;
    world.kms.put_key_policy().key_id(&key).policy_name("default").policy(&policy).send().await?;
    let parsed = |text: &str| serde_json::from_str::<Value>(text);
    equal(parsed(&policy_of(world, &key).await?)?, parsed(&policy)?, "policy")
}

pub async fn put_key_policy_lockout(world: &World) -> Outcome {
    let key = world.key().await?;
    let policy = json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow",
            "Principal": { "AWS": format!("arn:aws:iam::{}:root", key.account) },
            "Action": "kms:DescribeKey",
            "Resource": "*",
        }],
    });
    let call = world
        .kms
        .put_key_policy()
        .key_id(&key.id)
        .policy_name("default")
        .policy(policy.to_string());
    refused!(call.send(), is_malformed_policy_document_exception);
    world.encrypt(&key.id, "plaintext").await?;
    Ok(())
}
