//! Every kind of use of KMS keys, over the tables of key types and algorithms.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{Answer, Fixture, Who, b64, code, text, unb64, with};
use outlast_crypto::digests::Digest;
use outlast_crypto::keys::{KEY_SPECS, KeySpec, KeyUsage};
use outlast_crypto::signatures::{Family, Message};
use serde_json::{Value, json};

fn specs(usage: KeyUsage) -> impl Iterator<Item = &'static KeySpec> {
    KEY_SPECS.iter().filter(move |spec| spec.usages.contains(&usage))
}

/// A minimal use of a key by each operation that uses keys of its kind.
fn uses(
    fixture: &Fixture,
    key: &str,
    spec: &KeySpec,
    usage: KeyUsage,
) -> Vec<(&'static str, Value)> {
    let of = |more: Value| with(&json!({ "KeyId": key }), more);
    match usage {
        KeyUsage::SignVerify => {
            let row = spec.signing.first().unwrap();
            let sign = of(json!({ "Message": b64(b"m"), "SigningAlgorithm": row.kms_name }));
            let made = fixture.kms("Sign", sign.clone()).unwrap();
            let verify = with(&sign, json!({ "Signature": made["Signature"] }));
            vec![("Sign", sign), ("Verify", verify)]
        }
        KeyUsage::GenerateVerifyMac => {
            let make = of(json!({ "Message": b64(b"m"), "MacAlgorithm": spec.mac[0] }));
            let made = fixture.kms("GenerateMac", make.clone()).unwrap();
            let verify = with(&make, json!({ "Mac": made["Mac"] }));
            vec![("GenerateMac", make), ("VerifyMac", verify)]
        }
        KeyUsage::KeyAgreement => {
            let public = public_of(spec);
            let derive = json!({ "KeyAgreementAlgorithm": "ECDH", "PublicKey": b64(&public) });
            vec![("DeriveSharedSecret", of(derive))]
        }
        KeyUsage::EncapsulateDecapsulate => {
            let make = of(json!({ "EncapsulationAlgorithm": "ML_KEM" }));
            let made = fixture.kms("Encapsulate", make.clone()).unwrap();
            let blob = &made["SharedSecretCiphertextBlob"];
            let open = with(&make, json!({ "SharedSecretCiphertextBlob": blob }));
            vec![("Encapsulate", make), ("Decapsulate", open)]
        }
        KeyUsage::EncryptDecrypt => {
            let algorithm = spec.encryption.last().unwrap();
            let encrypt = of(json!({ "Plaintext": b64(b"p"), "EncryptionAlgorithm": algorithm }));
            let made = fixture.kms("Encrypt", encrypt.clone()).unwrap();
            let blob = &made["CiphertextBlob"];
            let decrypt = of(json!({ "CiphertextBlob": blob, "EncryptionAlgorithm": algorithm }));
            let again = json!({
                "CiphertextBlob": blob, "SourceKeyId": key, "DestinationKeyId": key,
                "SourceEncryptionAlgorithm": algorithm,
                "DestinationEncryptionAlgorithm": algorithm,
            });
            let mut all = vec![("Encrypt", encrypt), ("Decrypt", decrypt), ("ReEncrypt", again)];
            if *algorithm == "SYMMETRIC_DEFAULT" {
                let (bytes, pair) = (json!({ "KeySpec": "AES_256" }), "ECC_NIST_P256");
                let pair = json!({ "KeyPairSpec": pair });
                all.push(("GenerateDataKey", of(bytes.clone())));
                all.push(("GenerateDataKeyWithoutPlaintext", of(bytes)));
                all.push(("GenerateDataKeyPair", of(pair.clone())));
                all.push(("GenerateDataKeyPairWithoutPlaintext", of(pair)));
            }
            all
        }
    }
}

fn public_of(spec: &KeySpec) -> Vec<u8> {
    let stored = spec.generate().unwrap();
    spec.load(&stored).unwrap().public_key().unwrap().to_vec()
}

/// Every usage of every key type, except the slow RSA types, for which the smallest stands.
fn each_kind(mut check: impl FnMut(&Fixture, &str, &'static KeySpec, KeyUsage)) {
    let fixture = Fixture::new();
    for spec in KEY_SPECS.iter().filter(|spec| !matches!(spec.name, "RSA_3072" | "RSA_4096")) {
        for usage in spec.usages {
            let key = fixture.key_of(spec.name, usage.name());
            check(&fixture, &key, spec, *usage);
        }
    }
}

#[test]
fn macs_of_every_spec_verify_and_only_so() {
    let fixture = Fixture::new();
    for spec in specs(KeyUsage::GenerateVerifyMac) {
        let key = fixture.key_of(spec.name, "GENERATE_VERIFY_MAC");
        let other = fixture.key_of(spec.name, "GENERATE_VERIFY_MAC");
        let algorithm = spec.mac[0];
        let make = json!({ "KeyId": key, "Message": b64(b"message"), "MacAlgorithm": algorithm });
        let made = fixture.kms("GenerateMac", make.clone()).unwrap();
        let mac = unb64(&made["Mac"]);
        let bits: usize = algorithm.rsplit('_').next().unwrap().parse().unwrap();
        assert_eq!((mac.len(), &made["MacAlgorithm"]), (bits / 8, &json!(algorithm)));
        assert!(text(&made["KeyId"]).ends_with(&key));
        assert_eq!(fixture.kms("GenerateMac", make.clone()).unwrap()["Mac"], made["Mac"]);
        let check = |more: Value| fixture.kms("VerifyMac", with(&make, more));
        let good = check(json!({ "Mac": b64(&mac) })).unwrap();
        assert_eq!((&good["MacValid"], &good["MacAlgorithm"]), (&json!(true), &json!(algorithm)));
        let mut bad = mac.clone();
        bad[0] ^= 1;
        for wrong in [
            json!({ "Mac": b64(&bad) }),
            json!({ "Mac": b64(&mac[1..]) }),
            json!({ "Mac": b64(&[mac.as_slice(), b"\0"].concat()) }),
            json!({ "Mac": b64(&mac), "Message": b64(b"massage") }),
            json!({ "Mac": b64(&mac), "KeyId": other }),
        ] {
            let refused = check(wrong).unwrap_err();
            assert_eq!(
                (refused.code.as_str(), refused.message.as_str()),
                ("KMSInvalidMacException", "")
            );
        }
        let foreign = specs(KeyUsage::GenerateVerifyMac).map(|row| row.mac[0]);
        for foreign in foreign.filter(|name| *name != algorithm) {
            let refused =
                fixture.kms("GenerateMac", with(&make, json!({ "MacAlgorithm": foreign })));
            assert_eq!(code(refused), "InvalidKeyUsageException");
            let wrong = json!({ "MacAlgorithm": foreign, "Mac": b64(&mac) });
            assert_eq!(code(check(wrong)), "InvalidKeyUsageException");
        }
        for wrong in [json!({ "MacAlgorithm": "HMAC_MD5" }), json!({ "Message": "" })] {
            let answer = fixture.kms("GenerateMac", with(&make, wrong));
            assert_eq!(code(answer), "ValidationException");
        }
        let long = json!({ "Message": b64(&[0; 4097]) });
        assert_eq!(code(fixture.kms("GenerateMac", with(&make, long))), "ValidationException");
    }
}

#[test]
fn both_sides_derive_the_same_secret_on_every_curve() {
    let fixture = Fixture::new();
    for spec in specs(KeyUsage::KeyAgreement) {
        let keys = [0, 1].map(|_| fixture.key_of(spec.name, "KEY_AGREEMENT"));
        let public = |key: &str| {
            let found = fixture.kms("GetPublicKey", json!({ "KeyId": key })).unwrap();
            assert_eq!(found["KeyAgreementAlgorithms"], json!(["ECDH"]));
            unb64(&found["PublicKey"])
        };
        let derive = |key: &str, peer: &[u8]| {
            let algorithm = "ECDH";
            let input = json!({
                "KeyId": key, "KeyAgreementAlgorithm": algorithm, "PublicKey": b64(peer),
            });
            fixture.kms("DeriveSharedSecret", input)
        };
        let first = derive(&keys[0], &public(&keys[1])).unwrap();
        let second = derive(&keys[1], &public(&keys[0])).unwrap();
        assert_eq!(first["SharedSecret"], second["SharedSecret"]);
        assert_eq!(first["KeyOrigin"], "AWS_KMS");
        let len = match spec.name {
            "ECC_NIST_P384" => 48,
            "ECC_NIST_P521" => 66,
            _ => 32,
        };
        assert_eq!(unb64(&first["SharedSecret"]).len(), len);
        let mut off_curve = public(&keys[1]);
        *off_curve.last_mut().unwrap() ^= 1;
        let whole = public(&keys[1]);
        let mut wrong = vec![
            off_curve,
            b"garbage".to_vec(),
            whole[..whole.len() - 1].to_vec(),
            [whole.as_slice(), b"\0"].concat(),
        ];
        wrong.extend(
            KEY_SPECS
                .iter()
                .filter(|other| other.name.starts_with("ECC") && other.name != spec.name)
                .map(public_of),
        );
        for peer in wrong {
            assert_eq!(code(derive(&keys[0], &peer)), "ValidationException");
        }
    }
}

#[test]
fn ml_kem_rejects_implicitly_and_wrong_lengths_at_once() {
    let fixture = Fixture::new();
    for (spec, len) in [("ML_KEM_512", 768), ("ML_KEM_768", 1088), ("ML_KEM_1024", 1568)] {
        let key = fixture.key_of(spec, "ENCAPSULATE_DECAPSULATE");
        let algorithm = json!({ "KeyId": key, "EncapsulationAlgorithm": "ML_KEM" });
        let made = fixture.kms("Encapsulate", algorithm.clone()).unwrap();
        let again = fixture.kms("Encapsulate", algorithm.clone()).unwrap();
        assert_ne!(made["SharedSecret"], again["SharedSecret"]);
        let blob = unb64(&made["SharedSecretCiphertextBlob"]);
        assert_eq!((blob.len(), unb64(&made["SharedSecret"]).len()), (len, 32));
        let open = |blob: &[u8]| {
            let body = with(&algorithm, json!({ "SharedSecretCiphertextBlob": b64(blob) }));
            fixture.kms("Decapsulate", body)
        };
        assert_eq!(open(&blob).unwrap()["SharedSecret"], made["SharedSecret"]);
        let mut changed = blob.clone();
        changed[0] ^= 1;
        let other = open(&changed).unwrap();
        assert_ne!(other["SharedSecret"], made["SharedSecret"]);
        assert_eq!(other, open(&changed).unwrap(), "implicit rejection is deterministic");
        for wrong in [&blob[..len - 1], &[blob.as_slice(), b"\0"].concat(), b"x"] {
            assert_eq!(code(open(wrong)), "InvalidCiphertextException");
        }
        assert_eq!(code(open(b"")), "ValidationException");
        let wrong = json!({ "KeyId": key, "EncapsulationAlgorithm": "RSA_KEM" });
        assert_eq!(code(fixture.kms("Encapsulate", wrong)), "ValidationException");
    }
}

#[test]
fn data_key_pairs_of_every_spec_are_whole() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let context = json!({ "purpose": "test" });
    for spec in KEY_SPECS.iter().filter(|spec| spec.data_key_pair) {
        let body = json!({
            "KeyId": key, "KeyPairSpec": spec.name, "EncryptionContext": context,
        });
        let made = fixture.kms("GenerateDataKeyPair", body.clone()).unwrap();
        assert_eq!(made["KeyPairSpec"], spec.name);
        assert_eq!(text(&made["KeyMaterialId"]).len(), 64);
        let sealed = json!({ "CiphertextBlob": made["PrivateKeyCiphertextBlob"], "EncryptionContext": context });
        let opened = fixture.kms("Decrypt", sealed).unwrap();
        assert_eq!(opened["Plaintext"], made["PrivateKeyPlaintext"]);
        // The PKCS #8 private key has this type and belongs to the public key.
        let imported = spec.import(&unb64(&opened["Plaintext"])).unwrap();
        let loaded = spec.load(&imported.stored).unwrap();
        assert_eq!(loaded.public_key().unwrap(), unb64(&made["PublicKey"]));
        if matches!(spec.name, "RSA_3072" | "RSA_4096") {
            continue;
        }
        let blind = fixture.kms("GenerateDataKeyPairWithoutPlaintext", body).unwrap();
        assert!(blind.get("PrivateKeyPlaintext").is_none());
        let sealed = json!({ "CiphertextBlob": blind["PrivateKeyCiphertextBlob"], "EncryptionContext": context });
        let imported =
            spec.import(&unb64(&fixture.kms("Decrypt", sealed).unwrap()["Plaintext"])).unwrap();
        let loaded = spec.load(&imported.stored).unwrap();
        assert_eq!(loaded.public_key().unwrap(), unb64(&blind["PublicKey"]));
        let all = serde_json::to_string(&fixture.events()).unwrap();
        assert!(!all.contains(text(&made["PrivateKeyPlaintext"])));
    }
    for (name, expected) in [
        ("SYMMETRIC_DEFAULT", "ValidationException"),
        ("ML_DSA_65", "ValidationException"),
        ("HMAC_256", "ValidationException"),
        // A type of AWS's China Regions.
        ("SM2", "UnsupportedOperationException"),
    ] {
        let body = json!({ "KeyId": key, "KeyPairSpec": name });
        assert_eq!(code(fixture.kms("GenerateDataKeyPair", body)), expected);
    }
}

#[test]
fn re_encrypt_moves_between_keys_contexts_and_algorithms() {
    let fixture = Fixture::new();
    let (from, to) = (fixture.key(json!({})), fixture.key(json!({})));
    let body =
        json!({ "KeyId": from, "Plaintext": b64(b"secret"), "EncryptionContext": { "a": "1" } });
    let blob = fixture.kms("Encrypt", body).unwrap()["CiphertextBlob"].clone();
    let base = json!({
        "CiphertextBlob": blob, "SourceEncryptionContext": { "a": "1" },
        "DestinationKeyId": to, "DestinationEncryptionContext": { "b": "2" },
    });
    let moved = fixture.kms("ReEncrypt", base.clone()).unwrap();
    let event = fixture.events().pop().unwrap();
    assert_eq!(event["resources"].as_array().unwrap().len(), 2, "{event}");
    let noted = &event["requestParameters"];
    assert_eq!(noted["sourceEncryptionContext"], json!({ "a": "1" }));
    assert_eq!(noted["destinationEncryptionContext"], json!({ "b": "2" }));
    assert_eq!(noted["destinationKeyId"], to);
    assert!(text(&moved["SourceKeyId"]).ends_with(&from) && text(&moved["KeyId"]).ends_with(&to));
    assert_ne!(moved["SourceKeyMaterialId"], moved["DestinationKeyMaterialId"]);
    let open = |context: Value| {
        let blob = &moved["CiphertextBlob"];
        fixture.kms("Decrypt", json!({ "CiphertextBlob": blob, "EncryptionContext": context }))
    };
    assert_eq!(unb64(&open(json!({ "b": "2" })).unwrap()["Plaintext"]), b"secret");
    assert_eq!(code(open(json!({ "a": "1" }))), "InvalidCiphertextException");
    for (more, expected) in [
        (json!({ "SourceEncryptionContext": {} }), "InvalidCiphertextException"),
        (json!({ "SourceKeyId": to }), "IncorrectKeyException"),
        (json!({ "DestinationKeyId": "alias/none" }), "NotFoundException"),
        (json!({ "CiphertextBlob": b64(b"garbage") }), "InvalidCiphertextException"),
        (
            json!({ "DestinationEncryptionAlgorithm": "RSAES_OAEP_SHA_256" }),
            "InvalidKeyUsageException",
        ),
        (json!({ "SourceEncryptionAlgorithm": "RSAES_OAEP_SHA_256" }), "ValidationException"),
        (json!({ "DryRun": true }), "DryRunOperationException"),
    ] {
        assert_eq!(code(fixture.kms("ReEncrypt", with(&base, more))), expected);
    }
    let rsa = fixture.key_of("RSA_2048", "ENCRYPT_DECRYPT");
    let oaep = "RSAES_OAEP_SHA_256";
    let out = fixture.kms(
        "ReEncrypt",
        json!({
            "CiphertextBlob": blob, "SourceEncryptionContext": { "a": "1" },
            "DestinationKeyId": rsa, "DestinationEncryptionAlgorithm": oaep,
        }),
    );
    let out = out.unwrap();
    assert!(out.get("DestinationKeyMaterialId").is_none());
    let back = json!({
        "CiphertextBlob": out["CiphertextBlob"], "SourceKeyId": rsa,
        "SourceEncryptionAlgorithm": oaep, "DestinationKeyId": to,
    });
    let back = fixture.kms("ReEncrypt", back).unwrap();
    assert_eq!(fixture.decrypted(text(&back["CiphertextBlob"])), b"secret");
    // Too long for the new key.
    let long = fixture.encrypted(&from, &[7; 1000]);
    let body = json!({
        "CiphertextBlob": long, "DestinationKeyId": rsa, "DestinationEncryptionAlgorithm": oaep,
    });
    assert_eq!(code(fixture.kms("ReEncrypt", body)), "ValidationException");
}

#[test]
fn random_bytes_have_bounds() {
    let fixture = Fixture::new();
    for len in [1, 32, 1024] {
        let made = fixture.kms("GenerateRandom", json!({ "NumberOfBytes": len })).unwrap();
        assert_eq!(unb64(&made["Plaintext"]).len(), len);
    }
    for wrong in [json!({}), json!({ "NumberOfBytes": 0 }), json!({ "NumberOfBytes": 1025 })] {
        assert_eq!(code(fixture.kms("GenerateRandom", wrong)), "ValidationException");
    }
    let elsewhere = json!({ "NumberOfBytes": 8, "CustomKeyStoreId": "cks-1" });
    assert_eq!(code(fixture.kms("GenerateRandom", elsewhere)), "CustomKeyStoreNotFoundException");
    let enclave = json!({ "NumberOfBytes": 8, "Recipient": {} });
    assert_eq!(code(fixture.kms("GenerateRandom", enclave)), "UnsupportedOperationException");
}

#[test]
fn a_dry_run_does_nothing_wherever_it_can_be_asked_for() {
    each_kind(|fixture, key, spec, usage| {
        for (operation, body) in uses(fixture, key, spec, usage) {
            let before = last_usage(fixture, key);
            let dry = with(&body, json!({ "DryRun": true }));
            let refused = fixture.kms(operation, dry).unwrap_err();
            assert_eq!(refused.code, "DryRunOperationException", "{operation}");
            assert_eq!(refused.status, 400);
            assert_eq!(last_usage(fixture, key), before, "{operation}");
            fixture.kms(operation, with(&body, json!({ "DryRun": false }))).unwrap();
        }
    });
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let grantee = "arn:aws:iam::123456789012:user/admin";
    let body = json!({ "KeyId": key, "GranteePrincipal": grantee, "Operations": ["Decrypt"] });
    let dry = |body: &Value| with(body, json!({ "DryRun": true }));
    assert_eq!(code(fixture.kms("CreateGrant", dry(&body))), "DryRunOperationException");
    let grant = fixture.kms("CreateGrant", body).unwrap();
    let name = json!({ "KeyId": key, "GrantId": grant["GrantId"] });
    for operation in ["RevokeGrant", "RetireGrant"] {
        assert_eq!(code(fixture.kms(operation, dry(&name))), "DryRunOperationException");
    }
    let listed = fixture.kms("ListGrants", json!({ "KeyId": key })).unwrap();
    assert_eq!(listed["Grants"].as_array().unwrap().len(), 1);
}

#[test]
fn a_dry_run_can_ignore_the_ciphertext() {
    let fixture = Fixture::new();
    let (key, to) = (fixture.key(json!({})), fixture.key(json!({})));
    let ignore = json!({ "DryRun": true, "DryRunModifiers": ["IGNORE_CIPHERTEXT"] });
    let nobody = fixture.user(common::ACCOUNT, "nobody", &[]);
    for blob in [json!({}), json!({ "CiphertextBlob": b64(b"garbage") })] {
        let decrypt = with(&with(&ignore, blob.clone()), json!({ "KeyId": key }));
        assert_eq!(code(fixture.kms("Decrypt", decrypt.clone())), "DryRunOperationException");
        assert_eq!(code(fixture.kms_as(&nobody, "Decrypt", decrypt)), "AccessDeniedException");
        let again = json!({ "SourceKeyId": key, "DestinationKeyId": to });
        let again = with(&with(&ignore, blob), again);
        assert_eq!(code(fixture.kms("ReEncrypt", again.clone())), "DryRunOperationException");
        assert_eq!(code(fixture.kms_as(&nobody, "ReEncrypt", again)), "AccessDeniedException");
    }
    let blob = fixture.encrypted(&key, b"x");
    for wrong in [
        ignore.clone(),
        with(&ignore, json!({ "CiphertextBlob": blob })),
        json!({ "KeyId": key, "CiphertextBlob": blob, "DryRunModifiers": ["IGNORE_CIPHERTEXT"] }),
        json!({ "KeyId": key, "CiphertextBlob": blob, "DryRun": true, "DryRunModifiers": ["X"] }),
        json!({ "KeyId": key, "DryRun": true }),
    ] {
        assert_eq!(code(fixture.kms("Decrypt", wrong)), "ValidationException");
    }
}

fn last_usage(fixture: &Fixture, key: &str) -> Value {
    let found = fixture.kms("GetKeyLastUsage", json!({ "KeyId": key })).unwrap();
    assert_eq!(found["TrackingStartDate"], found["KeyCreationDate"]);
    found["KeyLastUsage"].clone()
}

#[test]
fn the_last_use_of_a_key_is_the_event_of_it() {
    each_kind(|fixture, key, spec, usage| {
        assert_eq!(last_usage(fixture, key), json!({}));
        for (operation, body) in uses(fixture, key, spec, usage) {
            fixture.advance(1);
            fixture.kms(operation, body.clone()).unwrap();
            let event = fixture.events().pop().unwrap();
            let last = last_usage(fixture, key);
            assert_eq!(last["Operation"], operation);
            assert_eq!(last["CloudTrailEventId"], event["eventID"]);
            assert_eq!(last["KmsRequestId"], event["requestID"]);
            assert_eq!(last["Timestamp"], fixture.now.get());
            // A use that fails does not count.
            fixture.advance(1);
            let stranger = Who::stranger();
            fixture.kms_as(&stranger, operation, body).unwrap_err();
            assert_eq!(last_usage(fixture, key), last);
        }
    });
}

#[test]
fn every_use_asks_for_the_state() {
    each_kind(|fixture, key, spec, usage| {
        let all = uses(fixture, key, spec, usage);
        let id = json!({ "KeyId": key });
        let refused = |expected: &str, text: &str| {
            for (operation, body) in &all {
                for body in [body.clone(), with(body, json!({ "DryRun": true }))] {
                    let refused = fixture.kms(operation, body).unwrap_err();
                    assert_eq!(refused.code, expected, "{operation}");
                    assert!(refused.message.ends_with(text), "{}", refused.message);
                }
            }
        };
        fixture.kms("DisableKey", id.clone()).unwrap();
        refused("DisabledException", "is disabled.");
        fixture.kms("ScheduleKeyDeletion", id.clone()).unwrap();
        refused("KMSInvalidStateException", "is pending deletion.");
        fixture.kms("CancelKeyDeletion", id.clone()).unwrap();
        refused("DisabledException", "is disabled.");
        fixture.kms("EnableKey", id).unwrap();
        for (operation, body) in &all {
            fixture.kms(operation, body.clone()).unwrap();
        }
        let new = json!({
            "KeySpec": spec.name, "KeyUsage": usage.name(), "Origin": "EXTERNAL",
        });
        let empty = fixture.key(new);
        assert_eq!(fixture.state(&empty), "PendingImport");
        for (operation, body) in all.iter().filter(|(name, _)| *name != "ReEncrypt") {
            let body = with(body, json!({ "KeyId": empty }));
            // A ciphertext under another key is refused for that reason first.
            if *operation == "Decrypt" && spec.name == "SYMMETRIC_DEFAULT" {
                continue;
            }
            let refused = fixture.kms(operation, body).unwrap_err();
            assert_eq!(refused.code, "KMSInvalidStateException", "{operation}");
            assert!(refused.message.ends_with("is pending import."));
        }
        if !spec.is_symmetric() {
            let public = fixture.kms("GetPublicKey", json!({ "KeyId": empty }));
            assert_eq!(code(public), "KMSInvalidStateException");
        }
    });
}

#[test]
fn every_use_asks_for_the_usage() {
    let fixture = Fixture::new();
    let kinds = [
        ("SYMMETRIC_DEFAULT", KeyUsage::EncryptDecrypt),
        ("ML_DSA_44", KeyUsage::SignVerify),
        ("HMAC_256", KeyUsage::GenerateVerifyMac),
        ("ECC_NIST_P256", KeyUsage::KeyAgreement),
        ("ML_KEM_512", KeyUsage::EncapsulateDecapsulate),
    ];
    let keys = kinds.map(|(spec, usage)| {
        let spec = KeySpec::by_name(spec).unwrap();
        let key = fixture.key_of(spec.name, usage.name());
        let uses = uses(&fixture, &key, spec, usage);
        (usage, key, uses)
    });
    for (_, _, uses) in &keys {
        for (operation, body) in uses.iter().filter(|(name, _)| *name != "ReEncrypt") {
            for (usage, key, _) in keys.iter().filter(|(_, key, _)| body["KeyId"] != *key) {
                let refused =
                    fixture.kms(operation, with(body, json!({ "KeyId": key }))).unwrap_err();
                assert_eq!(refused.code, "InvalidKeyUsageException", "{operation}");
                let text = format!(
                    "{} key usage is {} which is not valid for {operation}.",
                    common::key_arn(common::ACCOUNT, common::REGION, key),
                    usage.name()
                );
                assert_eq!(refused.message, text);
            }
        }
    }
    let (_, symmetric, _) = &keys[0];
    let blob = fixture.encrypted(symmetric, b"x");
    for (_, key, _) in &keys[1..] {
        let body = json!({ "CiphertextBlob": blob, "DestinationKeyId": key });
        assert_eq!(code(fixture.kms("ReEncrypt", body)), "InvalidKeyUsageException");
    }
}

/// Each signature algorithm with each kind of message, and lengths next to the right one: the answer is a result or
/// the caller's error.
#[test]
fn every_signing_algorithm_takes_its_kinds_of_message() {
    let fixture = Fixture::new();
    for spec in specs(KeyUsage::SignVerify).filter(|spec| spec.name != "RSA_4096") {
        let key = fixture.key_of(spec.name, "SIGN_VERIFY");
        let public =
            unb64(&fixture.kms("GetPublicKey", json!({ "KeyId": key })).unwrap()["PublicKey"]);
        for row in spec.signing {
            let digest = row.digest.map(|name| Digest::by_name(name).unwrap());
            let is_ph = row.family == Family::Ed25519 && digest.is_some();
            let sign = |kind: &str, message: &[u8]| -> Answer {
                let body = json!({
                    "KeyId": key, "SigningAlgorithm": row.kms_name, "MessageType": kind,
                    "Message": b64(message),
                });
                let made = fixture.kms("Sign", body.clone())?;
                let check = with(&body, json!({ "Signature": made["Signature"] }));
                assert_eq!(fixture.kms("Verify", check).unwrap()["SignatureValid"], true);
                Ok(made)
            };
            let lengths = [1, 20, 32, 48, 63, 64, 65, 128];
            for len in lengths {
                let message = vec![9; len];
                let raw = sign("RAW", &message);
                assert_eq!(raw.is_ok(), !is_ph, "{} {len}", row.kms_name);
                let hashed = sign("DIGEST", &message);
                let fits = row.digest_len() == Some(len);
                assert_eq!(hashed.is_ok(), fits, "{} {len}", row.kms_name);
                let mu = sign("EXTERNAL_MU", &message);
                let fits = row.family == Family::MlDsa && len == 64;
                assert_eq!(mu.is_ok(), fits, "{} {len}", row.kms_name);
                for refused in [raw, hashed, mu].into_iter().filter_map(Result::err) {
                    assert_eq!(refused.code, "ValidationException", "{}", refused.message);
                }
            }
            // The holder of the public key alone arrives at the same result.
            let message = b"message".to_vec();
            let (kind, sent) = match digest.filter(|_| is_ph) {
                // "The input is hashed twice: once by you and once by KMS."
                Some(digest) => ("DIGEST", digest.digest(&message)),
                None => ("RAW", message),
            };
            let made = sign(kind, &sent).unwrap();
            row.verify(&public, Message::Raw(&sent), &unb64(&made["Signature"])).unwrap();
            assert_eq!(made["SigningAlgorithm"], row.kms_name);
        }
        let foreign = outlast_crypto::signatures::SIGNATURES
            .iter()
            .filter(|row| spec.signing_algorithm(row.kms_name).is_none());
        for row in foreign {
            let body =
                json!({ "KeyId": key, "SigningAlgorithm": row.kms_name, "Message": b64(b"m") });
            assert_eq!(code(fixture.kms("Sign", body)), "InvalidKeyUsageException");
        }
    }
}
