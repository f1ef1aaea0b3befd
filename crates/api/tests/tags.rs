//! Tags: setting them takes permission to tag, whichever operation sets them; and no two keys differ only in case.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::acme_support;
use crate::certificates;
use crate::common;

use crate::rolesanywhere_support::{Holder, anchor};
use acme_support::world::{World, call};
use certificates::{described, importable, requested};
use common::{ACCOUNT, Answer, Fixture, REGION, Refused, Who, policy, text, with};
use outlast_api::ops::SERVICES;
use serde_json::{Value, json};

/// What an operation does with a member that has `Tag` in its name.
enum Does {
    /// It creates a resource with these tags, which takes `action`. `request` creates it without tags.
    Creates { action: &'static str, request: fn(&World) -> Value },
    /// It tags an existing resource.
    Tags,
    /// It removes tags, or searches by them.
    Reads,
    /// It keeps tags for resources that are made later, when permission to tag is checked.
    Keeps,
}

use Does::{Creates, Keeps, Reads, Tags};

/// Every member of an operation with `Tag` in its name.
const TABLE: &[(&str, &str, &str, Does)] = &[
    ("kms", "CreateKey", "Tags", Creates { action: "kms:TagResource", request: |_| json!({}) }),
    (
        "kms",
        "ReplicateKey",
        "Tags",
        Creates {
            action: "kms:TagResource",
            request: |world| {
                let key = world.fixture.key(json!({ "MultiRegion": true }));
                json!({ "KeyId": key, "ReplicaRegion": "eu-central-1" })
            },
        },
    ),
    ("kms", "TagResource", "Tags", Tags),
    ("kms", "UntagResource", "TagKeys", Reads),
    (
        "acm-pca",
        "CreateCertificateAuthority",
        "Tags",
        Creates {
            action: "acm-pca:TagCertificateAuthority",
            request: |_| {
                json!({
                    "CertificateAuthorityType": "ROOT",
                    "CertificateAuthorityConfiguration": {
                        "KeyAlgorithm": "EC_prime256v1", "SigningAlgorithm": "SHA256WITHECDSA",
                        "Subject": { "CommonName": "x" },
                    },
                })
            },
        },
    ),
    ("acm-pca", "TagCertificateAuthority", "Tags", Tags),
    ("acm-pca", "UntagCertificateAuthority", "Tags", Reads),
    (
        "acm",
        "RequestCertificate",
        "Tags",
        Creates { action: "acm:AddTagsToCertificate", request: certificate },
    ),
    (
        "acm",
        "ImportCertificate",
        "Tags",
        Creates { action: "acm:AddTagsToCertificate", request: import },
    ),
    ("acm", "AddTagsToCertificate", "Tags", Tags),
    ("acm", "RemoveTagsFromCertificate", "Tags", Reads),
    ("acm", "TagResource", "Tags", Tags),
    ("acm", "UntagResource", "TagKeys", Reads),
    ("acm", "CreateAcmeEndpoint", "Tags", Creates { action: "acm:TagResource", request: endpoint }),
    ("acm", "CreateAcmeEndpoint", "CertificateTags", Keeps),
    (
        "acm",
        "CreateAcmeDomainValidation",
        "Tags",
        Creates {
            action: "acm:TagResource",
            request: |world| {
                json!({
                    "AcmeEndpointArn": world.another("CHALLENGE", json!({})), "DomainName": "a.example",
                    "PrevalidationOptions": { "DnsPrevalidation": { "DomainScope": { "ExactDomain": "ENABLED" } } },
                })
            },
        },
    ),
    (
        "acm",
        "CreateAcmeExternalAccountBinding",
        "Tags",
        Creates {
            action: "acm:TagResource",
            request: |world| json!({ "AcmeEndpointArn": world.endpoint, "RoleArn": world.role }),
        },
    ),
    (
        "rolesanywhere",
        "CreateTrustAnchor",
        "tags",
        Creates {
            action: "rolesanywhere:TagResource",
            request: |_| json!({ "name": "a", "source": source(&Holder::root("ECC_NIST_P256", "CN=Root")) }),
        },
    ),
    (
        "rolesanywhere",
        "CreateProfile",
        "tags",
        Creates {
            action: "rolesanywhere:TagResource",
            request: |_| json!({ "name": "p", "roleArns": [] }),
        },
    ),
    (
        "rolesanywhere",
        "ImportCrl",
        "tags",
        Creates { action: "rolesanywhere:TagResource", request: crl },
    ),
    ("rolesanywhere", "TagResource", "tags", Tags),
    ("rolesanywhere", "UntagResource", "tagKeys", Reads),
    (
        "secretsmanager",
        "CreateSecret",
        "Tags",
        Creates {
            action: "secretsmanager:TagResource",
            request: |world| json!({ "Name": format!("s{}", world.fixture.events().len()) }),
        },
    ),
    ("secretsmanager", "TagResource", "Tags", Tags),
    ("secretsmanager", "UntagResource", "TagKeys", Reads),
    (
        "transfer",
        "CreateConnector",
        "Tags",
        Creates {
            action: "transfer:TagResource",
            request: |world| {
                let number = world.fixture.events().len();
                let role =
                    crate::transfer_support::connector_role(&world.fixture, &format!("c{number}"));
                json!({ "Url": "sftp://a.example", "AccessRole": role })
            },
        },
    ),
    (
        "transfer",
        "CreateServer",
        "Tags",
        Creates { action: "transfer:TagResource", request: |_| json!({}) },
    ),
    (
        "transfer",
        "CreateUser",
        "Tags",
        Creates {
            action: "transfer:TagResource",
            request: |world| {
                let number = world.fixture.events().len();
                let role = crate::transfer_support::role(&world.fixture, &format!("sftp{number}"));
                json!({ "ServerId": served(world), "UserName": format!("user{number}"), "Role": role })
            },
        },
    ),
    (
        "transfer",
        "ImportHostKey",
        "Tags",
        Creates {
            action: "transfer:TagResource",
            request: |world| {
                let key = outlast_ssh::PrivateKey::generate(outlast_ssh::KeyKind::Ed25519).unwrap();
                let key = key.to_openssh_pem("").unwrap();
                let body = String::from_utf8_lossy(key.expose()).into_owned();
                json!({ "ServerId": served(world), "HostKeyBody": body })
            },
        },
    ),
    (
        "transfer",
        "CreateWorkflow",
        "Tags",
        Creates {
            action: "transfer:TagResource",
            request: |_| crate::transfer_support::a_workflow(),
        },
    ),
    ("transfer", "TagResource", "Tags", Tags),
    ("transfer", "UntagResource", "TagKeys", Reads),
    ("sts", "AssumeRole", "Tags", Creates { action: "sts:TagSession", request: role }),
    // These are keys of session tags.
    ("sts", "AssumeRole", "TransitiveTagKeys", Reads),
];

/// An SFTP server, the only one.
fn served(world: &World) -> String {
    let listed = world.fixture.transfer("ListServers", json!({})).unwrap();
    match listed["Servers"].as_array().unwrap().first() {
        Some(server) => text(&server["ServerId"]).to_owned(),
        None => world.fixture.server(json!({})),
    }
}

fn certificate(world: &World) -> Value {
    json!({
        "DomainName": "a.example.com", "CertificateAuthorityArn": world.authority,
        "KeyAlgorithm": "EC_prime256v1",
    })
}

/// A certificate of our own, with its key.
fn import(world: &World) -> Value {
    let arn = requested(&world.fixture, &world.authority, "a.example.com", json!({}));
    importable(&world.fixture, &arn)
}

fn source(root: &Holder) -> Value {
    json!({
        "sourceType": "CERTIFICATE_BUNDLE", "sourceData": { "x509CertificateData": root.pem() },
    })
}

/// A CRL for an anchor that has none.
fn crl(world: &World) -> Value {
    let root = Holder::root("ECC_NIST_P256", "CN=Root");
    let anchor = anchor(&world.fixture, &root.pem());
    let data = common::b64(&root.crl(&[], common::NOW));
    json!({ "name": "c", "trustAnchorArn": anchor, "crlData": data })
}

fn endpoint(world: &World) -> Value {
    json!({
        "AuthorizationBehavior": "CHALLENGE",
        "CertificateAuthority": { "PrivateCertificateAuthority": { "CertificateAuthorityArn": world.authority } },
    })
}

fn role(world: &World) -> Value {
    let name = format!("assumed{}", world.fixture.events().len());
    let trust = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": ["sts:AssumeRole", "sts:TagSession"],
    }]));
    let arn = world.fixture.role(ACCOUNT, &name, &trust, &[]);
    json!({ "RoleArn": arn, "RoleSessionName": "session" })
}

/// Calls any operation; STS's members as a form, with tags in its notation.
fn send(fixture: &Fixture, who: &Who, service: &str, operation: &str, body: &Value) -> Answer {
    if service == "rolesanywhere" {
        return fixture.ra_as(who, operation, lower_tags(body));
    }
    if service != "sts" {
        let body = if service == "kms" { kms_tags(body) } else { body.clone() };
        return match service {
            "kms" => fixture.kms_as(who, operation, body),
            "secretsmanager" => fixture.secrets_as(who, operation, &body),
            "transfer" => fixture.transfer_as(who, operation, &body),
            _ => call(fixture, who, service, operation, &body),
        };
    }
    let mut form = vec![("Action".to_owned(), operation.to_owned())];
    for (name, value) in body.as_object().unwrap() {
        let Some(tags) = value.as_array() else {
            form.push((name.clone(), text(value).to_owned()));
            continue;
        };
        for (number, tag) in tags.iter().enumerate() {
            for member in ["Key", "Value"] {
                let record_key = format!("Tags.member.{}.{member}", number + 1);
                form.push((record_key, text(&tag[member]).to_owned()));
            }
        }
    }
    let form: Vec<_> = form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let response = fixture.sts_as(who, &form);
    let xml = String::from_utf8(response.body).unwrap();
    if response.status == 200 {
        return Ok(json!(xml));
    }
    Err(Refused {
        code: common::element(&xml, "Code"),
        message: common::element(&xml, "Message"),
        status: response.status,
    })
}

/// Roles Anywhere writes members in camel case.
fn lower_tags(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(tags) = body.as_object_mut().unwrap().remove("Tags") {
        let tags = tags.as_array().unwrap().iter();
        let tags: Vec<_> =
            tags.map(|tag| json!({ "key": tag["Key"], "value": tag["Value"] })).collect();
        body["tags"] = json!(tags);
    }
    body
}

/// KMS has its own names for the members of a tag.
fn kms_tags(body: &Value) -> Value {
    let Some(tags) = body.get("Tags") else { return body.clone() };
    let tags: Vec<_> = tags
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| json!({ "TagKey": tag["Key"], "TagValue": tag["Value"] }))
        .collect();
    with(body, json!({ "Tags": tags }))
}

#[test]
fn every_member_with_tags_is_known() {
    let mut found = Vec::new();
    for service in SERVICES {
        for row in service.operations {
            for member in row.input.names() {
                if member.to_ascii_lowercase().contains("tag") && !member.contains("Stage") {
                    found.push((service.model.signing_name, row.name, member));
                }
            }
        }
    }
    let mut known: Vec<_> =
        TABLE.iter().map(|(service, name, member, _)| (*service, *name, *member)).collect();
    found.sort_unstable();
    known.sort_unstable();
    assert_eq!(found, known, "an operation with tags says here what it does with them");
    println!("{} members with tags in {} services", found.len(), SERVICES.len());
}

#[test]
fn making_something_with_tags_takes_the_right_to_tag() {
    let world = World::new();
    let fixture = &world.fixture;
    let tags = json!({ "Tags": [{ "Key": "team", "Value": "x" }] });
    let mut tried = 0;
    for (number, (service, operation, _, does)) in TABLE.iter().enumerate() {
        let Creates { action, request } = does else { continue };
        let all = json!({ "Effect": "Allow", "Action": "*", "Resource": "*" });
        let without = policy(json!([
            { "Effect": "Allow", "NotAction": [action], "Resource": "*" },
        ]));
        let denied = policy(json!([all, { "Effect": "Deny", "Action": action, "Resource": "*" }]));
        let other = policy(json!([
            all,
            { "Effect": "Deny", "Action": action, "Resource": "*",
              "Condition": { "StringNotEquals": { "aws:RequestTag/team": "y" } } },
        ]));
        for (name, document) in [("without", without), ("denied", denied), ("other", other)] {
            let who = fixture.user(ACCOUNT, &format!("{name}{number}"), &[document]);
            // A trust policy for the whole account leaves the decision to the caller's policies, as a role's does.
            let refused =
                send(fixture, &who, service, operation, &with(&request(&world), tags.clone()));
            let refused = refused.expect_err(&format!("{operation} {name}"));
            assert!(
                refused.code.starts_with("AccessDenied"),
                "{operation} {name}: {}",
                refused.code
            );
            assert!(refused.message.contains(action), "{operation}: {}", refused.message);
            send(fixture, &who, service, operation, &request(&world)).unwrap();
        }
        let who = fixture.user(ACCOUNT, &format!("all{number}"), &[policy(json!([all]))]);
        send(fixture, &who, service, operation, &with(&request(&world), tags.clone())).unwrap();
        tried += 1;
    }
    println!("{tried} operations make something with tags");
    assert_eq!(tried, 18);
}

#[test]
fn tag_keys_that_differ_in_case_only_are_refused() {
    let world = World::new();
    let fixture = &world.fixture;
    let admin = Who::admin();
    let two = json!({ "Tags": [{ "Key": "Team", "Value": "x" }, { "Key": "team", "Value": "y" }] });
    let code_of = |service: &str, operation: &str| match (service, operation) {
        ("kms", _) => "TagException",
        ("acm", operation) if operation.contains("Acme") => "ValidationException",
        ("acm", "TagResource") | ("sts" | "rolesanywhere", _) => "ValidationException",
        ("secretsmanager", _) => "InvalidParameterException",
        ("transfer", _) => "InvalidRequestException",
        _ => "InvalidTagException",
    };
    let mut tried = 0;
    for (service, operation, _, does) in TABLE {
        let Creates { request, .. } = does else { continue };
        let refused =
            send(fixture, &admin, service, operation, &with(&request(&world), two.clone()));
        let refused = refused.expect_err(operation);
        let code = code_of(service, operation);
        let code = if *service == "sts" { "ValidationError" } else { code };
        assert_eq!(refused.code, code, "{operation}: {}", refused.message);
        assert!(refused.message.contains("in case only"), "{operation}: {}", refused.message);
        tried += 1;
    }
    // A resource that has one of them does not get the other, and may have its value replaced.
    let key = fixture.key(json!({}));
    let certificate = requested(fixture, &world.authority, "b.example.com", json!({}));
    let certificate = text(&described(fixture, &certificate)["CertificateArn"]).to_owned();
    for (service, operation, id) in [
        ("kms", "TagResource", json!({ "KeyId": key })),
        (
            "acm-pca",
            "TagCertificateAuthority",
            json!({ "CertificateAuthorityArn": world.authority }),
        ),
        ("acm", "AddTagsToCertificate", json!({ "CertificateArn": certificate })),
        ("acm", "TagResource", json!({ "ResourceArn": world.endpoint })),
        ("secretsmanager", "TagResource", json!({ "SecretId": fixture.secret("tagged", "x") })),
    ] {
        let add = |key: &str, value: &str| {
            let tags = json!({ "Tags": [{ "Key": key, "Value": value }] });
            send(fixture, &admin, service, operation, &with(&id, tags))
        };
        add("Team", "x").unwrap();
        add("Team", "y").unwrap();
        for other in ["team", "TEAM"] {
            let refused = add(other, "z").expect_err(operation);
            assert_eq!(refused.code, code_of(service, operation), "{operation}");
        }
        let refused = send(fixture, &admin, service, operation, &with(&id, two.clone()));
        assert_eq!(refused.unwrap_err().code, code_of(service, operation));
        add("teams", "z").unwrap();
        tried += 1;
    }
    println!("{tried} operations refuse keys that differ in case only");
}

#[test]
fn tags_that_differ_only_in_case_are_handled_safely() {
    let world = World::new();
    let fixture = &world.fixture;
    let key = fixture.key(json!({ "Tags": [{ "TagKey": "Team", "TagValue": "red" }] }));
    let record_key = format!("kms/key/{ACCOUNT}/{REGION}/{key}");
    fixture.directory(|work| {
        let mut record = work.get::<Value>(&record_key).unwrap().unwrap();
        record["tags"]["team"] = "blue".into();
        work.put(&record_key, &record).unwrap();
    });
    let all = json!({ "Effect": "Allow", "Action": "kms:*", "Resource": "*" });
    let mut number = 0;
    let mut may = |effect: &str, condition: Value| {
        number += 1;
        let one =
            json!({ "Effect": effect, "Action": "kms:*", "Resource": "*", "Condition": condition });
        let list = if effect == "Deny" { json!([all, one]) } else { json!([one]) };
        let who = fixture.user(ACCOUNT, &format!("u{number}"), &[policy(list)]);
        fixture.kms_as(&who, "GetKeyRotationStatus", json!({ "KeyId": key })).is_ok()
    };
    for operator in ["StringEquals", "ForAnyValue:StringEquals", "StringEqualsIfExists"] {
        for value in ["red", "blue"] {
            let condition = json!({ operator: { "aws:ResourceTag/TEAM": value } });
            assert!(!may("Allow", condition.clone()), "{operator} {value}");
            assert!(!may("Deny", condition), "{operator} {value}");
        }
        let both = json!({ operator: { "aws:ResourceTag/team": ["red", "blue"] } });
        assert!(may("Allow", both));
        assert!(may("Deny", json!({ operator: { "aws:ResourceTag/team": "green" } })));
    }
    let not = |value: &str| json!({ "StringNotEquals": { "aws:ResourceTag/team": value } });
    assert!(!may("Allow", not("red")));
    assert!(may("Allow", not("green")));
    assert!(!may("Deny", not("red")), "blue is not red");
}
