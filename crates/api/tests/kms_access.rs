//! Who may use a KMS key: key policies, identity policies, conditions.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{
    ACCOUNT, Fixture, OTHER_ACCOUNT, REGION, Who, allow, b64, code, key_arn, key_policy, policy,
    text, with,
};
use outlast_api::audit::TlsDetails;
use outlast_api::ops::kms;
use serde_json::{Value, json};

const DENIED: &str = "AccessDeniedException";

fn user_arn(name: &str) -> String {
    format!("arn:aws:iam::{ACCOUNT}:user/{name}")
}

fn with_policy(fixture: &Fixture, more: Value) -> String {
    fixture.key(json!({ "Policy": key_policy(more) }))
}

/// A statement of a key policy that lets a user call these actions on the key, under a condition.
fn lets(name: &str, actions: &[&str], condition: Value) -> Value {
    let mut statement = json!({
        "Effect": "Allow", "Principal": { "AWS": user_arn(name) }, "Action": actions,
        "Resource": "*",
    });
    if condition != json!({}) {
        statement["Condition"] = condition;
    }
    statement
}

fn encrypt(key: &str) -> Value {
    json!({ "KeyId": key, "Plaintext": b64(b"x") })
}

#[test]
fn a_user_without_policies_may_do_nothing_at_all() {
    let fixture = Fixture::new();
    let nobody = fixture.user(ACCOUNT, "nobody", &[]);
    let key = fixture.key(json!({ "MultiRegion": true }));
    let sign = fixture.key_of("ML_DSA_44", "SIGN_VERIFY");
    let mac = fixture.key_of("HMAC_256", "GENERATE_VERIFY_MAC");
    let agree = fixture.key_of("ECC_NIST_P256", "KEY_AGREEMENT");
    let kem = fixture.key_of("ML_KEM_512", "ENCAPSULATE_DECAPSULATE");
    let import = fixture.key(json!({ "Origin": "EXTERNAL" }));
    fixture.kms("CreateAlias", json!({ "AliasName": "alias/x", "TargetKeyId": key })).unwrap();
    let blob = fixture.encrypted(&key, b"x");
    let grant = json!({
        "KeyId": key, "GranteePrincipal": user_arn("admin"), "Operations": ["Decrypt"],
    });
    let grant_id = fixture.kms("CreateGrant", grant.clone()).unwrap()["GrantId"].clone();
    fixture.kms("ReplicateKey", json!({ "KeyId": key, "ReplicaRegion": "us-east-1" })).unwrap();
    let message = json!({ "Message": b64(b"m") });
    let of = |key: &str, more: Value| with(&json!({ "KeyId": key }), more);
    let signing = of(&sign, with(&message, json!({ "SigningAlgorithm": "ML_DSA_SHAKE_256" })));
    let macs = of(&mac, with(&message, json!({ "MacAlgorithm": "HMAC_SHA_256" })));
    let kems = of(&kem, json!({ "EncapsulationAlgorithm": "ML_KEM" }));
    let data_key = of(&key, json!({ "KeySpec": "AES_256" }));
    let pair = of(&key, json!({ "KeyPairSpec": "ECC_NIST_P256" }));
    let me = user_arn("nobody");
    let bodies = json!({
        "ConnectCustomKeyStore": { "CustomKeyStoreId": "cks-1" },
        "CreateAlias": { "AliasName": "alias/y", "TargetKeyId": key },
        "CreateCustomKeyStore": { "CustomKeyStoreName": "x" },
        "CreateGrant": grant,
        "CreateKey": {},
        "Decapsulate": with(&kems, json!({ "SharedSecretCiphertextBlob": b64(&[0; 768]) })),
        "Decrypt": { "CiphertextBlob": blob },
        "DeleteAlias": { "AliasName": "alias/x" },
        "DeleteCustomKeyStore": { "CustomKeyStoreId": "cks-1" },
        "DeleteImportedKeyMaterial": { "KeyId": import },
        "DeriveSharedSecret": of(&agree, json!({ "KeyAgreementAlgorithm": "ECDH", "PublicKey": b64(b"x") })),
        "DescribeCustomKeyStores": {},
        "DisconnectCustomKeyStore": { "CustomKeyStoreId": "cks-1" },
        "Encapsulate": kems,
        "Encrypt": encrypt(&key),
        "GenerateDataKey": data_key,
        "GenerateDataKeyPair": pair,
        "GenerateDataKeyPairWithoutPlaintext": pair,
        "GenerateDataKeyWithoutPlaintext": data_key,
        "GenerateMac": macs,
        "GenerateRandom": { "NumberOfBytes": 8 },
        "GetParametersForImport": of(&import, json!({ "WrappingAlgorithm": "RSAES_OAEP_SHA_256", "WrappingKeySpec": "RSA_2048" })),
        "GetPublicKey": { "KeyId": sign },
        "ImportKeyMaterial": of(&import, json!({ "ImportToken": b64(b"x"), "EncryptedKeyMaterial": b64(b"x"), "ExpirationModel": "KEY_MATERIAL_DOES_NOT_EXPIRE" })),
        "ListAliases": {},
        "ListKeys": {},
        "ListRetirableGrants": { "RetiringPrincipal": me },
        "PutKeyPolicy": of(&key, json!({ "Policy": key_policy(json!([])) })),
        "ReEncrypt": { "CiphertextBlob": blob, "DestinationKeyId": key },
        "ReplicateKey": of(&key, json!({ "ReplicaRegion": "us-west-2" })),
        "RetireGrant": of(&key, json!({ "GrantId": grant_id })),
        "RevokeGrant": of(&key, json!({ "GrantId": grant_id })),
        "Sign": signing,
        "TagResource": of(&key, json!({ "Tags": [] })),
        "UntagResource": of(&key, json!({ "TagKeys": [] })),
        "UpdateAlias": { "AliasName": "alias/x", "TargetKeyId": key },
        "UpdateCustomKeyStore": { "CustomKeyStoreId": "cks-1" },
        "UpdateKeyDescription": of(&key, json!({ "Description": "" })),
        "UpdatePrimaryRegion": of(&key, json!({ "PrimaryRegion": "us-east-1" })),
        "Verify": with(&signing, json!({ "Signature": b64(b"x") })),
        "VerifyMac": with(&macs, json!({ "Mac": b64(b"x") })),
    });
    let before = fixture.store_without_uses();
    let stranger = fixture.user(OTHER_ACCOUNT, "stranger", &[allow(&["kms:*"])]);
    for row in kms::OPERATIONS {
        // The other operations take a key and nothing else.
        let body = bodies.get(row.name).cloned().unwrap_or_else(|| json!({ "KeyId": key }));
        let refused = fixture.kms_as(&nobody, row.name, body.clone()).expect_err(row.name);
        assert_eq!(refused.code, DENIED, "{}: {}", row.name, refused.message);
        let says = refused.message.contains(&me) || row.name == "Decrypt";
        assert!(says, "{}", refused.message);
        // A user with every permission in another account has none on this one's keys.
        let name = body["KeyId"].as_str().map(|id| key_arn(ACCOUNT, REGION, id));
        if let Some(name) = name {
            let body = with(&body, json!({ "KeyId": name }));
            let refused = fixture.kms_as(&stranger, row.name, body).expect_err(row.name);
            assert_eq!(refused.code, DENIED, "{}: {}", row.name, refused.message);
        }
    }
    assert_eq!(fixture.store_without_uses(), before);
}

#[test]
fn policies_of_key_and_user_are_weighed_together() {
    let fixture = Fixture::new();
    let by_identity = fixture.user(ACCOUNT, "identity", &[allow(&["kms:Encrypt"])]);
    let by_key = fixture.user(ACCOUNT, "named", &[]);
    let deny = json!([
        { "Effect": "Allow", "Action": "kms:*", "Resource": "*" },
        { "Effect": "Deny", "Action": "kms:Encrypt", "Resource": "*" },
    ]);
    let denied = fixture.user(ACCOUNT, "denied", &[policy(deny)]);
    let usual = fixture.key(json!({}));
    assert!(fixture.kms_as(&by_identity, "Encrypt", encrypt(&usual)).is_ok());
    let refused =
        fixture.kms_as(&by_identity, "DisableKey", json!({ "KeyId": usual })).unwrap_err();
    assert_eq!(refused.code, DENIED);
    assert_eq!(
        refused.message,
        format!(
            "User: {} is not authorized to perform: kms:DisableKey on resource: {} because no \
             identity-based policy allows the kms:DisableKey action",
            user_arn("identity"),
            key_arn(ACCOUNT, REGION, &usual)
        )
    );
    assert_eq!(code(fixture.kms_as(&by_key, "Encrypt", encrypt(&usual))), DENIED);
    // A key policy that names the user suffices; a deny of either wins.
    let named = with_policy(
        &fixture,
        json!([lets("named", &["kms:Encrypt"], json!({})), lets("denied", &["kms:*"], json!({}))]),
    );
    assert!(fixture.kms_as(&by_key, "Encrypt", encrypt(&named)).is_ok());
    assert_eq!(code(fixture.kms_as(&by_key, "DescribeKey", json!({ "KeyId": named }))), DENIED);
    assert!(fixture.kms_as(&denied, "DescribeKey", json!({ "KeyId": named })).is_ok());
    let refused = fixture.kms_as(&denied, "Encrypt", encrypt(&named)).unwrap_err();
    assert!(refused.message.ends_with("with an explicit deny in an identity-based policy"));
    let key_denies = with_policy(
        &fixture,
        json!([{
            "Effect": "Deny", "Principal": { "AWS": user_arn("identity") }, "Action": "kms:Encrypt",
            "Resource": "*",
        }]),
    );
    let refused = fixture.kms_as(&by_identity, "Encrypt", encrypt(&key_denies)).unwrap_err();
    assert!(refused.message.ends_with("with an explicit deny in a key policy"));
    // Without the statement for the account, identity policies have no effect, not even the administrator's.
    let admin = json!({
        "Effect": "Allow", "Principal": { "AWS": user_arn("named") }, "Action": "kms:*",
        "Resource": "*",
    });
    let body = json!({
        "Policy": policy(json!([admin])).to_string(), "BypassPolicyLockoutSafetyCheck": true,
    });
    let closed = fixture.key(body);
    for who in [&by_identity, &Who::admin()] {
        assert_eq!(code(fixture.kms_as(who, "Encrypt", encrypt(&closed))), DENIED);
    }
    assert!(fixture.kms_as(&by_key, "DescribeKey", json!({ "KeyId": closed })).is_ok());
}

#[test]
fn accounts_use_each_others_keys_if_both_allow_it() {
    let fixture = Fixture::new();
    let other = format!("arn:aws:iam::{OTHER_ACCOUNT}:root");
    let key = with_policy(
        &fixture,
        json!([{
            "Effect": "Allow", "Principal": { "AWS": other },
            "Action": ["kms:Encrypt", "kms:Decrypt", "kms:DisableKey", "kms:CreateGrant"],
            "Resource": "*",
        }]),
    );
    let arn = key_arn(ACCOUNT, REGION, &key);
    let allowed = fixture.user(OTHER_ACCOUNT, "allowed", &[allow(&["kms:*"])]);
    let nobody = fixture.user(OTHER_ACCOUNT, "nobody", &[]);
    let made = fixture.kms_as(&allowed, "Encrypt", encrypt(&arn)).unwrap();
    let event = fixture.events().pop().unwrap();
    assert_eq!(event["resources"][0]["accountId"], ACCOUNT);
    assert_eq!(event["userIdentity"]["accountId"], OTHER_ACCOUNT);
    let open = json!({ "CiphertextBlob": made["CiphertextBlob"] });
    assert!(fixture.kms_as(&allowed, "Decrypt", open.clone()).is_ok());
    assert_eq!(code(fixture.kms_as(&nobody, "Encrypt", encrypt(&arn))), DENIED);
    assert_eq!(code(fixture.kms_as(&nobody, "Decrypt", open)), DENIED);
    assert_eq!(code(fixture.kms_as(&allowed, "Encrypt", encrypt(&key))), "NotFoundException");
    // Management stays with the account, whatever the policy says.
    let refused = fixture.kms_as(&allowed, "DisableKey", json!({ "KeyId": arn })).unwrap_err();
    assert_eq!(refused.code, DENIED);
    let alias = json!({ "AliasName": "alias/x", "TargetKeyId": arn });
    assert_eq!(code(fixture.kms_as(&allowed, "CreateAlias", alias)), DENIED);
}

#[test]
fn conditions_decide() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let check = |condition: Value, operation: &str, body: Value, expected: bool| {
        let action = format!("kms:{operation}");
        let key = with_policy(&fixture, json!([lets("user", &[&action], condition)]));
        let answer = fixture.kms_as(&user, operation, with(&body, json!({ "KeyId": key })));
        match answer {
            Ok(_) => assert!(expected, "{operation} {body}"),
            Err(refused) => assert_eq!((refused.code.as_str(), expected), (DENIED, false)),
        }
    };
    let text = json!({ "Plaintext": b64(b"x") });
    let team = json!({ "StringEquals": { "kms:EncryptionContext:team": "blue" } });
    for (context, expected) in [
        (json!({ "team": "blue" }), true),
        (json!({ "team": "blue", "more": "x" }), true),
        (json!({ "team": "red" }), false),
        (json!({ "other": "blue" }), false),
        (json!({}), false),
    ] {
        let body = with(&text, json!({ "EncryptionContext": context }));
        check(team.clone(), "Encrypt", body, expected);
    }
    let only = json!({
        "ForAllValues:StringEquals": { "kms:EncryptionContextKeys": ["a", "b"] },
        "Null": { "kms:EncryptionContextKeys": "false" },
    });
    for (context, expected) in [
        (json!({ "a": "1" }), true),
        (json!({ "a": "1", "b": "2" }), true),
        (json!({ "a": "1", "c": "2" }), false),
        (json!({ "A": "1" }), false),
        (json!({}), false),
    ] {
        let body = with(&text, json!({ "EncryptionContext": context }));
        check(only.clone(), "Encrypt", body, expected);
    }
    let algorithm = |name: &str| json!({ "StringEquals": { "kms:EncryptionAlgorithm": name } });
    check(algorithm("SYMMETRIC_DEFAULT"), "Encrypt", text.clone(), true);
    check(algorithm("RSAES_OAEP_SHA_256"), "Encrypt", text.clone(), false);
    let data_key = json!({ "KeySpec": "AES_256" });
    check(algorithm("SYMMETRIC_DEFAULT"), "GenerateDataKey", data_key, true);
    let pair = |name: &str| json!({ "StringEquals": { "kms:DataKeyPairSpec": name } });
    let body = json!({ "KeyPairSpec": "ECC_NIST_P256" });
    check(pair("ECC_NIST_P256"), "GenerateDataKeyPair", body.clone(), true);
    check(pair("RSA_2048"), "GenerateDataKeyPair", body, false);
    for (name, value, expected) in [
        ("kms:CallerAccount", ACCOUNT, true),
        ("kms:CallerAccount", OTHER_ACCOUNT, false),
        ("kms:KeySpec", "SYMMETRIC_DEFAULT", true),
        ("kms:KeyUsage", "SIGN_VERIFY", false),
        ("kms:KeyOrigin", "AWS_KMS", true),
        ("kms:MultiRegion", "true", false),
        ("aws:username", "user", true),
        ("aws:username", "admin", false),
        ("aws:PrincipalTag/team", "user", true),
        ("aws:PrincipalTag/team", "red", false),
        ("aws:RequestedRegion", REGION, true),
        ("aws:PrincipalArn", &user_arn("user"), true),
    ] {
        check(json!({ "StringEquals": { name: value } }), "Encrypt", text.clone(), expected);
    }
    let days =
        json!({ "NumericGreaterThanEquals": { "kms:ScheduleKeyDeletionPendingWindowInDays": 20 } });
    check(days.clone(), "ScheduleKeyDeletion", json!({ "PendingWindowInDays": 20 }), true);
    check(days, "ScheduleKeyDeletion", json!({ "PendingWindowInDays": 7 }), false);
    let tags = json!({
        "StringEquals": { "aws:RequestTag/team": "blue" },
        "ForAllValues:StringEquals": { "aws:TagKeys": ["team"] },
    });
    let tag = |name: &str, value: &str| json!({ "TagKey": name, "TagValue": value });
    check(tags.clone(), "TagResource", json!({ "Tags": [tag("team", "blue")] }), true);
    check(tags.clone(), "TagResource", json!({ "Tags": [tag("team", "red")] }), false);
    let both = json!({ "Tags": [tag("team", "blue"), tag("more", "x")] });
    check(tags, "TagResource", both, false);
}

#[test]
fn the_algorithm_of_a_signature_can_be_demanded() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let condition = json!({ "StringEquals": {
        "kms:SigningAlgorithm": "RSASSA_PSS_SHA_256", "kms:MessageType": "RAW",
    } });
    let key = fixture.key(json!({
        "KeySpec": "RSA_2048", "KeyUsage": "SIGN_VERIFY",
        "Policy": key_policy(json!([lets("user", &["kms:Sign"], condition)])),
    }));
    let sign = |name: &str, kind: &str| {
        let body = json!({
            "KeyId": key, "SigningAlgorithm": name, "Message": b64(&[1; 32]), "MessageType": kind,
        });
        fixture.kms_as(&user, "Sign", body)
    };
    assert!(sign("RSASSA_PSS_SHA_256", "RAW").is_ok());
    assert_eq!(code(sign("RSASSA_PSS_SHA_256", "DIGEST")), DENIED);
    assert_eq!(code(sign("RSASSA_PKCS1_V1_5_SHA_256", "RAW")), DENIED);
}

#[test]
fn re_encryption_authorizes_each_key_separately() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let is = |algorithm: &str, more: Value| json!({ "StringEquals": with(&json!({ "kms:EncryptionAlgorithm": algorithm }), more) });
    let from_context = json!({ "kms:EncryptionContext:a": "1" });
    let from = with_policy(
        &fixture,
        json!([lets("user", &["kms:ReEncryptFrom"], is("SYMMETRIC_DEFAULT", from_context))]),
    );
    let oaep = "RSAES_OAEP_SHA_256";
    let to = fixture.key(json!({
        "KeySpec": "RSA_2048", "KeyUsage": "ENCRYPT_DECRYPT",
        "Policy": key_policy(json!([lets("user", &["kms:ReEncryptTo"], is(oaep, json!({})))])),
    }));
    let body = with(&encrypt(&from), json!({ "EncryptionContext": { "a": "1" } }));
    let blob = fixture.kms("Encrypt", body).unwrap()["CiphertextBlob"].clone();
    let body = json!({
        "CiphertextBlob": blob, "SourceEncryptionContext": { "a": "1" }, "DestinationKeyId": to,
        "DestinationEncryptionAlgorithm": oaep,
    });
    fixture.kms_as(&user, "ReEncrypt", body.clone()).unwrap();
    // Permission to read does not include writing, nor the reverse.
    let back = with(
        &body,
        json!({ "DestinationKeyId": from, "DestinationEncryptionAlgorithm": "SYMMETRIC_DEFAULT" }),
    );
    assert_eq!(code(fixture.kms_as(&user, "ReEncrypt", back)), DENIED);
    let closed = fixture.encrypted(&fixture.key(json!({})), b"x");
    let body = with(&body, json!({ "CiphertextBlob": closed, "SourceEncryptionContext": {} }));
    assert_eq!(code(fixture.kms_as(&user, "ReEncrypt", body)), DENIED);
}

#[test]
fn aliases_tags_addresses_and_connections_can_be_demanded() {
    let fixture = Fixture::new();
    let user = |name: &str, condition: Value| {
        let statement = json!([{
            "Effect": "Allow", "Action": "kms:Encrypt", "Resource": "*", "Condition": condition,
        }]);
        fixture.user(ACCOUNT, name, &[policy(statement)])
    };
    let key = fixture.key(json!({ "Tags": [{ "TagKey": "Team", "TagValue": "blue" }] }));
    let plain = fixture.key(json!({}));
    for name in ["alias/app", "alias/second"] {
        fixture.kms("CreateAlias", json!({ "AliasName": name, "TargetKeyId": key })).unwrap();
    }
    let may = |who: &Who, key: &str| fixture.kms_as(who, "Encrypt", encrypt(key)).is_ok();
    let request = user("request", json!({ "StringEquals": { "kms:RequestAlias": "alias/app" } }));
    assert!(may(&request, "alias/app"));
    assert!(may(&request, &format!("arn:aws:kms:{REGION}:{ACCOUNT}:alias/app")));
    assert!(!may(&request, &key) && !may(&request, "alias/second") && !may(&request, &plain));
    let condition = json!({ "ForAnyValue:StringEquals": { "kms:ResourceAliases": "alias/app" } });
    let resource = user("resource", condition);
    assert!(may(&resource, &key) && may(&resource, "alias/second") && !may(&resource, &plain));
    let tagged = user("tagged", json!({ "StringEquals": { "aws:ResourceTag/Team": "blue" } }));
    assert!(may(&tagged, &key) && !may(&tagged, &plain));
    fixture.kms("UntagResource", json!({ "KeyId": key, "TagKeys": ["Team"] })).unwrap();
    assert!(!may(&tagged, &key), "what was permitted by a tag ends with it");

    let from = user("from", json!({ "IpAddress": { "aws:SourceIp": "192.0.2.0/24" } }));
    assert!(!may(&from, &key));
    assert!(may(&Who { source_ip: "192.0.2.7".into(), ..from.clone() }, &key));
    assert!(!may(&Who { source_ip: "2001:db8::1".into(), ..from }, &key));

    let groups = ["X25519MLKEM768", "SecP256r1MLKEM768", "SecP384r1MLKEM1024"];
    let quantum = user("quantum", json!({ "StringEquals": { "outlast:KeyExchange": groups } }));
    let over = |group: Option<&str>| Who {
        tls: Some(TlsDetails {
            version: "TLSv1.3".into(),
            cipher_suite: "TLS_AES_256_GCM_SHA384".into(),
            key_exchange: group.map(str::to_owned),
            ..TlsDetails::default()
        }),
        ..quantum.clone()
    };
    for group in groups {
        assert!(may(&over(Some(group)), &key));
    }
    assert!(!may(&over(Some("x25519")), &key) && !may(&over(None), &key) && !may(&quantum, &key));
    // The same for a key policy that leaves nobody a way in.
    let closed = with_policy(
        &fixture,
        json!([{
            "Effect": "Deny", "Principal": "*", "Action": "kms:Encrypt", "Resource": "*",
            "Condition": { "StringNotEquals": { "outlast:KeyExchange": groups } },
        }]),
    );
    assert_eq!(code(fixture.kms("Encrypt", encrypt(&closed))), DENIED);
    let admin = Who { tls: over(Some("X25519MLKEM768")).tls, ..Who::admin() };
    assert!(may(&admin, &closed));
}

#[test]
fn what_may_be_created_can_be_limited() {
    let fixture = Fixture::new();
    let user = |name: &str, condition: Value, actions: &[&str]| {
        let statement = json!([{
            "Effect": "Allow", "Action": actions, "Resource": "*", "Condition": condition,
        }]);
        fixture.user(ACCOUNT, name, &[policy(statement)])
    };
    let create =
        |who: &Who, body: Value| fixture.kms_as(who, "CreateKey", body).map_err(|e| e.code);
    let refused = Err(DENIED.to_owned());
    let spec =
        json!({ "StringEquals": { "kms:KeySpec": "ML_DSA_44", "kms:MultiRegion": "false" } });
    let pq = user("pq", spec, &["kms:CreateKey"]);
    let ml_dsa = json!({ "KeySpec": "ML_DSA_44", "KeyUsage": "SIGN_VERIFY" });
    assert!(create(&pq, ml_dsa.clone()).is_ok());
    assert_eq!(create(&pq, json!({})), refused);
    assert_eq!(create(&pq, with(&ml_dsa, json!({ "MultiRegion": true }))), refused);
    // Tags need a permission of their own.
    let tags = json!({ "Tags": [{ "TagKey": "team", "TagValue": "blue" }] });
    let untagged = user("untagged", json!({}), &["kms:CreateKey"]);
    assert!(create(&untagged, json!({})).is_ok());
    assert_eq!(create(&untagged, tags.clone()), refused);
    let condition = json!({ "StringEquals": { "aws:RequestTag/team": "blue" } });
    let tagged = user("tagged", condition, &["kms:CreateKey", "kms:TagResource"]);
    assert!(create(&tagged, tags).is_ok());
    assert_eq!(create(&tagged, json!({})), refused);
    // A policy that forbids keys in several regions forbids replicas, too.
    let statement = json!([
        { "Effect": "Allow", "Action": "kms:*", "Resource": "*" },
        { "Effect": "Deny", "Action": "kms:CreateKey", "Resource": "*",
          "Condition": { "Bool": { "kms:MultiRegion": "true" } } },
    ]);
    let local = fixture.user(ACCOUNT, "local", &[policy(statement)]);
    let key = fixture.key(json!({ "MultiRegion": true }));
    let body = json!({ "KeyId": key, "ReplicaRegion": "us-east-1" });
    assert_eq!(code(fixture.kms_as(&local, "ReplicateKey", body.clone())), DENIED);
    assert!(fixture.kms("ReplicateKey", body).is_ok());
}

#[test]
fn a_primary_region_moves_if_both_keys_allow_it() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({ "MultiRegion": true }));
    let deny = json!([{
        "Effect": "Deny", "Principal": "*", "Action": "kms:UpdatePrimaryRegion", "Resource": "*",
    }]);
    let body = json!({ "KeyId": key, "ReplicaRegion": "us-east-1", "Policy": key_policy(deny) });
    fixture.kms("ReplicateKey", body).unwrap();
    let body = json!({ "KeyId": key, "PrimaryRegion": "us-east-1" });
    assert_eq!(code(fixture.kms("UpdatePrimaryRegion", body.clone())), DENIED);
    let open = json!({ "KeyId": key, "Policy": key_policy(json!([])) });
    fixture.kms_as(&Who::admin().at("us-east-1"), "PutKeyPolicy", open).unwrap();
    assert!(fixture.kms("UpdatePrimaryRegion", body).is_ok());
}

#[test]
fn nobody_locks_a_key_up_by_accident() {
    let fixture = Fixture::new();
    fixture.user(ACCOUNT, "nobody", &[]);
    let key = fixture.key(json!({}));
    let put = |policy: &str, bypass: bool| {
        let body = json!({
            "KeyId": key, "Policy": policy, "BypassPolicyLockoutSafetyCheck": bypass,
        });
        fixture.kms("PutKeyPolicy", body)
    };
    let nobody = policy(json!([lets("nobody", &["kms:*"], json!({}))])).to_string();
    let malformed = "MalformedPolicyDocumentException";
    let refused = put(&nobody, false).unwrap_err();
    assert_eq!(refused.code, malformed);
    let expected = "The new key policy will not allow you to update the key policy in the future.";
    assert_eq!(refused.message, expected);
    assert_eq!(code(fixture.kms("CreateKey", json!({ "Policy": nobody }))), malformed);
    let local = json!({ "StringEquals": { "kms:CallerAccount": ACCOUNT } });
    let mine = json!({ "Policy": policy(json!([lets("admin", &["kms:*"], local)])).to_string() });
    fixture.key(mine);
    for wrong in [
        "{}",
        "no json",
        "[]",
        r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#,
        r#"{"Version":"2012-10-17","Statement":[{"Effect":"Perhaps","Principal":"*","Action":"*","Resource":"*"}]}"#,
        r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Extra":1}]}"#,
        r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{"StringIs":{"a:b":"c"}}}]}"#,
    ] {
        for bypass in [false, true] {
            assert_eq!(code(put(wrong, bypass)), malformed, "{wrong}");
        }
    }
    // A statement without Resource has no effect, so it lets nobody in.
    let for_nothing = policy(json!([{ "Effect": "Allow", "Principal": "*", "Action": "*" }]));
    assert_eq!(put(&for_nothing.to_string(), false).unwrap_err().message, expected);
    let before = fixture.kms("GetKeyPolicy", json!({ "KeyId": key })).unwrap();
    assert!(text(&before["Policy"]).contains("Enable IAM User Permissions"));
    assert_eq!(
        fixture.kms("ListKeyPolicies", json!({ "KeyId": key })).unwrap()["PolicyNames"],
        json!(["default"])
    );
    let new = key_policy(json!([]));
    put(&new, false).unwrap();
    assert_eq!(fixture.kms("GetKeyPolicy", json!({ "KeyId": key })).unwrap()["Policy"], new);
    let other = json!({ "KeyId": key, "Policy": new, "PolicyName": "other" });
    assert_eq!(code(fixture.kms("PutKeyPolicy", other)), "NotFoundException");
    // A condition can deny everybody the bypass.
    let statement = json!([
        { "Effect": "Allow", "Action": "kms:*", "Resource": "*" },
        { "Effect": "Deny", "Action": ["kms:CreateKey", "kms:PutKeyPolicy"], "Resource": "*",
          "Condition": { "Bool": { "kms:BypassPolicyLockoutSafetyCheck": "true" } } },
    ]);
    let careful = fixture.user(ACCOUNT, "careful", &[policy(statement)]);
    let body = json!({ "KeyId": key, "Policy": nobody, "BypassPolicyLockoutSafetyCheck": true });
    assert_eq!(code(fixture.kms_as(&careful, "PutKeyPolicy", body)), DENIED);
    put(&nobody, true).unwrap();
    assert_eq!(code(fixture.kms("DescribeKey", json!({ "KeyId": key }))), DENIED);
}

#[test]
fn unevaluable_policy_denies_and_the_event_says_why() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[allow(&["kms:*"])]);
    let patterns = vec!["*?b*"; 4500];
    let deny = json!({
        "Effect": "Deny", "Principal": "*", "Action": "kms:Encrypt", "Resource": "*",
        "Condition": { "StringLike": { "aws:UserAgent": patterns } },
    });
    let key = with_policy(&fixture, json!([deny]));
    let body = json!({ "KeyId": key, "Plaintext": b64(b"x") }).to_string();
    let call = |agent: &str| {
        let mut headers = http::HeaderMap::new();
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        headers.insert("x-amz-target", "TrentService.Encrypt".parse().unwrap());
        headers.insert("user-agent", agent.parse().unwrap());
        fixture.request(&user, "kms", headers, body.as_bytes()).status
    };
    assert_eq!(call("aws-sdk-rust/1.3"), 200);
    for (agent, why) in [
        ("a".repeat(1024), "it takes more than 1048576 steps"),
        ("a".repeat(60_000), "it asks for aws:useragent, whose value is longer than 1024 bytes"),
    ] {
        assert_eq!(call(&agent), 400);
        let event = fixture.events().pop().unwrap();
        assert_eq!(event["errorCode"], DENIED);
        let message = text(&event["errorMessage"]);
        assert!(message.contains("a key policy could not be evaluated"), "{message}");
        assert!(message.contains(why), "{message}");
    }
    // A grant does not help either: nobody knows what the policy would have denied.
    let grant = json!({
        "KeyId": key, "GranteePrincipal": user_arn("user"), "Operations": ["Encrypt"],
    });
    fixture.kms("CreateGrant", grant).unwrap();
    assert_eq!(call(&"a".repeat(1024)), 400);
}
