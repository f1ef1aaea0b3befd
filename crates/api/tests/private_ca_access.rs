//! Private CA: who may do what: identity policies, permissions, resource policies, other accounts.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::authorities::*;
use common::{ACCOUNT, Answer, Fixture, OTHER_ACCOUNT, Who, allow, code, policy, text, with};
use outlast_domain::ca::{self, permission};
use outlast_store::Store;
use serde_json::{Value, json};

#[test]
fn permissions_are_given_to_certificate_manager_once() {
    let fixture = Fixture::new();
    let arn = root(&fixture, EC);
    let body = |more: Value| with(&json!({ "CertificateAuthorityArn": arn }), more);
    let create = |more: Value| fixture.pca("CreatePermission", body(more));
    let all = json!(["IssueCertificate", "GetCertificate", "ListPermissions"]);
    let acm = "acm.amazonaws.com";
    let holds = |action: &str| {
        fixture.directory(|work| {
            let scope =
                outlast_domain::arn::Scope { account: ACCOUNT.into(), region: "eu-west-1".into() };
            let authority = ca::find(work, &scope, &arn).unwrap();
            permission::holds(work, &authority, acm, ACCOUNT, action).unwrap()
        })
    };
    let before = fixture.store_without_uses();
    for (wrong, expected) in [
        (json!({ "Principal": "ec2.amazonaws.com", "Actions": all }), "ValidationException"),
        (json!({ "Principal": acm, "Actions": [] }), "ValidationException"),
        (json!({ "Principal": acm, "Actions": ["RevokeCertificate"] }), "ValidationException"),
        (json!({ "Principal": acm, "Actions": all, "SourceAccount": "1" }), "ValidationException"),
        (
            json!({ "Principal": acm, "Actions": all, "SourceAccount": OTHER_ACCOUNT }),
            "ValidationException",
        ),
        (
            json!({ "Principal": acm, "Actions": vec!["IssueCertificate"; 4] }),
            "ValidationException",
        ),
    ] {
        assert_eq!(code(create(wrong.clone())), expected, "{wrong}");
    }
    assert_eq!(fixture.store_without_uses(), before);
    assert!(!holds("IssueCertificate"));
    create(json!({ "Principal": acm, "Actions": ["IssueCertificate", "GetCertificate"] })).unwrap();
    assert!(holds("IssueCertificate") && !holds("ListPermissions"));
    let again = create(json!({ "Principal": acm, "Actions": all, "SourceAccount": ACCOUNT }));
    assert_eq!(code(again), "PermissionAlreadyExistsException");
    let found = fixture.pca("ListPermissions", body(json!({}))).unwrap();
    let [listed] = found["Permissions"].as_array().unwrap().as_slice() else { panic!("{found}") };
    assert_eq!(listed["Principal"], acm);
    assert_eq!(listed["SourceAccount"], ACCOUNT);
    assert_eq!(listed["CertificateAuthorityArn"], arn.as_str());
    assert_eq!(listed["Actions"], json!(["GetCertificate", "IssueCertificate"]));
    let shown: Value = serde_json::from_str(text(&listed["Policy"])).unwrap();
    assert_eq!(shown["Statement"][0]["Principal"]["Service"], acm);
    fixture.pca("DeletePermission", body(json!({ "Principal": acm }))).unwrap();
    assert!(!holds("IssueCertificate"));
    let again = fixture.pca("DeletePermission", body(json!({ "Principal": acm })));
    assert_eq!(code(again), "ResourceNotFoundException");
    assert_eq!(fixture.pca("ListPermissions", body(json!({}))).unwrap()["Permissions"], json!([]));
}

#[test]
fn identity_policies_see_the_template_and_the_tags() {
    let fixture = Fixture::new();
    let arn = root(&fixture, EC);
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let templates = fixture.user(
        ACCOUNT,
        "templates",
        &[policy(json!([{
            "Effect": "Allow", "Action": "acm-pca:IssueCertificate", "Resource": arn,
            "Condition": { "StringLike": {
                "acm-pca:TemplateArn": "arn:aws:acm-pca:::template/EndEntity*Certificate/V1",
            } },
        }]))],
    );
    let issue = |who: &Who, template: &str| {
        fixture.pca_as(who, "IssueCertificate", leaf_body(&arn, &request, EC.1, template))
    };
    issue(&templates, "EndEntityCertificate").unwrap();
    issue(&templates, "EndEntityClientAuthCertificate").unwrap();
    for refused in [
        "CodeSigningCertificate",
        "SubordinateCACertificate_PathLen0",
        "EndEntityCertificate_CSRPassthrough",
    ] {
        assert_eq!(code(issue(&templates, refused)), "AccessDeniedException", "{refused}");
    }
    let mut default = leaf_body(&arn, &request, EC.1, "x");
    default.as_object_mut().unwrap().remove("TemplateArn");
    fixture.pca_as(&templates, "IssueCertificate", default).unwrap();
    let blue = fixture.user(
        ACCOUNT,
        "blue",
        &[policy(json!([{
            "Effect": "Allow", "Action": "acm-pca:*", "Resource": "*",
            "Condition": { "StringEquals": { "aws:ResourceTag/team": "blue" } },
        }]))],
    );
    assert_eq!(code(issue(&blue, "CodeSigningCertificate")), "AccessDeniedException");
    let tag = |value: &str| json!({ "CertificateAuthorityArn": arn, "Tags": [{ "Key": "team", "Value": value }] });
    fixture.pca("TagCertificateAuthority", tag("blue")).unwrap();
    issue(&blue, "CodeSigningCertificate").unwrap();
    // With another value the tag stays; the key alone removes it.
    fixture.pca("UntagCertificateAuthority", tag("red")).unwrap();
    issue(&blue, "CodeSigningCertificate").unwrap();
    let key = json!({ "CertificateAuthorityArn": arn, "Tags": [{ "Key": "team" }] });
    fixture.pca("UntagCertificateAuthority", key).unwrap();
    assert_eq!(code(issue(&blue, "CodeSigningCertificate")), "AccessDeniedException");
    let none = json!({ "CertificateAuthorityArn": arn, "Tags": [] });
    assert_eq!(code(fixture.pca("UntagCertificateAuthority", none)), "ValidationException");
    let tagger = fixture.user(
        ACCOUNT,
        "tagger",
        &[policy(json!([{
            "Effect": "Allow", "Action": "acm-pca:TagCertificateAuthority", "Resource": "*",
            "Condition": { "StringEquals": { "aws:RequestTag/team": "green" } },
        }]))],
    );
    assert_eq!(
        code(fixture.pca_as(&tagger, "TagCertificateAuthority", tag("red"))),
        "AccessDeniedException"
    );
    fixture.pca_as(&tagger, "TagCertificateAuthority", tag("green")).unwrap();
}

fn share(arn: &str, principal: &str) -> Value {
    policy(json!([
        {
            "Sid": "1", "Effect": "Allow", "Principal": { "AWS": principal },
            "Action": [
                "acm-pca:DescribeCertificateAuthority", "acm-pca:GetCertificate",
                "acm-pca:GetCertificateAuthorityCertificate", "acm-pca:ListPermissions", "acm-pca:ListTags",
            ],
            "Resource": arn,
        },
        {
            "Sid": "2", "Effect": "Allow", "Principal": { "AWS": principal },
            "Action": ["acm-pca:IssueCertificate"], "Resource": arn,
            "Condition": { "StringEquals": {
                "acm-pca:TemplateArn": "arn:aws:acm-pca:::template/EndEntityCertificate/V1",
            } },
        },
    ]))
}

fn put(fixture: &Fixture, arn: &str, document: &Value) -> Answer {
    fixture.pca("PutPolicy", json!({ "ResourceArn": arn, "Policy": document.to_string() }))
}

#[test]
fn another_account_uses_what_is_shared_with_it() {
    let fixture = Fixture::new();
    let (arn, hidden) = (root(&fixture, EC), root(&fixture, EC));
    let stranger = Who::stranger();
    let describe = json!({ "CertificateAuthorityArn": arn });
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let issue = |who: &Who, template: &str| {
        let body =
            with(&leaf_body(&arn, &request, EC.1, template), json!({ "IdempotencyToken": "same" }));
        fixture.pca_as(who, "IssueCertificate", body)
    };
    let refused = |answer: Answer| assert_eq!(code(answer), "AccessDeniedException");
    refused(fixture.pca_as(&stranger, "DescribeCertificateAuthority", describe.clone()));
    refused(issue(&stranger, "EndEntityCertificate"));
    let listed = |who: &Who| {
        let list = json!({ "ResourceOwner": "OTHER_ACCOUNTS" });
        let found = fixture.pca_as(who, "ListCertificateAuthorities", list).unwrap();
        let found = found["CertificateAuthorities"].as_array().unwrap().clone();
        found.iter().map(|found| text(&found["Arn"]).to_owned()).collect::<Vec<_>>()
    };
    assert!(listed(&stranger).is_empty());
    let document = share(&arn, OTHER_ACCOUNT);
    put(&fixture, &arn, &document).unwrap();
    let found = fixture.pca("GetPolicy", json!({ "ResourceArn": arn })).unwrap();
    assert_eq!(text(&found["Policy"]), document.to_string());
    assert_eq!(listed(&stranger), std::slice::from_ref(&arn));
    assert!(listed(&Who::admin()).is_empty(), "it is its own");
    let shown =
        fixture.pca_as(&stranger, "DescribeCertificateAuthority", describe.clone()).unwrap();
    assert_eq!(shown["CertificateAuthority"]["OwnerAccount"], ACCOUNT);
    // In another account the same token is another one.
    let ours = issue(&Who::admin(), "EndEntityCertificate").unwrap();
    let made = issue(&stranger, "EndEntityCertificate").unwrap();
    assert_ne!(ours, made);
    assert_eq!(issue(&stranger, "EndEntityCertificate").unwrap(), made);
    let get = json!({ "CertificateAuthorityArn": arn, "CertificateArn": made["CertificateArn"] });
    fixture.pca_as(&stranger, "GetCertificate", get.clone()).unwrap();
    fixture.pca("GetCertificate", get).unwrap();
    // The condition, a template that is not shared, and another CA.
    refused(issue(&stranger, "CodeSigningCertificate"));
    let revoke = json!({ "CertificateAuthorityArn": arn, "RevocationReason": "UNSPECIFIED",
        "CertificateSerial": text(&made["CertificateArn"]).rsplit('/').next().unwrap() });
    refused(fixture.pca_as(&stranger, "RevokeCertificate", revoke));
    refused(fixture.pca_as(&stranger, "DeleteCertificateAuthority", describe.clone()));
    refused(fixture.pca_as(
        &stranger,
        "PutPolicy",
        json!({ "ResourceArn": arn, "Policy": document.to_string() }),
    ));
    let other = json!({ "CertificateAuthorityArn": hidden });
    refused(fixture.pca_as(&stranger, "DescribeCertificateAuthority", other));
    // Both sides must allow it: the other account decides for its own users.
    let clerk = fixture.user(OTHER_ACCOUNT, "clerk", &[allow(&["acm-pca:IssueCertificate"])]);
    refused(fixture.pca_as(&clerk, "DescribeCertificateAuthority", describe.clone()));
    fixture
        .pca_as(&clerk, "IssueCertificate", leaf_body(&arn, &request, EC.1, "EndEntityCertificate"))
        .unwrap();
    let nobody = fixture.user(OTHER_ACCOUNT, "nobody", &[]);
    refused(fixture.pca_as(&nobody, "DescribeCertificateAuthority", describe.clone()));
    // The audit report says who asked.
    let report =
        fixture.directory(|work| ca::report::render(work, &arn, ca::report::Format::Csv).unwrap());
    let report = String::from_utf8(report).unwrap();
    assert_eq!(
        report.lines().filter(|line| line.starts_with(OTHER_ACCOUNT)).count(),
        2,
        "{report}"
    );
    fixture.pca("DeletePolicy", json!({ "ResourceArn": arn })).unwrap();
    fixture.pca("DeletePolicy", json!({ "ResourceArn": arn })).unwrap();
    refused(fixture.pca_as(&stranger, "DescribeCertificateAuthority", describe));
    assert!(listed(&stranger).is_empty());
    assert_eq!(
        code(fixture.pca("GetPolicy", json!({ "ResourceArn": arn }))),
        "ResourceNotFoundException"
    );
}

#[test]
fn in_its_own_account_a_policy_adds_and_denies() {
    let fixture = Fixture::new();
    let arn = root(&fixture, EC);
    let describe = json!({ "CertificateAuthorityArn": arn });
    let alice = fixture.user(ACCOUNT, "alice", &[]);
    let bob = fixture.user(ACCOUNT, "bob", &[allow(&["acm-pca:*"])]);
    let look = |who: &Who| fixture.pca_as(who, "DescribeCertificateAuthority", describe.clone());
    assert_eq!(code(look(&alice)), "AccessDeniedException");
    let user = |name: &str| format!("arn:aws:iam::{ACCOUNT}:user/{name}");
    let document = policy(json!([
        { "Effect": "Allow", "Principal": { "AWS": user("alice") }, "Resource": arn,
          "Action": "acm-pca:DescribeCertificateAuthority" },
        { "Effect": "Deny", "Principal": { "AWS": user("bob") }, "Resource": arn,
          "Action": "acm-pca:DescribeCertificateAuthority" },
    ]));
    // A user who may only put policies cannot lock out anyone who was never let in.
    let keeper = fixture.user(ACCOUNT, "keeper", &[allow(&["acm-pca:PutPolicy"])]);
    let body = json!({ "ResourceArn": arn, "Policy": document.to_string() });
    fixture.pca_as(&keeper, "PutPolicy", body).unwrap();
    look(&alice).unwrap();
    assert_eq!(code(look(&bob)), "AccessDeniedException");
    // Where the policy says nothing, identity policies decide as before.
    fixture.pca_as(&bob, "ListTags", describe.clone()).unwrap();
    assert_eq!(code(fixture.pca_as(&alice, "ListTags", describe.clone())), "AccessDeniedException");
    look(&Who::admin()).unwrap();
}

#[test]
fn a_policy_that_cannot_be_is_refused_and_changes_nothing() {
    let fixture = Fixture::new();
    let (arn, other) = (root(&fixture, EC), root(&fixture, EC));
    let allowing = |action: &str, resource: &str| {
        policy(
            json!([{ "Effect": "Allow", "Principal": { "AWS": OTHER_ACCOUNT }, "Action": action, "Resource": resource }]),
        )
    };
    let denying = |principal: Value, action: &str| {
        policy(
            json!([{ "Effect": "Deny", "Principal": principal, "Action": action, "Resource": arn }]),
        )
    };
    let admin = json!({ "AWS": format!("arn:aws:iam::{ACCOUNT}:user/admin") });
    let before = fixture.store_without_uses();
    for (document, expected) in [
        (json!("text"), "InvalidPolicyException"),
        (json!({}), "InvalidPolicyException"),
        (policy(json!([])), "InvalidPolicyException"),
        (allowing("acm-pca:*", &arn), "InvalidPolicyException"),
        (allowing("acm-pca:DeleteCertificateAuthority", &arn), "InvalidPolicyException"),
        (allowing("kms:Sign", &arn), "InvalidPolicyException"),
        (allowing("*", &arn), "InvalidPolicyException"),
        (allowing("acm-pca:GetCertificate", &other), "InvalidPolicyException"),
        (allowing("acm-pca:GetCertificate", "*"), "InvalidPolicyException"),
        (
            policy(
                json!([{ "Effect": "Allow", "Action": "acm-pca:GetCertificate", "Resource": arn }]),
            ),
            "InvalidPolicyException",
        ),
        (
            policy(
                json!([{ "Effect": "Allow", "Principal": "*", "NotAction": "acm-pca:GetCertificate", "Resource": arn }]),
            ),
            "InvalidPolicyException",
        ),
        (denying(json!("*"), "acm-pca:*"), "LockoutPreventedException"),
        (denying(admin.clone(), "acm-pca:PutPolicy"), "LockoutPreventedException"),
        (denying(admin, "acm-pca:DeletePolicy"), "LockoutPreventedException"),
    ] {
        assert_eq!(code(put(&fixture, &arn, &document)), expected, "{document}");
    }
    let long = json!({ "ResourceArn": arn, "Policy": " ".repeat(81_921) });
    assert_eq!(code(fixture.pca("PutPolicy", long)), "ValidationException");
    let nowhere = format!(
        "arn:aws:acm-pca:eu-west-1:{ACCOUNT}:certificate-authority/11111111-2222-3333-4444-555555555555"
    );
    let document = share(&nowhere, OTHER_ACCOUNT);
    assert_eq!(code(put(&fixture, &nowhere, &document)), "ResourceNotFoundException");
    assert_eq!(fixture.store_without_uses(), before);
    // A policy that is replaced no longer shares; one of an erased CA is gone.
    put(&fixture, &arn, &share(&arn, OTHER_ACCOUNT)).unwrap();
    put(&fixture, &arn, &share(&arn, "111122223333")).unwrap();
    assert!(fixture.store.scan(&format!("ca/shared/{OTHER_ACCOUNT}/"), "", 10).unwrap().is_empty());
    let disable = json!({ "CertificateAuthorityArn": arn, "Status": "DISABLED" });
    fixture.pca("UpdateCertificateAuthority", disable).unwrap();
    fixture.pca("DeleteCertificateAuthority", json!({ "CertificateAuthorityArn": arn })).unwrap();
    assert_eq!(code(put(&fixture, &arn, &share(&arn, OTHER_ACCOUNT))), "InvalidStateException");
    fixture.advance(31 * 86_400);
    fixture.run_housekeeping();
    for prefix in ["ca/shared/", "ca/policy/"] {
        assert!(fixture.store.scan(prefix, "", 10).unwrap().is_empty(), "{prefix}");
    }
}

#[test]
fn every_operation_needs_its_permission() {
    let fixture = Fixture::new();
    let arn = root(&fixture, EC);
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let made =
        fixture.pca("IssueCertificate", leaf_body(&arn, &request, EC.1, "EndEntityCertificate"));
    let certificate = text(&made.unwrap()["CertificateArn"]).to_owned();
    let nobody = fixture.user(ACCOUNT, "nobody", &[]);
    let of = json!({ "CertificateAuthorityArn": arn });
    let before = fixture.store_without_uses();
    let mut tried = 0;
    for row in outlast_api::ops::ACM_PCA.operations {
        let more = match row.name {
            "CreateCertificateAuthority" => json!({ "CertificateAuthorityType": "ROOT",
                "CertificateAuthorityConfiguration": { "KeyAlgorithm": EC.0, "SigningAlgorithm": EC.1,
                    "Subject": { "CommonName": "x" } } }),
            "CreateCertificateAuthorityAuditReport" => {
                with(&of, json!({ "S3BucketName": "reports", "AuditReportResponseFormat": "CSV" }))
            }
            "CreatePermission" => with(
                &of,
                json!({ "Principal": "acm.amazonaws.com", "Actions": ["IssueCertificate"] }),
            ),
            "DeletePermission" => with(&of, json!({ "Principal": "acm.amazonaws.com" })),
            "DescribeCertificateAuthorityAuditReport" => {
                with(&of, json!({ "AuditReportId": "11111111-2222-3333-4444-555555555555" }))
            }
            "DeletePolicy" | "GetPolicy" => json!({ "ResourceArn": arn }),
            "PutPolicy" => {
                json!({ "ResourceArn": arn, "Policy": share(&arn, OTHER_ACCOUNT).to_string() })
            }
            "GetCertificate" => with(&of, json!({ "CertificateArn": certificate })),
            "ImportCertificateAuthorityCertificate" => with(&of, json!({ "Certificate": "eA==" })),
            "IssueCertificate" => leaf_body(&arn, &request, EC.1, "EndEntityCertificate"),
            "ListCertificateAuthorities" => json!({}),
            "RevokeCertificate" => with(
                &of,
                json!({ "RevocationReason": "UNSPECIFIED",
                "CertificateSerial": certificate.rsplit('/').next().unwrap() }),
            ),
            "TagCertificateAuthority" | "UntagCertificateAuthority" => {
                with(&of, json!({ "Tags": [{ "Key": "a" }] }))
            }
            _ => of.clone(),
        };
        tried += 1;
        for who in [&nobody, &Who::stranger()] {
            if who.id == Who::stranger().id
                && matches!(row.name, "CreateCertificateAuthority" | "ListCertificateAuthorities")
            {
                continue;
            }
            let refused = fixture.pca_as(who, row.name, more.clone()).unwrap_err();
            assert_eq!(refused.code, "AccessDeniedException", "{} {}", row.name, refused.message);
            assert!(
                refused.message.contains(&format!("acm-pca:{}", row.name)),
                "{}",
                refused.message
            );
        }
    }
    assert_eq!(tried, 23);
    assert_eq!(fixture.store_without_uses(), before);
}
