//! KMS: keys, states, aliases, and every kind of use.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{Fixture, NOW};
use outlast_api::ops::kms::{
    cancel_key_deletion, create_alias, create_key, decrypt, delete_alias, describe_key,
    disable_key, enable_key, encrypt, generate_data_key, get_public_key, list_aliases, list_keys,
    list_resource_tags, schedule_key_deletion, sign, tag_resource, untag_resource, verify,
};
use outlast_crypto::digests::Digest;
use outlast_crypto::keys::{KEY_SPECS, KeyUsage, ml_dsa};
use outlast_crypto::signatures::Family;
use outlast_store::Store;
use serde_json::{Value, json};

fn input<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn b64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn create(fixture: &Fixture, spec: &str, usage: &str) -> String {
    let new = input(json!({ "KeySpec": spec, "KeyUsage": usage }));
    fixture.call::<create_key::CreateKey>(&new).unwrap().key_metadata.key_id
}

#[test]
fn every_key_spec_can_be_created_and_described() {
    let fixture = Fixture::new();
    for spec in KEY_SPECS {
        for usage in spec.usages {
            let new = input(json!({
                "KeySpec": spec.name, "KeyUsage": usage.name(), "Description": "d",
                "Tags": [{ "TagKey": "a", "TagValue": "b" }],
            }));
            let made = fixture.call::<create_key::CreateKey>(&new).unwrap().key_metadata;
            assert_eq!((made.key_spec.as_str(), made.key_state.as_str()), (spec.name, "Enabled"));
            assert_eq!(made.signing_algorithms.is_some(), *usage == KeyUsage::SignVerify);
            assert_eq!(made.mac_algorithms.is_some(), *usage == KeyUsage::GenerateVerifyMac);
            let describe = input(json!({ "KeyId": made.arn }));
            let found = fixture.call::<describe_key::DescribeKey>(&describe).unwrap().key_metadata;
            assert_eq!(serde_json::to_value(&found).unwrap(), serde_json::to_value(&made).unwrap());
        }
    }
    for wrong in [
        json!({ "KeySpec": "ML_DSA_65" }),
        json!({ "KeySpec": "ML_DSA_65", "KeyUsage": "ENCRYPT_DECRYPT" }),
        json!({ "KeySpec": "NOTHING" }),
        json!({ "KeyUsage": "NOTHING" }),
        json!({ "KeySpec": "RSA_2048", "CustomerMasterKeySpec": "RSA_2048" }),
    ] {
        assert_eq!(fixture.error::<create_key::CreateKey>(&input(wrong)), "ValidationException");
    }
    for (refused, code) in [
        (json!({ "Policy": "{}" }), "MalformedPolicyDocumentException"),
        (json!({ "Origin": "EXTERNAL_KEY_STORE" }), "ValidationException"),
        (json!({ "CustomKeyStoreId": "cks-1" }), "CustomKeyStoreNotFoundException"),
    ] {
        assert_eq!(fixture.error::<create_key::CreateKey>(&input(refused)), code);
    }
    // A member that no type here has.
    let response =
        fixture.send(&fixture.raw("kms", "TrentService.CreateKey", br#"{"XksKeyId":"x"}"#));
    assert_eq!(common::error_code(&response), "UnsupportedOperationException");
}

#[test]
fn ml_dsa_signs_raw_messages_and_external_mu() {
    let fixture = Fixture::new();
    for (spec, len) in [("ML_DSA_44", 2420), ("ML_DSA_65", 3309), ("ML_DSA_87", 4627)] {
        let key = create(&fixture, spec, "SIGN_VERIFY");
        let public = input(json!({ "KeyId": key }));
        let spki = fixture.call::<get_public_key::GetPublicKey>(&public).unwrap().public_key.0;
        let message = vec![7; 4096];
        let mu = ml_dsa::external_mu(&spki, &message).unwrap();
        for (kind, body) in [("RAW", message.as_slice()), ("EXTERNAL_MU", mu.as_slice())] {
            let request = json!({
                "KeyId": key, "Message": b64(body), "MessageType": kind,
                "SigningAlgorithm": "ML_DSA_SHAKE_256",
            });
            let made = fixture.call::<sign::Sign>(&input(request)).unwrap().signature.0;
            assert_eq!(made.len(), len);
            for (kind, body) in [("RAW", message.as_slice()), ("EXTERNAL_MU", mu.as_slice())] {
                let check = |signature: &[u8]| {
                    let request = json!({
                        "KeyId": key, "Message": b64(body), "MessageType": kind,
                        "Signature": b64(signature), "SigningAlgorithm": "ML_DSA_SHAKE_256",
                    });
                    fixture.call::<verify::Verify>(&input(request))
                };
                assert!(check(&made).unwrap().signature_valid);
                let mut bad = made.clone();
                bad[100] ^= 1;
                let error = check(&bad).err().unwrap();
                assert_eq!(error.code, "KMSInvalidSignatureException");
                assert_eq!(error.message, "");
            }
        }
        for (kind, len) in [("DIGEST", 64), ("EXTERNAL_MU", 63), ("RAW", 4097), ("RAW", 0)] {
            let request = json!({
                "KeyId": key, "Message": b64(&vec![0; len]), "MessageType": kind,
                "SigningAlgorithm": "ML_DSA_SHAKE_256",
            });
            assert_eq!(
                fixture.error::<sign::Sign>(&input(request)),
                "ValidationException",
                "{kind}"
            );
        }
    }
}

#[test]
fn every_signing_algorithm_signs_and_verifies() {
    let fixture = Fixture::new();
    for spec in KEY_SPECS.iter().filter(|spec| !spec.signing.is_empty()) {
        let key = create(&fixture, spec.name, "SIGN_VERIFY");
        for row in spec.signing {
            let request = |extra: Value| {
                let mut request = json!({
                    "KeyId": key, "Message": b64(b"message"), "SigningAlgorithm": row.kms_name,
                });
                request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
                request
            };
            if row.family == Family::Ed25519 && row.digest.is_some() {
                // Ed25519ph takes digests only; kms_use.rs tests the rest.
                let code = fixture.error::<sign::Sign>(&input(request(json!({}))));
                assert_eq!(code, "ValidationException");
                continue;
            }
            let made = fixture.call::<sign::Sign>(&input(request(json!({})))).unwrap();
            let signature = b64(&made.signature.0);
            let check = request(json!({ "Signature": signature }));
            assert!(fixture.call::<verify::Verify>(&input(check)).unwrap().signature_valid);
            if let Some(name) = row.digest {
                let digest = Digest::by_name(name).unwrap().digest(b"message");
                let check = json!({
                    "KeyId": key, "Message": b64(&digest), "MessageType": "DIGEST",
                    "Signature": signature, "SigningAlgorithm": row.kms_name,
                });
                fixture.call::<verify::Verify>(&input(check)).unwrap();
            }
            let dry = request(json!({ "DryRun": true }));
            assert_eq!(fixture.error::<sign::Sign>(&input(dry)), "DryRunOperationException");
        }
        let wrong = json!({
            "KeyId": key, "Message": b64(b"message"),
            "SigningAlgorithm":
                if spec.name.starts_with("RSA") { "ECDSA_SHA_256" } else { "RSASSA_PSS_SHA_256" },
        });
        assert_eq!(fixture.error::<sign::Sign>(&input(wrong)), "InvalidKeyUsageException");
    }
    let symmetric = create(&fixture, "SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT");
    let request = json!({
        "KeyId": symmetric, "Message": b64(b"message"), "SigningAlgorithm": "ML_DSA_SHAKE_256",
    });
    let error = fixture.call::<sign::Sign>(&input(request)).err().unwrap();
    assert_eq!(error.code, "InvalidKeyUsageException");
    assert!(error.message.ends_with("key usage is ENCRYPT_DECRYPT which is not valid for Sign."));
    let public = json!({ "KeyId": symmetric });
    let code = fixture.error::<get_public_key::GetPublicKey>(&input(public));
    assert_eq!(code, "UnsupportedOperationException");
}

#[test]
fn encryption_authenticates_its_context_and_its_key() {
    let fixture = Fixture::new();
    let key = create(&fixture, "SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT");
    let other = create(&fixture, "SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT");
    let request = json!({
        "KeyId": key, "Plaintext": b64(b"secret"), "EncryptionContext": { "a": "1", "b": "2" },
    });
    let made = fixture.call::<encrypt::Encrypt>(&input(request)).unwrap();
    let blob = made.ciphertext_blob.0;
    let open = |blob: &[u8], extra: Value| {
        let mut request = json!({ "CiphertextBlob": b64(blob) });
        request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        fixture.call::<decrypt::Decrypt>(&input(request)).map_err(|error| error.code)
    };
    let context = json!({ "EncryptionContext": { "b": "2", "a": "1" } });
    let opened = open(&blob, context.clone()).unwrap();
    assert_eq!(opened.plaintext.0, b"secret");
    assert!(opened.key_material_id.is_some());
    let refused = |outcome: Result<decrypt::Output, String>, code: &str| {
        assert_eq!(outcome.err().as_deref(), Some(code));
    };
    refused(open(&blob, json!({})), "InvalidCiphertextException");
    refused(
        open(&blob, json!({ "EncryptionContext": { "a": "1b", "2": "" } })),
        "InvalidCiphertextException",
    );
    for at in 0..blob.len() {
        let mut bad = blob.clone();
        bad[at] ^= 1;
        // With a changed kind, account or key id it names a key that does not exist.
        let names_another_key = at < 22;
        let code =
            if names_another_key { "AccessDeniedException" } else { "InvalidCiphertextException" };
        refused(open(&bad, context.clone()), code);
    }
    for len in [1, 16, 17, 48, 49, blob.len() - 1] {
        refused(open(&blob[..len], context.clone()), "InvalidCiphertextException");
    }
    let with_key = |key: &str| json!({ "KeyId": key, "EncryptionContext": { "a": "1", "b": "2" } });
    assert!(open(&blob, with_key(&key)).is_ok());
    refused(open(&blob, with_key(&other)), "IncorrectKeyException");
    // Another account's key must allow it.
    let stranger = common::client("AKIAOTHER", "eu-west-1");
    let request = json!({
        "CiphertextBlob": b64(&blob), "EncryptionContext": { "a": "1", "b": "2" },
    });
    let error = fixture.call_as::<decrypt::Decrypt>(&stranger, &input(request)).err().unwrap();
    assert_eq!(error.code, "AccessDeniedException");

    let data_key = json!({ "KeyId": key, "KeySpec": "AES_128", "EncryptionContext": { "x": "y" } });
    let made = fixture.call::<generate_data_key::GenerateDataKey>(&input(data_key)).unwrap();
    assert_eq!(made.plaintext.0.len(), 16);
    let context = json!({ "EncryptionContext": { "x": "y" } });
    let opened = open(&made.ciphertext_blob.0, context).unwrap();
    assert_eq!(opened.plaintext.0, made.plaintext.0);
    for wrong in [
        json!({ "KeyId": key }),
        json!({ "KeyId": key, "KeySpec": "AES_256", "NumberOfBytes": 32 }),
        json!({ "KeyId": key, "NumberOfBytes": 0 }),
        json!({ "KeyId": key, "NumberOfBytes": 1025 }),
    ] {
        let code = fixture.error::<generate_data_key::GenerateDataKey>(&input(wrong));
        assert_eq!(code, "ValidationException");
    }
    let event = fixture.events().pop().unwrap();
    assert_eq!(event["eventName"], "GenerateDataKey");
    let all = serde_json::to_string(&fixture.events()).unwrap();
    assert!(!all.contains(&b64(b"secret")) && !all.contains(&b64(&made.plaintext.0)));
}

#[test]
fn rsa_encrypts_with_oaep() {
    let fixture = Fixture::new();
    let key = create(&fixture, "RSA_2048", "ENCRYPT_DECRYPT");
    for name in ["RSAES_OAEP_SHA_1", "RSAES_OAEP_SHA_256"] {
        let request =
            json!({ "KeyId": key, "Plaintext": b64(b"secret"), "EncryptionAlgorithm": name });
        let blob = fixture.call::<encrypt::Encrypt>(&input(request)).unwrap().ciphertext_blob.0;
        let request = json!({
            "KeyId": key, "CiphertextBlob": b64(&blob), "EncryptionAlgorithm": name,
        });
        let opened = fixture.call::<decrypt::Decrypt>(&input(request)).unwrap();
        assert_eq!(opened.plaintext.0, b"secret");
        let long = json!({
            "KeyId": key, "Plaintext": b64(&[0; 250]), "EncryptionAlgorithm": name,
        });
        assert_eq!(fixture.error::<encrypt::Encrypt>(&input(long)), "ValidationException");
        let context = json!({
            "KeyId": key, "Plaintext": b64(b"x"), "EncryptionAlgorithm": name,
            "EncryptionContext": { "a": "b" },
        });
        assert_eq!(fixture.error::<encrypt::Encrypt>(&input(context)), "ValidationException");
    }
    let request = json!({ "KeyId": key, "Plaintext": b64(b"x") });
    assert_eq!(fixture.error::<encrypt::Encrypt>(&input(request)), "InvalidKeyUsageException");
}

#[test]
fn states_are_enforced() {
    let fixture = Fixture::new();
    let key = create(&fixture, "SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT");
    let id = || json!({ "KeyId": key });
    let data_key = || input(json!({ "KeyId": key, "KeySpec": "AES_256" }));
    let use_it =
        || fixture.call::<generate_data_key::GenerateDataKey>(&data_key()).map_err(|e| e.code);
    assert!(use_it().is_ok());
    fixture.call::<disable_key::DisableKey>(&input(id())).unwrap();
    assert_eq!(use_it().err().unwrap(), "DisabledException");
    fixture.call::<enable_key::EnableKey>(&input(id())).unwrap();
    assert!(use_it().is_ok());
    for days in [6, 31, 0, -1] {
        let request = json!({ "KeyId": key, "PendingWindowInDays": days });
        let code = fixture.error::<schedule_key_deletion::ScheduleKeyDeletion>(&input(request));
        assert_eq!(code, "ValidationException");
    }
    let code = fixture.error::<cancel_key_deletion::CancelKeyDeletion>(&input(id()));
    assert_eq!(code, "KMSInvalidStateException");
    let request = json!({ "KeyId": key, "PendingWindowInDays": 7 });
    let scheduled =
        fixture.call::<schedule_key_deletion::ScheduleKeyDeletion>(&input(request)).unwrap();
    assert_eq!(scheduled.deletion_date.unwrap().ms, (NOW + 7 * 86_400) * 1000);
    assert_eq!(use_it().err().unwrap(), "KMSInvalidStateException");
    assert_eq!(fixture.error::<enable_key::EnableKey>(&input(id())), "KMSInvalidStateException");
    assert_eq!(fixture.error::<disable_key::DisableKey>(&input(id())), "KMSInvalidStateException");
    let alias = json!({ "AliasName": "alias/x", "TargetKeyId": key });
    let code = fixture.error::<create_alias::CreateAlias>(&input(alias));
    assert_eq!(code, "KMSInvalidStateException");
    fixture.call::<cancel_key_deletion::CancelKeyDeletion>(&input(id())).unwrap();
    assert_eq!(use_it().err().unwrap(), "DisabledException");
    let request = json!({ "KeyId": key, "PendingWindowInDays": 7 });
    fixture.call::<schedule_key_deletion::ScheduleKeyDeletion>(&input(request)).unwrap();

    // After its date the key is unusable at once, and the sweep erases the material.
    fixture.now.set(NOW + 8 * 86_400);
    assert_eq!(fixture.error::<describe_key::DescribeKey>(&input(id())), "NotFoundException");
    assert_eq!(fixture.store.scan("kms/material/", "", 10).unwrap().len(), 1);
    fixture.service.run_housekeeping(NOW * 1000).unwrap();
    assert_eq!(fixture.store.scan("kms/material/", "", 10).unwrap().len(), 1, "too early");
    fixture.service.run_housekeeping((NOW + 8 * 86_400) * 1000).unwrap();
    assert!(fixture.store.scan("kms/", "", 10).unwrap().is_empty());
    let event = fixture.events().pop().unwrap();
    assert_eq!(event["eventName"], "DeleteKey");
    assert_eq!(event["eventType"], "AwsServiceEvent");
}

#[test]
fn aliases_name_keys() {
    let fixture = Fixture::new();
    let key = create(&fixture, "SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT");
    let other = create(&fixture, "SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT");
    let make = |name: &str, target: &str| {
        let request = json!({ "AliasName": name, "TargetKeyId": target });
        fixture.call::<create_alias::CreateAlias>(&input(request)).map_err(|error| error.code)
    };
    for name in ["alias/a", "alias/b/c", "alias/z_-9"] {
        make(name, &key).unwrap();
    }
    make("alias/other", &other).unwrap();
    assert_eq!(make("alias/a", &other).err().unwrap(), "AlreadyExistsException");
    assert_eq!(make("x", &key).err().unwrap(), "ValidationException");
    assert_eq!(make("alias/", &key).err().unwrap(), "InvalidAliasNameException");
    assert_eq!(make("alias/aws/x", &key).err().unwrap(), "NotAuthorizedException");
    assert_eq!(make("alias/sp ace", &key).err().unwrap(), "ValidationException");
    assert_eq!(make("alias/y", "alias/a").err().unwrap(), "ValidationException");
    for name in ["alias/a".to_owned(), format!("arn:aws:kms:eu-west-1:{}:alias/a", common::ACCOUNT)]
    {
        let found =
            fixture.call::<describe_key::DescribeKey>(&input(json!({ "KeyId": name }))).unwrap();
        assert_eq!(found.key_metadata.key_id, key);
    }
    let list = |request: Value| fixture.call::<list_aliases::ListAliases>(&input(request)).unwrap();
    let of_key = list(json!({ "KeyId": key, "Limit": 2 }));
    assert_eq!((of_key.aliases.len(), of_key.truncated), (2, true));
    let rest = list(json!({ "KeyId": key, "Limit": 2, "Marker": of_key.next_marker }));
    assert_eq!((rest.aliases.len(), rest.truncated, rest.next_marker), (1, false, None));
    assert_eq!(list(json!({})).aliases.len(), 4);
    let delete = json!({ "AliasName": "alias/a" });
    fixture.call::<delete_alias::DeleteAlias>(&input(delete.clone())).unwrap();
    assert_eq!(fixture.error::<delete_alias::DeleteAlias>(&input(delete)), "NotFoundException");
    assert_eq!(list(json!({ "KeyId": key })).aliases.len(), 2);
    for number in 0..48 {
        make(&format!("alias/many-{number}"), &key).unwrap();
    }
    assert_eq!(make("alias/one-more", &key).err().unwrap(), "LimitExceededException");
}

#[test]
fn lists_come_in_pages() {
    let fixture = Fixture::new();
    for _ in 0..5 {
        create(&fixture, "SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT");
    }
    let mut seen = Vec::new();
    let mut marker: Option<String> = None;
    loop {
        let request = json!({ "Limit": 2, "Marker": marker });
        let page = fixture.call::<list_keys::ListKeys>(&input(request)).unwrap();
        seen.extend(page.keys.into_iter().map(|key| key.key_id));
        assert_eq!(page.truncated, page.next_marker.is_some());
        marker = page.next_marker;
        if marker.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.is_sorted());
    for (request, code) in [
        (json!({ "Limit": 0 }), "ValidationException"),
        (json!({ "Limit": 1001 }), "ValidationException"),
        (json!({ "Marker": "not a marker!" }), "InvalidMarkerException"),
    ] {
        assert_eq!(fixture.error::<list_keys::ListKeys>(&input(request)), code);
    }
}

#[test]
fn tags_are_added_and_listed() {
    let fixture = Fixture::new();
    let key = create(&fixture, "SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT");
    let tag = |tags: Value| {
        let request = json!({ "KeyId": key, "Tags": tags });
        fixture.call::<tag_resource::TagResource>(&input(request)).map_err(|error| error.code)
    };
    tag(json!([{ "TagKey": "b", "TagValue": "1" }, { "TagKey": "a", "TagValue": "" }])).unwrap();
    tag(json!([{ "TagKey": "b", "TagValue": "2" }])).unwrap();
    let list = fixture
        .call::<list_resource_tags::ListResourceTags>(&input(json!({ "KeyId": key })))
        .unwrap();
    let pairs: Vec<_> =
        list.tags.iter().map(|tag| (tag.tag_key.as_str(), tag.tag_value.as_str())).collect();
    assert_eq!(pairs, [("a", ""), ("b", "2")]);
    // A page may end with any tag key.
    tag(json!([{ "TagKey": "\u{e9}\u{4e2d}", "TagValue": "" }, { "TagKey": "\u{ff5e}", "TagValue": "" }]))
        .unwrap();
    let mut marker = None;
    let mut seen = Vec::new();
    loop {
        let request = json!({ "KeyId": key, "Limit": 1, "Marker": marker });
        let page = fixture.call::<list_resource_tags::ListResourceTags>(&input(request)).unwrap();
        seen.extend(page.tags.into_iter().map(|tag| tag.tag_key));
        marker = page.next_marker;
        if marker.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["a", "b", "\u{e9}\u{4e2d}", "\u{ff5e}"]);
    let names = input(json!({ "KeyId": key, "TagKeys": ["\u{e9}\u{4e2d}", "\u{ff5e}"] }));
    fixture.call::<untag_resource::UntagResource>(&names).unwrap();
    let twice = json!([{ "TagKey": "x", "TagValue": "1" }, { "TagKey": "x", "TagValue": "2" }]);
    for (wrong, code) in [
        (twice, "TagException"),
        (json!([{ "TagKey": "aws:x", "TagValue": "1" }]), "TagException"),
        (json!([{ "TagKey": "", "TagValue": "1" }]), "ValidationException"),
        (json!([{ "TagKey": "x", "TagValue": "y".repeat(257) }]), "ValidationException"),
    ] {
        assert_eq!(tag(wrong).err().unwrap(), code);
    }
    let many: Vec<_> =
        (0..49).map(|n| json!({ "TagKey": format!("k{n}"), "TagValue": "" })).collect();
    assert_eq!(tag(json!(many)).err().unwrap(), "TagException");
}

#[test]
fn names_of_keys_that_are_not_there() {
    let fixture = Fixture::new();
    let unknown = "11111111-2222-3333-4444-555555555555";
    for (name, code, text) in [
        (unknown, "NotFoundException", "does not exist"),
        ("x", "NotFoundException", "Invalid keyId 'x'"),
        ("key/x", "NotFoundException", "Invalid keyId"),
        ("alias/none", "NotFoundException", "is not found."),
        ("arn:aws:s3:::x", "InvalidArnException", "Invalid arn"),
        ("arn:nonsense", "InvalidArnException", "Invalid arn"),
        ("arn:aws:kms:us-west-2:123456789012:key/x", "NotFoundException", "Invalid arn us-west-2"),
        ("\u{e9}\u{e9}", "NotFoundException", "Invalid keyId"),
        ("", "ValidationException", "length greater"),
    ] {
        let error = fixture
            .call::<describe_key::DescribeKey>(&input(json!({ "KeyId": name })))
            .err()
            .unwrap();
        assert_eq!(error.code, code, "{name}");
        assert!(error.message.contains(text), "{name}: {}", error.message);
    }
}

/// The public key is RFC 9881's SubjectPublicKeyInfo: 22 bytes and the key.
#[test]
fn public_keys_have_the_documented_lengths() {
    let fixture = Fixture::new();
    for (spec, len) in [("ML_DSA_44", 1312), ("ML_DSA_65", 1952), ("ML_DSA_87", 2592)] {
        let key = create(&fixture, spec, "SIGN_VERIFY");
        let found =
            fixture.call::<get_public_key::GetPublicKey>(&input(json!({ "KeyId": key }))).unwrap();
        assert_eq!(found.public_key.0.len(), 22 + len);
    }
}
