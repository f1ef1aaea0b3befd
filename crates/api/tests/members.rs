//! Bad input: every member of every operation missing, mistyped, unknown, and too large.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::certificates;
use crate::common;

use common::{ACCOUNT, Fixture, Who, b64, error_code, text};
use http::HeaderMap;
use outlast_api::ops::{ACM, ACM_PCA, KMS};
use outlast_api::service::Response;
use outlast_api::table::{Row, ServiceRow};
use outlast_store::Store;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The members that AWS's models require.
const REQUIRED: &[(&str, &[&str])] = &[
    ("CancelKeyDeletion", &["KeyId"]),
    ("ConnectCustomKeyStore", &["CustomKeyStoreId"]),
    ("CreateAlias", &["AliasName", "TargetKeyId"]),
    ("CreateCustomKeyStore", &["CustomKeyStoreName"]),
    ("CreateGrant", &["KeyId", "Operations"]),
    ("Decapsulate", &["KeyId", "SharedSecretCiphertextBlob", "EncapsulationAlgorithm"]),
    ("DeleteAlias", &["AliasName"]),
    ("DeleteCustomKeyStore", &["CustomKeyStoreId"]),
    ("DeleteImportedKeyMaterial", &["KeyId"]),
    ("DeriveSharedSecret", &["KeyId", "KeyAgreementAlgorithm", "PublicKey"]),
    ("DescribeKey", &["KeyId"]),
    ("DisableKey", &["KeyId"]),
    ("DisableKeyRotation", &["KeyId"]),
    ("DisconnectCustomKeyStore", &["CustomKeyStoreId"]),
    ("EnableKey", &["KeyId"]),
    ("EnableKeyRotation", &["KeyId"]),
    ("Encapsulate", &["KeyId", "EncapsulationAlgorithm"]),
    ("Encrypt", &["KeyId", "Plaintext"]),
    ("GenerateDataKey", &["KeyId"]),
    ("GenerateDataKeyPair", &["KeyId", "KeyPairSpec"]),
    ("GenerateDataKeyPairWithoutPlaintext", &["KeyId", "KeyPairSpec"]),
    ("GenerateDataKeyWithoutPlaintext", &["KeyId"]),
    ("GenerateMac", &["Message", "KeyId", "MacAlgorithm"]),
    ("GetKeyLastUsage", &["KeyId"]),
    ("GetKeyPolicy", &["KeyId"]),
    ("GetKeyRotationStatus", &["KeyId"]),
    ("GetParametersForImport", &["KeyId", "WrappingAlgorithm", "WrappingKeySpec"]),
    ("GetPublicKey", &["KeyId"]),
    ("ImportKeyMaterial", &["KeyId", "ImportToken", "EncryptedKeyMaterial"]),
    ("ListGrants", &["KeyId"]),
    ("ListKeyPolicies", &["KeyId"]),
    ("ListKeyRotations", &["KeyId"]),
    ("ListResourceTags", &["KeyId"]),
    ("PutKeyPolicy", &["KeyId", "Policy"]),
    ("ReEncrypt", &["DestinationKeyId"]),
    ("ReplicateKey", &["KeyId", "ReplicaRegion"]),
    ("RevokeGrant", &["KeyId", "GrantId"]),
    ("RotateKeyOnDemand", &["KeyId"]),
    ("ScheduleKeyDeletion", &["KeyId"]),
    ("Sign", &["KeyId", "Message", "SigningAlgorithm"]),
    ("TagResource", &["KeyId", "Tags"]),
    ("UntagResource", &["KeyId", "TagKeys"]),
    ("UpdateAlias", &["AliasName", "TargetKeyId"]),
    ("UpdateCustomKeyStore", &["CustomKeyStoreId"]),
    ("UpdateKeyDescription", &["KeyId", "Description"]),
    ("UpdatePrimaryRegion", &["KeyId", "PrimaryRegion"]),
    ("Verify", &["KeyId", "Message", "Signature", "SigningAlgorithm"]),
    ("VerifyMac", &["Message", "KeyId", "MacAlgorithm", "Mac"]),
    (
        "CreateCertificateAuthority",
        &["CertificateAuthorityConfiguration", "CertificateAuthorityType"],
    ),
    (
        "CreateCertificateAuthorityAuditReport",
        &["CertificateAuthorityArn", "S3BucketName", "AuditReportResponseFormat"],
    ),
    ("CreatePermission", &["CertificateAuthorityArn", "Principal", "Actions"]),
    ("DeleteCertificateAuthority", &["CertificateAuthorityArn"]),
    ("DeletePermission", &["CertificateAuthorityArn", "Principal"]),
    ("DeletePolicy", &["ResourceArn"]),
    ("DescribeCertificateAuthorityAuditReport", &["CertificateAuthorityArn", "AuditReportId"]),
    ("GetPolicy", &["ResourceArn"]),
    ("ListPermissions", &["CertificateAuthorityArn"]),
    ("PutPolicy", &["ResourceArn", "Policy"]),
    ("RestoreCertificateAuthority", &["CertificateAuthorityArn"]),
    ("RevokeCertificate", &["CertificateAuthorityArn", "CertificateSerial", "RevocationReason"]),
    ("UntagCertificateAuthority", &["CertificateAuthorityArn", "Tags"]),
    ("DescribeCertificateAuthority", &["CertificateAuthorityArn"]),
    ("GetCertificate", &["CertificateAuthorityArn", "CertificateArn"]),
    ("GetCertificateAuthorityCertificate", &["CertificateAuthorityArn"]),
    ("GetCertificateAuthorityCsr", &["CertificateAuthorityArn"]),
    ("ImportCertificateAuthorityCertificate", &["CertificateAuthorityArn", "Certificate"]),
    ("IssueCertificate", &["CertificateAuthorityArn", "Csr", "SigningAlgorithm", "Validity"]),
    ("ListTags", &["CertificateAuthorityArn"]),
    ("TagCertificateAuthority", &["CertificateAuthorityArn", "Tags"]),
    ("UpdateCertificateAuthority", &["CertificateAuthorityArn"]),
];

/// The same for Certificate Manager, which shares names of operations with others.
const REQUIRED_BY_ACM: &[(&str, &[&str])] = &[
    ("AddTagsToCertificate", &["CertificateArn", "Tags"]),
    ("CreateAcmeDomainValidation", &["AcmeEndpointArn", "DomainName", "PrevalidationOptions"]),
    ("CreateAcmeEndpoint", &["AuthorizationBehavior", "CertificateAuthority"]),
    ("CreateAcmeExternalAccountBinding", &["AcmeEndpointArn", "RoleArn"]),
    ("DeleteAcmeDomainValidation", &["AcmeDomainValidationArn"]),
    ("DeleteAcmeEndpoint", &["AcmeEndpointArn"]),
    ("DeleteAcmeExternalAccountBinding", &["AcmeExternalAccountBindingArn"]),
    ("DeleteCertificate", &["CertificateArn"]),
    ("DescribeAcmeAccount", &["AcmeEndpointArn", "AccountUrl"]),
    ("DescribeAcmeDomainValidation", &["AcmeDomainValidationArn"]),
    ("DescribeAcmeEndpoint", &["AcmeEndpointArn"]),
    ("DescribeAcmeExternalAccountBinding", &["AcmeExternalAccountBindingArn"]),
    ("DescribeCertificate", &["CertificateArn"]),
    ("ExportCertificate", &["CertificateArn", "Passphrase"]),
    ("GetAcmeExternalAccountBindingCredentials", &["AcmeExternalAccountBindingArn"]),
    ("GetCertificate", &["CertificateArn"]),
    ("ImportCertificate", &["Certificate", "PrivateKey"]),
    ("ListAcmeAccounts", &["AcmeEndpointArn"]),
    ("ListAcmeDomainValidations", &["AcmeEndpointArn"]),
    ("ListAcmeExternalAccountBindings", &["AcmeEndpointArn"]),
    ("ListCertificateDomainValidations", &["CertificateArn"]),
    ("ListTagsForCertificate", &["CertificateArn"]),
    ("ListTagsForResource", &["ResourceArn"]),
    ("PutAccountConfiguration", &["IdempotencyToken"]),
    ("RemoveTagsFromCertificate", &["CertificateArn", "Tags"]),
    ("RenewCertificate", &["CertificateArn"]),
    ("RequestCertificate", &["DomainName"]),
    ("ResendValidationEmail", &["CertificateArn", "Domain", "ValidationDomain"]),
    ("RevokeAcmeAccount", &["AcmeEndpointArn", "AccountUrl"]),
    ("RevokeAcmeExternalAccountBinding", &["AcmeExternalAccountBindingArn"]),
    ("RevokeCertificate", &["CertificateArn", "RevocationReason"]),
    ("TagResource", &["ResourceArn", "Tags"]),
    ("UntagResource", &["ResourceArn", "TagKeys"]),
    ("UpdateAcmeDomainValidation", &["AcmeDomainValidationArn"]),
    ("UpdateAcmeEndpoint", &["AcmeEndpointArn"]),
    ("UpdateCertificateOptions", &["CertificateArn", "Options"]),
];

/// Members whose type is not checked: they belong to features that are refused, or are read and dropped.
const UNTYPED: &[&str] = &["Recipient", "XksKeyId"];

struct Setting {
    fixture: Fixture,
    key: String,
    authority: String,
    /// A certificate of Certificate Manager, an ACME endpoint, and its resources.
    certificate: String,
    endpoint: String,
    binding: String,
    validation: String,
}

impl Setting {
    fn new() -> Self {
        let fixture = Fixture::new();
        let key = fixture.key(json!({}));
        fixture.kms("CreateAlias", json!({ "AliasName": "alias/x", "TargetKeyId": key })).unwrap();
        let active = certificates::ca(&fixture);
        let certificate = certificates::requested(&fixture, &active, "a.example.com", json!({}));
        let none = String::new;
        let mut setting = Self {
            fixture,
            key,
            authority: none(),
            certificate,
            endpoint: none(),
            binding: none(),
            validation: none(),
        };
        let body = Value::Object(setting.least(&ACM_PCA, "CreateCertificateAuthority"));
        let made = setting.send(&ACM_PCA, "CreateCertificateAuthority", &body);
        let made: Value = serde_json::from_slice(&made.body).unwrap();
        text(&made["CertificateAuthorityArn"]).clone_into(&mut setting.authority);
        let trust = json!({ "Version": "2012-10-17", "Statement": [{
            "Effect": "Allow", "Principal": { "Service": "acm-acme.amazonaws.com" },
            "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
        }] });
        setting.fixture.role(ACCOUNT, "acme", &trust, &[]);
        let made = |setting: &Self, operation: &str| {
            let body = Value::Object(setting.least(&ACM, operation));
            let made = setting.send(&ACM, operation, &body);
            serde_json::from_slice::<Value>(&made.body).unwrap()
        };
        let found = made(&setting, "CreateAcmeEndpoint");
        text(&found["AcmeEndpointArn"]).clone_into(&mut setting.endpoint);
        let found = made(&setting, "CreateAcmeExternalAccountBinding");
        text(&found["ExternalAccountBinding"]["AcmeExternalAccountBindingArn"])
            .clone_into(&mut setting.binding);
        let found = made(&setting, "CreateAcmeDomainValidation");
        text(&found["AcmeDomainValidationArn"]).clone_into(&mut setting.validation);
        setting
    }

    fn send(&self, service: &ServiceRow, operation: &str, body: &Value) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        let target = format!("{}.{operation}", service.model.target_prefix);
        headers.insert("x-amz-target", target.parse().unwrap());
        let body = body.to_string();
        assert!(body.len() < service.model.max_body, "the body itself would be refused");
        self.fixture.request(&Who::admin(), service.model.signing_name, headers, body.as_bytes())
    }

    /// The required members with values of the right type; keys and CAs exist.
    fn least(&self, service: &ServiceRow, operation: &str) -> Map<String, Value> {
        let of_kms = service.model.signing_name == "kms";
        let of_acm = service.model.signing_name == "acm";
        required(service, operation)
            .iter()
            .map(|name| {
                let value = match *name {
                    "KeyId" | "TargetKeyId" | "DestinationKeyId" => json!(self.key),
                    "CertificateAuthorityArn" => json!(self.authority),
                    "CertificateArn" | "ResourceArn" if of_acm => json!(self.certificate),
                    "AcmeEndpointArn" => json!(self.endpoint),
                    "AcmeExternalAccountBindingArn" => json!(self.binding),
                    "AcmeDomainValidationArn" => json!(self.validation),
                    "AuthorizationBehavior" => json!("CHALLENGE"),
                    "CertificateAuthority" => json!({
                        "PrivateCertificateAuthority": { "CertificateAuthorityArn": self.authority },
                    }),
                    "PrevalidationOptions" => json!({ "DnsPrevalidation": {} }),
                    "RoleArn" => json!(format!("arn:aws:iam::{ACCOUNT}:role/acme")),
                    "DomainName" | "Domain" => json!("a.example.com"),
                    "ValidationDomain" => json!("example.com"),
                    "Options" => json!({}),
                    "Passphrase" | "PrivateKey" => json!(b64(b"bytes")),
                    "ResourceArn" => json!(self.authority),
                    "S3BucketName" => json!("bucket"),
                    "AuditReportResponseFormat" => json!("JSON"),
                    "AuditReportId" => json!("11111111-2222-3333-4444-555555555555"),
                    "Principal" => json!("acm.amazonaws.com"),
                    "Actions" => json!(["GetCertificate"]),
                    "CertificateSerial" => json!("00"),
                    "RevocationReason" => json!("UNSPECIFIED"),
                    "CertificateArn" => json!(format!("{}/certificate/00", self.authority)),
                    "AliasName" => json!("alias/y"),
                    "Operations" => json!(["Decrypt"]),
                    "Tags" if of_kms => json!([{ "TagKey": "a", "TagValue": "b" }]),
                    "Tags" => json!([{ "Key": "a" }]),
                    "TagKeys" => json!(["a"]),
                    "Message"
                    | "Mac"
                    | "Signature"
                    | "Plaintext"
                    | "PublicKey"
                    | "ImportToken"
                    | "EncryptedKeyMaterial"
                    | "SharedSecretCiphertextBlob"
                    | "Csr"
                    | "Certificate" => {
                        json!(b64(b"bytes"))
                    }
                    "SigningAlgorithm" if !of_kms => json!("SHA256WITHECDSA"),
                    "Validity" => json!({ "Type": "DAYS", "Value": 1 }),
                    "CertificateAuthorityType" => json!("ROOT"),
                    "CertificateAuthorityConfiguration" => json!({
                        "KeyAlgorithm": "EC_prime256v1", "SigningAlgorithm": "SHA256WITHECDSA",
                        "Subject": { "CommonName": "x" },
                    }),
                    _ => json!("text"),
                };
                ((*name).to_owned(), value)
            })
            .collect()
    }

    /// All records, except the audit events.
    fn records(&self) -> Vec<(String, Vec<u8>)> {
        self.fixture.store_without_uses()
    }
}

fn required(service: &ServiceRow, operation: &str) -> &'static [&'static str] {
    let rows = if service.model.signing_name == "acm" { REQUIRED_BY_ACM } else { REQUIRED };
    rows.iter().find(|(name, _)| *name == operation).map_or(&[], |(_, members)| members)
}

fn each_operation(mut check: impl FnMut(&'static ServiceRow, &'static Row)) {
    for service in [&KMS, &ACM_PCA, &ACM] {
        service.operations.iter().for_each(|row| check(service, row));
    }
}

#[test]
fn what_is_required_is_a_member() {
    let operations = KMS.operations.iter().chain(ACM_PCA.operations);
    let rows: Vec<_> = operations.collect();
    for (operation, members) in REQUIRED {
        let row = rows.iter().find(|row| row.name == *operation).expect(operation);
        let known = row.input.names();
        assert!(members.iter().all(|name| known.contains(name)), "{operation}");
    }
    for (operation, members) in REQUIRED_BY_ACM {
        let row = ACM.operations.iter().find(|row| row.name == *operation).expect(operation);
        let known = row.input.names();
        assert!(members.iter().all(|name| known.contains(name)), "{operation}");
    }
}

#[test]
fn a_missing_member_is_named() {
    let setting = Setting::new();
    each_operation(|service, row| {
        for missing in required(service, row.name) {
            let mut body = setting.least(service, row.name);
            body.remove(*missing);
            let response = setting.send(service, row.name, &Value::Object(body));
            let text = String::from_utf8(response.body.clone()).unwrap();
            assert_eq!(
                error_code(&response),
                "ValidationException",
                "{} {missing}: {text}",
                row.name
            );
            let (first, rest) = missing.split_at(1);
            let member = row.input.members().iter().find(|member| member.name == *missing);
            let hidden = member.and_then(|member| member.shape).is_some_and(|s| s.is_sensitive);
            let null = if hidden { "" } else { "null " };
            let name = format!("Value {null}at '{}{rest}'", first.to_ascii_lowercase());
            assert!(text.contains(&name), "{} {missing}: {text}", row.name);
        }
    });
}

#[test]
fn a_member_of_the_wrong_type_is_refused() {
    let setting = Setting::new();
    let before = setting.records();
    each_operation(|service, row| {
        for member in row.input.names().iter().filter(|name| !UNTYPED.contains(name)) {
            // One of them may be of the right type.
            let wrong = [json!([1]), json!({ "a": {} }), json!(5.5)];
            let refused = wrong.iter().filter(|value| {
                let mut body = setting.least(service, row.name);
                body.insert((*member).to_owned(), (*value).clone());
                let response = setting.send(service, row.name, &Value::Object(body));
                assert_eq!(response.status, 400, "{} {member}", row.name);
                let code = error_code(&response);
                matches!(code.as_str(), "SerializationException" | "ValidationException")
            });
            assert!(refused.count() >= 2, "{} {member}", row.name);
        }
    });
    assert_eq!(setting.records(), before);
}

#[test]
fn an_unknown_member_is_refused() {
    let setting = Setting::new();
    let before = setting.records();
    each_operation(|service, row| {
        for name in ["Unknown", "keyId", "KeyID", ""] {
            let mut body = setting.least(service, row.name);
            body.insert(name.to_owned(), json!("x"));
            let response = setting.send(service, row.name, &Value::Object(body));
            assert_eq!(error_code(&response), "SerializationException", "{} {name}", row.name);
        }
    });
    assert_eq!(setting.records(), before);
}

#[test]
fn a_member_that_is_too_large_is_refused_and_not_recorded() {
    let setting = Setting::new();
    let before = setting.records();
    let long = "x".repeat(200_000);
    let map: Map<_, _> = (0..5000).map(|number| (number.to_string(), json!("x"))).collect();
    let large = [
        json!(long),
        json!(b64(&[b'x'; 150_000])),
        json!(vec!["x"; 5000]),
        json!([long]),
        json!(vec![json!({ "TagKey": "x", "TagValue": "y" }); 5000]),
        json!([{ "TagKey": long, "TagValue": "y" }]),
        json!(vec![json!({ "Key": "x", "Value": "y" }); 5000]),
        json!(map),
        json!({ "x": long }),
        json!({ (long.clone()): "x" }),
        json!({ "EncryptionContextSubset": map }),
        json!({ "SourceArn": long }),
    ];
    let mut faults = BTreeSet::new();
    each_operation(|service, row| {
        for member in row.input.names() {
            for value in &large {
                let mut body = setting.least(service, row.name);
                body.insert((*member).to_owned(), value.clone());
                let response = setting.send(service, row.name, &Value::Object(body));
                let text: String =
                    String::from_utf8_lossy(&response.body).chars().take(200).collect();
                let sequence = setting.fixture.store.last_event().unwrap();
                let event = setting.fixture.store.events(sequence - 1, 1).unwrap().remove(0);
                let sizes = (response.body.len(), event.body.len());
                if response.status != 400 || sizes.0 > 8192 || sizes.1 > 8192 {
                    faults.insert(format!("{} {member} {sizes:?} {text}", row.name));
                }
            }
        }
    });
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(setting.records(), before);
}
