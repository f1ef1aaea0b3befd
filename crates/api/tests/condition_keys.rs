//! Condition keys: each key that a row claims is set, with the value it should have; no others are.
//!
//! A `Deny` with the key is tried on a call: it must refuse the call with the call's value, and not with another;
//! `Null` must find the key. `docs/condition-keys.md` is made from the same rows; `OUTLAST_BLESS=1` writes it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::acme_support;
use crate::common;
use crate::condition_support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use acme_support::world::{World, call};
use common::authorities::{leaf_body, leaf_request};
use common::{ACCOUNT, NOW, Who, b64, key_policy, policy};
use condition_support::*;
use outlast_domain::policy::{KEYS, KeyKind, KeyRow, Set};
use serde_json::{Value, json};

/// A key, the value that a call has, a value that it does not have, and the call.
type Case = (&'static str, &'static str, &'static str, Denied);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("aws:PrincipalArn", "arn:aws:iam::123456789012:user/u*", "arn:aws:iam::123456789012:user/v*", list_keys),
    ("aws:PrincipalArn", "arn:aws:iam::123456789012:role/r*", "arn:aws:sts::123456789012:assumed-role/*", list_keys_in_session),
    ("aws:PrincipalAccount", "123456789012", "210987654321", list_keys),
    ("aws:PrincipalTag/Team", "u*", "v*", list_keys),
    ("aws:PrincipalIsAWSService", "false", "true", list_keys),
    ("aws:PrincipalIsAWSService", "true", "false", bind_for_service),
    ("aws:PrincipalServiceName", "acm-acme.amazonaws.com", "acm.amazonaws.com", bind_for_service),
    ("aws:PrincipalServiceNamesList", "acm-acme.amazonaws.com", "acm.amazonaws.com", bind_for_service),
    ("aws:PrincipalType", "User", "AssumedRole", list_keys),
    ("aws:PrincipalType", "AssumedRole", "User", list_keys_in_session),
    ("aws:userid", "AIDA*", "AROA*", list_keys),
    ("aws:userid", "AROA*:session", "AIDA*", list_keys_in_session),
    ("aws:username", "u*", "v*", list_keys),
    ("aws:TokenIssueTime", "2026-11-21T00:00:00Z", "2026-11-21T00:00:01Z", list_keys_in_session),
    ("aws:MultiFactorAuthPresent", "false", "true", list_keys_in_session),
    ("aws:SourceIdentity", "alice", "bob", list_keys_in_session),
    ("aws:SourceIp", "127.0.0.0/8", "192.0.2.0/24", list_keys),
    ("aws:SourceIp", "127.0.0.0/8", "192.0.2.0/24", request_certificate),
    ("aws:ResourceAccount", "123456789012", "210987654321", list_keys),
    ("aws:ResourceAccount", "123456789012", "210987654321", of_key),
    ("aws:ResourceAccount", "123456789012", "210987654321", issue_certificate),
    ("aws:ResourceAccount", "123456789012", "210987654321", assume),
    ("aws:ResourceTag/team", "blue", "red", |world, condition| {
        with_key(world, condition, TAGGED(), "DescribeKey", json!({}))
    }),
    ("aws:CalledVia", "acm.amazonaws.com", "s3.amazonaws.com", forwarded),
    ("aws:CalledViaFirst", "acm.amazonaws.com", "s3.amazonaws.com", forwarded),
    ("aws:CalledViaLast", "acm.amazonaws.com", "s3.amazonaws.com", forwarded),
    ("aws:ViaAWSService", "false", "true", list_keys),
    ("aws:ViaAWSService", "false", "true", list_keys_in_session),
    ("aws:ViaAWSService", "true", "false", forwarded),
    ("aws:ViaAWSService", "true", "false", forwarded_for_acme),
    ("aws:CurrentTime", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z", list_keys),
    ("aws:EpochTime", "1795219200", "1795219201", list_keys),
    ("aws:CurrentTime", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z", bind_for_service),
    ("aws:referer", "https://console.example/*", "https://other.example/*", list_keys_over_tls),
    ("aws:RequestedRegion", "eu-west-1", "eu-central-1", list_keys),
    ("aws:RequestTag/team", "blue", "red", |world, condition| kms(world, condition, "CreateKey", TAGGED())),
    ("aws:TagKeys", "team", "Team", |world, condition| kms(world, condition, "CreateKey", TAGGED())),
    ("aws:SecureTransport", "false", "true", list_keys),
    ("aws:SecureTransport", "true", "false", list_keys_over_tls),
    ("aws:SourceAccount", "123456789012", "210987654321", bind_for_service),
    ("aws:SourceArn", "arn:aws:acm:eu-west-1:123456789012:acme-endpoint/*", "arn:aws:acm:eu-west-1:210987654321:acme-endpoint/*", bind_for_service),
    ("aws:UserAgent", "test/*", "other/*", list_keys_over_tls),
    ("outlast:TlsVersion", "TLSv1.3", "TLSv1.2", list_keys_over_tls),
    ("outlast:KeyExchange", "X25519MLKEM768", "X25519", list_keys_over_tls),
    ("outlast:ClientCertificateSubject", "CN=client", "CN=other", list_keys_over_tls),
    ("outlast:SshCertificateType", "user", "host", ssh_certificate),
    ("outlast:SshCriticalOptions", "source-address=*", "force-command=*", ssh_certificate),
    ("outlast:SshExtensions", "permit-pty", "permit-x11-forwarding", ssh_certificate),
    ("outlast:SshKeyId", "alice", "bob", ssh_certificate),
    ("outlast:SshPrincipals", "ops", "root", ssh_certificate),
    ("outlast:SshValiditySeconds", "3600", "3601", ssh_certificate),
    ("kms:BypassPolicyLockoutSafetyCheck", "false", "true", |world, condition| kms(world, condition, "CreateKey", json!({}))),
    ("kms:BypassPolicyLockoutSafetyCheck", "true", "false", |world, condition| {
        let more = json!({ "Policy": key_policy(json!([])), "BypassPolicyLockoutSafetyCheck": true });
        with_key(world, condition, json!({}), "PutKeyPolicy", more)
    }),
    ("kms:CallerAccount", "123456789012", "210987654321", list_keys),
    ("kms:CallerAccount", "123456789012", "210987654321", of_key),
    ("kms:CustomerMasterKeySpec", "SYMMETRIC_DEFAULT", "RSA_2048", of_key),
    ("kms:CustomerMasterKeySpec", "SYMMETRIC_DEFAULT", "RSA_2048", |world, condition| kms(world, condition, "CreateKey", json!({}))),
    ("kms:CustomerMasterKeyUsage", "ENCRYPT_DECRYPT", "SIGN_VERIFY", of_key),
    ("kms:CustomerMasterKeyUsage", "ENCRYPT_DECRYPT", "SIGN_VERIFY", |world, condition| kms(world, condition, "CreateKey", json!({}))),
    ("kms:DataKeyPairSpec", "ECC_NIST_P256", "RSA_2048", |world, condition| {
        with_key(world, condition, json!({}), "GenerateDataKeyPair", json!({ "KeyPairSpec": "ECC_NIST_P256" }))
    }),
    ("kms:EncapsulationAlgorithm", "ML_KEM", "OTHER", |world, condition| {
        let new = json!({ "KeySpec": "ML_KEM_768", "KeyUsage": "ENCAPSULATE_DECAPSULATE" });
        with_key(world, condition, new, "Encapsulate", json!({ "EncapsulationAlgorithm": "ML_KEM" }))
    }),
    ("kms:EncryptionAlgorithm", "SYMMETRIC_DEFAULT", "RSAES_OAEP_SHA_256", encrypt),
    ("kms:EncryptionAlgorithm", "SYMMETRIC_DEFAULT", "RSAES_OAEP_SHA_256", |world, condition| {
        with_key(world, condition, json!({}), "GenerateDataKey", json!({ "KeySpec": "AES_256" }))
    }),
    ("kms:EncryptionContext:purpose", "test", "other", encrypt),
    ("kms:EncryptionContextKeys", "purpose", "other", encrypt),
    ("kms:ExpirationModel", "KEY_MATERIAL_EXPIRES", "KEY_MATERIAL_DOES_NOT_EXPIRE", import_material),
    ("kms:GrantConstraintType", "EncryptionContextSubset", "EncryptionContextEquals", grant),
    ("kms:GrantIsForAWSResource", "false", "true", grant),
    ("kms:GrantIsForAWSResource", "false", "true", |world, condition| {
        with_key(world, condition, json!({}), "ListGrants", json!({}))
    }),
    ("kms:GrantOperations", "Encrypt", "Decrypt", grant),
    ("kms:GranteePrincipal", "arn:aws:iam::123456789012:user/admin", "arn:aws:iam::123456789012:user/other", grant),
    ("kms:KeyAgreementAlgorithm", "ECDH", "OTHER", derive),
    ("kms:KeyOrigin", "AWS_KMS", "EXTERNAL", of_key),
    ("kms:KeySpec", "SYMMETRIC_DEFAULT", "RSA_2048", of_key),
    ("kms:KeyUsage", "ENCRYPT_DECRYPT", "SIGN_VERIFY", of_key),
    ("kms:MacAlgorithm", "HMAC_SHA_256", "HMAC_SHA_512", |world, condition| {
        let new = json!({ "KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC" });
        let more = json!({ "Message": b64(b"x"), "MacAlgorithm": "HMAC_SHA_256" });
        with_key(world, condition, new, "GenerateMac", more)
    }),
    ("kms:MessageType", "RAW", "DIGEST", sign),
    ("kms:MultiRegion", "true", "false", of_key),
    ("kms:MultiRegionKeyType", "PRIMARY", "REPLICA", of_key),
    ("kms:PrimaryRegion", "eu-central-1", "eu-west-1", update_primary),
    ("kms:ReEncryptOnSameKey", "true", "false", re_encrypt),
    ("kms:ReplicaRegion", "eu-central-1", "eu-west-1", |world, condition| {
        let more = json!({ "ReplicaRegion": "eu-central-1" });
        with_key(world, condition, json!({ "MultiRegion": true }), "ReplicateKey", more)
    }),
    ("kms:RequestAlias", "alias/a*", "alias/b*", by_alias),
    ("kms:ResourceAliases", "alias/a*", "alias/b*", by_alias),
    ("kms:RetiringPrincipal", "arn:aws:iam::123456789012:user/admin", "arn:aws:iam::123456789012:user/other", grant),
    ("kms:RotationPeriodInDays", "100", "365", |world, condition| {
        with_key(world, condition, json!({}), "EnableKeyRotation", json!({ "RotationPeriodInDays": 100 }))
    }),
    ("kms:ScheduleKeyDeletionPendingWindowInDays", "9", "30", schedule_deletion),
    ("kms:SigningAlgorithm", "ECDSA_SHA_256", "ECDSA_SHA_384", sign),
    ("kms:TrailingDaysWithoutKeyUsage", "0", "1", disable_unused),
    ("kms:TrailingDaysWithoutKeyUsage", "0", "1", schedule_deletion),
    ("kms:ValidTo", "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z", import_material),
    ("kms:WrappingAlgorithm", "RSAES_OAEP_SHA_256", "RSAES_OAEP_SHA_1", parameters_for_import),
    ("kms:WrappingKeySpec", "RSA_2048", "RSA_4096", parameters_for_import),
    ("kms:ViaService", "secretsmanager.eu-west-1.amazonaws.com", "secretsmanager.eu-west-2.amazonaws.com", secret_at_kms),
    ("aws:CalledVia", "secretsmanager.amazonaws.com", "acm.amazonaws.com", secret_at_kms),
    ("secretsmanager:AddReplicaRegions", "eu-central-1", "us-east-1", replicate_secret),
    ("secretsmanager:BlockPublicPolicy", "true", "false", put_secret_policy),
    ("secretsmanager:Description", "d*", "e*", create_secret),
    ("secretsmanager:ForceDeleteWithoutRecovery", "false", "true", delete_secret),
    ("secretsmanager:ForceOverwriteReplicaSecret", "false", "true", replicate_secret),
    ("secretsmanager:KmsKeyId", "alias/aws/*", "alias/other", create_secret),
    ("secretsmanager:ModifyRotationRules", "true", "false", rotate_secret),
    ("secretsmanager:Name", "made/*", "other/*", create_secret),
    ("secretsmanager:RecoveryWindowInDays", "9", "30", delete_secret),
    ("secretsmanager:ResourceTag/team", "blue", "red", get_secret),
    ("secretsmanager:RotateImmediately", "false", "true", rotate_secret),
    ("secretsmanager:RotationLambdaARN", "arn:aws:lambda:eu-west-1:123456789012:function:f", "arn:aws:lambda:eu-west-1:123456789012:function:g", rotate_secret),
    ("secretsmanager:SecretId", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:made/*", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:other/*", get_secret),
    ("secretsmanager:SecretPrimaryRegion", "eu-west-1", "us-east-1", get_replicated_secret),
    ("secretsmanager:VersionId", "11111111111111111111111111111111", "2*", get_secret_version),
    ("secretsmanager:VersionStage", "AWSCURRENT", "AWSPREVIOUS", get_secret),
    ("secretsmanager:resource/AllowRotationLambdaArn", "arn:aws:lambda:eu-west-1:123456789012:function:f", "arn:aws:lambda:eu-west-1:123456789012:function:g", get_rotated_secret),
    ("acm-pca:TemplateArn", "arn:aws:acm-pca:::template/EndEntityCertificate/V1", "arn:aws:acm-pca:::template/CodeSigningCertificate/V1", issue_certificate),
    ("acm-pca:TemplateArn", "arn:aws:acm-pca:::template/EndEntityCertificate/V1", "arn:aws:acm-pca:::template/CodeSigningCertificate/V1", forwarded),
    ("acm:CertificateAuthority", "arn:aws:acm-pca:eu-west-1:123456789012:*", "arn:aws:acm-pca:eu-west-1:210987654321:*", request_certificate),
    ("acm:CertificateKeyPairOrigin", "AWS_MANAGED", "IMPORTED", request_certificate),
    ("acm:CertificateTransparencyLogging", "ENABLED", "DISABLED", request_certificate),
    ("acm:DomainNames", "a.example.com", "b.example.com", request_certificate),
    ("acm:Export", "ENABLED", "DISABLED", request_certificate),
    ("acm:KeyAlgorithm", "EC_prime256v1", "RSA_2048", request_certificate),
    ("acm:ValidationMethod", "EMAIL", "DNS", request_certificate),
    ("s3:delimiter", "/", "x", sftp_list),
    ("s3:prefix", "home/alice/x/", "home/bob/*", sftp_list),
    ("transfer:HomeBucket", "files", "other", sftp_get),
    ("transfer:HomeDirectory", "files/home/alice", "files/home/bob", sftp_get),
    ("transfer:HomeFolder", "home/alice", "home/bob", sftp_get),
    ("transfer:UserName", "alice", "bob", sftp_get),
    ("transfer:UserName", "alice", "bob", sftp_list),
    ("sts:ExternalId", "external", "other", assume),
    ("sts:RoleSessionName", "session", "other", assume),
    ("sts:SourceIdentity", "alice", "bob", assume),
    ("sts:TransitiveTagKeys", "team", "other", assume),
    ("iam:PassedToService", "acm-acme.amazonaws.com", "acm.amazonaws.com", bind),
];

fn row_of(key: &str) -> &'static KeyRow {
    KeyRow::find(&key.to_ascii_lowercase()).unwrap_or_else(|| panic!("no row: {key}"))
}

fn operator(row: &KeyRow) -> &'static str {
    match (row.kind, row.many) {
        (_, true) => "ForAnyValue:StringLike",
        (KeyKind::Text, _) => "StringLike",
        (KeyKind::Arn, _) => "ArnLike",
        (KeyKind::Bool, _) => "Bool",
        (KeyKind::Number, _) => "NumericEquals",
        (KeyKind::Date, _) => "DateEquals",
        (KeyKind::Address, _) => "IpAddress",
    }
}

#[test]
fn each_key_that_is_set_denies_what_it_should() {
    let world = World::new();
    let mut rows = BTreeSet::new();
    let mut calls = 0;
    for (key, value, other, denied) in CASES {
        let row = row_of(key);
        let operator = operator(row);
        for (condition, expected) in [
            (json!({ operator: { *key: value } }), true),
            (json!({ operator: { *key: other } }), false),
            (json!({ "Null": { *key: "false" } }), true),
            (json!({ "Null": { *key: "true" } }), false),
            (json!({ "Null": { key.to_ascii_uppercase(): "false" } }), true),
        ] {
            assert_eq!(denied(&world, &condition), expected, "{condition}");
            calls += 1;
        }
        rows.insert(row.name);
    }
    let wanted: BTreeSet<_> =
        KEYS.iter().filter(|row| !matches!(row.set, Set::Never(_))).map(|row| row.name).collect();
    assert_eq!(rows, wanted, "every key that is set has a case here, and no other has");
    println!("{} keys are set, in {} cases and {calls} calls", rows.len(), CASES.len());
}

#[test]
fn keys_that_are_never_set_are_absent() {
    let world = World::new();
    let ways: [Denied; 4] = [list_keys, list_keys_in_session, request_certificate, assume];
    let mut keys = 0;
    for row in KEYS.iter().filter(|row| matches!(row.set, Set::Never(_))) {
        let key = row.name.replace("${Measurement}", "PCR0").replace("${ContextKey}", "a");
        let key = key.replace("${TagKey}", "team");
        for denied in ways {
            assert!(denied(&world, &json!({ "Null": { key.as_str(): "true" } })), "{key}");
            assert!(!denied(&world, &json!({ "Null": { key.as_str(): "false" } })), "{key}");
        }
        keys += 1;
    }
    println!("{keys} keys are never set, each held against {} calls", ways.len() * 2);
}

#[test]
fn keys_that_are_always_set_are_there_for_every_service() {
    let world = World::new();
    let ways: [Denied; 7] = [
        list_keys,
        list_keys_in_session,
        of_key,
        request_certificate,
        issue_certificate,
        assume,
        bind_for_service,
    ];
    let mut keys = 0;
    for row in KEYS.iter().filter(|row| row.set == Set::Always && row.services.is_empty()) {
        for denied in ways {
            assert!(!denied(&world, &json!({ "Null": { row.name: "true" } })), "{}", row.name);
        }
        keys += 1;
    }
    println!("{keys} keys are in every request");
}

#[test]
fn mfa_key_is_false_for_sessions_only() {
    let world = World::new();
    let key = "aws:MultiFactorAuthPresent";
    let recommended = json!({ "BoolIfExists": { key: "false" } });
    assert!(list_keys(&world, &recommended) && list_keys_in_session(&world, &recommended));
    let plain = json!({ "Bool": { key: "false" } });
    assert!(!list_keys(&world, &plain) && list_keys_in_session(&world, &plain));
}

#[test]
fn addresses_are_restricted_as_aws_publishes_it() {
    let world = World::new();
    // "AWS: Denies access to AWS based on the source IP" of the IAM User Guide.
    let condition = json!({
        "NotIpAddress": { "aws:SourceIp": ["192.0.2.0/24", "203.0.113.0/24"] },
        "Bool": { "aws:ViaAWSService": "false" },
    });
    let at = |who: &Who, address: &str| Who { source_ip: address.into(), ..who.clone() };
    let certificate = json!({
        "DomainName": "a.example.com", "CertificateAuthorityArn": world.authority, "KeyAlgorithm": "EC_prime256v1",
    });
    for who in [user(&world, &condition), session(&world, &condition)] {
        for (address, denied) in [
            ("192.0.2.7", false),
            ("203.0.113.9", false),
            ("198.51.100.1", true),
            ("127.0.0.1", true),
        ] {
            let who = at(&who, address);
            assert_eq!(
                is_denied(world.fixture.kms_as(&who, "ListKeys", json!({}))),
                denied,
                "{address}"
            );
            let asked = call(&world.fixture, &who, "acm", "RequestCertificate", &certificate);
            assert_eq!(is_denied(asked), denied, "{address}");
        }
    }
    // Calls that Certificate Manager makes with the caller's rights differ from the caller's own.
    let via = policy(json!([
        { "Effect": "Allow", "Action": "*", "Resource": "*" },
        { "Effect": "Deny", "Action": "acm-pca:IssueCertificate", "Resource": "*",
          "Condition": { "Bool": { "aws:ViaAWSService": "false" } } },
    ]));
    let who = world.fixture.user(ACCOUNT, "via", &[via]);
    assert!(!is_denied(call(&world.fixture, &who, "acm", "RequestCertificate", &certificate)));
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let body = leaf_body(&world.authority, &request, "SHA256WITHECDSA", "EndEntityCertificate");
    assert!(is_denied(call(&world.fixture, &who, "acm-pca", "IssueCertificate", &body)));
}

#[test]
fn recently_used_keys_are_kept() {
    let world = World::new();
    let fixture = &world.fixture;
    // "Deletes and disables no key that was used within a year": the example of the KMS Developer Guide.
    let condition = json!({ "NumericLessThanEquals": { "kms:TrailingDaysWithoutKeyUsage": "30" } });
    let who = user(&world, &condition);
    let key = fixture.key(json!({}));
    let disable = |who: &Who| is_denied(fixture.kms_as(who, "DisableKey", json!({ "KeyId": key })));
    assert!(disable(&who), "it is new");
    fixture.now.set(NOW + 20 * 86_400);
    fixture.encrypted(&key, b"x");
    fixture.now.set(NOW + 51 * 86_400 - 1);
    assert!(disable(&who), "it was used 30 days ago");
    fixture.now.set(NOW + 51 * 86_400);
    assert!(!disable(&who));
    fixture.now.set(NOW);
}

#[test]
fn the_audit_trail_says_what_a_policy_does_not_do() {
    let world = World::new();
    let fixture = &world.fixture;
    let never = json!([{
        "Effect": "Deny", "Principal": "*", "Action": "kms:Decrypt", "Resource": "*",
        "Condition": { "StringNotEqualsIfExists": { "aws:SourceVpc": "vpc-1" }, "Bool": { "aws:MultiFactorAuthAge": "true" } },
    }]);
    let findings = |event: &str| {
        let found =
            fixture.events().into_iter().rfind(|found| found["eventName"] == event).unwrap();
        found["additionalEventData"]["policyFindings"].clone()
    };
    let key = fixture.key(json!({ "Policy": key_policy(never.clone()) }));
    assert_eq!(findings("CreateKey").as_array().unwrap().len(), 2);
    let put =
        |policy: String| fixture.kms("PutKeyPolicy", json!({ "KeyId": key, "Policy": policy }));
    put(key_policy(never)).unwrap();
    let found = findings("PutKeyPolicy").to_string();
    assert!(
        found.contains("this Deny never applies: no request has aws:MultiFactorAuthAge"),
        "{found}"
    );
    assert!(
        found.contains("the condition holds for every request: no request has aws:SourceVpc"),
        "{found}"
    );
    put(key_policy(json!([]))).unwrap();
    assert_eq!(findings("PutKeyPolicy"), Value::Null);
    let document = policy(json!([{
        "Effect": "Allow", "Principal": "*", "Action": "acm-pca:GetCertificate", "Resource": world.authority,
        "Condition": { "StringEquals": { "aws:PrincipalOrgID": "o-a1b2c3d4e5" } },
    }]));
    let body = json!({ "ResourceArn": world.authority, "Policy": document.to_string() });
    call(fixture, &Who::admin(), "acm-pca", "PutPolicy", &body).unwrap();
    assert!(findings("PutPolicy").to_string().contains("this Allow never applies"));
    let trust =
        policy(json!([{ "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:*" }]));
    let role = fixture.role(ACCOUNT, "limited", &trust, &[]);
    let limit = but(&json!({ "Bool": { "aws:ViaAwsService2": "false" } })).to_string();
    fixture.session(&Who::admin(), &role, &[("Policy", &limit)]);
    assert!(findings("AssumeRole").to_string().contains("there is no such key"));
}

#[test]
fn the_table_is_in_the_documentation() {
    let mut out = String::from(HEAD);
    let mut by_part: BTreeMap<usize, Vec<&KeyRow>> = BTreeMap::new();
    for row in KEYS {
        let prefix = row.name.split(':').next().unwrap();
        let part = PARTS.iter().position(|(_, prefixes)| prefixes.contains(&prefix));
        by_part.entry(part.unwrap_or(0)).or_default().push(row);
    }
    for (part, rows) in by_part {
        write!(out, "\n## {}\n\n| key | type | set |\n| --- | --- | --- |\n", PARTS[part].0)
            .unwrap();
        for row in rows {
            let many = if row.many { ", several values" } else { "" };
            let set = match row.set {
                Set::Always => "always".to_owned(),
                Set::When(which) => which.to_owned(),
                Set::Never(why) => format!("**never**: {why}"),
            };
            writeln!(out, "| `{}` | {}{many} | {set} |", row.name, row.kind.name()).unwrap();
        }
    }
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/condition-keys.md");
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        std::fs::write(&path, &out).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == out, "docs/condition-keys.md is stale: run the test with OUTLAST_BLESS=1");
    let never = KEYS.iter().filter(|row| matches!(row.set, Set::Never(_))).count();
    println!("{} keys, {} of them set", KEYS.len(), KEYS.len() - never);
}

const PARTS: &[(&str, &[&str])] = &[
    ("Global keys", &["aws"]),
    ("Our own", &["outlast"]),
    ("KMS", &["kms"]),
    ("Private CA", &["acm-pca"]),
    ("Certificate Manager", &["acm"]),
    ("Secrets Manager", &["secretsmanager"]),
    ("STS and IAM", &["sts", "iam"]),
];

const HEAD: &str = "# Condition keys

Generated from `crates/domain/src/policy/keys.rs` by `crates/api/tests/condition_keys.rs`, which holds each row against
calls.

A key is set as AWS documents it for the services that are here. A condition on a key that no request has is not an
error, here as at AWS: policies move between both, and keys are added. What it does to its statement is said when the
policy is put, as a warning of `outlast principal create` and `outlast principal policy put`, and as
`additionalEventData.policyFindings` of the audit event of CreateKey, PutKeyPolicy, ReplicateKey, PutPolicy and AssumeRole
(`requestParameters.policyFindings` where the command line put it). The same applies to keys that do not exist, of keys
that belong to other actions than those of the statement, of values that a key can never have, such as a range of
addresses with `StringEquals`, and of variables that never have a value.

- `aws:ViaAWSService` is true where Certificate Manager asks Private CA, or Secrets Manager KMS, with the caller's rights, and false where a
  service acts by a role, as for ACME and renewals: so AWS documents it. `aws:SourceIp` stays the caller's.
- `aws:MultiFactorAuthPresent` is absent for access keys and false for sessions. `BoolIfExists` covers both.
- `aws:ResourceTag`, `aws:RequestTag` and `aws:PrincipalTag` do not distinguish case, tag keys do. Tags that differ in case
  only are refused; for a resource that has such tags from before, an `Allow` takes a match by each of them, and any
  of them suffices for a `Deny`. As a variable, such a tag has no value.
- `kms:CallerAccount` is set for every action of KMS; at AWS, for those on keys and custom key stores.
";
