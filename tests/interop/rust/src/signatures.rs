//! Public keys and signatures.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{KeySpec, KeyUsageType, MessageType, SigningAlgorithmSpec};
use sha3::Shake256;
use sha3::digest::{ExtendableOutput, Update, XofReader};

use crate::common::{Key, Outcome, World, bytes, equal, flip, random};
use crate::data::SPKI_HEADER;

pub struct Signing {
    spec: KeySpec,
    algorithm: SigningAlgorithmSpec,
    /// Also as MessageType DIGEST.
    digest: bool,
    /// Of a signature, if it is always the same.
    length: Option<usize>,
    local: &'static dyn VerificationAlgorithm,
}

macro_rules! signing {
    ($name:ident, $spec:ident, $algorithm:ident, $digest:literal, $length:expr, $local:ident) => {
        pub static $name: Signing = Signing {
            spec: KeySpec::$spec,
            algorithm: SigningAlgorithmSpec::$algorithm,
            digest: $digest,
            length: $length,
            local: &signature::$local,
        };
    };
}

signing!(RSA_PSS, Rsa2048, RsassaPssSha256, true, Some(256), RSA_PSS_2048_8192_SHA256);
signing!(RSA_PKCS1, Rsa2048, RsassaPkcs1V15Sha256, true, Some(256), RSA_PKCS1_2048_8192_SHA256);
signing!(P256, EccNistP256, EcdsaSha256, true, None, ECDSA_P256_SHA256_ASN1);
signing!(P256K1, EccSecgP256K1, EcdsaSha256, true, None, ECDSA_P256K1_SHA256_ASN1);
signing!(ED25519, EccNistEdwards25519, Ed25519Sha512, false, Some(64), ED25519);
signing!(ML_DSA_44, MlDsa44, MlDsaShake256, false, Some(2420), ML_DSA_44);
signing!(ML_DSA_65, MlDsa65, MlDsaShake256, false, Some(3309), ML_DSA_65);
signing!(ML_DSA_87, MlDsa87, MlDsaShake256, false, Some(4627), ML_DSA_87);

async fn signing_key(world: &World, spec: &KeySpec) -> Outcome<Key> {
    world.key_of(|new| new.key_spec(spec.clone()).key_usage(KeyUsageType::SignVerify)).await
}

pub async fn get_public_key(world: &World) -> Outcome {
    let key = signing_key(world, &KeySpec::EccNistP256).await?;
    for name in [&key.id, &key.arn] {
        let answer = world.kms.get_public_key().key_id(name).send().await?;
        equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
        equal(answer.key_spec(), Some(&KeySpec::EccNistP256), "KeySpec")?;
        equal(answer.key_usage(), Some(&KeyUsageType::SignVerify), "KeyUsage")?;
        equal(
            answer.signing_algorithms(),
            [SigningAlgorithmSpec::EcdsaSha256],
            "SigningAlgorithms",
        )?;
        let spki = bytes(answer.public_key, "PublicKey")?;
        signature::ParsedPublicKey::new(&signature::ECDSA_P256_SHA256_ASN1, &spki)?;
    }
    Ok(())
}

pub async fn sign_verify(world: &World, signing: &Signing) -> Outcome {
    let key = signing_key(world, &signing.spec).await?;
    let algorithms = key.metadata.signing_algorithms();
    check!(algorithms.contains(&signing.algorithm), "SigningAlgorithms {algorithms:?}");
    let message = random(500);
    let answer = world
        .kms
        .sign()
        .key_id(&key.id)
        .message(Blob::new(message.clone()))
        .message_type(MessageType::Raw)
        .signing_algorithm(signing.algorithm.clone())
        .send()
        .await?;
    equal(answer.key_id(), Some(key.arn.as_str()), "KeyId")?;
    equal(answer.signing_algorithm(), Some(&signing.algorithm), "SigningAlgorithm")?;
    let signature = bytes(answer.signature, "Signature")?;
    equal(signature.len(), signing.length.unwrap_or(signature.len()), "length of the signature")?;

    let mut forms = vec![(MessageType::Raw, message.clone(), flip(&message))];
    if signing.digest {
        let sha256 = |data: &[u8]| digest(&SHA256, data).as_ref().to_vec();
        forms.push((MessageType::Digest, sha256(&message), sha256(&flip(&message))));
    }
    for (kind, good, bad) in forms {
        let verify = world
            .kms
            .verify()
            .key_id(&key.arn)
            .message_type(kind)
            .signature(Blob::new(signature.clone()))
            .signing_algorithm(signing.algorithm.clone());
        equal(
            verify.clone().message(Blob::new(good)).send().await?.signature_valid(),
            true,
            "SignatureValid",
        )?;
        refused!(verify.message(Blob::new(bad)).send(), is_kms_invalid_signature_exception);
    }
    UnparsedPublicKey::new(signing.local, world.public_key(&key).await?)
        .verify(&message, &signature)?;
    Ok(())
}

fn shake256(parts: &[&[u8]]) -> Vec<u8> {
    let mut state = Shake256::default();
    for part in parts {
        state.update(part);
    }
    let mut out = vec![0; 64];
    state.finalize_xof().read(&mut out);
    out
}

pub async fn external_mu(world: &World) -> Outcome {
    let key = signing_key(world, &KeySpec::MlDsa65).await?;
    let spki = world.public_key(&key).await?;
    equal(spki.len(), SPKI_HEADER + 1952, "length of the public key")?;
    // FIPS 204, algorithm 7, line 6, with the empty context.
    let tr = shake256(&[&spki[SPKI_HEADER..]]);
    let mu = |message: &[u8]| Blob::new(shake256(&[&tr, &[0, 0], message]));
    let message = random(500);
    let answer = world
        .kms
        .sign()
        .key_id(&key.id)
        .message(mu(&message))
        .message_type(MessageType::ExternalMu)
        .signing_algorithm(SigningAlgorithmSpec::MlDsaShake256)
        .send()
        .await?;
    let signature = bytes(answer.signature, "Signature")?;
    let verify = world
        .kms
        .verify()
        .key_id(&key.id)
        .signature(Blob::new(signature.clone()))
        .signing_algorithm(SigningAlgorithmSpec::MlDsaShake256);
    for (kind, form) in
        [(MessageType::Raw, Blob::new(message.clone())), (MessageType::ExternalMu, mu(&message))]
    {
        let answer = verify.clone().message(form).message_type(kind).send().await?;
        equal(answer.signature_valid(), true, "SignatureValid")?;
    }
    let changed = verify.message(mu(&flip(&message))).message_type(MessageType::ExternalMu);
    refused!(changed.send(), is_kms_invalid_signature_exception);
    UnparsedPublicKey::new(&signature::ML_DSA_65, spki).verify(&message, &signature)?;
    Ok(())
}
