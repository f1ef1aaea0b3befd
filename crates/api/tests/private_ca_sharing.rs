//! Private CA: what a resource policy can share with other accounts.
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
use common::{ACCOUNT, Answer, Fixture, OTHER_ACCOUNT, Who, code, policy, with};
use serde_json::{Value, json};

fn put(fixture: &Fixture, arn: &str, document: &Value) -> Answer {
    fixture.pca("PutPolicy", json!({ "ResourceArn": arn, "Policy": document.to_string() }))
}

/// What AWS shares: "Resource-based policies" of the Private CA user guide.
const SHARED_TEMPLATES: [&str; 6] = [
    "EndEntityCertificate",
    "EndEntityClientAuthCertificate",
    "EndEntityServerAuthCertificate",
    "BlankEndEntityCertificate_APIPassthrough",
    "BlankEndEntityCertificate_APICSRPassthrough",
    "SubordinateCACertificate_PathLen0",
];

fn template_arn(name: &str) -> String {
    format!("arn:aws:acm-pca:::template/{name}/V1")
}

/// A policy that lets `principal` issue where `condition` holds.
fn issuing(arn: &str, principal: &Value, condition: &Value) -> Value {
    let mut statement = json!({
        "Effect": "Allow", "Principal": principal, "Action": "acm-pca:IssueCertificate", "Resource": arn,
    });
    if !condition.is_null() {
        statement["Condition"] = condition.clone();
    }
    policy(json!([statement]))
}

/// Writes a policy past PutPolicy, like one that was put before its form was checked.
fn store_policy(fixture: &Fixture, arn: &str, document: &Value) {
    let template =
        json!({ "StringEquals": { "acm-pca:TemplateArn": template_arn("EndEntityCertificate") } });
    put(fixture, arn, &issuing(arn, &json!({ "AWS": OTHER_ACCOUNT }), &template)).unwrap();
    let record_key = format!("ca/policy/{ACCOUNT}/eu-west-1/{}", arn.rsplit('/').next().unwrap());
    fixture.directory(|work| {
        let mut record = work.get::<Value>(&record_key).unwrap().unwrap();
        record["text"] = document.to_string().into();
        work.put(&record_key, &record).unwrap();
    });
}

#[test]
fn other_accounts_issue_by_the_shareable_templates_only() {
    let fixture = Fixture::new();
    let arn = root(&fixture, EC);
    let stranger = Who::stranger();
    let (_, leaf) = leaf_request("ECC_NIST_P256", "leaf");
    let issue = |template: &str| {
        fixture.pca_as(&stranger, "IssueCertificate", leaf_body(&arn, &leaf, EC.1, template))
    };
    let refused = |answer: Answer| assert_eq!(code(answer), "AccessDeniedException");
    let other = json!({ "AWS": OTHER_ACCOUNT });
    // This was possible once: a subordinate CA of path length 3 for another account.
    assert_eq!(
        code(put(&fixture, &arn, &issuing(&arn, &other, &json!(null)))),
        "InvalidPolicyException"
    );
    refused(issue("SubordinateCACertificate_PathLen3"));
    for name in SHARED_TEMPLATES {
        let condition = json!({ "StringEquals": { "acm-pca:TemplateArn": template_arn(name) } });
        put(&fixture, &arn, &issuing(&arn, &other, &condition)).unwrap();
        issue(name).unwrap();
        refused(issue("SubordinateCACertificate_PathLen3"));
        refused(issue("CodeSigningCertificate"));
    }
    // An older policy that names no templates allows no more than the form that is accepted today.
    store_policy(&fixture, &arn, &issuing(&arn, &other, &json!(null)));
    let (mut issued, mut denied) = (0, 0);
    for row in outlast_pki::templates::TEMPLATES {
        if SHARED_TEMPLATES.contains(&row.name) {
            issue(row.name).unwrap();
            issued += 1;
        } else {
            refused(issue(row.name));
            denied += 1;
        }
    }
    println!("{issued} templates are shared, {denied} are not");
    assert_eq!(issued, 6);
    // The same in one policy: with a condition that matches any template.
    let any = json!({ "StringLike": { "acm-pca:TemplateArn": "*" } });
    store_policy(&fixture, &arn, &issuing(&arn, &other, &any));
    refused(issue("SubordinateCACertificate_PathLen1"));
    issue("EndEntityCertificate").unwrap();
    // A statement for everyone applies to nobody, neither there nor in the own account.
    let clerk = fixture.user(ACCOUNT, "clerk", &[]);
    for principal in [json!("*"), json!({ "AWS": "*" }), json!({ "AWS": ["*", OTHER_ACCOUNT] })] {
        store_policy(&fixture, &arn, &issuing(&arn, &principal, &json!(null)));
        refused(issue("EndEntityCertificate"));
        let body = leaf_body(&arn, &leaf, EC.1, "EndEntityCertificate");
        refused(fixture.pca_as(&clerk, "IssueCertificate", body));
    }
}

#[test]
fn a_policy_has_the_form_that_can_be_shared() {
    let fixture = Fixture::new();
    fixture.user(OTHER_ACCOUNT, "clerk", &[]);
    let arn = root(&fixture, EC);
    let template = template_arn("EndEntityCertificate");
    let sub = template_arn("SubordinateCACertificate_PathLen1");
    let key = "acm-pca:TemplateArn";
    let (account, own) = (json!({ "AWS": OTHER_ACCOUNT }), json!({ "AWS": ACCOUNT }));
    let everyone = json!("*");
    let organization =
        json!({ "StringEquals": { "aws:PrincipalOrgID": "o-a1b2c3d4e5", key: template } });
    let user = json!({ "AWS": format!("arn:aws:iam::{OTHER_ACCOUNT}:user/clerk") });
    let both = json!({ "AWS": [ACCOUNT, OTHER_ACCOUNT] });
    let service = json!({ "Service": "acm.amazonaws.com" });
    let accepted = [
        (&own, json!(null)),
        (&own, json!({ "StringLike": { key: "*" } })),
        (&account, json!({ "StringEquals": { key: template } })),
        (
            &account,
            json!({ "StringEquals": { key: [template, template_arn("SubordinateCACertificate_PathLen0")] } }),
        ),
        (&user, json!({ "StringEquals": { key: template } })),
        (&everyone, organization.clone()),
        (&everyone, json!({ "StringEquals": { key: template, "aws:SourceAccount": ACCOUNT } })),
        (
            &everyone,
            json!({ "StringEquals": { key: template, "aws:PrincipalAccount": OTHER_ACCOUNT } }),
        ),
        (
            &everyone,
            json!({ "StringEquals": { key: template }, "ArnLike": {
            "aws:PrincipalArn": format!("arn:aws:iam::{OTHER_ACCOUNT}:role/*") } }),
        ),
        (
            &everyone,
            json!({ "StringEquals": { key: template }, "ForAnyValue:StringLike": {
            "aws:PrincipalOrgPaths": "o-a1b2c3d4e5/r-ab12/*" } }),
        ),
    ];
    for (principal, condition) in &accepted {
        put(&fixture, &arn, &issuing(&arn, principal, condition)).unwrap();
    }
    let with_everyone = |more: Value| with(&json!({ "StringEquals": { key: template } }), more);
    let refused = [
        (&account, json!(null)),
        (&user, json!(null)),
        (&both, json!(null)),
        (&service, json!(null)),
        (&account, json!({ "StringEquals": { "aws:PrincipalTag/team": "x" } })),
        (&account, json!({ "StringEquals": { key: sub } })),
        (&account, json!({ "StringEquals": { key: [template, sub] } })),
        (&account, json!({ "StringEquals": { key: "${acm-pca:TemplateArn}" } })),
        (&account, json!({ "StringEquals": { key: template.to_lowercase() } })),
        (&account, json!({ "StringEqualsIfExists": { key: template } })),
        (&account, json!({ "ForAllValues:StringEquals": { key: template } })),
        (&account, json!({ "StringNotEquals": { key: sub } })),
        (&account, json!({ "StringLike": { key: template } })),
        (&account, json!({ "Null": { key: "false" } })),
        (&everyone, json!(null)),
        (&everyone, json!({ "StringEquals": { key: template } })),
        (&everyone, with_everyone(json!({ "Bool": { "aws:SecureTransport": "true" } }))),
        (&everyone, with_everyone(json!({ "Null": { "aws:PrincipalOrgID": "false" } }))),
        (&everyone, with_everyone(json!({ "StringLike": { "aws:PrincipalAccount": "*" } }))),
        (
            &everyone,
            with_everyone(
                json!({ "StringLike": { "aws:PrincipalOrgPaths": ["o-a1b2c3d4e5/*", "*"] } }),
            ),
        ),
        (
            &everyone,
            with_everyone(json!({ "StringNotEquals": { "aws:PrincipalAccount": "111122223333" } })),
        ),
        (
            &everyone,
            with_everyone(
                json!({ "StringEqualsIfExists": { "aws:PrincipalOrgID": "o-a1b2c3d4e5" } }),
            ),
        ),
        (
            &everyone,
            with_everyone(
                json!({ "ForAllValues:StringEquals": { "aws:PrincipalOrgID": "o-a1b2c3d4e5" } }),
            ),
        ),
        (
            &everyone,
            with_everyone(
                json!({ "StringEqualsIgnoreCase": { "aws:PrincipalAccount": "${aws:PrincipalAccount}" } }),
            ),
        ),
        (
            &everyone,
            with_everyone(json!({ "ArnLike": { "aws:PrincipalArn": "arn:aws:iam::*:role/x" } })),
        ),
        (&everyone, json!({ "StringEquals": { "aws:PrincipalOrgID": "o-a1b2c3d4e5" } })),
    ];
    let before = fixture.store_without_uses();
    for (principal, condition) in &refused {
        let document = issuing(&arn, principal, condition);
        let answer = put(&fixture, &arn, &document).expect_err(&document.to_string());
        assert_eq!(answer.code, "InvalidPolicyException", "{document}");
        assert!(answer.message.starts_with("A statement "), "{}", answer.message);
    }
    assert_eq!(fixture.store_without_uses(), before);
    println!("{} policies are accepted, {} are refused", accepted.len(), refused.len());
    // Reading and revoking name no template; the principal is checked nevertheless.
    for (action, principal, condition, good) in [
        ("acm-pca:GetCertificate", &account, json!(null), true),
        ("acm-pca:RevokeCertificate", &account, json!(null), true),
        ("acm-pca:GetCertificate", &everyone, json!(null), false),
        (
            "acm-pca:GetCertificate",
            &everyone,
            json!({ "StringEquals": { "aws:PrincipalOrgID": "o-a1b2c3d4e5" } }),
            true,
        ),
    ] {
        let mut document = issuing(&arn, principal, &condition);
        document["Statement"][0]["Action"] = action.into();
        assert_eq!(put(&fixture, &arn, &document).is_ok(), good, "{document}");
    }
}
