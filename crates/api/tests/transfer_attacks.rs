//! Attacks on Transfer Family by who can write the database, and permits for other resources.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_domain::identity::action;
use outlast_domain::identity::{self, Caller, PolicyCache, authorize};
use outlast_domain::policy::ConditionKeys;
use outlast_domain::transfer::{self, NewHostKey, NewUser, ServerChange, UserChange};
use outlast_store::{Store, Transaction};
use serde_json::json;

use crate::common::{ACCESS_KEY, ACCOUNT, Fixture, NOW, REGION, text};
use crate::transfer_support::{Shown, key, role, scope};

fn write(fixture: &Fixture, record_key: &str, value: Option<Vec<u8>>) {
    let writes = vec![(record_key.to_owned(), value)];
    fixture.store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
}

fn read(fixture: &Fixture, record_key: &str) -> Option<Vec<u8>> {
    fixture.store.read(record_key).unwrap().map(|record| record.value)
}

fn host_keys(fixture: &Fixture, server: &str) -> Vec<String> {
    let listed = fixture.transfer("ListHostKeys", json!({ "ServerId": server })).unwrap();
    let ids = listed["HostKeys"].as_array().unwrap().iter();
    ids.map(|key| text(&key["HostKeyId"]).to_owned()).collect()
}

#[test]
fn a_moved_host_key_does_not_open() {
    let fixture = Fixture::new();
    let (mine, theirs) = (fixture.server(json!({})), fixture.server(json!({})));
    let secret = |server: &str, id: &str| {
        format!("transfer/host-key-secret/{ACCOUNT}/{REGION}/{server}/{id}")
    };
    let (my_keys, their_keys) = (host_keys(&fixture, &mine), host_keys(&fixture, &theirs));
    let facts = |seconds: i64| fixture.service.sftp_server(Some(&mine), (NOW + seconds) * 1000);
    facts(0).unwrap();
    // Another server's key, and another key of the same server, in the place of one.
    for from in [secret(&theirs, &their_keys[0]), secret(&mine, &my_keys[1])] {
        let place = secret(&mine, &my_keys[0]);
        let before = read(&fixture, &place);
        write(&fixture, &place, read(&fixture, &from));
        assert!(facts(10).is_err(), "{from}");
        write(&fixture, &place, before);
        facts(20).unwrap();
    }
    // A row of a host key that was moved, edited or made up.
    let row =
        |server: &str, id: &str| format!("transfer/host-key/{ACCOUNT}/{REGION}/{server}/{id}");
    write(
        &fixture,
        &row(&mine, "hostkey-00000000000000000"),
        read(&fixture, &row(&theirs, &their_keys[0])),
    );
    assert!(facts(30).is_err());
    write(&fixture, &row(&mine, "hostkey-00000000000000000"), None);
    facts(40).unwrap();
}

#[test]
fn rows_that_decide_about_logins_cannot_be_forged() {
    let fixture = Fixture::new();
    let (server, other) = (fixture.server(json!({})), fixture.server(json!({})));
    let users = role(&fixture, "users");
    fixture.sftp_user(&server, "alice", &users, json!({}));
    fixture.sftp_user(&other, "eve", &users, json!({ "SshPublicKeyBody": key(9) }));
    let row =
        |server: &str, name: &str| format!("transfer/user/{ACCOUNT}/{REGION}/{server}/{name}");
    let state = format!("transfer/server/{ACCOUNT}/{REGION}/{server}");
    let told = |user: &str, number: u8| Shown::key(&server, user, number).told(&fixture, None);
    assert_eq!(told("alice", 1), "welcome alice");
    // A user of another server, under this one and under another name.
    let eve = read(&fixture, &row(&other, "eve"));
    for name in ["eve", "mallory", "alice"] {
        let before = read(&fixture, &row(&server, name));
        write(&fixture, &row(&server, name), eve.clone());
        assert_eq!(told(name, 9), "failed", "{name}");
        write(&fixture, &row(&server, name), before);
    }
    // Another key in a user's row, and a server that was stopped.
    let before = read(&fixture, &row(&server, "alice")).unwrap();
    let line = key(1);
    let at = before.windows(line.len()).position(|part| part == line.as_bytes()).unwrap();
    let mut edited = before.clone();
    edited[at..at + line.len()].copy_from_slice(key(9).as_bytes());
    write(&fixture, &row(&server, "alice"), Some(edited));
    assert_eq!(told("alice", 9), "failed");
    write(&fixture, &row(&server, "alice"), Some(before.clone()));
    let online = read(&fixture, &state);
    fixture.transfer("StopServer", json!({ "ServerId": server })).unwrap();
    write(&fixture, &state, online);
    assert_eq!(told("alice", 1), "failed", "a server that was stopped is put back");
}

#[test]
fn a_deleted_user_stays_deleted() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    fixture.sftp_user(&server, "alice", &role(&fixture, "users"), json!({}));
    let row = format!("transfer/user/{ACCOUNT}/{REGION}/{server}/alice");
    let before = read(&fixture, &row);
    fixture.transfer("DeleteUser", json!({ "ServerId": server, "UserName": "alice" })).unwrap();
    write(&fixture, &row, before);
    assert_eq!(Shown::key(&server, "alice", 1).told(&fixture, None), "failed");
}

/// The administrator, for permits.
fn admin(fixture: &Fixture) -> Caller {
    let mut work = fixture.service.work(NOW * 1000);
    let policies = PolicyCache::default();
    identity::find_credential(&mut work, &policies, ACCESS_KEY).unwrap().unwrap().caller
}

#[test]
fn a_permit_for_one_server_opens_no_other() {
    let fixture = Fixture::new();
    let (server, other) = (fixture.server(json!({})), fixture.server(json!({})));
    let users = role(&fixture, "users");
    fixture.sftp_user(&server, "alice", &users, json!({}));
    let id = host_keys(&fixture, &server).remove(0);
    let admin = admin(&fixture);
    let keys = ConditionKeys::new();
    let arn = |resource: &str| format!("arn:aws:transfer:{REGION}:{ACCOUNT}:{resource}");
    let other = arn(&format!("server/{other}"));
    let before = fixture.store.scan("transfer/", "", 100).unwrap().len();
    let mut tried = 0;
    macro_rules! refused {
        ($($action:ident, $permit:ident, $work:ident => $call:expr;)*) => {$(
            let $permit = &authorize(&admin, &keys, action::transfer::$action, &other).unwrap();
            let mut work = fixture.service.work(NOW * 1000);
            let $work = &mut work;
            let error = $call.err().unwrap_or_else(|| panic!("{}", stringify!($action))).to_string();
            let expected = format!("a permit for transfer:{} was used on another resource", stringify!($action));
            assert_eq!(error, expected);
            assert!(!work.writes_anything(), "{}", stringify!($action));
            tried += 1;
        )*};
    }
    let scope = scope();
    let found =
        || transfer::find_server(&mut fixture.service.work(NOW * 1000), &scope, &server).unwrap();
    let alice =
        || transfer::find_user(&mut fixture.service.work(NOW * 1000), &found(), "alice").unwrap();
    let host =
        || transfer::find_host_key(&mut fixture.service.work(NOW * 1000), &found(), &id).unwrap();
    let new_user = || NewUser {
        name: "bob".into(),
        role: outlast_domain::arn::Arn::parse(&users).unwrap(),
        home: Default::default(),
        policy: None,
        posix: None,
        key: None,
        tags: Default::default(),
    };
    let new_server = || transfer::NewServer {
        change: ServerChange::default(),
        host_key: None,
        tags: Default::default(),
    };
    let tagged = arn(&format!("server/{server}"));
    refused! {
        CreateServer, p, work => transfer::create_server(work, &scope, new_server(), p, &[]);
        UpdateServer, p, work => transfer::update_server(work, found(), ServerChange::default(), p, &[]);
        UpdateServer, p, work => transfer::set_host_key(work, &found(), "", p);
        DeleteServer, p, work => transfer::delete_server(work, &found(), p);
        StartServer, p, work => transfer::set_online(work, found(), true, p);
        StopServer, p, work => transfer::set_online(work, found(), false, p);
        ListServers, p, work => transfer::servers(work, &scope, None, 10, p);
        ListUsers, p, work => transfer::users(work, &found(), None, 10, p);
        ListHostKeys, p, work => transfer::host_keys(work, &found(), None, 10, p);
        ImportHostKey, p, work => transfer::import_host_key(work, &found(), "", NewHostKey::default(), p);
        UpdateHostKey, p, work => transfer::update_host_key(work, host(), None, p);
        DeleteHostKey, p, work => transfer::delete_host_key(work, &host(), p);
        CreateUser, p, work => transfer::create_user(work, &found(), new_user(), p, &[]);
        UpdateUser, p, work => transfer::update_user(work, alice(), UserChange::default(), p, &[]);
        DeleteUser, p, work => transfer::delete_user(work, &alice(), p);
        ImportSshPublicKey, p, work => transfer::add_key(work, alice(), &key(3), p);
        DeleteSshPublicKey, p, work => transfer::remove_key(work, alice(), "key-0", p);
        TagResource, p, work => transfer::add_tags(work, &scope, &tagged, Default::default(), p);
        UntagResource, p, work => transfer::remove_tags(work, &scope, &tagged, &[], p);
    }
    assert_eq!(tried, 19);
    assert_eq!(fixture.store.scan("transfer/", "", 100).unwrap().len(), before);
    // Without the permit to pass the role on, the user is not made either.
    let p = authorize(&admin, &keys, action::transfer::CreateUser, &tagged).unwrap();
    let mut work = fixture.service.work(NOW * 1000);
    let error = transfer::create_user(&mut work, &found(), new_user(), &p, &[]).err().unwrap();
    assert!(error.to_string().contains("iam:PassRole"), "{error}");
}
