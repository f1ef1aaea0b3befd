//! `outlast principal` beside a running server: users, access keys, roles, policies, and their immediate effect.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::process::{Command, Stdio};

use common::{Folder, Identity, Session, fail, outlast, runtime, succeed};
use outlast_api::aws::Operation;
use outlast_api::ops::kms::{create_key, describe_key, generate_data_key, list_keys};
use serde_json::{Value, json};

const READER: &str = r#"{"Version":"2012-10-17","Statement":[
    {"Effect":"Allow","Action":["kms:ListKeys","kms:DescribeKey"],"Resource":"*"}]}"#;

fn principal(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = outlast();
    command.arg("principal").args(arguments).arg("--data").arg(&folder.data);
    command
}

fn json_of(command: &mut Command) -> Value {
    serde_json::from_str(&succeed(command.args(["--output", "json"]))).unwrap()
}

/// Path of a file with this text.
fn file(folder: &Folder, name: &str, text: &str) -> String {
    folder.write(name, text.as_bytes()).display().to_string()
}

/// A trust policy for one principal, or for a whole account.
fn trust(principal: &str) -> String {
    json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow", "Action": "sts:AssumeRole", "Principal": { "AWS": principal },
        }],
    })
    .to_string()
}

/// The code of a call's error, or `ok`.
async fn code<O: Operation>(session: &mut Session, input: Value) -> String {
    match session.call::<O>(input).await.unwrap() {
        Ok(_) => "ok".into(),
        Err(error) => error.code,
    }
}

fn events(folder: &Folder) -> Vec<Value> {
    let text = succeed(
        outlast()
            .args(["audit", "tail", "-n", "100000", "--output", "json", "--data"])
            .arg(&folder.data),
    );
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_user_may_do_what_its_policies_say_from_then_on() {
    let folder = Folder::new();
    let server = folder.serve();
    let policy = file(&folder, "reader.json", READER);
    let made = json_of(&mut principal(&folder, &["create", "alice", "--policy-file", &policy]));
    assert_eq!(made["arn"], "arn:aws:iam::123456789012:user/alice");
    assert_eq!(made["secret_access_key"].as_str().unwrap().len(), 40);
    let runtime = runtime();
    runtime.block_on(async {
        let mut alice = server.session_as(Identity::printed(&made)).await;
        assert_eq!(code::<list_keys::ListKeys>(&mut alice, json!({})).await, "ok");
        assert_eq!(
            code::<create_key::CreateKey>(&mut alice, json!({})).await,
            "AccessDeniedException"
        );
        // Another policy, with another name, changes it at once.
        let maker = file(
            &folder,
            "maker.json",
            r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"kms:CreateKey","Resource":"*"}}"#,
        );
        succeed(&mut principal(&folder, &["policy", "put", "alice", "--policy-file", &maker]));
        assert_eq!(code::<create_key::CreateKey>(&mut alice, json!({})).await, "ok");
        let shown = json_of(&mut principal(&folder, &["policy", "get", "alice"]));
        assert_eq!(shown["policies"]["maker"]["Statement"]["Action"], "kms:CreateKey");
        assert_eq!(shown["policies"]["reader"]["Statement"][0]["Effect"], "Allow");
        let delete = ["policy", "delete", "alice", "--policy-name", "maker"];
        succeed(&mut principal(&folder, &delete));
        assert_eq!(
            code::<create_key::CreateKey>(&mut alice, json!({})).await,
            "AccessDeniedException"
        );
        assert!(fail(&mut principal(&folder, &delete), 1).contains("policy maker does not exist"));
        // Deleting the user ends it, even on an open connection.
        succeed(&mut principal(&folder, &["delete", "alice"]));
        assert_eq!(
            code::<list_keys::ListKeys>(&mut alice, json!({})).await,
            "UnrecognizedClientException"
        );
    });
    let names: Vec<_> = events(&folder)
        .iter()
        .filter(|event| event["eventSource"] == "iam.amazonaws.com")
        .map(|event| {
            let parameters = &event["requestParameters"];
            assert_eq!(parameters["name"], "alice");
            assert_eq!(event["recipientAccountId"], "123456789012");
            let detail = parameters.get("policyName").or(parameters.get("accessKeyId"));
            let detail = detail.map_or("-", |value| value.as_str().unwrap()).to_owned();
            (event["eventName"].as_str().unwrap().to_owned(), detail)
        })
        .collect();
    let id = made["access_key_id"].as_str().unwrap();
    let expected = [
        ("CreateUser", id),
        ("PutPrincipalPolicy", "maker"),
        ("DeletePrincipalPolicy", "maker"),
        ("DeleteUser", "-"),
    ];
    assert_eq!(names, expected.map(|(name, detail)| (name.to_owned(), detail.to_owned())));
}

#[test]
fn access_keys_are_rotated_two_at_a_time() {
    let folder = Folder::new();
    let server = folder.serve();
    let first = json_of(&mut principal(&folder, &["create", "bob", "--admin"]));
    let second = json_of(&mut principal(&folder, &["key", "create", "bob"]));
    let text = fail(&mut principal(&folder, &["key", "create", "bob"]), 1);
    assert!(text.contains("at most 2 access keys") && text.contains("hint: "), "{text}");
    let id = first["access_key_id"].as_str().unwrap().to_owned();
    let on = |verb: &'static str| {
        let mut command = principal(&folder, &["key", verb, "bob", "--access-key-id", &id]);
        succeed(&mut command);
    };
    runtime().block_on(async {
        let mut old = server.session_as(Identity::printed(&first)).await;
        let mut new = server.session_as(Identity::printed(&second)).await;
        assert_eq!(code::<list_keys::ListKeys>(&mut old, json!({})).await, "ok");
        for (verb, expected) in [
            ("deactivate", "UnrecognizedClientException"),
            ("activate", "ok"),
            ("deactivate", "UnrecognizedClientException"),
            ("delete", "UnrecognizedClientException"),
        ] {
            on(verb);
            assert_eq!(code::<list_keys::ListKeys>(&mut old, json!({})).await, expected, "{verb}");
            assert_eq!(code::<list_keys::ListKeys>(&mut new, json!({})).await, "ok", "{verb}");
        }
    });
    let keys = json_of(&mut principal(&folder, &["key", "list", "bob"]));
    assert_eq!(keys.as_array().unwrap().len(), 1);
    assert_eq!((&keys[0]["id"], &keys[0]["active"]), (&second["access_key_id"], &json!(true)));
    let gone = fail(&mut principal(&folder, &["key", "delete", "bob", "--access-key-id", &id]), 1);
    assert!(gone.contains("does not exist") && gone.contains("hint: "), "{gone}");
    // Another user's key is not bob's.
    let other = ["key", "delete", "bob", "--access-key-id", common::ACCESS_KEY];
    assert!(fail(&mut principal(&folder, &other), 1).contains("does not exist"));
    succeed(&mut principal(&folder, &["key", "create", "bob"]));
    let taken = ["create", "carol", "--access-key-id", second["access_key_id"].as_str().unwrap()];
    assert!(fail(&mut principal(&folder, &taken), 1).contains("already exists"));
    // The failed command left nothing: the name is free.
    succeed(&mut principal(&folder, &["create", "carol"]));
}

#[test]
fn secrets_are_shown_once_at_most() {
    let folder = Folder::new();
    let text = succeed(&mut principal(&folder, &["create", "dora"]));
    let secret = text.lines().find_map(|line| line.strip_prefix("aws_secret_access_key = "));
    let secret = secret.unwrap().to_owned();
    assert_eq!(text.matches(&secret).count(), 1);
    let mut later = String::new();
    for arguments in [&["list"][..], &["key", "list", "dora"], &["policy", "get", "dora"]] {
        later += &succeed(&mut principal(&folder, arguments));
        later += &json_of(&mut principal(&folder, arguments)).to_string();
    }
    later += &events(&folder).iter().map(Value::to_string).collect::<String>();
    assert!(!later.contains(&secret));
    assert!(later.contains("CreateUser"), "no event: {later}");
    // A given secret is used and not shown.
    let given = "given-in-the-environment-4711";
    let mut command = principal(&folder, &["key", "create", "dora", "--access-key-id", "DORA_2"]);
    let text = succeed(command.env("OUTLAST_SECRET_ACCESS_KEY", given));
    assert!(text.contains("DORA_2") && !text.contains(given), "{text}");
    let server = folder.serve();
    runtime().block_on(async {
        let identity = Identity { id: "DORA_2".into(), secret: given.into(), token: None };
        let mut dora = server.session_as(identity).await;
        // The user is known, and has no permissions.
        let refused = code::<list_keys::ListKeys>(&mut dora, json!({})).await;
        assert_eq!(refused, "AccessDeniedException");
    });
    for weak in ["short", "with a space in the middle", ""] {
        let mut command = principal(&folder, &["create", "erin"]);
        let text = fail(command.env("OUTLAST_SECRET_ACCESS_KEY", weak), 1);
        assert!(text.contains("OUTLAST_SECRET_ACCESS_KEY"), "{text}");
        assert!(weak.is_empty() || !text.contains(weak), "{text}");
    }
    // No secret is in the store as plaintext.
    let database = std::fs::read(folder.data.join("store.db")).unwrap();
    let log = std::fs::read(folder.data.join("store.db-wal")).unwrap_or_default();
    for needle in [secret.as_bytes(), given.as_bytes()] {
        let holds = |all: &[u8]| all.windows(needle.len()).any(|window| window == needle);
        assert!(!holds(&database) && !holds(&log));
    }
}

#[test]
fn roles_are_assumed_by_whom_they_trust() {
    let folder = Folder::new();
    let server = folder.serve();
    let reader = file(&folder, "reader.json", READER);
    let assume = file(
        &folder,
        "assume.json",
        r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Resource":"*"}}"#,
    );
    let alice = json_of(&mut principal(&folder, &["create", "alice", "--policy-file", &assume]));
    let mallory =
        json_of(&mut principal(&folder, &["create", "mallory", "--policy-file", &assume]));
    let trusts = file(&folder, "trusts.json", &trust(alice["arn"].as_str().unwrap()));
    let arguments =
        ["create", "auditor", "--role", "--trust-policy-file", &trusts, "--policy-file", &reader];
    let role = json_of(&mut principal(&folder, &arguments));
    let arn = role["arn"].as_str().unwrap();
    assert_eq!(arn, "arn:aws:iam::123456789012:role/auditor");
    assert!(role.get("secret_access_key").is_none());
    runtime().block_on(async {
        let mut alice = server.session_as(Identity::printed(&alice)).await;
        let mut mallory = server.session_as(Identity::printed(&mallory)).await;
        let refused = mallory.assume(arn, "mm").await.err().unwrap();
        assert!(refused.contains("AccessDenied"), "{refused}");
        let issued = alice.assume(arn, "check-7").await.unwrap();
        assert!(issued.id.starts_with("ASIA"));
        let stolen = Identity { id: issued.id.clone(), secret: issued.secret.clone(), token: None };
        let mut session = server.session_as(issued).await;
        assert_eq!(code::<list_keys::ListKeys>(&mut session, json!({})).await, "ok");
        assert_eq!(
            code::<create_key::CreateKey>(&mut session, json!({})).await,
            "AccessDeniedException"
        );
        let (status, xml) = session.sts("Action=GetCallerIdentity").await;
        assert!(status == 200 && xml.contains("assumed-role/auditor/check-7"), "{xml}");
        // Without its token the key is useless.
        let mut stolen = server.session_as(stolen).await;
        assert_eq!(
            code::<list_keys::ListKeys>(&mut stolen, json!({})).await,
            "UnrecognizedClientException"
        );
        // Another trust policy: existing sessions stay, and no new one starts.
        let other = file(&folder, "trust.json", &trust(&mallory_arn()));
        succeed(&mut principal(
            &folder,
            &["policy", "put", "auditor", "--role", "--policy-file", &other],
        ));
        assert!(alice.assume(arn, "again").await.is_err());
        mallory.assume(arn, "again").await.unwrap();
        assert_eq!(code::<list_keys::ListKeys>(&mut session, json!({})).await, "ok");
        // Without the role the session ends, even if another role has the name.
        succeed(&mut principal(&folder, &["delete", "auditor", "--role"]));
        let refused = code::<list_keys::ListKeys>(&mut session, json!({})).await;
        assert_eq!(refused, "UnrecognizedClientException");
        succeed(&mut principal(&folder, &arguments));
        let refused = code::<list_keys::ListKeys>(&mut session, json!({})).await;
        assert_eq!(refused, "UnrecognizedClientException");
    });
}

fn mallory_arn() -> String {
    "arn:aws:iam::123456789012:user/mallory".into()
}

#[test]
fn accounts_are_apart() {
    let folder = Folder::new();
    let server = folder.serve();
    let elsewhere = ["create", "root", "--admin", "--account", "210987654321"];
    let root = json_of(&mut principal(&folder, &elsewhere));
    assert_eq!(root["arn"], "arn:aws:iam::210987654321:user/root");
    runtime().block_on(async {
        let mut here = server.session().await.unwrap();
        let mut there = server.session_as(Identity::printed(&root)).await;
        let made = here.call::<create_key::CreateKey>(json!({})).await.unwrap().unwrap();
        let arn = made.key_metadata.arn;
        let listed = there.call::<list_keys::ListKeys>(json!({})).await.unwrap().unwrap();
        assert!(listed.keys.is_empty());
        for id in [&arn, &made.key_metadata.key_id] {
            let refused =
                code::<describe_key::DescribeKey>(&mut there, json!({ "KeyId": id })).await;
            assert!(
                ["AccessDeniedException", "NotFoundException"].contains(&&*refused),
                "{refused}"
            );
            let request = json!({ "KeyId": id, "KeySpec": "AES_256" });
            let refused = code::<generate_data_key::GenerateDataKey>(&mut there, request).await;
            assert_ne!(refused, "ok");
        }
        let own = there.call::<create_key::CreateKey>(json!({})).await.unwrap().unwrap();
        assert!(own.key_metadata.arn.contains(":210987654321:"), "{}", own.key_metadata.arn);
    });
    let rows = json_of(&mut principal(&folder, &["list"]));
    let arns: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["arn"].clone()).collect();
    assert_eq!(
        arns,
        ["arn:aws:iam::123456789012:user/administrator", "arn:aws:iam::210987654321:user/root"]
    );
    assert_eq!(rows[0]["access_keys"][0]["id"], common::ACCESS_KEY);
    let text = succeed(&mut principal(&folder, &["list"]));
    assert!(text.contains("user/root") && text.contains("AdministratorAccess"), "{text}");
    // The same name in another account is another user.
    let wrong = fail(&mut principal(&folder, &["delete", "root"]), 1);
    assert!(wrong.contains("user root of account 123456789012 does not exist"), "{wrong}");
}

#[test]
fn what_is_wrong_is_named() {
    let folder = Folder::new();
    let good = file(&folder, "good.json", READER);
    let trusts = file(&folder, "trusts.json", &trust("123456789012"));
    for (arguments, code, expected) in [
        (&["delete", "nobody"][..], 1, "user nobody of account 123456789012 does not exist"),
        (&["delete", "nobody", "--role"], 1, "role nobody of account 123456789012 does not exist"),
        (&["key", "list", "nobody"], 1, "does not exist"),
        (&["policy", "get", "nobody"], 1, "does not exist"),
        (&["policy", "put", "nobody", "--policy-file", &good], 1, "does not exist"),
        (&["create", "administrator"], 1, "already exists"),
        (&["create", "a/b"], 1, "not a valid name"),
        (&["create", "x", "--account", "12"], 2, "12 digits"),
        (&["create", "x", "--access-key-id", "a/b"], 2, "letters, digits and underscores"),
        (&["create", "x", "--policy-file", "/nowhere/p.json"], 1, "/nowhere/p.json"),
        (&["create", "r", "--role"], 1, "trust policy"),
        (&["create", "x", "--trust-policy-file", &trusts], 2, "--role"),
        (&["create", "x", "--admin", "--policy-file", &good], 2, "--policy-file"),
        (
            &[
                "create",
                "r",
                "--role",
                "--trust-policy-file",
                &trusts,
                "--max-session-seconds",
                "5",
            ],
            1,
            "between 3600 and 43200",
        ),
        (&["create", "r", "--role", "--trust-policy-file", &good], 1, "policy is not valid"),
    ] {
        let text = fail(&mut principal(&folder, arguments), code);
        assert!(text.contains(expected), "{arguments:?}: {text}");
        let is_missing = text.contains("does not exist");
        assert!(!is_missing || text.contains("hint: "), "{arguments:?}: {text}");
    }
    let before = succeed(&mut principal(&folder, &["list"]));
    for (policy, expected) in [
        ("{", "line 1"),
        ("[]", "policy is not valid"),
        (r#"{"Version":"2012-10-17","Statement":[]}"#, "Statement"),
        (
            r#"{"Version":"2012-10-17","Statement":{"Effect":"Perhaps","Action":"*","Resource":"*"}}"#,
            "Effect",
        ),
        (r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*"}}"#, "Resource"),
        (
            r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"NoSuchOperator":{"a":"b"}}}}"#,
            "NoSuchOperator",
        ),
        (
            r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Extra":1}}"#,
            "Extra",
        ),
    ] {
        let path = file(&folder, "bad.json", policy);
        let text = fail(&mut principal(&folder, &["create", "y", "--policy-file", &path]), 1);
        assert!(text.contains(expected), "{policy}: {text}");
        assert!(text.contains("bad.json"), "the file is not named: {text}");
    }
    let binary = folder.write("binary.json", b"\xff\xfe");
    let binary = binary.display().to_string();
    let text = fail(&mut principal(&folder, &["create", "y", "--policy-file", &binary]), 1);
    assert!(text.contains("UTF-8"), "{text}");
    let long = file(&folder, "long.json", &" ".repeat(70_000));
    assert!(
        fail(&mut principal(&folder, &["create", "y", "--policy-file", &long]), 1)
            .contains("longer")
    );
    assert_eq!(succeed(&mut principal(&folder, &["list"])), before, "something was left behind");
}

/// Many at once, beside a server: every change is made.
#[test]
fn changes_at_the_same_time_are_all_made() {
    let folder = Folder::new();
    let server = folder.serve();
    succeed(&mut principal(&folder, &["create", "busy"]));
    let policy = file(&folder, "p.json", READER);
    let names: Vec<_> = (0..12).map(|number| format!("p{number}")).collect();
    let children: Vec<_> = names
        .iter()
        .map(|name| {
            let arguments =
                ["policy", "put", "busy", "--policy-file", &policy, "--policy-name", name];
            principal(&folder, &arguments).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let shown = json_of(&mut principal(&folder, &["policy", "get", "busy"]));
    assert_eq!(shown["policies"].as_object().unwrap().len(), names.len());
    drop(server);
}

#[test]
fn misleading_policy_is_stored_with_a_warning() {
    let folder = Folder::new();
    let _server = folder.serve();
    let statement = |effect: &str, condition: Value| json!({ "Effect": effect, "Action": "kms:*", "Resource": "*", "Condition": condition });
    let policy = json!({ "Version": "2012-10-17", "Statement": [
        statement("Deny", json!({ "Bool": { "aws:ViaAWSService": "false" } })),
        statement("Deny", json!({ "StringNotEquals": { "aws:PrincipalOrgID": "o-1" } })),
        statement("Deny", json!({ "StringEquals": { "aws:SourceVpc": "vpc-1" } })),
    ] });
    let path = file(&folder, "never.json", &policy.to_string());
    let good = file(&folder, "reader.json", READER);
    let expected = [
        "Statement[1].Condition.StringNotEquals: the condition holds for every request: no request has \
         aws:PrincipalOrgID (there are no organizations)",
        "Statement[2].Condition.StringEquals: this Deny never applies: no request has aws:SourceVpc (there are no VPCs)",
    ];
    for (arguments, warned) in [
        (&["create", "alice", "--policy-file", &path][..], true),
        (&["create", "bob", "--policy-file", &good], false),
        (&["policy", "put", "bob", "--policy-file", &path], true),
        (&["policy", "put", "bob", "--policy-file", &good], false),
    ] {
        let output = principal(&folder, arguments).args(["--output", "json"]).output().unwrap();
        assert!(output.status.success());
        let warnings = String::from_utf8(output.stderr).unwrap();
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        if !warned {
            assert_eq!((warnings.as_str(), &value["policy_findings"]), ("", &Value::Null));
            continue;
        }
        let wanted: Vec<_> =
            expected.iter().map(|text| format!("warning: {path}: {text}")).collect();
        assert_eq!(warnings.lines().collect::<Vec<_>>(), wanted);
        assert_eq!(value["policy_findings"], json!(expected));
    }
    let events = events(&folder);
    let told = events
        .iter()
        .filter(|event| event["requestParameters"]["policyFindings"] == json!(expected));
    assert_eq!(told.count(), 2);
}
