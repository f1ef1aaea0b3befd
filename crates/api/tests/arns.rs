//! ARNs: an explicit deny on an ARN holds however a caller spells it, and partitions follow Regions.
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

use acme_support::world::{World, call};
use common::{ACCOUNT, Fixture, OTHER_ACCOUNT, Who, code, element, key_policy, policy, text};
use outlast_domain::identity::{Entry, User};
use serde_json::{Value, json};

/// Spellings of an ARN that were once accepted for it.
fn spelled(arn: &str) -> Vec<String> {
    let other = |partition: &str| arn.replacen("arn:aws:", &format!("arn:{partition}:"), 1);
    let mut all = vec![other("aws-x"), other("aws-cn"), other("awsome"), other("aws ")];
    if let Some(rest) = arn.strip_prefix("arn:aws:iam::") {
        all.push(format!("arn:aws:iam:zz:{rest}"));
        all.push(format!("arn:aws:iam:eu-west-1:{rest}"));
    }
    all
}

/// A user who may do everything but `action` on `resource`.
fn all_but(world: &World, name: &str, action: &str, resource: &str, condition: &Value) -> Who {
    let statements = policy(json!([
        { "Effect": "Allow", "Action": "*", "Resource": "*" },
        { "Effect": "Deny", "Action": action, "Resource": resource, "Condition": condition },
    ]));
    world.fixture.user(ACCOUNT, name, &[statements])
}

/// The call is refused for the canonical ARN and for each spelling, and changes nothing.
#[track_caller]
fn refused(world: &World, who: &Who, operation: &str, arn: &str, body: impl Fn(&str) -> Value) {
    let before = world.fixture.store_without_uses();
    let mut spellings = spelled(arn);
    spellings.push(arn.to_owned());
    for spelling in spellings {
        let answer = call(&world.fixture, who, "acm", operation, &body(&spelling));
        assert!(answer.is_err(), "{operation} was carried out for {spelling}");
        for event in world.fixture.events() {
            for resource in event["resources"].as_array().unwrap() {
                let named = text(&resource["ARN"]);
                assert!(
                    named == arn || spelling == arn || named != spelling,
                    "{operation}: {named} is recorded"
                );
            }
        }
    }
    assert!(world.fixture.store_without_uses() == before, "{operation} changed something");
    call(&world.fixture, &Who::admin(), "acm", operation, &body(arn)).unwrap();
}

#[test]
fn request_certificate_by_another_spelling_of_the_ca() {
    let world = World::new();
    let condition = json!({ "StringEquals": { "acm:CertificateAuthority": world.authority } });
    let who = all_but(&world, "eve", "acm:RequestCertificate", "*", &condition);
    refused(
        &world,
        &who,
        "RequestCertificate",
        &world.authority,
        |arn| json!({ "DomainName": "a.example", "CertificateAuthorityArn": arn, "KeyAlgorithm": "EC_prime256v1" }),
    );
}

#[test]
fn a_role_is_not_passed_by_another_spelling() {
    let world = World::new();
    let who = all_but(&world, "eve", "iam:PassRole", &world.role, &json!({}));
    refused(
        &world,
        &who,
        "CreateAcmeExternalAccountBinding",
        &world.role,
        |arn| json!({ "AcmeEndpointArn": world.endpoint, "RoleArn": arn }),
    );
}

#[test]
fn acme_resources_need_their_own_arns() {
    for kind in ["endpoint", "binding", "validation"] {
        let world = World::new();
        let arn = match kind {
            "endpoint" => world.endpoint.clone(),
            "binding" => world.binding(json!({})).0,
            _ => {
                let made = world.acm("CreateAcmeDomainValidation", json!({
                    "AcmeEndpointArn": world.endpoint, "DomainName": "a.example",
                    "PrevalidationOptions": { "DnsPrevalidation": { "DomainScope": { "ExactDomain": "ENABLED" } } },
                }));
                text(&made["AcmeDomainValidationArn"]).to_owned()
            }
        };
        let who = all_but(&world, "eve", "acm:*", &arn, &json!({}));
        let tag = json!([{ "Key": "team", "Value": "x" }]);
        refused(
            &world,
            &who,
            "TagResource",
            &arn,
            |arn| json!({ "ResourceArn": arn, "Tags": tag }),
        );
        refused(
            &world,
            &who,
            "UntagResource",
            &arn,
            |arn| json!({ "ResourceArn": arn, "TagKeys": ["team"] }),
        );
        let (operation, member) = match kind {
            "endpoint" => ("DeleteAcmeEndpoint", "AcmeEndpointArn"),
            "binding" => ("DeleteAcmeExternalAccountBinding", "AcmeExternalAccountBindingArn"),
            _ => ("DeleteAcmeDomainValidation", "AcmeDomainValidationArn"),
        };
        refused(&world, &who, operation, &arn, |arn| json!({ member: arn }));
    }
}

const CHINA: &str = "cn-north-1";

fn in_china(arn: &str) -> String {
    arn.replacen("arn:aws:", "arn:aws-cn:", 1)
}

#[test]
fn arns_have_the_partition_of_their_region() {
    let fixture = Fixture::new();
    for (region, partition) in [
        ("eu-west-1", "aws"),
        (CHINA, "aws-cn"),
        ("us-gov-west-1", "aws-us-gov"),
        ("us-iso-east-1", "aws-iso"),
        ("eusc-de-east-1", "aws-eusc"),
    ] {
        let who = Who::admin().at(region);
        let made = fixture.kms_as(&who, "CreateKey", json!({})).unwrap();
        let arn = text(&made["KeyMetadata"]["Arn"]).to_owned();
        assert!(arn.starts_with(&format!("arn:{partition}:kms:{region}:{ACCOUNT}:key/")), "{arn}");
        let of = json!({ "KeyId": arn });
        fixture.kms_as(&who, "DescribeKey", of.clone()).unwrap();
        let found = fixture.kms_as(&who, "GetKeyPolicy", of).unwrap();
        let root = format!("\"arn:{partition}:iam::{ACCOUNT}:root\"");
        assert!(text(&found["Policy"]).contains(&root), "{found}");
        let identity = fixture.sts_as(&who, &[("Action", "GetCallerIdentity")]);
        let identity = String::from_utf8(identity.body).unwrap();
        let user = format!("arn:{partition}:iam::{ACCOUNT}:user/admin");
        assert_eq!(element(&identity, "Arn"), user);
        // The log records a principal under one ARN, wherever it calls.
        let last = fixture.events().pop().unwrap();
        assert_eq!(last["userIdentity"]["arn"], format!("arn:aws:iam::{ACCOUNT}:user/admin"));
        for wrong in ["aws", "aws-cn", "aws-x"].iter().filter(|wrong| **wrong != partition) {
            let of = json!({ "KeyId": arn.replacen(partition, wrong, 1) });
            assert_eq!(code(fixture.kms_as(&who, "DescribeKey", of)), "InvalidArnException");
        }
    }
}

#[test]
fn a_multi_region_key_stays_in_its_partition() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({ "MultiRegion": true }));
    for (region, code_of) in [(CHINA, Some("ValidationException")), ("us-east-1", None)] {
        let made = fixture.kms("ReplicateKey", json!({ "KeyId": key, "ReplicaRegion": region }));
        assert_eq!(made.err().map(|refused| refused.code).as_deref(), code_of);
    }
}

#[test]
fn a_deny_holds_in_every_partition_that_can_name_it() {
    let fixture = Fixture::new();
    let trust = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": in_china(&format!("arn:aws:iam::{ACCOUNT}:root")) },
        "Action": "sts:AssumeRole",
    }]));
    let role = fixture.role(ACCOUNT, "role", &trust, &[]);
    let made = fixture.kms_as(&Who::admin().at(CHINA), "CreateKey", json!({})).unwrap();
    let key = text(&made["KeyMetadata"]["Arn"]).to_owned();
    let elsewhere = |arn: &str, partition: &str| {
        let (_, rest) = arn.split_once(":").unwrap();
        format!("arn:{partition}:{}", rest.split_once(':').unwrap().1)
    };
    for (number, (resource, condition)) in [
        (role.clone(), json!({})),
        (in_china(&role), json!({})),
        (elsewhere(&role, "aws-us-gov"), json!({})),
        (elsewhere(&role, "aws*"), json!({})),
        (elsewhere(&role, "aws-*"), json!({})),
        ("*".into(), json!({ "ArnLike": { "aws:PrincipalArn": "arn:aws-cn:iam::*:user/who*" } })),
        (
            "*".into(),
            json!({ "StringLike": { "aws:PrincipalArn": "arn:aws-eusc:iam::*:user/who*" } }),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let denied = policy(json!([
            { "Effect": "Allow", "Action": "*", "Resource": "*" },
            { "Effect": "Deny", "Action": "sts:AssumeRole", "Resource": resource, "Condition": condition },
        ]));
        let who = fixture.user(ACCOUNT, &format!("who{number}"), &[denied]);
        for region in ["eu-west-1", CHINA] {
            for spelling in [&role, &in_china(&role)] {
                let form = [
                    ("Action", "AssumeRole"),
                    ("RoleArn", spelling),
                    ("RoleSessionName", "session"),
                ];
                let answer = fixture.sts_as(&who.at(region), &form);
                assert_eq!(answer.error, Some("AccessDenied"), "{resource} {region} {spelling}");
            }
        }
    }
    // A policy that is older than partitions, or is meant for every Region.
    for (number, resource) in
        [key.clone(), format!("arn:aws:kms:*:{ACCOUNT}:key/*"), elsewhere(&key, "aws-c*")]
            .iter()
            .enumerate()
    {
        let denied = policy(json!([
            { "Effect": "Allow", "Action": "*", "Resource": "*" },
            { "Effect": "Deny", "Action": "kms:*", "Resource": resource },
        ]));
        let who = fixture.user(ACCOUNT, &format!("keys{number}"), &[denied]).at(CHINA);
        let refused = fixture.kms_as(&who, "DescribeKey", json!({ "KeyId": key }));
        assert_eq!(code(refused), "AccessDeniedException", "{resource}");
    }
}

#[test]
fn a_principal_is_the_same_in_every_partition() {
    let fixture = Fixture::new();
    let who = fixture.user(ACCOUNT, "who", &[]);
    let arn = format!("arn:aws:iam::{ACCOUNT}:user/who");
    for name in [&arn, &in_china(&arn)] {
        let statement = json!([{
            "Effect": "Allow", "Principal": { "AWS": name }, "Action": "kms:DescribeKey", "Resource": "*",
        }]);
        let key = fixture.key(json!({ "Policy": key_policy(statement) }));
        fixture.kms_as(&who, "DescribeKey", json!({ "KeyId": key })).unwrap();
        let key = fixture.key(json!({}));
        let of = json!({ "KeyId": key, "GranteePrincipal": name, "Operations": ["DescribeKey"] });
        fixture.kms("CreateGrant", of).unwrap();
        fixture.kms_as(&who, "DescribeKey", json!({ "KeyId": key })).unwrap();
        let listed = json!({ "KeyId": key, "GranteePrincipal": in_china(&arn) });
        let listed = fixture.kms("ListGrants", listed).unwrap();
        assert_eq!(listed["Grants"][0]["GranteePrincipal"], arn);
    }
}

#[test]
fn policy_with_unknown_partition_is_refused() {
    let fixture = Fixture::new();
    let user = |partition: &str| format!("arn:{partition}:iam::{ACCOUNT}:user/admin");
    let key = fixture.key(json!({}));
    for partition in ["aws-x", "AWS", "awsome", "aws-cn-x", "aws_cn"] {
        let named = json!([{
            "Effect": "Deny", "Principal": { "AWS": user(partition) }, "Action": "kms:Sign", "Resource": "*",
        }]);
        let body = json!({ "KeyId": key, "Policy": key_policy(named) });
        let refused = fixture.kms("PutKeyPolicy", body).unwrap_err();
        assert_eq!(refused.code, "MalformedPolicyDocumentException", "{partition}");
    }
    let checks = |statement: Value| {
        let document = policy(json!([statement])).to_string();
        outlast_domain::policy::Policy::parse(&document, outlast_domain::policy::Kind::Identity)
    };
    for resource in [
        "arn:aws-x:kms:eu-west-1:123456789012:key/*",
        "arn:aws-x*:kms:eu-west-1:123456789012:key/*",
        "arn::kms:eu-west-1:123456789012:key/*",
        "arn:aws:kms:cn-north-1:123456789012:key/*",
        "arn:aws-cn:kms:eu-west-1:123456789012:key/*",
        "arn:aws-x:iam::123456789012:role/x",
        "arn:aws-x:s3:::bucket",
    ] {
        let by_resource = json!({ "Effect": "Deny", "Action": "*", "Resource": resource });
        let error = checks(by_resource).unwrap_err().to_string();
        assert!(error.contains("partition"), "{error}");
        let not = json!({ "Effect": "Deny", "Action": "*", "NotResource": resource });
        assert!(checks(not).is_err());
        for condition in ["ArnEquals", "StringEquals", "ArnNotLike"] {
            let by_condition = json!({
                "Effect": "Deny", "Action": "*", "Resource": "*",
                "Condition": { condition: { "aws:PrincipalArn": resource } },
            });
            assert!(checks(by_condition).is_err(), "{condition} {resource}");
        }
    }
    for resource in [
        "*",
        "arn:*",
        "arn:aws*",
        "arn:aws-*:iam::123456789012:role/x",
        "arn:aws-cn:kms:cn-*:123456789012:key/*",
        "arn:aws:kms:*:123456789012:key/*",
        "arn:*:kms:cn-north-1:123456789012:key/*",
        "arn:aws:s3:::bucket",
    ] {
        checks(json!({ "Effect": "Deny", "Action": "*", "Resource": resource })).unwrap();
    }
}

#[test]
fn a_role_of_another_account_is_told_as_none() {
    let fixture = Fixture::new();
    let closed = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": format!("arn:aws:iam::{OTHER_ACCOUNT}:user/admin") },
        "Action": "sts:AssumeRole",
    }]));
    let denying = policy(json!([
        { "Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRole" },
    ]));
    let open = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:AssumeRole",
    }]));
    fixture.role(OTHER_ACCOUNT, "closed", &closed, &[]);
    fixture.role(OTHER_ACCOUNT, "denying", &denying, &[]);
    fixture.role(OTHER_ACCOUNT, "open", &open, &[]);
    let deny = policy(json!([
        { "Effect": "Allow", "Action": "*", "Resource": "*" },
        { "Effect": "Deny", "Action": "sts:*", "Resource": "*" },
    ]));
    // The administrator, a user without permissions, and a user whose own policy denies the action.
    let callers = [
        Who::admin(),
        fixture.user(ACCOUNT, "nobody", &[]),
        fixture.user(ACCOUNT, "denied", &[deny]),
    ];
    for (number, who) in callers.iter().enumerate() {
        let ask = |name: &str, more: &[(&str, &str)]| {
            let arn = format!("arn:aws:iam::{OTHER_ACCOUNT}:role/{name}");
            let mut form =
                vec![("Action", "AssumeRole"), ("RoleArn", &arn), ("RoleSessionName", "session")];
            form.extend_from_slice(more);
            let answer = fixture.sts_as(who, &form);
            (answer.status, String::from_utf8(answer.body).unwrap().replace(name, "NAME"))
        };
        let variants: [&[(&str, &str)]; 5] = [
            &[],
            &[("DurationSeconds", "43200")],
            &[("SourceIdentity", "somebody")],
            &[("Tags.member.1.Key", "a"), ("Tags.member.1.Value", "b")],
            &[("ExternalId", "external")],
        ];
        for more in variants {
            let none = ask("nothing", more);
            assert_eq!(none.0, 403, "{}", none.1);
            for name in ["closed", "denying"] {
                assert_eq!(ask(name, more), none, "{name} {more:?}");
            }
            // A caller who may not ask learns nothing about a role that trusts the account either.
            if number > 0 {
                assert_eq!(ask("open", more), none, "{more:?}");
            }
        }
    }
    let open = format!("arn:aws:iam::{OTHER_ACCOUNT}:role/open");
    fixture.session(&Who::admin(), &open, &[]);
}

#[test]
fn records_of_older_stores_name_what_they_mean_today() {
    let id = "certificate-authority/11111111-2222-3333-4444-555555555555";
    for (region, partition) in [(CHINA, "aws-cn"), ("eu-west-1", "aws")] {
        let stored = json!({
            "arn": format!("arn:aws:acm-pca:{region}:{ACCOUNT}:{id}"), "by_tag": false, "key_algorithms": [],
        });
        let read: outlast_domain::acme::Authority = serde_json::from_value(stored).unwrap();
        assert_eq!(read.arn, format!("arn:{partition}:acm-pca:{region}:{ACCOUNT}:{id}"));
    }
}

#[test]
fn deleted_principals_appear_by_id() {
    let fixture = Fixture::new();
    let arn = format!("arn:aws:iam::{ACCOUNT}:user/who");
    fixture.user(ACCOUNT, "who", &[]);
    let keys = [&arn, &in_china(&arn)].map(|name| {
        let statement = json!([{
            "Effect": "Allow", "Principal": { "AWS": name }, "Action": "kms:DescribeKey", "Resource": "*",
        }]);
        fixture.key(json!({ "Policy": key_policy(statement) }))
    });
    fixture.directory(|work| User::find(work, ACCOUNT, "who").unwrap().delete(work));
    for key in keys {
        let shown = fixture.kms("GetKeyPolicy", json!({ "KeyId": key })).unwrap();
        let shown = text(&shown["Policy"]);
        assert!(shown.contains("\"AIDA") && !shown.contains("user/who"), "{shown}");
    }
}
