//! STS: who calls, sessions of roles, and the query protocol.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{ACCOUNT, Fixture, OTHER_ACCOUNT, Who, allow, code, element, policy};
use http::HeaderMap;
use outlast_api::service::Response;
use outlast_domain::identity::{Entry, Role, User};
use outlast_store::Store;
use serde_json::{Value, json};

fn trust(principal: &str, condition: Value) -> Value {
    let mut statement = json!({
        "Effect": "Allow", "Principal": { "AWS": principal },
        "Action": ["sts:AssumeRole"],
    });
    if condition != json!({}) {
        statement["Condition"] = condition;
    }
    policy(json!([statement]))
}

fn user_arn(name: &str) -> String {
    format!("arn:aws:iam::{ACCOUNT}:user/{name}")
}

fn assume(fixture: &Fixture, who: &Who, role: &str, more: &[(&str, &str)]) -> Response {
    let mut form = vec![("Action", "AssumeRole"), ("RoleArn", role), ("RoleSessionName", "test")];
    form.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
    form.extend_from_slice(more);
    fixture.sts_as(who, &form)
}

fn xml(response: &Response) -> String {
    assert_eq!(response.content_type, "text/xml");
    String::from_utf8(response.body.clone()).unwrap()
}

#[track_caller]
fn refused(response: &Response, status: u16, code: &str) {
    let xml = xml(response);
    assert_eq!((response.status, element(&xml, "Code").as_str()), (status, code), "{xml}");
    assert_eq!(response.error, Some(code));
    // Only a request that names no operation is refused before it has an id.
    if code != "InvalidAction" {
        assert!(xml.ends_with("</RequestId></ErrorResponse>"));
        assert_eq!(element(&xml, "RequestId").len(), 36);
    }
    assert_eq!(element(&xml, "Type"), "Sender");
    assert!(xml.starts_with("<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"));
}

#[test]
fn callers_learn_who_they_are() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let me = [("Action", "GetCallerIdentity")];
    let found = xml(&fixture.sts_as(&user, &me));
    assert!(found.starts_with("<GetCallerIdentityResponse xmlns="), "{found}");
    assert_eq!(element(&found, "Arn"), user_arn("user"));
    assert_eq!(element(&found, "Account"), ACCOUNT);
    assert!(element(&found, "UserId").starts_with("AIDA"));
    assert_eq!(element(&found, "RequestId").len(), 36);
    let role = fixture.role(ACCOUNT, "role", &trust(&user_arn("user"), json!({})), &[]);
    let session = fixture.session(&user, &role, &[]);
    let found = xml(&fixture.sts_as(&session, &me));
    let arn = format!("arn:aws:sts::{ACCOUNT}:assumed-role/role/session");
    assert_eq!(element(&found, "Arn"), arn);
    let id = element(&found, "UserId");
    assert!(id.starts_with("AROA") && id.ends_with(":session"), "{id}");
}

#[test]
fn roles_are_assumed_by_whom_they_trust() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let allowed = fixture.user(ACCOUNT, "allowed", &[allow(&["sts:AssumeRole"])]);
    let foreign = fixture.user(OTHER_ACCOUNT, "foreign", &[allow(&["sts:AssumeRole"])]);
    let weak = fixture.user(OTHER_ACCOUNT, "weak", &[]);
    let root = |account: &str| format!("arn:aws:iam::{account}:root");
    let denied = |who: &Who, role: &str| {
        let response = assume(&fixture, who, role, &[]);
        refused(&response, 403, "AccessDenied");
        assert!(xml(&response).contains("is not authorized to perform: sts:AssumeRole"));
    };
    let to_user = fixture.role(ACCOUNT, "to-user", &trust(&user_arn("user"), json!({})), &[]);
    assert_eq!(assume(&fixture, &user, &to_user, &[]).status, 200);
    denied(&allowed, &to_user);
    let to_account = fixture.role(ACCOUNT, "to-account", &trust(&root(ACCOUNT), json!({})), &[]);
    assert_eq!(assume(&fixture, &allowed, &to_account, &[]).status, 200);
    denied(&user, &to_account);
    let abroad = fixture.role(ACCOUNT, "abroad", &trust(&root(OTHER_ACCOUNT), json!({})), &[]);
    let made = xml(&assume(&fixture, &foreign, &abroad, &[]));
    let arn = format!("arn:aws:sts::{ACCOUNT}:assumed-role/abroad/test");
    assert_eq!(element(&made, "Arn"), arn);
    denied(&weak, &abroad);
    denied(&allowed, &abroad);
    // Even if the policy names the user, another account's user also needs its own account's permission.
    let named = format!("arn:aws:iam::{OTHER_ACCOUNT}:user/weak");
    let named = fixture.role(ACCOUNT, "named", &trust(&named, json!({})), &[]);
    denied(&weak, &named);
    denied(&allowed, &format!("arn:aws:iam::{ACCOUNT}:role/nothing"));
    denied(&allowed, &format!("arn:aws:iam::{ACCOUNT}:role/../user/x"));

    let external = json!({ "StringEquals": { "sts:ExternalId": "12-34" } });
    let external = fixture.role(ACCOUNT, "external", &trust(&user_arn("user"), external), &[]);
    denied(&user, &external);
    refused(&assume(&fixture, &user, &external, &[("ExternalId", "12-35")]), 403, "AccessDenied");
    assert_eq!(assume(&fixture, &user, &external, &[("ExternalId", "12-34")]).status, 200);
    refused(&assume(&fixture, &user, &external, &[("ExternalId", "1")]), 400, "ValidationError");
}

#[test]
fn session_policies_reduce_a_roles_permissions() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let both = allow(&["kms:CreateKey", "kms:ListKeys"]);
    let role = fixture.role(ACCOUNT, "role", &trust(&user_arn("user"), json!({})), &[both]);
    let whole = fixture.session(&user, &role, &[]);
    fixture.kms_as(&whole, "CreateKey", json!({})).unwrap();
    let event = fixture.events().pop().unwrap();
    let identity = &event["userIdentity"];
    assert_eq!(identity["type"], "AssumedRole");
    assert_eq!(identity["arn"], format!("arn:aws:sts::{ACCOUNT}:assumed-role/role/session"));
    assert_eq!(identity["accessKeyId"], whole.id.as_str());
    assert_eq!(identity["sessionContext"]["sessionIssuer"]["arn"], role.as_str());
    assert_eq!(code(fixture.kms_as(&user, "CreateKey", json!({}))), "AccessDeniedException");
    let narrow = allow(&["kms:ListKeys", "kms:ListAliases"]).to_string();
    let narrow = fixture.session(&user, &role, &[("Policy", &narrow)]);
    fixture.kms_as(&narrow, "ListKeys", json!({})).unwrap();
    for operation in ["CreateKey", "ListAliases"] {
        assert_eq!(code(fixture.kms_as(&narrow, operation, json!({}))), "AccessDeniedException");
    }
    for wrong in ["{}", "x", &json!({ "Version": "2012-10-17", "Statement": [] }).to_string()] {
        let response = assume(&fixture, &user, &role, &[("Policy", wrong)]);
        refused(&response, 400, "MalformedPolicyDocument");
    }
    // No record contains the secret or the token of a session.
    let all = serde_json::to_string(&fixture.events()).unwrap();
    for session in [&whole, &narrow] {
        assert!(all.contains(&session.id));
        assert!(!all.contains(session.token.as_deref().unwrap()));
        assert!(!all.contains(std::str::from_utf8(&session.secret).unwrap()));
    }
    for (_, value) in fixture.store.scan("iam/", "", 1000).unwrap() {
        let value = String::from_utf8_lossy(&value.value).into_owned();
        assert!(!value.contains(whole.token.as_deref().unwrap()));
        assert!(!value.contains(std::str::from_utf8(&whole.secret).unwrap()));
    }
}

#[test]
fn sessions_last_as_long_as_they_were_asked_for() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let role = fixture.role(ACCOUNT, "role", &trust(&user_arn("user"), json!({})), &[]);
    let me = [("Action", "GetCallerIdentity")];
    for wrong in ["899", "0", "-1", "7201"] {
        let response = assume(&fixture, &user, &role, &[("DurationSeconds", wrong)]);
        refused(&response, 400, "ValidationError");
    }
    for wrong in ["x", "99999999999999999999", ""] {
        let response = assume(&fixture, &user, &role, &[("DurationSeconds", wrong)]);
        refused(&response, 400, "MalformedQueryString");
    }
    let made = xml(&assume(&fixture, &user, &role, &[("DurationSeconds", "7200")]));
    assert_eq!(element(&made, "Expiration"), "2026-11-21T02:00:00Z");
    assert_eq!(
        element(&xml(&assume(&fixture, &user, &role, &[])), "Expiration"),
        "2026-11-21T01:00:00Z"
    );
    let session = fixture.session(&user, &role, &[("DurationSeconds", "900")]);
    fixture.advance(899);
    assert_eq!(fixture.sts_as(&session, &me).status, 200);
    fixture.advance(1);
    refused(&fixture.sts_as(&session, &me), 403, "ExpiredToken");
    assert_eq!(code(fixture.kms_as(&session, "ListKeys", json!({}))), "ExpiredTokenException");
    fixture.run_housekeeping();
    assert!(
        fixture
            .store
            .scan("iam/session/", "", 10)
            .unwrap()
            .iter()
            .all(|(record_key, _)| !record_key.ends_with(&session.id))
    );
    refused(&fixture.sts_as(&session, &me), 403, "InvalidClientTokenId");
    fixture.advance(7200);
    fixture.run_housekeeping();
    assert!(fixture.store.scan("iam/session", "", 10).unwrap().is_empty(), "secrets go, too");
}

#[test]
fn a_session_is_its_token_too() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let role = fixture.role(ACCOUNT, "role", &trust(&user_arn("user"), json!({})), &[]);
    let session = fixture.session(&user, &role, &[]);
    let other = fixture.session(&user, &role, &[]);
    let me = [("Action", "GetCallerIdentity")];
    for token in [None, other.token.clone(), Some("x".into()), Some(String::new())] {
        let who = Who { token, ..session.clone() };
        refused(&fixture.sts_as(&who, &me), 403, "InvalidClientTokenId");
        assert_eq!(
            code(fixture.kms_as(&who, "ListKeys", json!({}))),
            "UnrecognizedClientException"
        );
    }
    let long_term = Who { token: session.token.clone(), ..user.clone() };
    refused(&fixture.sts_as(&long_term, &me), 403, "InvalidClientTokenId");
    let stolen = Who { secret: b"another".to_vec(), ..session.clone() };
    refused(&fixture.sts_as(&stolen, &me), 403, "SignatureDoesNotMatch");
    assert_eq!(fixture.sts_as(&session, &me).status, 200);
    // A role that is created again is another role.
    fixture.directory(|work| {
        Role::find(work, ACCOUNT, "role").unwrap().delete(work);
    });
    refused(&fixture.sts_as(&session, &me), 403, "InvalidClientTokenId");
    fixture.role(ACCOUNT, "role", &trust(&user_arn("user"), json!({})), &[]);
    refused(&fixture.sts_as(&session, &me), 403, "InvalidClientTokenId");
    refused(&fixture.sts_as(&Who::new("AKIANOBODY"), &me), 403, "InvalidClientTokenId");
}

#[test]
fn inactive_keys_and_deleted_users_are_refused() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let me = [("Action", "GetCallerIdentity")];
    let set = |active: bool| {
        fixture.directory(|work| {
            let found = User::find(work, ACCOUNT, "user").unwrap();
            found.set_access_key_active(work, &user.id, active).unwrap();
        });
    };
    set(false);
    refused(&fixture.sts_as(&user, &me), 403, "InvalidClientTokenId");
    set(true);
    assert_eq!(fixture.sts_as(&user, &me).status, 200);
    fixture.directory(|work| {
        User::find(work, ACCOUNT, "user").unwrap().delete(work);
    });
    refused(&fixture.sts_as(&user, &me), 403, "InvalidClientTokenId");
}

#[test]
fn tags_and_source_identities_take_permissions_of_their_own() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let plain = fixture.role(ACCOUNT, "plain", &trust(&user_arn("user"), json!({})), &[]);
    let tag = [("Tags.member.1.Key", "team"), ("Tags.member.1.Value", "blue")];
    let source = [("SourceIdentity", "alice")];
    for more in [&tag[..], &source] {
        refused(&assume(&fixture, &user, &plain, more), 403, "AccessDenied");
    }
    let actions = ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"];
    let mut statement = trust(&user_arn("user"), json!({}));
    statement["Statement"][0]["Action"] = json!(actions);
    let blue = json!({ "StringEquals": {
        "aws:PrincipalTag/team": "blue", "aws:SourceIdentity": "alice",
    } });
    let mine = policy(json!([
        { "Effect": "Allow", "Action": "kms:ListKeys", "Resource": "*", "Condition": blue },
        { "Effect": "Allow", "Action": "sts:*", "Resource": "*" },
    ]));
    let role = fixture.role(ACCOUNT, "role", &statement, std::slice::from_ref(&mine));
    let all: Vec<_> = tag.iter().chain(&source).copied().collect();
    let session = fixture.session(&user, &role, &all);
    fixture.kms_as(&session, "ListKeys", json!({})).unwrap();
    for more in [&[][..], &tag, &source] {
        let session = fixture.session(&user, &role, more);
        assert_eq!(code(fixture.kms_as(&session, "ListKeys", json!({}))), "AccessDeniedException");
    }
    for wrong in [
        &[("Tags.member.1.Key", "aws:team"), ("Tags.member.1.Value", "x")][..],
        &[
            ("Tags.member.1.Key", "a"),
            ("Tags.member.1.Value", "1"),
            ("Tags.member.2.Key", "a"),
            ("Tags.member.2.Value", "2"),
        ],
        &[("TransitiveTagKeys.member.1", "other"), tag[0], tag[1]],
        &[("SourceIdentity", "x")],
    ] {
        refused(&assume(&fixture, &user, &role, wrong), 400, "ValidationError");
    }
    // Transitive tags and the source identity pass on to the next session and cannot be changed there.
    let next = fixture.role(
        ACCOUNT,
        "next",
        &{
            let mut next = trust(&role, json!({}));
            next["Statement"][0]["Action"] = json!(actions);
            next
        },
        &[mine],
    );
    let mut more = all.clone();
    more.push(("TransitiveTagKeys.member.1", "team"));
    let first = fixture.session(&user, &role, &more);
    let second = fixture.session(&first, &next, &[]);
    fixture.kms_as(&second, "ListKeys", json!({})).unwrap();
    refused(&assume(&fixture, &first, &next, &tag), 400, "ValidationError");
    refused(
        &assume(&fixture, &first, &next, &[("SourceIdentity", "mallory")]),
        403,
        "AccessDenied",
    );
    assert_eq!(assume(&fixture, &first, &next, &source).status, 200);
    // Without transitive keys the tag stays behind.
    let second = fixture.session(&session, &next, &[]);
    assert_eq!(code(fixture.kms_as(&second, "ListKeys", json!({}))), "AccessDeniedException");
    // "Role chaining limits your session to a maximum of one hour."
    let long = assume(&fixture, &first, &next, &[("DurationSeconds", "3601")]);
    refused(&long, 400, "ValidationError");
}

#[test]
fn malformed_queries_are_refused() {
    let fixture = Fixture::new();
    let user = Who::admin();
    let role = format!("arn:aws:iam::{ACCOUNT}:role/x");
    let send = |body: &str| {
        let mut headers = HeaderMap::new();
        let form = "application/x-www-form-urlencoded";
        headers.insert("content-type", form.parse().unwrap());
        fixture.request(&user, "sts", headers, body.as_bytes())
    };
    for unknown in ["", "Action=", "Action=Nothing", "action=GetCallerIdentity", "\u{ff}\u{fe}"] {
        refused(&send(unknown), 400, "InvalidAction");
    }
    for (body, expected) in [
        ("Action=GetCallerIdentity&Extra=1".to_owned(), "MalformedQueryString"),
        ("Action=AssumeRole".to_owned(), "ValidationError"),
        (format!("Action=AssumeRole&RoleArn={role}"), "ValidationError"),
        (
            format!("Action=AssumeRole&RoleArn={role}&RoleArn={role}&RoleSessionName=ab"),
            "MalformedQueryString",
        ),
        (format!("Action=AssumeRole&RoleArn.x={role}&RoleSessionName=ab"), "MalformedQueryString"),
        (format!("Action=AssumeRole&RoleArn={role}&RoleSessionName=a"), "ValidationError"),
        (format!("Action=AssumeRole&RoleArn={role}&RoleSessionName=a%20b"), "ValidationError"),
        (
            format!("Action=AssumeRole&RoleArn={role}&RoleSessionName={}", "a".repeat(65)),
            "ValidationError",
        ),
        (
            "Action=AssumeRole&RoleArn=arn:aws:iam::x&RoleSessionName=ab".to_owned(),
            "ValidationError",
        ),
        (
            "Action=AssumeRole&RoleArn=arn:aws:s3:::bucket-of-mine&RoleSessionName=ab".to_owned(),
            "ValidationError",
        ),
        (
            format!("Action=AssumeRole&RoleArn={}&RoleSessionName=ab", "x".repeat(2049)),
            "ValidationError",
        ),
        (
            format!(
                "Action=AssumeRole&RoleArn={role}&RoleSessionName=ab&Policy={}",
                "x".repeat(2049)
            ),
            "ValidationError",
        ),
        (
            format!("Action=AssumeRole&RoleArn={role}&RoleSessionName=ab&Tags=x"),
            "MalformedQueryString",
        ),
        ("Action=GetCallerIdentity&a..b=1".to_owned(), "MalformedQueryString"),
        (
            format!("Action=GetCallerIdentity&{}", "a.member.1=1&".repeat(1001)),
            "MalformedQueryString",
        ),
    ] {
        refused(&send(&body), 400, expected);
    }
    assert!(fixture.store.scan("iam/session", "", 10).unwrap().is_empty());
    // The name of a session is escaped in the answer.
    let trusted = fixture.role(ACCOUNT, "r", &trust(&user_arn("admin"), json!({})), &[]);
    let made = assume(&fixture, &user, &trusted, &[("RoleSessionName", "a=b,c.@-_+")]);
    assert!(element(&xml(&made), "AssumedRoleId").ends_with(":a=b,c.@-_+"));
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "text/plain".parse().unwrap());
    let wrong_service = fixture.request(&user, "kms", headers, b"Action=GetCallerIdentity");
    assert_eq!(wrong_service.error, Some("UnknownOperationException"));
}

#[test]
fn what_comes_down_a_chain_must_be_allowed_by_each_role() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let mut all = trust(&user_arn("user"), json!({}));
    all["Statement"][0]["Action"] =
        json!(["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"]);
    let may = policy(json!([{ "Effect": "Allow", "Action": "sts:*", "Resource": "*" }]));
    let first = fixture.role(ACCOUNT, "first", &all, &[may]);
    let plain = trust(&format!("arn:aws:iam::{ACCOUNT}:role/first"), json!({}));
    let second = fixture.role(ACCOUNT, "second", &plain, &[]);
    let tag = [
        ("Tags.member.1.Key", "clearance"),
        ("Tags.member.1.Value", "top"),
        ("TransitiveTagKeys.member.1", "clearance"),
    ];
    let tagged = fixture.session(&user, &first, &tag);
    refused(&assume(&fixture, &tagged, &second, &[]), 403, "AccessDenied");
    let named = fixture.session(&user, &first, &[("SourceIdentity", "alice")]);
    refused(&assume(&fixture, &named, &second, &[]), 403, "AccessDenied");
    // An empty list, as boto3 sends it, counts as absent.
    let bare = fixture.session(&user, &first, &[("Tags", "")]);
    assert_eq!(assume(&fixture, &bare, &second, &[]).status, 200);
}
