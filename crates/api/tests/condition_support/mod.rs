//! Calls that a `Deny` with a condition refuses or not, each with the resources that the condition keys describe.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::HeaderMap;
use outlast_api::audit::{ClientCertificate, TlsDetails};
use outlast_api::service::sftp::Decision;
use outlast_domain::transfer::Access;
use serde_json::{Value, json};

use crate::acme_support::world::{World, call};
use crate::common::authorities::{leaf_body, leaf_request};
use crate::common::{ACCOUNT, Answer, NOW, Refused, Who, b64, element, policy, text, with};
use crate::transfer_support::{self, Shown};

/// Whether a `Deny` with this condition refuses a call.
pub type Denied = fn(&World, &Value) -> bool;

static NUMBER: AtomicUsize = AtomicUsize::new(0);

pub fn number() -> usize {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// A policy that allows everything except what the condition denies.
pub fn but(condition: &Value) -> Value {
    but_for("*", condition)
}

/// The same, if the condition denies this action only.
pub fn but_for(action: &str, condition: &Value) -> Value {
    policy(json!([
        { "Effect": "Allow", "Action": "*", "Resource": "*" },
        { "Effect": "Deny", "Action": action, "Resource": "*", "Condition": condition },
    ]))
}

#[track_caller]
pub fn is_denied(answer: Answer) -> bool {
    match answer {
        Ok(_) => false,
        Err(refused) if refused.code.starts_with("AccessDenied") => true,
        Err(refused) => panic!("{refused:?}"),
    }
}

pub fn user(world: &World, condition: &Value) -> Who {
    world.fixture.user(ACCOUNT, &format!("u{}", number()), &[but(condition)])
}

pub fn user_for(world: &World, action: &str, condition: &Value) -> Who {
    world.fixture.user(ACCOUNT, &format!("u{}", number()), &[but_for(action, condition)])
}

/// A session with a tag and a source identity.
pub fn session(world: &World, condition: &Value) -> Who {
    let trust =
        policy(json!([{ "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:*" }]));
    let role = world.fixture.role(ACCOUNT, &format!("r{}", number()), &trust, &[but(condition)]);
    world.fixture.session(&Who::admin(), &role, &[("SourceIdentity", "alice")])
}

fn sftp(world: &World, condition: &Value, access: Access) -> bool {
    let fixture = &world.fixture;
    let server = fixture.server(json!({}));
    let trust = transfer_support::trust(&json!({}));
    let role = fixture.role(ACCOUNT, &format!("sftp{}", number()), &trust, &[but(condition)]);
    fixture.sftp_user(&server, "alice", &role, json!({}));
    let Decision::Account(alice) = Shown::key(&server, "alice", 1).decide(fixture, None) else {
        panic!("the login is refused");
    };
    let found = alice.rights.decide(access, "files", b"home/alice/x/", NOW * 1000);
    fixture.transfer("DeleteServer", json!({ "ServerId": server })).unwrap();
    found.is_err()
}

/// Reading a file by SFTP.
pub fn sftp_get(world: &World, condition: &Value) -> bool {
    sftp(world, condition, Access::Get)
}

/// Listing a directory by SFTP.
pub fn sftp_list(world: &World, condition: &Value) -> bool {
    sftp(world, condition, Access::List)
}

/// A call of KMS by a user.
pub fn kms(world: &World, condition: &Value, operation: &str, body: Value) -> bool {
    is_denied(world.fixture.kms_as(&user(world, condition), operation, body))
}

/// The same about a key that is made for it.
pub fn with_key(
    world: &World,
    condition: &Value,
    new: Value,
    operation: &str,
    more: Value,
) -> bool {
    let key = world.fixture.key(new);
    kms(world, condition, operation, with(&json!({ "KeyId": key }), more))
}

pub fn of_key(world: &World, condition: &Value) -> bool {
    with_key(world, condition, json!({ "MultiRegion": true }), "DescribeKey", json!({}))
}

pub fn list_keys(world: &World, condition: &Value) -> bool {
    kms(world, condition, "ListKeys", json!({}))
}

pub fn list_keys_in_session(world: &World, condition: &Value) -> bool {
    is_denied(world.fixture.kms_as(&session(world, condition), "ListKeys", json!({})))
}

/// A call over TLS, from a browser.
pub fn list_keys_over_tls(world: &World, condition: &Value) -> bool {
    let client_certificate = Some(ClientCertificate {
        subject: "CN=client".into(),
        serial_number: "01".into(),
        issuer: "CN=issuer".into(),
    });
    let tls = TlsDetails {
        version: "TLSv1.3".into(),
        key_exchange: Some("X25519MLKEM768".into()),
        client_certificate,
        ..TlsDetails::default()
    };
    let who = Who { tls: Some(tls), ..user(world, condition) };
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("content-type", "application/x-amz-json-1.1"),
        ("x-amz-target", "TrentService.ListKeys"),
        ("user-agent", "test/1"),
        ("referer", "https://console.example/"),
    ] {
        headers.insert(name, value.parse().unwrap());
    }
    let response = world.fixture.request(&who, "kms", headers, b"{}");
    assert!(matches!(response.error, None | Some("AccessDeniedException")), "{:?}", response.error);
    response.status != 200
}

/// Conditions of every import of key material, checked before its token.
pub fn import_material(world: &World, condition: &Value) -> bool {
    let key = world.fixture.key(json!({ "Origin": "EXTERNAL" }));
    let body = json!({
        "KeyId": key, "ImportToken": b64(b"x"), "EncryptedKeyMaterial": b64(b"x"),
        "ExpirationModel": "KEY_MATERIAL_EXPIRES", "ValidTo": NOW + 86_400,
    });
    match world.fixture.kms_as(&user(world, condition), "ImportKeyMaterial", body) {
        Err(refused) if refused.code == "InvalidImportTokenException" => false,
        answer => is_denied(answer),
    }
}

pub fn parameters_for_import(world: &World, condition: &Value) -> bool {
    let more = json!({ "WrappingAlgorithm": "RSAES_OAEP_SHA_256", "WrappingKeySpec": "RSA_2048" });
    with_key(world, condition, json!({ "Origin": "EXTERNAL" }), "GetParametersForImport", more)
}

pub fn encrypt(world: &World, condition: &Value) -> bool {
    let more = json!({ "Plaintext": b64(b"x"), "EncryptionContext": { "purpose": "test" } });
    with_key(world, condition, json!({}), "Encrypt", more)
}

pub fn sign(world: &World, condition: &Value) -> bool {
    let new = json!({ "KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY" });
    let more = json!({ "Message": b64(b"x"), "SigningAlgorithm": "ECDSA_SHA_256" });
    with_key(world, condition, new, "Sign", more)
}

pub fn grant(world: &World, condition: &Value) -> bool {
    let admin = format!("arn:aws:iam::{ACCOUNT}:user/admin");
    let more = json!({
        "GranteePrincipal": admin, "RetiringPrincipal": admin, "Operations": ["Encrypt"],
        "Constraints": { "EncryptionContextSubset": { "a": "b" } },
    });
    with_key(world, condition, json!({}), "CreateGrant", more)
}

pub fn by_alias(world: &World, condition: &Value) -> bool {
    let alias = format!("alias/a{}", number());
    let key = world.fixture.key(json!({}));
    let body = json!({ "AliasName": alias, "TargetKeyId": key });
    world.fixture.kms("CreateAlias", body).unwrap();
    kms(world, condition, "DescribeKey", json!({ "KeyId": alias }))
}

pub fn schedule_deletion(world: &World, condition: &Value) -> bool {
    with_key(
        world,
        condition,
        json!({}),
        "ScheduleKeyDeletion",
        json!({ "PendingWindowInDays": 9 }),
    )
}

pub fn disable_unused(world: &World, condition: &Value) -> bool {
    with_key(world, condition, json!({}), "DisableKey", json!({}))
}

pub fn update_primary(world: &World, condition: &Value) -> bool {
    let key = world.fixture.key(json!({ "MultiRegion": true }));
    let to = json!({ "KeyId": key, "ReplicaRegion": "eu-central-1" });
    world.fixture.kms("ReplicateKey", to).unwrap();
    let body = json!({ "KeyId": key, "PrimaryRegion": "eu-central-1" });
    kms(world, condition, "UpdatePrimaryRegion", body)
}

pub fn re_encrypt(world: &World, condition: &Value) -> bool {
    let key = world.fixture.key(json!({}));
    let blob = world.fixture.encrypted(&key, b"x");
    let body = json!({ "CiphertextBlob": blob, "DestinationKeyId": key });
    kms(world, condition, "ReEncrypt", body)
}

pub fn derive(world: &World, condition: &Value) -> bool {
    let new = json!({ "KeySpec": "ECC_NIST_P256", "KeyUsage": "KEY_AGREEMENT" });
    let peer = world.fixture.key(new.clone());
    let public = world.fixture.kms("GetPublicKey", json!({ "KeyId": peer })).unwrap();
    let more = json!({ "KeyAgreementAlgorithm": "ECDH", "PublicKey": public["PublicKey"] });
    with_key(world, condition, new, "DeriveSharedSecret", more)
}

pub fn request_certificate_as(world: &World, who: &Who) -> bool {
    let body = json!({
        "DomainName": "a.example.com", "CertificateAuthorityArn": world.authority,
        "KeyAlgorithm": "EC_prime256v1",
    });
    is_denied(call(&world.fixture, who, "acm", "RequestCertificate", &body))
}

pub fn request_certificate(world: &World, condition: &Value) -> bool {
    request_certificate_as(world, &user(world, condition))
}

/// Calls of Private CA that Certificate Manager makes with the caller's rights.
pub fn forwarded(world: &World, condition: &Value) -> bool {
    request_certificate_as(world, &user_for(world, "acm-pca:IssueCertificate", condition))
}

/// The same when an endpoint is made, and when it gets another CA.
pub fn forwarded_for_acme(world: &World, condition: &Value) -> bool {
    let who = user_for(world, "acm-pca:IssueCertificate", condition);
    let authority = json!({
        "PrivateCertificateAuthority": { "CertificateAuthorityArn": world.authority },
    });
    let update = json!({ "AcmeEndpointArn": world.endpoint, "CertificateAuthority": authority });
    let create = json!({ "AuthorizationBehavior": "CHALLENGE", "CertificateAuthority": authority });
    let denied = [("UpdateAcmeEndpoint", update), ("CreateAcmeEndpoint", create)]
        .map(|(name, body)| is_denied(call(&world.fixture, &who, "acm", name, &body)));
    assert_eq!(denied[0], denied[1]);
    denied[0]
}

pub fn issue_certificate(world: &World, condition: &Value) -> bool {
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let body = leaf_body(&world.authority, &request, "SHA256WITHECDSA", "EndEntityCertificate");
    is_denied(call(&world.fixture, &user(world, condition), "acm-pca", "IssueCertificate", &body))
}

pub fn bind(world: &World, condition: &Value) -> bool {
    let body = json!({ "AcmeEndpointArn": world.endpoint, "RoleArn": world.role });
    let who = user_for(world, "iam:PassRole", condition);
    is_denied(call(&world.fixture, &who, "acm", "CreateAcmeExternalAccountBinding", &body))
}

/// A service asks to act as a role whose trust policy has the condition.
pub fn bind_for_service(world: &World, condition: &Value) -> bool {
    let service = json!({ "Service": "acm-acme.amazonaws.com" });
    let trust = policy(json!([
        { "Effect": "Allow", "Principal": service, "Action": "sts:*" },
        { "Effect": "Deny", "Principal": "*", "Action": "sts:*", "Condition": condition },
    ]));
    let role = world.fixture.role(ACCOUNT, &format!("r{}", number()), &trust, &[]);
    let body = json!({ "AcmeEndpointArn": world.endpoint, "RoleArn": role });
    match world.try_acm("CreateAcmeExternalAccountBinding", body) {
        Err(refused) if refused.message.contains("does not trust") => true,
        answer => is_denied(answer),
    }
}

/// Assumes a role with every option that the call has.
pub fn assume(world: &World, condition: &Value) -> bool {
    let trust =
        policy(json!([{ "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:*" }]));
    let role = world.fixture.role(ACCOUNT, &format!("r{}", number()), &trust, &[]);
    let response = world.fixture.sts_as(
        &user(world, condition),
        &[
            ("Action", "AssumeRole"),
            ("RoleArn", &role),
            ("RoleSessionName", "session"),
            ("ExternalId", "external"),
            ("SourceIdentity", "alice"),
            ("Tags.member.1.Key", "team"),
            ("Tags.member.1.Value", "blue"),
            ("TransitiveTagKeys.member.1", "team"),
        ],
    );
    if response.status == 200 {
        return false;
    }
    let xml = String::from_utf8(response.body).unwrap();
    let (code, message) = (element(&xml, "Code"), element(&xml, "Message"));
    is_denied(Err(Refused { code, message, status: response.status }))
}

pub const TAGGED: fn() -> Value = || json!({ "Tags": [{ "TagKey": "team", "TagValue": "blue" }] });

const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:f";

/// A new secret with a version whose id is known; returns its ARN.
fn new_secret(world: &World, more: Value) -> String {
    let body = json!({
        "Name": format!("made/{}", number()), "SecretString": "x", "ClientRequestToken": "1".repeat(32),
        "Tags": [{ "Key": "team", "Value": "blue" }],
    });
    let made = world.fixture.secrets("CreateSecret", with(&body, more)).unwrap();
    text(&made["ARN"]).to_owned()
}

/// An operation on a secret, by a user whom the condition denies the operation.
fn on_secret(world: &World, condition: &Value, operation: &str, id: &str, more: Value) -> bool {
    let who = user_for(world, &format!("secretsmanager:{operation}"), condition);
    let body = with(&json!({ "SecretId": id }), more);
    is_denied(world.fixture.secrets_as(&who, operation, &body))
}

pub fn get_secret(world: &World, condition: &Value) -> bool {
    on_secret(world, condition, "GetSecretValue", &new_secret(world, json!({})), json!({}))
}

pub fn get_secret_version(world: &World, condition: &Value) -> bool {
    let version = json!({ "VersionId": "1".repeat(32) });
    on_secret(world, condition, "GetSecretValue", &new_secret(world, json!({})), version)
}

pub fn get_replicated_secret(world: &World, condition: &Value) -> bool {
    let replicas = json!({ "AddReplicaRegions": [{ "Region": "eu-central-1" }] });
    on_secret(world, condition, "GetSecretValue", &new_secret(world, replicas), json!({}))
}

pub fn get_rotated_secret(world: &World, condition: &Value) -> bool {
    let id = new_secret(world, json!({}));
    let body = json!({ "SecretId": id, "RotationLambdaARN": FUNCTION });
    world.fixture.secrets("RotateSecret", body).unwrap();
    on_secret(world, condition, "GetSecretValue", &id, json!({}))
}

pub fn rotate_secret(world: &World, condition: &Value) -> bool {
    let more = json!({
        "RotationLambdaARN": FUNCTION, "RotateImmediately": false,
        "RotationRules": { "ScheduleExpression": "rate(10 days)" },
    });
    on_secret(world, condition, "RotateSecret", &new_secret(world, json!({})), more)
}

pub fn delete_secret(world: &World, condition: &Value) -> bool {
    let more = json!({ "RecoveryWindowInDays": 9 });
    on_secret(world, condition, "DeleteSecret", &new_secret(world, json!({})), more)
}

pub fn replicate_secret(world: &World, condition: &Value) -> bool {
    let more = json!({ "AddReplicaRegions": [{ "Region": "eu-central-1" }] });
    let id = new_secret(world, json!({}));
    on_secret(world, condition, "ReplicateSecretToRegions", &id, more)
}

pub fn put_secret_policy(world: &World, condition: &Value) -> bool {
    let allow = json!([{
        "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "secretsmanager:GetSecretValue",
        "Resource": "*",
    }]);
    let more = json!({ "ResourcePolicy": policy(allow).to_string(), "BlockPublicPolicy": true });
    on_secret(world, condition, "PutResourcePolicy", &new_secret(world, json!({})), more)
}

pub fn create_secret(world: &World, condition: &Value) -> bool {
    let who = user_for(world, "secretsmanager:CreateSecret", condition);
    let body = json!({
        "Name": format!("made/{}", number()), "Description": "d", "KmsKeyId": "alias/aws/secretsmanager",
        "SecretString": "x",
    });
    new_secret(world, json!({}));
    is_denied(world.fixture.secrets_as(&who, "CreateSecret", &body))
}

/// The call of KMS that Secrets Manager makes with the caller's rights.
pub fn secret_at_kms(world: &World, condition: &Value) -> bool {
    let who = user_for(world, "kms:Decrypt", condition);
    let body = json!({ "SecretId": new_secret(world, json!({})) });
    is_denied(world.fixture.secrets_as(&who, "GetSecretValue", &body))
}

/// An SSH certificate with one of everything.
pub fn ssh_certificate(world: &World, condition: &Value) -> bool {
    let tag = json!({ "TagKey": outlast_domain::ssh_ca::KINDS_TAG, "TagValue": "user" });
    let key = json!({ "KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY", "Tags": [tag] });
    let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHNzaC1lZDI1NTE5AAAAIHNzaC1lZDI1NTE5AAAAAAAA";
    let body = json!({
        "KeyId": world.fixture.key(key), "PublicKey": line, "CertificateType": "USER", "Identity": "alice",
        "Principals": ["ops"], "ValidBefore": NOW + 3600, "Extensions": { "permit-pty": "" },
        "CriticalOptions": { "source-address": "192.0.2.1" },
    });
    is_denied(world.fixture.outlast_as(&user(world, condition), "SignSshCertificate", &body))
}
