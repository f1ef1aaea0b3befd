//! Logins: who gets in, where the files are, what may be done with them, and what the audit log says.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::net::IpAddr;

use outlast_api::service::sftp::{
    AuthFailure, Decision, FileEvent, Session, Target, Unserved, answer, target,
};
use outlast_domain::transfer::{Access, Account, Answer, Located, Refusal};
use serde_json::{Value, json};

use crate::common::{ACCOUNT, Fixture, NOW, OTHER_ACCOUNT, REGION, Who, policy, with};
use crate::transfer_support::{Shown, blob, connection, key, role, trust};

fn account(fixture: &Fixture, shown: &Shown<'_>) -> Box<Account> {
    match shown.decide(fixture, None) {
        Decision::Account(account) => account,
        _ => panic!("{}", shown.told(fixture, None)),
    }
}

fn may(account: &Account, access: Access, path: &str) -> bool {
    let Located::Object { bucket, path, .. } = account.directories.locate(path.as_bytes()) else {
        return false;
    };
    account.rights.decide(access, &bucket, &path, NOW * 1000).is_ok()
}

#[test]
fn a_key_opens_its_users_home() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({ "PostAuthenticationLoginBanner": "Welcome" }));
    fixture.sftp_user(&server, "alice", &role(&fixture, "users"), json!({}));
    let offered = Shown { proven: false, ..Shown::key(&server, "alice", 1) };
    let events = fixture.events().len();
    assert_eq!(offered.told(&fixture, None), "key acceptable");
    assert_eq!(fixture.events().len(), events, "a question leaves nothing behind");
    let alice = account(&fixture, &Shown::key(&server, "alice", 1));
    assert_eq!(alice.user_arn, format!("arn:aws:transfer:{REGION}:{ACCOUNT}:user/{server}/alice"));
    assert_eq!(alice.welcome.as_deref(), Some("Welcome"));
    assert_eq!(alice.directories.start(), b"/files/home/alice");
    for access in Access::ALL {
        assert!(may(&alice, access, "a.txt"), "{access:?}");
        assert!(!may(&alice, access, "/other/a.txt"), "{access:?}");
    }
    let event = fixture.events().pop().unwrap();
    assert_eq!(
        (&event["eventName"], &event["eventSource"]),
        (&json!("CONNECTED"), &json!("transfer.amazonaws.com"))
    );
    let told = &event["additionalEventData"];
    for (member, expected) in [
        ("activity-type", json!("CONNECTED")),
        ("user", json!("alice")),
        ("kex", json!("mlkem768x25519-sha256")),
        ("post-quantum", json!(true)),
        ("ciphers", json!("aes256-gcm@openssh.com,aes256-gcm@openssh.com")),
        ("client", json!("SSH-2.0-OpenSSH_10.0")),
        ("source-ip", json!("192.0.2.7")),
        ("home-dir", json!("/files/home/alice")),
        ("ssh-public-key-type", json!("ssh-ed25519")),
        ("role", json!(format!("arn:aws:iam::{ACCOUNT}:role/users"))),
        ("session-id", json!("0123456789abcdef")),
    ] {
        assert_eq!(told[member], expected, "{member}");
    }
    let session =
        format!("arn:aws:sts::{ACCOUNT}:assumed-role/users/alice.0123456789abcdef@{server}");
    assert_eq!(event["userIdentity"]["arn"], session);
}

#[test]
fn everybody_else_is_refused() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    let users = role(&fixture, "users");
    fixture.sftp_user(&server, "alice", &users, json!({}));
    let untrusted = policy(json!([{
        "Effect": "Allow", "Principal": { "Service": "lambda.amazonaws.com" }, "Action": "sts:AssumeRole",
    }]));
    let by_lambda = fixture.role(ACCOUNT, "untrusted", &untrusted, &[]);
    fixture.sftp_user(&server, "nobody", &by_lambda, json!({}));
    // A role that trusts the service for another server.
    let other = format!("arn:aws:transfer:{REGION}:{ACCOUNT}:user/s-00000000000000000/*");
    let deputy = trust(&json!({ "Condition": { "ArnLike": { "aws:SourceArn": other } } }));
    let deputy = fixture.role(ACCOUNT, "deputy", &deputy, &[]);
    fixture.sftp_user(&server, "bob", &deputy, json!({}));
    let near = trust(&json!({ "Condition": { "IpAddress": { "aws:SourceIp": "192.0.2.0/24" } } }));
    let near = fixture.role(ACCOUNT, "near", &near, &[]);
    fixture.sftp_user(&server, "carol", &near, json!({}));
    let ends = "2026-11-21T00:00:00Z";
    let ended = trust(&json!({ "Condition": { "DateLessThan": { "aws:CurrentTime": ends } } }));
    let ended = fixture.role(ACCOUNT, "ended", &ended, &[]);
    fixture.sftp_user(&server, "dora", &ended, json!({}));
    let far = IpAddr::from([198, 51, 100, 1]);
    let of = |user: &'static str| Shown::key(&server, user, 1);
    let without = Shown { key: None, proven: false, ..of("alice") };
    let certificate = [&[0, 0, 0, 32][..], b"ssh-ed25519-cert-v01@openssh.com", &blob(1)].concat();
    for (shown, expected) in [
        (of("alice"), "welcome alice"),
        (of("carol"), "welcome carol"),
        (Shown { from: far, ..of("carol") }, "trust policy"),
        (of("mallory"), "the user is unknown"),
        (of("Alice"), "the user is unknown"),
        (of("alice\0"), "the user is unknown"),
        (of("alice/../bob"), "the user is unknown"),
        (of("../user/alice"), "the user is unknown"),
        (of(""), "the user is unknown"),
        (Shown::key(&server, "alice", 2), "none of the user's"),
        (Shown { proven: false, ..Shown::key(&server, "alice", 2) }, "none of the user's"),
        (Shown { key: Some(blob(1)[..50].to_vec()), ..of("alice") }, "none of the user's"),
        (Shown { key: Some([&blob(1)[..], &[0]].concat()), ..of("alice") }, "none of the user's"),
        (Shown { key: Some(Vec::new()), ..of("alice") }, "none of the user's"),
        (Shown { key: Some(certificate), ..of("alice") }, "none of the user's"),
        (without, "no such proof"),
        (Shown::password(&server, "alice", "secret"), "no such proof"),
        (Shown::password(&server, "mallory", "secret"), "no such proof"),
        (of("nobody"), "trust policy"),
        (of("bob"), "trust policy"),
        (of("dora"), "trust policy"),
        (Shown::key("s-00000000000000000", "alice", 1), "not online"),
        (Shown::key("../s-00000000000000000", "alice", 1), "not online"),
    ] {
        let told = shown.told(&fixture, None);
        assert!(told.contains(expected), "{:?} {expected}: {told}", shown.user);
    }
    // A stopped server lets nobody in, and neither does one whose role or key is gone.
    fixture.transfer("StopServer", json!({ "ServerId": server })).unwrap();
    assert!(of("alice").told(&fixture, None).contains("not online"));
    fixture.transfer("StartServer", json!({ "ServerId": server })).unwrap();
    let named = json!({ "ServerId": server, "UserName": "alice" });
    let described = fixture.transfer("DescribeUser", named.clone()).unwrap();
    let id = &described["User"]["SshPublicKeys"][0]["SshPublicKeyId"];
    fixture.transfer("DeleteSshPublicKey", with(&named, json!({ "SshPublicKeyId": id }))).unwrap();
    assert!(of("alice").told(&fixture, None).contains("none of the user's"));
    fixture.directory(|work| {
        use outlast_domain::identity::{Entry, Role};
        Role::find(work, ACCOUNT, "near").unwrap().delete(work);
    });
    assert!(of("carol").told(&fixture, None).contains("there is no role"));
}

#[test]
fn strangers_cost_as_many_reads_as_wrong_keys() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    fixture.sftp_user(&server, "alice", &role(&fixture, "users"), json!({}));
    let reads = |user: &str| {
        let shown = Shown { proven: false, ..Shown::key(&server, user, 2) };
        let before = fixture.store.records_read();
        shown.told(&fixture, None);
        fixture.store.records_read() - before
    };
    assert_eq!(reads("alice"), reads("mallory"));
}

#[test]
fn roles_and_session_policies_decide_together() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    let empty = fixture.role(ACCOUNT, "empty", &trust(&json!({})), &[]);
    let wide = policy(json!([{ "Effect": "Allow", "Action": "*", "Resource": "*" }]));
    let wide = fixture.role(ACCOUNT, "wide", &trust(&json!({})), &[wide]);
    let guarded = policy(json!([
        { "Effect": "Allow", "Action": "s3:*", "Resource": "*" },
        { "Effect": "Deny", "Action": "s3:*", "Resource": "*",
          "Condition": { "NotIpAddress": { "aws:SourceIp": "192.0.2.0/24" } } },
        { "Effect": "Deny", "Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::files/*/keep/*" },
    ]));
    let guarded = fixture.role(ACCOUNT, "guarded", &trust(&json!({})), &[guarded]);
    // "Creating a session policy for an Amazon S3 bucket" of the user guide.
    let session = policy(json!([
        { "Sid": "AllowListingOfUserFolder", "Action": ["s3:ListBucket"], "Effect": "Allow",
          "Resource": ["arn:aws:s3:::${transfer:HomeBucket}"],
          "Condition": { "StringLike": { "s3:prefix": ["${transfer:HomeFolder}/*", "${transfer:HomeFolder}"] } } },
        { "Sid": "HomeDirObjectAccess", "Effect": "Allow",
          "Action": ["s3:PutObject", "s3:GetObject", "s3:DeleteObjectVersion", "s3:DeleteObject", "s3:GetObjectVersion"],
          "Resource": "arn:aws:s3:::${transfer:HomeDirectory}/*" },
    ]))
    .to_string();
    let by_name = policy(json!([
        { "Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::files/home/${transfer:UserName}/*" },
    ]))
    .to_string();
    // The user's own addresses: those of a session policy, beside what the role allows to all.
    let from = |network: &str| {
        let addresses = json!({ "IpAddress": { "aws:SourceIp": network } });
        let all = policy(json!([
            { "Effect": "Allow", "Action": "s3:*", "Resource": "*", "Condition": addresses },
        ]));
        json!({ "Policy": all.to_string() })
    };
    let star = json!({ "HomeDirectory": "/files/home/*", "Policy": session });
    for (name, role, more) in [
        ("empty", &empty, json!({})),
        ("both", &empty, json!({ "Policy": session })),
        ("wide", &wide, json!({})),
        ("alice", &wide, json!({ "Policy": session })),
        ("byname", &wide, json!({ "Policy": by_name })),
        ("guarded", &guarded, json!({})),
        ("near", &wide, from("192.0.2.0/24")),
        ("far", &wide, from("198.51.100.0/24")),
        ("star", &wide, star),
    ] {
        fixture.sftp_user(&server, name, role, more);
    }
    for (name, access, path, expected) in [
        // A role without policies allows nothing, whatever the session policy says.
        ("empty", Access::Get, "x", false),
        ("both", Access::Get, "x", false),
        ("wide", Access::Put, "/other/x", true),
        ("near", Access::Put, "x", true),
        ("near", Access::List, "", true),
        ("far", Access::Get, "x", false),
        ("far", Access::Put, "x", false),
        ("far", Access::List, "", false),
        ("alice", Access::Get, "x", true),
        ("alice", Access::Put, "a/b/c", true),
        ("alice", Access::Delete, "x", true),
        ("alice", Access::List, "", true),
        ("alice", Access::List, "a/", true),
        ("alice", Access::List, "..", false),
        ("alice", Access::List, "../alicex", false),
        ("alice", Access::Get, "../alicex/y", false),
        ("alice", Access::Get, "../bob/x", false),
        ("alice", Access::Get, "../../../files/home/bob/x", false),
        ("alice", Access::Get, "/other/home/alice/x", false),
        ("byname", Access::Get, "x", true),
        ("byname", Access::Get, "../alice/x", false),
        ("guarded", Access::Delete, "x", true),
        ("guarded", Access::Delete, "keep/x", false),
        // The value of a variable is not a pattern.
        ("star", Access::Get, "x", true),
        ("star", Access::Get, "../bob/x", false),
        ("star", Access::List, "../bob", false),
    ] {
        let found = account(&fixture, &Shown::key(&server, name, 1));
        assert_eq!(may(&found, access, path), expected, "{name} {access:?} {path}");
    }
    let far = Shown { from: IpAddr::from([198, 51, 100, 1]), ..Shown::key(&server, "guarded", 1) };
    assert!(!may(&account(&fixture, &far), Access::Get, "x"));
}

#[test]
fn logical_homes_are_all_that_a_user_sees() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    let users = role(&fixture, "users");
    let mappings = json!([
        { "Entry": "/", "Target": "/files/home/${transfer:UserName}" },
        { "Entry": "/shared", "Target": "/files/shared" },
        { "Entry": "/elsewhere", "Target": "/other/x" },
    ]);
    let logical = json!({ "HomeDirectory": "/", "HomeDirectoryType": "LOGICAL", "HomeDirectoryMappings": mappings });
    fixture.sftp_user(&server, "alice", &users, logical);
    let alice = account(&fixture, &Shown::key(&server, "alice", 1));
    for (path, expected) in [
        ("a.txt", Some(("files", "home/alice/a.txt"))),
        ("/../../a.txt", Some(("files", "home/alice/a.txt"))),
        ("/shared/x", Some(("files", "shared/x"))),
        ("/shared/../../bob", Some(("files", "home/alice/bob"))),
        ("/files/home/bob", Some(("files", "home/alice/files/home/bob"))),
        ("/elsewhere", Some(("other", "x"))),
    ] {
        let found = match alice.directories.locate(path.as_bytes()) {
            Located::Object { bucket, path, .. } => {
                Some((bucket, String::from_utf8(path).unwrap()))
            }
            _ => None,
        };
        let found = found.as_ref().map(|(bucket, path)| (bucket.as_str(), path.as_str()));
        assert_eq!(found, expected, "{path}");
    }
    assert!(may(&alice, Access::Put, "/shared/x") && !may(&alice, Access::Get, "/elsewhere/x"));
}

/// What a provider says for a role.
fn says(role: &str, more: Value) -> Value {
    with(&json!({ "Role": role, "HomeDirectory": "/files/home" }), more)
}

/// The answer to the question that a login asks.
fn answered(fixture: &Fixture, shown: &Shown<'_>, body: &Value) -> Option<Answer> {
    let Decision::Ask(question) = shown.decide(fixture, None) else { panic!("nothing is asked") };
    answer(&question, body.to_string().as_bytes()).unwrap()
}

#[test]
fn identity_providers_are_asked_and_not_trusted_too_much() {
    let fixture = Fixture::new();
    let users = role(&fixture, "users");
    let theirs = fixture.role(OTHER_ACCOUNT, "theirs", &trust(&json!({})), &[]);
    let server = |methods: &str| {
        fixture.server(json!({
            "IdentityProviderType": "API_GATEWAY",
            "IdentityProviderDetails": { "Url": "https://idp.example", "SftpAuthenticationMethods": methods },
        }))
    };
    let either = server("PUBLIC_KEY_OR_PASSWORD");
    let both = server("PUBLIC_KEY_AND_PASSWORD");
    let (passwords, keys) = (server("PASSWORD"), server("PUBLIC_KEY"));
    let good = &says(&users, json!({ "PublicKeys": [key(1), "nonsense"] }));
    let foreign = &says(&theirs, json!({ "PublicKeys": [key(1)] }));
    let missing = &says(&users.replace("users", "missing"), json!({}));
    let bad_policy = &says(&users, json!({ "Policy": "{}" }));
    let nobody = &json!({});
    let bare = &says(&users, json!({}));
    let after = |shown| Shown { accepted: true, ..shown };
    let offered = |server| Shown { proven: false, ..Shown::key(server, "alice", 1) };
    let two = |server, proven| Shown {
        password: Some("secret"),
        proven,
        ..Shown::key(server, "alice", 1)
    };
    let wrong = |server| Shown::key(server, "alice", 2);
    let secret = |server| Shown::password(server, "alice", "secret");
    let empty = |server| Shown::password(server, "alice", "");
    let blank = |server| Shown::password(server, "alice", "  \t ");
    // Nothing is decided before the provider was asked, and it is not asked for nothing.
    for (shown, expected) in [
        (offered(&either), "ask"),
        (secret(&either), "ask"),
        (empty(&either), "no such proof"),
        (blank(&either), "no such proof"),
        (blank(&passwords), "no such proof"),
        (Shown { key: Some(blob(1)), ..empty(&either) }, "no such proof"),
        (Shown::password(&either, "../x", "secret"), "the user is unknown"),
        (offered(&passwords), "no such proof"),
        (secret(&keys), "no such proof"),
        (secret(&both), "no such proof"),
    ] {
        let told = shown.told(&fixture, None);
        assert!(told.contains(expected), "{expected}: {told}");
    }
    for (shown, body, expected) in [
        (secret(&either), nobody, "refuses the user"),
        (offered(&either), nobody, "refuses the user"),
        (secret(&either), good, "welcome alice"),
        (secret(&passwords), good, "welcome alice"),
        (offered(&either), good, "key acceptable"),
        (Shown::key(&either, "alice", 1), good, "welcome alice"),
        (wrong(&either), good, "none of the user's"),
        (Shown::key(&keys, "alice", 1), missing, "none of the user's"),
        // Both proofs.
        (offered(&both), good, "key acceptable"),
        (Shown::key(&both, "alice", 1), good, "needs a password"),
        (two(&both, true), good, "welcome alice"),
        (two(&both, false), good, "key acceptable"),
        (Shown { password: Some("secret"), ..wrong(&both) }, good, "none of the user's"),
        // An answer about a password has no keys: what counts is that the key was accepted before, and was proven.
        (after(two(&both, true)), bare, "welcome alice"),
        (two(&both, true), bare, "none of the user's"),
        (after(two(&both, false)), bare, "key acceptable"),
        (after(Shown::key(&both, "alice", 1)), bare, "none of the user's"),
        (after(Shown { password: Some("secret"), ..wrong(&both) }), good, "none of the user's"),
        (after(two(&both, true)), nobody, "refuses the user"),
        // Roles of other accounts, and what does not exist.
        (secret(&either), foreign, "not one of the account"),
        (secret(&either), missing, "there is no role"),
        (secret(&either), bad_policy, "session policy is not valid"),
    ] {
        let answer = answered(&fixture, &shown, body);
        let told = shown.told(&fixture, Some(answer.as_ref()));
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let Decision::Ask(question) = secret(&either).decide(&fixture, None) else { panic!("ask") };
    let Some(Target::Https { url, password }) = target(&question) else { panic!("a URL") };
    let expected = format!(
        "https://idp.example/servers/{either}/users/alice/config?protocol=SFTP&sourceIp=192.0.2.7"
    );
    assert_eq!(url, expected);
    assert_eq!(password.unwrap().expose(), b"secret");
}

#[test]
fn an_answer_counts_only_for_what_was_asked() {
    let fixture = Fixture::new();
    let details = json!({ "Url": "https://idp.example" });
    let new = json!({ "IdentityProviderType": "API_GATEWAY", "IdentityProviderDetails": details });
    let (server, other) = (fixture.server(new.clone()), fixture.server(new));
    let good = says(&role(&fixture, "users"), json!({ "PublicKeys": [key(1)] }));
    let by_key = Shown::key(&server, "alice", 1);
    let by_password = Shown::password(&server, "alice", "secret");
    let for_key = answered(&fixture, &by_key, &good);
    let for_password = answered(&fixture, &by_password, &good);
    for (shown, answer, expected) in [
        (&by_key, &for_key, "welcome alice"),
        (&by_password, &for_password, "welcome alice"),
        // A provider that was asked for the keys has not verified any password.
        (&by_password, &for_key, "ask"),
        (&Shown::password(&server, "alice", "other"), &for_password, "ask"),
        (&Shown::password(&server, "bob", "secret"), &for_password, "ask"),
        (&Shown::key(&server, "bob", 1), &for_key, "ask"),
        (&Shown::key(&other, "alice", 1), &for_key, "ask"),
        (&Shown::password(&server, "alice", ""), &for_key, "no such proof"),
    ] {
        let told = shown.told(&fixture, Some(answer.as_ref()));
        assert!(told.contains(expected), "{} {expected}: {told}", shown.user);
    }
    // The server has another provider now, which was not asked.
    let details = json!({ "Url": "https://idp2.example" });
    let update = json!({ "ServerId": server, "IdentityProviderDetails": details });
    fixture.transfer("UpdateServer", update).unwrap();
    for (shown, answer) in [(&by_key, &for_key), (&by_password, &for_password)] {
        assert_eq!(shown.told(&fixture, Some(answer.as_ref())), "ask");
    }
}

#[test]
fn a_listener_serves_one_server() {
    let fixture = Fixture::new();
    let at = |seconds: i64| (NOW + seconds) * 1000;
    assert_eq!(fixture.service.sftp_server(None, at(0)).err(), Some(Unserved::None));
    let first = fixture.server(json!({}));
    assert_eq!(fixture.service.sftp_server(None, at(1)).unwrap().id, first);
    let second = fixture.server(json!({}));
    assert_eq!(fixture.service.sftp_server(None, at(3)).err(), Some(Unserved::Several(2)));
    assert_eq!(fixture.service.sftp_server(Some(&second), at(3)).unwrap().id, second);
    fixture.transfer("StopServer", json!({ "ServerId": first })).unwrap();
    assert_eq!(fixture.service.sftp_server(None, at(5)).unwrap().id, second);
    // One that was chosen is there, and says that it is stopped.
    assert!(!fixture.service.sftp_server(Some(&first), at(5)).unwrap().is_online);
    let unknown = Unserved::Unknown("s-00000000000000000".into());
    assert_eq!(
        fixture.service.sftp_server(Some("s-00000000000000000"), at(5)).err(),
        Some(unknown)
    );
}

/// Neither is a server of another account served in place of one's own that is stopped, nor chosen beside it.
#[test]
fn a_listener_chooses_among_the_servers_of_one_account_only() {
    let fixture = Fixture::new();
    let chosen = |seconds: i64| fixture.service.sftp_server(None, (NOW + seconds) * 1000).err();
    let mine = json!({ "ServerId": fixture.server(json!({})) });
    assert_eq!(chosen(1), None);
    let (stranger, several) = (Who::stranger(), Some(Unserved::Accounts));
    let made = fixture.transfer_as(&stranger, "CreateServer", &json!({})).unwrap();
    let theirs = json!({ "ServerId": made["ServerId"] });
    assert_eq!(chosen(3), several);
    fixture.transfer_as(&stranger, "StopServer", &theirs).unwrap();
    assert_eq!(chosen(5), several);
    fixture.transfer_as(&stranger, "StartServer", &theirs).unwrap();
    fixture.transfer("StopServer", mine.clone()).unwrap();
    assert_eq!(chosen(7), several);
    let named = |id: &Value| fixture.service.sftp_server(id.as_str(), (NOW + 7) * 1000).unwrap();
    assert!(!named(&mine["ServerId"]).is_online && named(&theirs["ServerId"]).is_online);
    fixture.transfer_as(&stranger, "DeleteServer", &theirs).unwrap();
    assert_eq!(chosen(9), Some(Unserved::None));
    fixture.transfer("StartServer", mine).unwrap();
    assert_eq!(chosen(11), None);
}

#[test]
fn files_leave_events_of_one_session() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    fixture.sftp_user(&server, "alice", &role(&fixture, "users"), json!({}));
    let alice = account(&fixture, &Shown::key(&server, "alice", 1));
    let session = Session::new(connection(&server), &alice);
    let long = "the file exists already ".repeat(100);
    let path = b"/files/home/alice/\xff";
    let events = [
        FileEvent::Open { path, target: b"files/home/alice/\xff", mode: "CREATE|TRUNCATE|WRITE" },
        FileEvent::Close { path, bytes_in: 121, bytes_out: 0 },
        FileEvent::PartialClose { path, bytes_in: 3, bytes_out: 0 },
        FileEvent::Rename { path, new_path: b"/x" },
        FileEvent::Delete(path),
        FileEvent::Mkdir(path),
        FileEvent::Rmdir(path),
        FileEvent::SetStat { path, attributes: "mode=0600" },
        FileEvent::Symlink { path, target: b"/y" },
        FileEvent::Failed {
            path,
            other: None,
            operation: "OPEN",
            status: "SSH_FX_PERMISSION_DENIED",
            message: "Access denied",
        },
        FileEvent::Failed {
            path: b"/old",
            other: Some(("new-path", &b"/new\xff"[..])),
            operation: "RENAME",
            status: "SSH_FX_FAILURE",
            message: &long,
        },
        FileEvent::Disconnected,
    ];
    let before = fixture.events().len();
    let transaction = fixture.service.sftp_events(&session, &events, NOW * 1000).unwrap();
    fixture.service.store().commit_and_wait(transaction).unwrap();
    let found = fixture.events().split_off(before);
    let names: Vec<_> = found.iter().map(|event| event["eventName"].as_str().unwrap()).collect();
    let expected = [
        "OPEN",
        "CLOSE",
        "PARTIAL_CLOSE",
        "RENAME",
        "DELETE",
        "MKDIR",
        "RMDIR",
        "SETSTAT",
        "CREATE_SYMLINK",
        "ERROR",
        "ERROR",
        "DISCONNECTED",
    ];
    assert_eq!(names, expected);
    for event in &found {
        let told = &event["additionalEventData"];
        assert_eq!(told["activity-type"], event["eventName"]);
        assert_eq!(
            (&told["session-id"], &told["user"]),
            (&json!("0123456789abcdef"), &json!("alice"))
        );
        assert_eq!(
            (&event["eventCategory"], &event["managementEvent"]),
            (&json!("Data"), &json!(false))
        );
    }
    let told = &found[1]["additionalEventData"];
    assert_eq!(told["bytes-in"], "121");
    assert_eq!(
        told["path"],
        "/files/home/alice/\u{fffd} (hex 2f66696c65732f686f6d652f616c6963652fff)"
    );
    let told = |index: usize, member: &str| found[index]["additionalEventData"][member].clone();
    assert_eq!(told(7, "attributes"), "mode=0600");
    assert_eq!(told(8, "target"), "/y");
    for (index, operation, status, new_path) in [
        (9, "OPEN", "SSH_FX_PERMISSION_DENIED", json!(null)),
        (10, "RENAME", "SSH_FX_FAILURE", json!("/new\u{fffd} (hex 2f6e6577ff)")),
    ] {
        assert_eq!(told(index, "operation"), operation);
        assert_eq!(told(index, "status"), status);
        assert_eq!(told(index, "new-path"), new_path);
    }
    assert_eq!(told(9, "message"), "Access denied");
    assert_eq!(told(10, "message"), &long[..255]);
}

#[test]
fn failed_logins_are_recorded_and_a_flood_is_summed_up() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    let before = fixture.events().len();
    let failed = |user: &str, host: u8, seconds: i64| {
        let connection = outlast_api::service::sftp::Connection {
            source_ip: IpAddr::from([192, 0, 2, host]),
            ..connection(&server)
        };
        let now_ms = (NOW + seconds) * 1000;
        let method = "publickey";
        let failure = AuthFailure {
            user,
            method,
            refusal: &Refusal::WrongKey,
            methods: &["password", method],
            tries: 2,
        };
        let made = fixture.service.sftp_auth_failed(&connection, &failure, now_ms);
        if let Some(transaction) = made.unwrap() {
            fixture.service.store().commit_and_wait(transaction).unwrap();
        }
    };
    for number in 0..200_u8 {
        failed(&format!("user{number}{}", "x".repeat(300)), number, 0);
    }
    let found = fixture.events().split_off(before);
    assert_eq!(found.len(), 60, "the first of a minute have an event each");
    let told = &found[0]["additionalEventData"];
    assert_eq!(
        (&found[0]["eventName"], &told["method"]),
        (&json!("AUTH_FAILURE"), &json!("publickey"))
    );
    assert_eq!(told["message"], "the key is none of the user's");
    assert_eq!((&told["tries"], &told["methods"]), (&json!(2), &json!(["password", "publickey"])));
    assert_eq!(told["user"].as_str().unwrap().len(), 100);
    assert_eq!(found[0]["userIdentity"]["type"], "Unknown");
    fixture.service.sum_up_strangers((NOW + 59) * 1000, false).unwrap();
    assert_eq!(fixture.events().len(), before + 60);
    fixture.service.sum_up_strangers((NOW + 60) * 1000, false).unwrap();
    let sum = fixture.events().pop().unwrap();
    assert_eq!(
        (&sum["eventName"], &sum["additionalEventData"]["count"]),
        (&json!("SumUpAuthFailures"), &json!(140))
    );
    assert_eq!(sum["additionalEventData"]["users"].as_array().unwrap().len(), 20);
    assert_eq!(sum["additionalEventData"]["more"], true);
    // The next minute counts from zero; what is left is summed up at the end.
    for _ in 0..61 {
        failed("bob", 1, 70);
    }
    fixture.service.sum_up_strangers((NOW + 71) * 1000, true).unwrap();
    let sum = fixture.events().pop().unwrap();
    assert_eq!(sum["additionalEventData"]["count"], 1);
}

#[test]
fn nobody_is_welcome_before_it_is_recorded() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    fixture.sftp_user(&server, "alice", &role(&fixture, "users"), json!({}));
    let shown = Shown::key(&server, "alice", 1);
    fixture.store.fail_writes(true);
    assert_eq!(shown.told(&fixture, None), "failed");
    fixture.store.fail_writes(false);
    // A change at the same time is seen: the login is decided again.
    fixture.store.conflict_next(2);
    assert_eq!(shown.told(&fixture, None), "welcome alice");
}
