//! Members of Outlast's own operations.

use outlast_api::ops::OUTLAST;
use serde_json::{Value, json};

use super::spell::Form;
use super::table::{Case, pointer};
use super::{Key, Scene};
use crate::approvals_support::{file, rule, user_arn};
use crate::common::{ACCOUNT, Fixture, REGION, text};

/// The rows.
pub fn cases(s: &Scene) -> Vec<Case> {
    let files = json!({ "Files": [file("a", b"message", "ECDSA_SHA_256")] });
    let rule = json!({ "Rule": rule(1, &[user_arn("eve")]) });
    let mut all = vec![
        key_case("RequestSigningApproval", &s.approved, "Sign", &files),
        key_case("PutSigningApprovalRule", &s.signing, "PutKeyPolicy", &rule),
        key_case("ListKeySignatures", &s.signing, "DescribeKey", &json!({})),
        key_case("DeleteSigningApprovalRule", &s.approved, "PutKeyPolicy", &json!({})),
    ];
    // The key is no authority, which only who is allowed to ask it learns.
    let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHNzaC1lZDI1NTE5AAAAIHNzaC1lZDI1NTE5AAAAAAAA";
    let wanted = json!({ "PublicKey": line, "CertificateType": "USER" });
    let of = format!("arn:aws:outlast:{REGION}:{ACCOUNT}:ssh-ca/{}", s.signing.id);
    let deny = json!({ "Action": "outlast:SignSshCertificate", "Resource": of });
    let case = key_case("SignSshCertificate", &s.signing, "", &wanted);
    all.push(Case { deny, has_policy: false, fails: true, ..case });
    let of = Scene::approval_arn(&s.approved);
    let case = key_case("GetSigningApprovalRule", &s.approved, "", &json!({}));
    let deny = json!({ "Action": "outlast:GetSigningApprovalRule", "Resource": of });
    all.push(Case { deny, has_policy: false, ..case });
    let request = format!("arn:aws:outlast:{REGION}:{ACCOUNT}:signing-request/{}", s.request.0);
    for (operation, more) in [
        ("GetSigningRequest", json!({})),
        ("DenySigning", json!({})),
        ("ApproveSigning", json!({ "RequestDigest": s.request.1 })),
    ] {
        all.push(Case {
            service: &OUTLAST,
            operation,
            member: "/RequestId",
            body: pointer(&more, "/RequestId"),
            names: vec![(s.request.0.clone(), Form::Word)],
            deny: json!({ "Action": format!("outlast:{operation}"), "Resource": request }),
            has_policy: false,
            names_others: false,
            fails: false,
        });
    }
    all
}

fn key_case(operation: &'static str, key: &Key, action: &str, more: &Value) -> Case {
    let alias_arn = Scene::alias_arn(&key.alias);
    Case {
        service: &OUTLAST,
        operation,
        member: "/KeyId",
        body: pointer(more, "/KeyId"),
        names: vec![
            (key.id.clone(), Form::Word),
            (key.arn.clone(), Form::Arn),
            (key.alias.clone(), Form::Word),
            (alias_arn, Form::Arn),
        ],
        deny: json!({ "Action": format!("kms:{action}"), "Resource": key.arn }),
        has_policy: true,
        names_others: false,
        fails: false,
    }
}

/// Gives the key a rule that Eve approves, and asks her: id and digest of the request.
pub fn request(fixture: &Fixture, key: &Key) -> (String, String) {
    let put = json!({ "KeyId": key.id, "Rule": rule(1, &[user_arn("eve")]) });
    fixture.outlast("PutSigningApprovalRule", &put).unwrap();
    let asked = json!({ "KeyId": key.id, "Files": [file("b", b"another", "ECDSA_SHA_256")] });
    let made = fixture.outlast("RequestSigningApproval", &asked).unwrap();
    (text(&made["RequestId"]).to_owned(), text(&made["RequestDigest"]).to_owned())
}
