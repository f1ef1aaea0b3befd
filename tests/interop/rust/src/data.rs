//! Encryption and data keys.

use std::collections::HashMap;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::kem::{EncapsulationKey, ML_KEM_768};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey,
};
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{DataKeyPairSpec, DataKeySpec, EncryptionAlgorithmSpec};

use crate::common::{Outcome, World, bytes, equal, flip, present, random};

/// Of an ML-KEM or ML-DSA public key.
pub const SPKI_HEADER: usize = 22;
pub const ML_KEM_PUBLIC: usize = 1184;

fn context(tenant: &str) -> Option<HashMap<String, String>> {
    Some(HashMap::from([
        ("tenant".to_owned(), tenant.to_owned()),
        ("purpose".to_owned(), "interop ü".to_owned()),
    ]))
}

async fn decrypt(world: &World, blob: Option<Blob>) -> Outcome<Vec<u8>> {
    let call = world.kms.decrypt().set_ciphertext_blob(blob).set_encryption_context(context("42"));
    bytes(call.send().await?.plaintext, "Plaintext")
}

pub async fn encrypt_decrypt(world: &World) -> Outcome {
    let key = world.key().await?;
    let plaintext = random(256);
    let encrypted = world
        .kms
        .encrypt()
        .key_id(&key.id)
        .plaintext(Blob::new(plaintext.clone()))
        .set_encryption_context(context("42"))
        .send()
        .await?;
    equal(encrypted.key_id(), Some(key.arn.as_str()), "KeyId")?;
    let symmetric = Some(&EncryptionAlgorithmSpec::SymmetricDefault);
    equal(encrypted.encryption_algorithm(), symmetric, "EncryptionAlgorithm")?;
    let blob = present(encrypted.ciphertext_blob, "CiphertextBlob")?;
    let decrypt =
        world.kms.decrypt().ciphertext_blob(blob.clone()).set_encryption_context(context("42"));
    let decrypted = decrypt.clone().send().await?;
    equal(decrypted.key_id(), Some(key.arn.as_str()), "KeyId")?;
    equal(decrypted.encryption_algorithm(), symmetric, "EncryptionAlgorithm")?;
    equal(bytes(decrypted.plaintext, "Plaintext")?, plaintext, "Plaintext")?;
    for wrong in [context("43"), None] {
        refused!(
            decrypt.clone().set_encryption_context(wrong).send(),
            is_invalid_ciphertext_exception
        );
    }
    let changed = Blob::new(flip(blob.as_ref()));
    refused!(decrypt.clone().ciphertext_blob(changed).send(), is_invalid_ciphertext_exception);
    let other = world.key().await?.id;
    refused!(decrypt.key_id(other).send(), is_incorrect_key_exception);
    Ok(())
}

pub async fn re_encrypt(world: &World) -> Outcome {
    let (source, destination) = (world.key().await?, world.key().await?);
    let encrypted = world
        .kms
        .encrypt()
        .key_id(&source.id)
        .plaintext(Blob::new("plaintext"))
        .set_encryption_context(context("43"))
        .send()
        .await?;
    let answer = world
        .kms
        .re_encrypt()
        .set_ciphertext_blob(encrypted.ciphertext_blob)
        .set_source_encryption_context(context("43"))
        .destination_key_id(&destination.id)
        .set_destination_encryption_context(context("42"))
        .send()
        .await?;
    equal(answer.source_key_id(), Some(source.arn.as_str()), "SourceKeyId")?;
    equal(answer.key_id(), Some(destination.arn.as_str()), "KeyId")?;
    world.kms.disable_key().key_id(&source.id).send().await?;
    equal(decrypt(world, answer.ciphertext_blob).await?, b"plaintext", "Plaintext")
}

pub async fn generate_data_key(world: &World) -> Outcome {
    let key = world.key().await?;
    let call = world.kms.generate_data_key().key_id(&key.id).set_encryption_context(context("42"));
    for (size, call) in
        [(32, call.clone().key_spec(DataKeySpec::Aes256)), (64, call.number_of_bytes(64))]
    {
        let answer = call.send().await?;
        equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
        let plaintext = bytes(answer.plaintext, "Plaintext")?;
        equal(plaintext.len(), size, "length")?;
        equal(decrypt(world, answer.ciphertext_blob).await?, plaintext, "Plaintext")?;
    }
    Ok(())
}

pub async fn generate_data_key_without_plaintext(world: &World) -> Outcome {
    let key = world.key().await?;
    let answer = world
        .kms
        .generate_data_key_without_plaintext()
        .key_id(&key.id)
        .key_spec(DataKeySpec::Aes256)
        .set_encryption_context(context("42"))
        .send()
        .await?;
    equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
    equal(decrypt(world, answer.ciphertext_blob).await?.len(), 32, "length")
}

/// What the private key does must be undone by the public key.
fn pair_fits(spec: &DataKeyPairSpec, private: &[u8], public: &[u8]) -> Outcome {
    match spec {
        DataKeyPairSpec::Rsa2048 => {
            let secret = RsaKeyPair::from_pkcs8(private)?;
            let mut signature = vec![0; secret.public_modulus_len()];
            secret.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), b"m", &mut signature)?;
            equal(signature.len(), 256, "length of a signature")?;
            UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public).verify(b"m", &signature)?;
        }
        DataKeyPairSpec::EccNistP256 => {
            let secret = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, private)?;
            let signature = secret.sign(&SystemRandom::new(), b"m")?;
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, public)
                .verify(b"m", signature.as_ref())?;
            equal(secret.public_key().as_der()?.as_ref(), public, "public key")?;
        }
        // aws-lc-rs reads no seeds, so only the forms are checked.
        _ => {
            equal(private.len(), 86, "length of the private key as a seed")?;
            equal(public.len(), SPKI_HEADER + ML_KEM_PUBLIC, "length of the public key")?;
            EncapsulationKey::new(&ML_KEM_768, &public[SPKI_HEADER..])?.encapsulate()?;
        }
    }
    Ok(())
}

pub async fn pair(world: &World, spec: DataKeyPairSpec) -> Outcome {
    let key = world.key().await?;
    let answer = world
        .kms
        .generate_data_key_pair()
        .key_id(&key.id)
        .key_pair_spec(spec.clone())
        .set_encryption_context(context("42"))
        .send()
        .await?;
    equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
    equal(answer.key_pair_spec(), Some(&spec), "KeyPairSpec")?;
    let private = decrypt(world, answer.private_key_ciphertext_blob).await?;
    equal(&private, &bytes(answer.private_key_plaintext, "PrivateKeyPlaintext")?, "private key")?;
    pair_fits(&spec, &private, &bytes(answer.public_key, "PublicKey")?)
}

pub async fn pair_without_plaintext(world: &World, spec: DataKeyPairSpec) -> Outcome {
    let key = world.key().await?;
    let answer = world
        .kms
        .generate_data_key_pair_without_plaintext()
        .key_id(&key.id)
        .key_pair_spec(spec.clone())
        .set_encryption_context(context("42"))
        .send()
        .await?;
    equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
    equal(answer.key_pair_spec(), Some(&spec), "KeyPairSpec")?;
    let private = decrypt(world, answer.private_key_ciphertext_blob).await?;
    pair_fits(&spec, &private, &bytes(answer.public_key, "PublicKey")?)
}

pub async fn generate_random(world: &World) -> Outcome {
    let numbers = async |size| {
        bytes(
            world.kms.generate_random().number_of_bytes(size).send().await?.plaintext,
            "Plaintext",
        )
    };
    let (one, two) = (numbers(32).await?, numbers(32).await?);
    equal((one.len(), two.len()), (32, 32), "lengths")?;
    check!(one != two, "the same twice");
    equal(numbers(1024).await?.len(), 1024, "length")
}
