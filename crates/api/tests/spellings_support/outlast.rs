//! Members of Outlast's own operations.

use outlast_api::ops::OUTLAST;
use serde_json::{Value, json};

use super::spell::Form;
use super::table::{Case, pointer};
use super::{Key, Scene};
use crate::approvals_support::file;

/// The rows.
pub fn cases(s: &Scene) -> Vec<Case> {
    let files = json!({ "Files": [file("a", b"message", "ECDSA_SHA_256")] });
    vec![key_case("RequestSigningApproval", &s.signing, "Sign", &files)]
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
