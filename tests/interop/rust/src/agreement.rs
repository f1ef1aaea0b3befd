//! MACs, key agreement and ML-KEM.

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::kem::{EncapsulationKey, ML_KEM_768};
use aws_sdk_kms::operation::decapsulate::builders::DecapsulateFluentBuilder;
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{
    EncapsulationAlgorithmSpec, KeyAgreementAlgorithmSpec, KeySpec, KeyUsageType, MacAlgorithmSpec,
};

use crate::common::{Key, Outcome, World, bytes, equal, flip};
use crate::data::{ML_KEM_PUBLIC, SPKI_HEADER};

const CIPHERTEXT: usize = 1088;

pub async fn mac_hmac_256(world: &World) -> Outcome {
    let algorithm = MacAlgorithmSpec::HmacSha256;
    let key = world
        .key_of(|new| new.key_spec(KeySpec::Hmac256).key_usage(KeyUsageType::GenerateVerifyMac))
        .await?;
    equal(key.metadata.mac_algorithms(), [MacAlgorithmSpec::HmacSha256], "MacAlgorithms")?;
    let generate = world.kms.generate_mac().key_id(&key.id).message(Blob::new("message"));
    let answer = generate.mac_algorithm(algorithm.clone()).send().await?;
    equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
    equal(answer.mac_algorithm(), Some(&algorithm), "MacAlgorithm")?;
    let mac = bytes(answer.mac, "Mac")?;
    equal(mac.len(), 32, "length")?;
    let verify = world.kms.verify_mac().key_id(&key.id).mac_algorithm(algorithm);
    let verify = verify.message(Blob::new("message")).mac(Blob::new(mac.clone()));
    equal(verify.clone().send().await?.mac_valid(), true, "MacValid")?;
    refused!(verify.clone().message(Blob::new("messagf")).send(), is_kms_invalid_mac_exception);
    refused!(verify.mac(Blob::new(flip(&mac))).send(), is_kms_invalid_mac_exception);
    Ok(())
}

async fn agreement_key(world: &World) -> Outcome<Key> {
    let key = world
        .key_of(|new| new.key_spec(KeySpec::EccNistP256).key_usage(KeyUsageType::KeyAgreement))
        .await?;
    equal(
        key.metadata.key_agreement_algorithms(),
        [KeyAgreementAlgorithmSpec::Ecdh],
        "KeyAgreementAlgorithms",
    )?;
    Ok(key)
}

async fn derive(world: &World, key: &Key, public: Vec<u8>) -> Outcome<Vec<u8>> {
    let call = world.kms.derive_shared_secret().key_id(&key.id).public_key(Blob::new(public));
    let answer = call.key_agreement_algorithm(KeyAgreementAlgorithmSpec::Ecdh).send().await?;
    equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
    equal(
        answer.key_agreement_algorithm(),
        Some(&KeyAgreementAlgorithmSpec::Ecdh),
        "KeyAgreementAlgorithm",
    )?;
    let secret = bytes(answer.shared_secret, "SharedSecret")?;
    equal(secret.len(), 32, "length")?;
    Ok(secret)
}

pub async fn derive_shared_secret(world: &World) -> Outcome {
    let (one, two) = (agreement_key(world).await?, agreement_key(world).await?);
    let forth = derive(world, &one, world.public_key(&two).await?).await?;
    let back = derive(world, &two, world.public_key(&one).await?).await?;
    equal(forth, back, "shared secret")
}

pub async fn derive_shared_secret_local(world: &World) -> Outcome {
    let key = agreement_key(world).await?;
    let local = PrivateKey::generate(&ECDH_P256)?;
    let theirs = UnparsedPublicKey::new(&ECDH_P256, world.public_key(&key).await?);
    let ours = agree(&local, theirs, Unspecified, |secret| Ok(secret.to_vec()))?;
    let public = local.compute_public_key()?.as_der()?.as_ref().to_vec();
    equal(derive(world, &key, public).await?, ours, "shared secret")
}

async fn kem_key(world: &World) -> Outcome<Key> {
    let usage = KeyUsageType::EncapsulateDecapsulate;
    let key = world.key_of(|new| new.key_spec(KeySpec::MlKem768).key_usage(usage)).await?;
    equal(
        key.metadata.encapsulation_algorithms(),
        [EncapsulationAlgorithmSpec::MlKem],
        "EncapsulationAlgorithms",
    )?;
    Ok(key)
}

fn decapsulation(world: &World, key: &Key, blob: Vec<u8>) -> DecapsulateFluentBuilder {
    let call = world
        .kms
        .decapsulate()
        .key_id(&key.id)
        .encapsulation_algorithm(EncapsulationAlgorithmSpec::MlKem);
    call.shared_secret_ciphertext_blob(Blob::new(blob))
}

async fn decapsulate(world: &World, key: &Key, blob: Vec<u8>) -> Outcome<Vec<u8>> {
    let answer = decapsulation(world, key, blob).send().await?;
    equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
    equal(
        answer.encapsulation_algorithm(),
        Some(&EncapsulationAlgorithmSpec::MlKem),
        "EncapsulationAlgorithm",
    )?;
    let secret = bytes(answer.shared_secret, "SharedSecret")?;
    equal(secret.len(), 32, "length of the secret")?;
    Ok(secret)
}

pub async fn ml_kem_768(world: &World) -> Outcome {
    let key = kem_key(world).await?;
    let call = world.kms.encapsulate().key_id(&key.id);
    let answer = call.encapsulation_algorithm(EncapsulationAlgorithmSpec::MlKem).send().await?;
    equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
    equal(
        answer.encapsulation_algorithm(),
        Some(&EncapsulationAlgorithmSpec::MlKem),
        "EncapsulationAlgorithm",
    )?;
    let blob = bytes(answer.shared_secret_ciphertext_blob, "SharedSecretCiphertextBlob")?;
    let secret = bytes(answer.shared_secret, "SharedSecret")?;
    equal(blob.len(), CIPHERTEXT, "length of the ciphertext")?;
    let changed = decapsulate(world, &key, flip(&blob)).await?;
    check!(changed != secret, "a changed ciphertext gives the same secret");
    equal(decapsulate(world, &key, blob).await?, secret, "shared secret")
}

pub async fn ml_kem_768_local(world: &World) -> Outcome {
    let key = kem_key(world).await?;
    let spki = world.public_key(&key).await?;
    equal(spki.len(), SPKI_HEADER + ML_KEM_PUBLIC, "length of the public key")?;
    let (blob, secret) = EncapsulationKey::new(&ML_KEM_768, &spki[SPKI_HEADER..])?.encapsulate()?;
    equal(decapsulate(world, &key, blob.as_ref().to_vec()).await?, secret.as_ref(), "shared secret")
}

pub async fn ml_kem_768_wrong_length(world: &World) -> Outcome {
    let key = kem_key(world).await?;
    refused!(
        decapsulation(world, &key, vec![0; CIPHERTEXT - 1]).send(),
        is_invalid_ciphertext_exception
    );
    Ok(())
}
