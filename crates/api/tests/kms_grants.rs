//! Grants: what they allow, to whom, until when.
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
    ACCOUNT, Answer, Fixture, OTHER_ACCOUNT, REGION, Who, allow, b64, code, key_arn, key_policy,
    policy, text, with,
};
use outlast_store::Store;
use serde_json::{Value, json};

const DENIED: &str = "AccessDeniedException";

fn arn(name: &str) -> String {
    format!("arn:aws:iam::{ACCOUNT}:user/{name}")
}

fn grant(key: &str, grantee: &str, operations: &[&str]) -> Value {
    json!({ "KeyId": key, "GranteePrincipal": grantee, "Operations": operations })
}

fn encrypt(key: &str, context: Value) -> Value {
    json!({ "KeyId": key, "Plaintext": b64(b"x"), "EncryptionContext": context })
}

fn grants(fixture: &Fixture, key: &str) -> Vec<Value> {
    let found = fixture.kms("ListGrants", json!({ "KeyId": key })).unwrap();
    found["Grants"].as_array().unwrap().clone()
}

fn id_of(grant: &Value, key: &str) -> Value {
    json!({ "KeyId": key, "GrantId": grant["GrantId"] })
}

#[test]
fn a_grant_allows_what_it_says_until_it_is_revoked() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let other = fixture.user(ACCOUNT, "other", &[]);
    let key = fixture.key(json!({}));
    let body =
        with(&grant(&key, &arn("user"), &["Encrypt", "DescribeKey"]), json!({ "Name": "n" }));
    let made = fixture.kms("CreateGrant", body.clone()).unwrap();
    let event = fixture.events().pop().unwrap();
    assert_eq!(event["responseElements"]["grantId"], made["GrantId"]);
    assert_eq!(fixture.kms("CreateGrant", body.clone()).unwrap(), made, "the same name again");
    let unnamed = grant(&key, &arn("other"), &["Decrypt"]);
    let first = fixture.kms("CreateGrant", unnamed.clone()).unwrap();
    assert_ne!(first, fixture.kms("CreateGrant", unnamed).unwrap());
    let changed = with(&body, json!({ "Operations": ["Encrypt"] }));
    let changed = fixture.kms("CreateGrant", changed).unwrap();
    assert_ne!(changed["GrantId"], made["GrantId"]);
    fixture.kms("RevokeGrant", id_of(&changed, &key)).unwrap();

    let token = json!({ "GrantTokens": [made["GrantToken"]] });
    for more in [json!({}), token.clone()] {
        fixture.kms_as(&user, "Encrypt", with(&encrypt(&key, json!({})), more)).unwrap();
    }
    fixture.kms_as(&user, "DescribeKey", json!({ "KeyId": key })).unwrap();
    let blob = fixture.encrypted(&key, b"x");
    let open = json!({ "CiphertextBlob": blob });
    assert_eq!(code(fixture.kms_as(&user, "Decrypt", open.clone())), DENIED);
    fixture.kms_as(&other, "Decrypt", open).unwrap();
    // A token is of use to its grantee only.
    let stolen = with(&encrypt(&key, json!({})), token.clone());
    assert_eq!(code(fixture.kms_as(&other, "Encrypt", stolen)), DENIED);

    fixture.kms("RevokeGrant", id_of(&made, &key)).unwrap();
    assert_eq!(code(fixture.kms_as(&user, "Encrypt", encrypt(&key, json!({})))), DENIED);
    let late = with(&encrypt(&key, json!({})), token);
    assert_eq!(code(fixture.kms_as(&user, "Encrypt", late)), "InvalidGrantTokenException");
    let again = fixture.kms("RevokeGrant", id_of(&made, &key));
    assert_eq!(code(again), "InvalidGrantIdException");
}

#[test]
fn constraints_hold() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let constrained = |constraints: Value| {
        let key = fixture.key(json!({}));
        let operations = ["Encrypt", "GenerateDataKey", "DescribeKey"];
        let body = grant(&key, &arn("user"), &operations);
        fixture.kms("CreateGrant", with(&body, json!({ "Constraints": constraints }))).unwrap();
        key
    };
    let pair = json!({ "a": "1" });
    let subset = constrained(json!({ "EncryptionContextSubset": pair }));
    let equals = constrained(json!({ "EncryptionContextEquals": pair }));
    for (context, in_subset, is_equal) in [
        (json!({ "a": "1" }), true, true),
        (json!({ "a": "1", "b": "2" }), true, false),
        (json!({ "a": "2" }), false, false),
        (json!({ "A": "1" }), false, false),
        (json!({}), false, false),
    ] {
        for (key, expected) in [(&subset, in_subset), (&equals, is_equal)] {
            let made = fixture.kms_as(&user, "Encrypt", encrypt(key, context.clone()));
            assert_eq!(made.is_ok(), expected, "{context}");
            let body = json!({ "KeyId": key, "KeySpec": "AES_128", "EncryptionContext": context });
            assert_eq!(fixture.kms_as(&user, "GenerateDataKey", body).is_ok(), expected);
        }
    }
    // "The constraint doesn't apply to DescribeKey"; one on the source does.
    assert!(fixture.kms_as(&user, "DescribeKey", json!({ "KeyId": subset })).is_ok());
    let source = constrained(json!({ "SourceArn": "arn:aws:s3:eu-west-1:123456789012:bucket" }));
    assert_eq!(code(fixture.kms_as(&user, "DescribeKey", json!({ "KeyId": source }))), DENIED);
    assert_eq!(code(fixture.kms_as(&user, "Encrypt", encrypt(&source, json!({})))), DENIED);
}

#[test]
fn a_grantee_gives_no_more_than_it_has() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let friend = fixture.user(ACCOUNT, "friend", &[]);
    let key = fixture.key(json!({}));
    let pair = json!({ "a": "1" });
    let body = grant(&key, &arn("user"), &["Encrypt", "Decrypt", "CreateGrant"]);
    let limits = json!({ "Constraints": { "EncryptionContextSubset": pair } });
    fixture.kms("CreateGrant", with(&body, limits.clone())).unwrap();
    let give = |operations: &[&str], constraints: Value| {
        let body = grant(&key, &arn("friend"), operations);
        let body = match constraints {
            Value::Null => body,
            some => with(&body, json!({ "Constraints": some })),
        };
        fixture.kms_as(&user, "CreateGrant", body)
    };
    let subset = |pairs: Value| json!({ "EncryptionContextSubset": pairs });
    for (operations, constraints) in [
        (&["Encrypt"][..], Value::Null),
        (&["Encrypt"], subset(json!({}))),
        (&["Encrypt"], subset(json!({ "a": "2" }))),
        (&["Encrypt"], json!({ "EncryptionContextEquals": { "b": "1" } })),
        (&["Encrypt", "GenerateDataKey"], subset(pair.clone())),
        (&["DescribeKey"], subset(pair.clone())),
    ] {
        assert_eq!(code(give(operations, constraints)), DENIED);
    }
    give(&["Encrypt"], subset(json!({ "a": "1", "b": "2" }))).unwrap();
    give(&["Decrypt"], json!({ "EncryptionContextEquals": { "a": "1" } })).unwrap();
    let stricter = encrypt(&key, json!({ "a": "1", "b": "2" }));
    fixture.kms_as(&friend, "Encrypt", stricter).unwrap();
    let looser = encrypt(&key, json!({ "a": "1" }));
    assert_eq!(code(fixture.kms_as(&friend, "Encrypt", looser)), DENIED);
    // A user who was not given CreateGrant cannot create grants.
    let on = fixture.kms_as(&friend, "CreateGrant", grant(&key, &arn("user"), &["Encrypt"]));
    assert_eq!(code(on), DENIED);
    // A grant that is bound to a source cannot give permissions that are not bound to it.
    let key = fixture.key(json!({}));
    let source = json!({ "SourceArn": "arn:aws:s3:eu-west-1:123456789012:bucket" });
    let body = grant(&key, &arn("user"), &["Encrypt", "CreateGrant"]);
    fixture.kms("CreateGrant", with(&body, json!({ "Constraints": source }))).unwrap();
    let free = fixture.kms_as(&user, "CreateGrant", grant(&key, &arn("friend"), &["Encrypt"]));
    assert_eq!(code(free), DENIED);
}

#[test]
fn denials_win_over_grants() {
    let fixture = Fixture::new();
    let deny = policy(json!([{ "Effect": "Deny", "Action": "kms:*", "Resource": "*" }]));
    let denied = fixture.user(ACCOUNT, "denied", &[deny]);
    let user = fixture.user(ACCOUNT, "user", &[]);
    let closed = key_policy(json!([{
        "Effect": "Deny", "Principal": { "AWS": arn("user") },
        "Action": ["kms:Encrypt", "kms:RetireGrant"], "Resource": "*",
    }]));
    let key = fixture.key(json!({ "Policy": closed }));
    for (who, name) in [(&denied, "denied"), (&user, "user")] {
        let operations = ["Encrypt", "RetireGrant"];
        let made = fixture.kms("CreateGrant", grant(&key, &arn(name), &operations)).unwrap();
        let body = with(&encrypt(&key, json!({})), json!({ "GrantTokens": [made["GrantToken"]] }));
        assert_eq!(code(fixture.kms_as(who, "Encrypt", body)), DENIED);
        assert_eq!(code(fixture.kms_as(who, "RetireGrant", id_of(&made, &key))), DENIED);
    }
    assert_eq!(grants(&fixture, &key).len(), 2);
    // A session policy limits what a grant allows its role.
    let trust = json!([{ "Effect": "Allow", "Principal": { "AWS": arn("admin") }, "Action": "sts:AssumeRole" }]);
    let role = fixture.role(ACCOUNT, "role", &policy(trust), &[]);
    let key = fixture.key(json!({}));
    let operations = ["Encrypt", "Decrypt", "RetireGrant"];
    let made = fixture.kms("CreateGrant", grant(&key, &role, &operations)).unwrap();
    let whole = fixture.session(&Who::admin(), &role, &[]);
    let narrow = allow(&["kms:Encrypt"]).to_string();
    let narrow = fixture.session(&Who::admin(), &role, &[("Policy", &narrow)]);
    let blob = fixture.encrypted(&key, b"x");
    for (who, expected) in [(&whole, true), (&narrow, false)] {
        assert!(fixture.kms_as(who, "Encrypt", encrypt(&key, json!({}))).is_ok());
        let opened = fixture.kms_as(who, "Decrypt", json!({ "CiphertextBlob": blob }));
        assert_eq!(opened.is_ok(), expected);
    }
    assert_eq!(code(fixture.kms_as(&narrow, "RetireGrant", id_of(&made, &key))), DENIED);
    fixture.kms_as(&whole, "RetireGrant", id_of(&made, &key)).unwrap();
}

#[test]
fn a_grant_for_an_account_leaves_it_to_its_policies() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let name = key_arn(ACCOUNT, REGION, &key);
    let root = format!("arn:aws:iam::{OTHER_ACCOUNT}:root");
    let body = with(&grant(&key, &root, &["Encrypt"]), json!({ "RetiringPrincipal": root }));
    let made = fixture.kms("CreateGrant", body).unwrap();
    let nobody = fixture.user(OTHER_ACCOUNT, "nobody", &[]);
    let allowed = fixture.user(OTHER_ACCOUNT, "allowed", &[allow(&["kms:Encrypt"])]);
    assert_eq!(code(fixture.kms_as(&nobody, "Encrypt", encrypt(&name, json!({})))), DENIED);
    fixture.kms_as(&allowed, "Encrypt", encrypt(&name, json!({}))).unwrap();
    let token = json!({ "GrantToken": made["GrantToken"] });
    for who in [&nobody, &allowed] {
        assert_eq!(code(fixture.kms_as(who, "RetireGrant", token.clone())), DENIED);
    }
    let retires = fixture.user(OTHER_ACCOUNT, "retires", &[allow(&["kms:RetireGrant"])]);
    fixture.kms_as(&retires, "RetireGrant", token).unwrap();
    assert!(grants(&fixture, &key).is_empty());
}

#[test]
fn grants_are_retired_by_whom_they_say() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let name = key_arn(ACCOUNT, REGION, &key);
    let users = ["retirer", "grantee", "bystander"].map(|name| fixture.user(ACCOUNT, name, &[]));
    let foreign = fixture.user(OTHER_ACCOUNT, "foreign", &[]);
    let delegate = fixture.user(ACCOUNT, "delegate", &[allow(&["kms:RetireGrant"])]);
    let [retirer, grantee, bystander] = &users;
    let make = |operations: &[&str], retiring: &str| {
        let body = grant(&key, &arn("grantee"), operations);
        fixture.kms("CreateGrant", with(&body, json!({ "RetiringPrincipal": retiring }))).unwrap()
    };
    let by_token = |made: &Value| json!({ "GrantToken": made["GrantToken"] });
    let retire = |who: &Who, body: Value| -> Answer { fixture.kms_as(who, "RetireGrant", body) };
    let plain = make(&["Encrypt"], &arn("retirer"));
    for who in [bystander, grantee, &foreign] {
        assert_eq!(code(retire(who, by_token(&plain))), DENIED);
        let id = json!({ "KeyId": name, "GrantId": plain["GrantId"] });
        assert_eq!(code(retire(who, id)), DENIED);
    }
    retire(retirer, by_token(&plain)).unwrap();
    assert_eq!(code(retire(retirer, by_token(&plain))), "InvalidGrantTokenException");
    let own = make(&["Encrypt", "RetireGrant"], &arn("retirer"));
    retire(grantee, by_token(&own)).unwrap();
    let elsewhere = format!("arn:aws:iam::{OTHER_ACCOUNT}:user/foreign");
    let crossed = make(&["Encrypt"], &elsewhere);
    retire(&foreign, by_token(&crossed)).unwrap();
    let crossed = make(&["Encrypt"], &elsewhere);
    retire(&foreign, json!({ "KeyId": name, "GrantId": crossed["GrantId"] })).unwrap();
    let delegated = make(&["Encrypt"], &arn("retirer"));
    retire(&delegate, by_token(&delegated)).unwrap();
    for wrong in [
        json!({}),
        json!({ "KeyId": key }),
        json!({ "GrantId": "0".repeat(64) }),
        with(&by_token(&plain), json!({ "KeyId": key })),
    ] {
        assert_eq!(code(retire(retirer, wrong)), "ValidationException");
    }
    let missing = json!({ "KeyId": key, "GrantId": "0".repeat(64) });
    assert_eq!(code(retire(retirer, missing)), "InvalidGrantIdException");
    let strange = json!({ "KeyId": key, "GrantId": "../../x" });
    assert_eq!(code(retire(retirer, strange)), "InvalidGrantIdException");
    // "kms:RetireGrant is not effective in a key policy."
    let open = key_policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": arn("bystander") }, "Action": "kms:*",
        "Resource": "*",
    }]));
    fixture.kms("PutKeyPolicy", json!({ "KeyId": key, "Policy": open })).unwrap();
    let kept = make(&["Encrypt"], &arn("retirer"));
    assert_eq!(code(retire(bystander, by_token(&kept))), DENIED);
    fixture.kms_as(bystander, "RevokeGrant", id_of(&kept, &key)).unwrap();
}

#[test]
fn tokens_are_of_one_key() {
    let fixture = Fixture::new();
    let (key, other) = (fixture.key(json!({})), fixture.key(json!({})));
    let made = |key: &str| {
        let made = fixture.kms("CreateGrant", grant(key, &arn("admin"), &["Encrypt"])).unwrap();
        text(&made["GrantToken"]).to_owned()
    };
    let (token, foreign) = (made(&key), made(&other));
    let wrong_end = format!("{}0", &token[..token.len() - 1]);
    let wrong_end = if wrong_end == token { token.replace('0', "1") } else { wrong_end };
    for wrong in [foreign.as_str(), "x", "...", &wrong_end, &format!("{token}0")] {
        let body = with(&encrypt(&key, json!({})), json!({ "GrantTokens": [wrong] }));
        assert_eq!(code(fixture.kms("Encrypt", body)), "InvalidGrantTokenException", "{wrong}");
    }
    let body = with(&encrypt(&key, json!({})), json!({ "GrantTokens": [""] }));
    assert_eq!(code(fixture.kms("Encrypt", body)), "ValidationException");
    let many = vec![token.clone(); 11];
    let body = with(&encrypt(&key, json!({})), json!({ "GrantTokens": many }));
    assert_eq!(code(fixture.kms("Encrypt", body)), "ValidationException");
    // ReEncrypt takes tokens for both its keys, and for no other.
    let blob = fixture.encrypted(&key, b"x");
    let body = json!({ "CiphertextBlob": blob, "DestinationKeyId": other });
    let tokens = |list: &[&str]| with(&body, json!({ "GrantTokens": list }));
    fixture.kms("ReEncrypt", tokens(&[&token, &foreign])).unwrap();
    let third = made(&fixture.key(json!({})));
    for list in [&[token.as_str(), &third][..], &["x"]] {
        let refused = fixture.kms("ReEncrypt", tokens(list));
        assert_eq!(code(refused), "InvalidGrantTokenException");
    }
}

#[test]
fn grants_that_cannot_be_are_refused() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let sign = fixture.key_of("ML_DSA_44", "SIGN_VERIFY");
    let good = grant(&key, &arn("admin"), &["Encrypt"]);
    let nine: serde_json::Map<_, _> = (0..9).map(|n| (format!("k{n}"), json!("v"))).collect();
    let subset = |pairs: Value| json!({ "Constraints": { "EncryptionContextSubset": pairs } });
    let source = json!({ "SourceArn": "arn:aws:s3:eu-west-1:123456789012:bucket" });
    let service = "rds.eu-west-1.amazonaws.com";
    for (more, expected) in [
        (json!({ "GranteePrincipal": null }), "ValidationException"),
        (json!({ "GranteePrincipal": "nobody" }), "InvalidArnException"),
        (json!({ "GranteePrincipal": "arn:aws:s3:::bucket" }), "InvalidArnException"),
        (json!({ "GranteePrincipal": "arn:aws:iam::12:user/x" }), "InvalidArnException"),
        (
            json!({ "GranteePrincipal": format!("arn:aws:iam::{ACCOUNT}:rootx") }),
            "InvalidArnException",
        ),
        (json!({ "GranteePrincipal": "x".repeat(257) }), "ValidationException"),
        (json!({ "RetiringPrincipal": "nobody" }), "InvalidArnException"),
        (json!({ "Operations": [] }), "ValidationException"),
        (json!({ "Operations": ["DisableKey"] }), "ValidationException"),
        (json!({ "Operations": ["Sign"] }), "ValidationException"),
        (json!({ "Operations": ["GetPublicKey"] }), "ValidationException"),
        (json!({ "KeyId": sign }), "ValidationException"),
        (
            with(&json!({ "KeyId": sign, "Operations": ["Sign"] }), subset(json!({ "a": "b" }))),
            "ValidationException",
        ),
        (json!({ "Name": "" }), "ValidationException"),
        (json!({ "Name": "x".repeat(257) }), "ValidationException"),
        (subset(json!(nine)), "ValidationException"),
        (subset(json!({ "k": "v".repeat(384) })), "ValidationException"),
        (json!({ "GranteeServicePrincipal": service }), "ValidationException"),
        (
            json!({ "GranteePrincipal": null, "GranteeServicePrincipal": service }),
            "ValidationException",
        ),
        (json!({ "KeyId": "alias/x" }), "NotFoundException"),
    ] {
        let refused =
            fixture.kms("CreateGrant", with(&good, more.clone())).expect_err(&more.to_string());
        assert_eq!(refused.code, expected, "{more}");
    }
    assert!(grants(&fixture, &key).is_empty());
    let body = json!({
        "KeyId": key, "GranteeServicePrincipal": service, "Operations": ["Encrypt"],
        "Constraints": source, "RetiringPrincipal": arn("admin"),
    });
    fixture.kms("CreateGrant", body).unwrap();
    let id = json!({ "KeyId": key });
    fixture.kms("DisableKey", id.clone()).unwrap();
    assert_eq!(code(fixture.kms("CreateGrant", good.clone())), "DisabledException");
    // A grant whose operations the key no longer supports can still be revoked.
    let listed = &grants(&fixture, &key)[0];
    fixture.kms("ScheduleKeyDeletion", id).unwrap();
    assert_eq!(code(fixture.kms("CreateGrant", good)), "KMSInvalidStateException");
    fixture.kms("RevokeGrant", id_of(listed, &key)).unwrap();
}

#[test]
fn grants_are_listed_in_pages_and_by_whom_they_concern() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let mine = arn("admin");
    for name in ["a", "b"] {
        fixture.user(ACCOUNT, name, &[]);
    }
    for number in 0..5 {
        let grantee = if number < 3 { arn("a") } else { arn("b") };
        let body = grant(&key, &grantee, &["Encrypt"]);
        fixture.kms("CreateGrant", with(&body, json!({ "RetiringPrincipal": mine }))).unwrap();
    }
    let pages = |operation: &str, body: Value| {
        let mut seen = Vec::new();
        let mut marker = json!({});
        loop {
            let body = with(&with(&body, json!({ "Limit": 2 })), marker.clone());
            let page = fixture.kms(operation, body).unwrap();
            let found = page["Grants"].as_array().unwrap();
            assert!(found.len() <= 2);
            seen.extend(found.iter().map(|grant| text(&grant["GrantId"]).to_owned()));
            assert_eq!(page["Truncated"], json!(page.get("NextMarker").is_some()));
            let Some(next) = page.get("NextMarker") else { break };
            marker = json!({ "Marker": next });
        }
        seen.sort();
        seen.dedup();
        seen
    };
    let of_key = pages("ListGrants", json!({ "KeyId": key }));
    assert_eq!(of_key.len(), 5);
    let of_a = pages("ListGrants", json!({ "KeyId": key, "GranteePrincipal": arn("a") }));
    assert_eq!(of_a.len(), 3);
    assert_eq!(pages("ListRetirableGrants", json!({ "RetiringPrincipal": mine })), of_key);
    assert!(pages("ListRetirableGrants", json!({ "RetiringPrincipal": arn("a") })).is_empty());
    let one = fixture.kms("ListGrants", json!({ "KeyId": key, "GrantId": of_a[0] })).unwrap();
    let entry = &one["Grants"][0];
    assert_eq!(entry["KeyId"], key_arn(ACCOUNT, REGION, &key));
    assert_eq!(entry["IssuingAccount"], format!("arn:aws:iam::{ACCOUNT}:root"));
    assert_eq!(entry["RetiringPrincipal"], mine);
    assert!(entry.get("Constraints").is_none() && entry.get("GrantToken").is_none());
    let both = json!({ "KeyId": key, "GrantId": of_a[0], "GranteePrincipal": arn("b") });
    assert_eq!(fixture.kms("ListGrants", both).unwrap()["Grants"], json!([]));
    let missing = json!({ "KeyId": key, "GrantId": "0".repeat(64) });
    assert_eq!(code(fixture.kms("ListGrants", missing)), "InvalidGrantIdException");
    for wrong in
        [json!({}), json!({ "RetiringPrincipal": mine, "RetiringServicePrincipal": "x.y" })]
    {
        assert_eq!(code(fixture.kms("ListRetirableGrants", wrong)), "ValidationException");
    }
    let service = json!({ "RetiringServicePrincipal": "rds.amazonaws.com" });
    assert_eq!(code(fixture.kms("ListRetirableGrants", service)), DENIED);
    // Grants of another account's keys are listed, too; but only for principals of one's own account.
    let stranger = format!("arn:aws:iam::{OTHER_ACCOUNT}:user/admin");
    let body = grant(&key, &arn("a"), &["Encrypt"]);
    fixture.kms("CreateGrant", with(&body, json!({ "RetiringPrincipal": stranger }))).unwrap();
    let asked = json!({ "RetiringPrincipal": stranger });
    let found = fixture.kms_as(&Who::stranger(), "ListRetirableGrants", asked.clone()).unwrap();
    assert_eq!(found["Grants"][0]["KeyId"], key_arn(ACCOUNT, REGION, &key));
    assert_eq!(code(fixture.kms("ListRetirableGrants", asked.clone())), DENIED);

    // The grants are deleted with the key.
    fixture.kms("ScheduleKeyDeletion", json!({ "KeyId": key, "PendingWindowInDays": 7 })).unwrap();
    fixture.advance(8 * 86_400);
    fixture.run_housekeeping();
    assert!(fixture.store.scan("kms/", "", 10).unwrap().is_empty());
    let found = fixture.kms_as(&Who::stranger(), "ListRetirableGrants", asked).unwrap();
    assert_eq!(found["Grants"], json!([]));
}

#[test]
fn account_grants_need_the_accounts_own_policies() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let key = fixture.key(json!({}));
    let bound = with(
        &grant(&key, &arn("user"), &["CreateGrant", "Decrypt"]),
        json!({ "Constraints": { "EncryptionContextEquals": { "a": "b" } } }),
    );
    fixture.kms("CreateGrant", bound).unwrap();
    let root = format!("arn:aws:iam::{ACCOUNT}:root");
    let wide = grant(&key, &root, &["CreateGrant", "Decrypt", "Encrypt"]);
    fixture.kms("CreateGrant", wide).unwrap();
    let wider = grant(&key, &arn("user"), &["Decrypt", "Encrypt"]);
    assert_eq!(code(fixture.kms_as(&user, "CreateGrant", wider)), DENIED);
}

/// The records that a call reads, once everything that can be in memory is there.
fn reads(fixture: &Fixture, call: impl Fn() -> Answer) -> (Answer, u64) {
    let _ = call();
    let before = fixture.store.records_read();
    let answer = call();
    (answer, fixture.store.records_read() - before)
}

#[test]
fn a_call_reads_as_much_with_one_grant_as_with_ten_thousand() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let key = fixture.key(json!({}));
    let blob = |context: Value| {
        let made = fixture.kms("Encrypt", encrypt(&key, context.clone())).unwrap();
        json!({ "CiphertextBlob": made["CiphertextBlob"], "EncryptionContext": context })
    };
    let (first, other) = (blob(json!({ "n": "0" })), blob(json!({ "n": "none" })));
    let part = blob(json!({ "part": "0", "more": "x" }));
    // Half of them constrain the whole context, half a part of it, and all are for the same user.
    let add = |n: usize| {
        let whole = n.to_string();
        let constraint = match n % 2 {
            0 => json!({ "EncryptionContextEquals": { "n": whole } }),
            _ => json!({ "EncryptionContextSubset": { "part": (n - 1).to_string() } }),
        };
        let body = grant(&key, &arn("user"), &["Decrypt", "DescribeKey"]);
        fixture.kms("CreateGrant", with(&body, json!({ "Constraints": constraint }))).unwrap()
    };
    let (denied, allowed) = (Some(DENIED), None);
    let calls: [(&str, Value, Option<&str>); 5] = [
        ("Encrypt", encrypt(&key, json!({})), denied),
        ("Decrypt", other, denied),
        ("Decrypt", first, allowed),
        ("Decrypt", part, allowed),
        ("DescribeKey", json!({ "KeyId": key }), allowed),
    ];
    let measure = || {
        let one = |(operation, body, expected): &(&str, Value, Option<&str>)| {
            let (answer, count) =
                reads(&fixture, || fixture.kms_as(&user, operation, body.clone()));
            assert_eq!(answer.err().map(|refused| refused.code).as_deref(), *expected);
            count
        };
        calls.iter().map(one).collect::<Vec<_>>()
    };
    (0..2).for_each(|n| drop(add(n)));
    let few = measure();
    (2..10_000).for_each(|n| drop(add(n)));
    let many = measure();
    println!("records read with 2 grants: {few:?}, with 10000: {many:?}");
    // Where many grants allow the same, reading one of a few suffices.
    for (few, many) in few.iter().zip(&many) {
        assert!(*many <= few + 8, "{few} and {many}");
    }
    assert_eq!(few[..2], many[..2], "denied calls");
    assert!(many.iter().all(|count| *count < 40), "{many:?}");
}

#[test]
fn grants_of_earlier_versions_are_found_and_filed_anew() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let key = fixture.key(json!({}));
    let made =
        fixture.kms("CreateGrant", grant(&key, &arn("user"), &["Encrypt", "DescribeKey"])).unwrap();
    let gone = fixture.kms("CreateGrant", grant(&key, &arn("user"), &["Decrypt"])).unwrap();
    // As earlier versions left them: a pointer for each grant.
    let digest = hex::encode(outlast_crypto::digests::sha256(arn("user").as_bytes()));
    let old = format!("kms/grant-to/{ACCOUNT}/{REGION}/{key}/{digest}/");
    let new = "kms/by-grantee/";
    let record_keys = |prefix: &str| -> Vec<String> {
        fixture.store.scan(prefix, "", 100).unwrap().into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!((record_keys(new).len(), record_keys(&old).len()), (3, 0));
    fixture.directory(|work| {
        for record_key in record_keys(new) {
            work.delete(&record_key);
        }
        for one in [&made, &gone] {
            let id = text(&one["GrantId"]);
            let pointer = json!({ "account": ACCOUNT, "key_id": key, "grant_id": id });
            work.put(&format!("{old}{id}"), &pointer).unwrap();
        }
    });
    assert_eq!((record_keys(new).len(), record_keys(&old).len()), (0, 2));
    let works = || {
        fixture.kms_as(&user, "Encrypt", encrypt(&key, json!({}))).unwrap();
        fixture.kms_as(&user, "DescribeKey", json!({ "KeyId": key })).unwrap();
    };
    works();
    // One is revoked before housekeeping gets to it.
    fixture.kms("RevokeGrant", id_of(&gone, &key)).unwrap();
    assert_eq!(record_keys(&old).len(), 1);
    fixture.run_housekeeping();
    assert_eq!((record_keys(new).len(), record_keys(&old).len()), (2, 0));
    works();
    fixture.kms("RevokeGrant", id_of(&made, &key)).unwrap();
    assert_eq!(record_keys(new), Vec::<String>::new());
    assert_eq!(code(fixture.kms_as(&user, "Encrypt", encrypt(&key, json!({})))), DENIED);
}
