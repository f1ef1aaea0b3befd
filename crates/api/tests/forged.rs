//! An attacker who can write to the database: rows that are edited, moved, put back or added decide nothing, and are
//! reported.
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
use common::{ACCOUNT, Answer, Fixture, REGION, Who, allow, b64, code, key_policy, policy, says};
use outlast_domain::Fault;
use outlast_domain::check;
use outlast_domain::identity::{Entry, User};
use outlast_domain::work::Work;
use outlast_store::{Store, Transaction};
use serde_json::{Value, json};

const ADMIN: &str = "arn:aws:iam::123456789012:user/admin";

/// Writes as somebody who has only the database: checks no versions and has no key.
fn write(fixture: &Fixture, record_key: &str, value: Option<Vec<u8>>) {
    let writes = vec![(record_key.to_owned(), value)];
    fixture.store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
}

fn read(fixture: &Fixture, record_key: &str) -> Option<Vec<u8>> {
    fixture.store.read(record_key).unwrap().map(|record| record.value)
}

/// The one record below a prefix.
#[track_caller]
fn only(fixture: &Fixture, prefix: &str) -> String {
    let found = fixture.store.scan(prefix, "", 2).unwrap();
    let [(record_key, _)] = found.as_slice() else { panic!("{prefix}: {}", found.len()) };
    record_key.clone()
}

/// The same record with edited JSON; the bytes before the JSON stay.
fn edited(value: &[u8], edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut said = says(value);
    let before = said.clone();
    edit(&mut said);
    assert_ne!(said, before, "nothing was edited");
    let head = &value[..value.len() - outlast_domain::seal::json(value).len()];
    [head, said.to_string().as_bytes()].concat()
}

fn assert_reported(fixture: &Fixture, record_key: &str) {
    let report = check::check(&*fixture.store, fixture.service.root(), &mut |_| {}).unwrap();
    let reported = report.problems.iter().any(|problem| {
        problem.record_key == record_key && problem.what.starts_with("is not as the service")
    });
    assert!(reported, "{record_key}: {:#?}", report.problems);
}

/// Checks that the call fails as one whose records cannot be read.
#[track_caller]
fn assert_refused(answer: Answer, what: &str) {
    match answer {
        Ok(value) => panic!("{what}: it succeeded: {value}"),
        Err(refused) => assert_eq!(refused.status, 500, "{what}: {refused:?}"),
    }
}

struct Attack<'a> {
    what: &'a str,
    record_key: String,
    value: Vec<u8>,
    call: Box<dyn Fn(&Fixture) -> Answer + 'a>,
}

/// Each attack by itself: the call is refused, by a server that read the record before and by one that did not.
fn carry_out(fixture: &Fixture, attacks: Vec<Attack<'_>>) {
    for Attack { what, record_key, value, call } in attacks {
        let before = read(fixture, &record_key);
        assert_ne!(before.as_ref(), Some(&value), "{what}");
        write(fixture, &record_key, Some(value));
        let events = fixture.events().len();
        assert_refused(call(fixture), what);
        assert_eq!(fixture.events().len(), events, "{what}: something was done");
        assert_reported(fixture, &record_key);
        write(fixture, &record_key, before);
    }
}

#[test]
fn rows_that_decide_who_somebody_is_cannot_be_forged() {
    let fixture = Fixture::new();
    let weak = fixture.user(ACCOUNT, "weak", &[allow(&["kms:ListKeys"])]);
    let strong = fixture.user(ACCOUNT, "strong", &[allow(&["kms:*"])]);
    let off = fixture.user(ACCOUNT, "off", &[allow(&["kms:*"])]);
    fixture.directory(|work| {
        let user = User::find(work, ACCOUNT, "off").unwrap();
        user.set_access_key_active(work, &off.id, false).unwrap();
    });
    let trust = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:*",
    }]));
    let small = fixture.role(ACCOUNT, "small", &trust, &[allow(&["kms:ListKeys"])]);
    let _great = fixture.role(ACCOUNT, "great", &trust, &[allow(&["kms:*"])]);
    let session = fixture.session(&Who::admin(), &small, &[("DurationSeconds", "900")]);
    let call = |who: &Who| -> Box<dyn Fn(&Fixture) -> Answer> {
        let who = who.clone();
        Box::new(move |fixture| fixture.kms_as(&who, "CreateKey", json!({})))
    };
    for who in [&weak, &session] {
        assert_eq!(code(call(who)(&fixture)), "AccessDeniedException");
    }
    assert_eq!(code(call(&off)(&fixture)), "UnrecognizedClientException");
    call(&strong)(&fixture).unwrap();

    let key = |who: &Who| format!("iam/access-key/{}", who.id);
    let user = |name: &str| format!("iam/user/{ACCOUNT}/{name}");
    let role = |name: &str| format!("iam/role/{ACCOUNT}/{name}");
    let value = |record_key: &str| read(&fixture, record_key).unwrap();
    let edit = |record_key: String, member: &str, to: Value| {
        let value = edited(&value(&record_key), |said| said[member] = to);
        (record_key, value)
    };
    let plain = |record_key: String, member: &str, to: Value| {
        let mut said = says(&value(&record_key));
        said[member] = to;
        (record_key, said.to_string().into_bytes())
    };
    let moved = |from: String, to: String| (to, value(&from));
    let made_up = json!({
        "id": "AKIAMADEUP", "account": ACCOUNT, "user": "admin", "user_id": "AIDA", "created_ms": 0,
    });
    write(
        &fixture,
        "iam/access-key-secret/AKIAMADEUP",
        read(&fixture, &format!("iam/access-key-secret/{}", weak.id)),
    );
    let policies = json!({ "p0": allow(&["kms:*"]).to_string() });
    let attacks = [
        ("another user", edit(key(&weak), "user", "strong".into()), &weak),
        ("no user: the administrator", edit(key(&weak), "has_user", false.into()), &weak),
        ("the same, as plain JSON", plain(key(&weak), "has_user", false.into()), &weak),
        ("switched on", edit(key(&off), "active", true.into()), &off),
        ("another's access key", moved(key(&strong), key(&weak)), &weak),
        ("another's row", moved(user("strong"), user("weak")), &weak),
        ("other policies", edit(user("weak"), "policies", policies.clone()), &weak),
        ("other policies, plain", plain(user("weak"), "policies", policies.clone()), &weak),
        ("other policies of a role", edit(role("small"), "policies", policies), &session),
        ("a role under another name", moved(role("great"), role("small")), &session),
        (
            "a session of another role",
            edit(format!("iam/session/{}", session.id), "role", "great".into()),
            &session,
        ),
        (
            "a longer session",
            edit(format!("iam/session/{}", session.id), "expires_ms", json!(i64::MAX)),
            &session,
        ),
        (
            "an access key out of nothing",
            ("iam/access-key/AKIAMADEUP".to_owned(), made_up.to_string().into_bytes()),
            &Who::new("AKIAMADEUP"),
        ),
    ];
    let attacks = attacks.into_iter().map(|(what, (record_key, value), who)| Attack {
        what,
        record_key,
        value,
        call: call(who),
    });
    carry_out(&fixture, attacks.collect());
    // Nothing is left of it.
    assert_eq!(code(call(&weak)(&fixture)), "AccessDeniedException");
    call(&strong)(&fixture).unwrap();
}

#[test]
fn rows_that_decide_what_a_key_does_cannot_be_forged() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let arn = format!("arn:aws:iam::{ACCOUNT}:user/user");
    let (key, other) = (fixture.key(json!({})), fixture.key(json!({})));
    let blob = fixture.encrypted(&key, b"x");
    let grant = json!({ "KeyId": key, "GranteePrincipal": arn, "Operations": ["Encrypt"] });
    fixture.kms("CreateGrant", grant).unwrap();
    let alias = json!({ "AliasName": "alias/a", "TargetKeyId": key });
    fixture.kms("CreateAlias", alias).unwrap();
    let record_key = format!("kms/key/{ACCOUNT}/{REGION}/{key}");
    let value = |record_key: &str| read(&fixture, record_key).unwrap();
    let open = json!({ "CiphertextBlob": blob });
    let decrypt = |fixture: &Fixture| fixture.kms_as(&user, "Decrypt", open.clone());
    assert_eq!(code(decrypt(&fixture)), "AccessDeniedException");
    let generous = key_policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": arn }, "Action": "kms:*", "Resource": "*",
    }]));
    let grant_record_key = only(&fixture, "kms/grant/");
    let alias_record_key = only(&fixture, "kms/alias/");
    let by_alias = json!({ "KeyId": "alias/a", "Plaintext": b64(b"x") });
    let attacks = vec![
        Attack {
            what: "the key's policy",
            value: edited(&value(&record_key), |said| said["policy"] = generous.into()),
            record_key: record_key.clone(),
            call: Box::new(decrypt),
        },
        Attack {
            what: "another key in its place",
            value: value(&format!("kms/key/{ACCOUNT}/{REGION}/{other}")),
            record_key: record_key.clone(),
            call: Box::new(decrypt),
        },
        Attack {
            what: "a grant's operations",
            value: edited(&value(&grant_record_key), |said| {
                said["operations"] = json!(["Decrypt"]);
            }),
            record_key: grant_record_key.clone(),
            // For another operation the service does not read the grant.
            call: Box::new(|fixture| {
                let body = json!({ "KeyId": key, "Plaintext": b64(b"x") });
                fixture.kms_as(&user, "Encrypt", body)
            }),
        },
        Attack {
            what: "an alias of another key",
            value: edited(&value(&alias_record_key), |said| said["target"] = other.clone().into()),
            record_key: alias_record_key,
            call: Box::new(move |fixture| fixture.kms("Encrypt", by_alias.clone())),
        },
    ];
    carry_out(&fixture, attacks);
    // A disabled key that is enabled behind the service's back.
    fixture.kms("DisableKey", json!({ "KeyId": key })).unwrap();
    let enabled = edited(&value(&record_key), |said| said["enabled"] = true.into());
    let attack = Attack {
        what: "a disabled key",
        record_key,
        value: enabled,
        call: Box::new(|fixture| fixture.kms("Decrypt", open.clone())),
    };
    carry_out(&fixture, vec![attack]);
}

#[test]
fn an_older_row_is_refused_after_a_newer_one() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[allow(&["kms:CreateKey"])]);
    let call = || fixture.kms_as(&user, "CreateKey", json!({}));
    call().unwrap();
    let record_key = format!("iam/user/{ACCOUNT}/user");
    let before = read(&fixture, &record_key);
    // Changed by another process; this one learns of it when it reads the record.
    fixture.directory(|work| {
        User::find(work, ACCOUNT, "user").unwrap().delete_policy(work, "p0").unwrap();
    });
    assert_eq!(code(call()), "AccessDeniedException");
    write(&fixture, &record_key, before);
    assert_refused(call(), "an older user");

    // Changed by this process: a revoked grant, a replaced policy.
    let arn = format!("arn:aws:iam::{ACCOUNT}:user/grantee");
    let grantee = fixture.user(ACCOUNT, "grantee", &[]);
    let key = fixture.key(json!({}));
    let make = json!({ "KeyId": key, "GranteePrincipal": arn, "Operations": ["Encrypt"] });
    let made = fixture.kms("CreateGrant", make).unwrap();
    let encrypt = || {
        let body = json!({ "KeyId": key, "Plaintext": b64(b"x") });
        fixture.kms_as(&grantee, "Encrypt", body)
    };
    encrypt().unwrap();
    let mut rows: Vec<_> = fixture.store.scan("kms/grant", "", 100).unwrap();
    rows.extend(fixture.store.scan("kms/by-grantee/", "", 100).unwrap());
    fixture.kms("RevokeGrant", json!({ "KeyId": key, "GrantId": made["GrantId"] })).unwrap();
    assert_eq!(code(encrypt()), "AccessDeniedException");
    for (record_key, record) in rows {
        write(&fixture, &record_key, Some(record.value));
    }
    assert_refused(encrypt(), "a revoked grant");

    let key = fixture.key(json!({}));
    let record_key = format!("kms/key/{ACCOUNT}/{REGION}/{key}");
    let before = read(&fixture, &record_key);
    let body = json!({ "KeyId": key, "Policy": key_policy(json!([])), "PolicyName": "default" });
    fixture.kms("PutKeyPolicy", body).unwrap();
    write(&fixture, &record_key, before);
    assert_refused(fixture.kms("DescribeKey", json!({ "KeyId": key })), "an older key");
}

#[test]
fn rows_of_acme_and_private_ca_cannot_be_forged() {
    let world = World::new();
    let fixture = &world.fixture;
    let (arn, _) = world.binding(json!({}));
    let id = arn.rsplit('/').next().unwrap().to_owned();
    let acm = |operation: &'static str, body: Value| -> Box<dyn Fn(&Fixture) -> Answer> {
        Box::new(move |fixture| call(fixture, &Who::admin(), "acm", operation, &body))
    };
    let pca = |operation: &'static str, body: Value| -> Box<dyn Fn(&Fixture) -> Answer> {
        Box::new(move |fixture| call(fixture, &Who::admin(), "acm-pca", operation, &body))
    };
    let own = json!({ "ResourceArn": world.authority });
    let text_of = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": "210987654321" },
        "Action": ["acm-pca:GetCertificate", "acm-pca:ListPermissions"],
        "Resource": world.authority,
    }]));
    let put = json!({ "ResourceArn": world.authority, "Policy": text_of.to_string() });
    pca("PutPolicy", put)(fixture).unwrap();
    let binding = only(fixture, &format!("acme/binding/{}/{id}", world.endpoint_id()));
    let authority = only(fixture, "ca/authority/");
    let shared = only(fixture, "ca/policy/");
    let endpoint = only(fixture, "acme/endpoint/");
    let of_binding = json!({ "AcmeExternalAccountBindingArn": arn });
    let of_endpoint = json!({ "AcmeEndpointArn": world.endpoint });
    let of_authority = json!({ "CertificateAuthorityArn": world.authority });
    let value = |record_key: &str| read(fixture, record_key).unwrap();
    let other_text = text_of.to_string().replace("210987654321", "999999999999");
    let attacks = vec![
        Attack {
            what: "the role of a binding",
            value: edited(&value(&binding), |said| said["role"] = ADMIN.into()),
            record_key: binding,
            call: acm("GetAcmeExternalAccountBindingCredentials", of_binding),
        },
        Attack {
            what: "an endpoint without authorization",
            value: edited(&value(&endpoint), |said| said["authorization"] = "NONE".into()),
            record_key: endpoint,
            call: acm("DescribeAcmeEndpoint", of_endpoint),
        },
        Attack {
            what: "an authority's state",
            value: edited(&value(&authority), |said| said["status"] = "DISABLED".into()),
            record_key: authority,
            call: pca("DescribeCertificateAuthority", of_authority),
        },
        Attack {
            what: "an authority's policy",
            value: edited(&value(&shared), |said| said["text"] = other_text.into()),
            record_key: shared,
            call: pca("GetPolicy", own),
        },
    ];
    carry_out(fixture, attacks);
}

/// Every record of a store that was used, of every kind: any flipped byte, a row moved to another's place, and a row
/// from another store.
#[test]
fn any_byte_of_any_record_counts() {
    let world = World::new();
    let account = world.account("ES256");
    let fixture = &world.fixture;
    let key = fixture.key(json!({}));
    fixture.encrypted(&key, b"x");
    let grant = json!({
        "KeyId": key, "GranteePrincipal": ADMIN, "RetiringPrincipal": ADMIN, "Name": "n",
        "Operations": ["Encrypt"],
    });
    fixture.kms("CreateGrant", grant).unwrap();
    fixture.kms("CreateAlias", json!({ "AliasName": "alias/a", "TargetKeyId": key })).unwrap();
    let import = fixture.key(json!({ "Origin": "EXTERNAL" }));
    let parameters = json!({
        "KeyId": import, "WrappingAlgorithm": "RSAES_OAEP_SHA_256", "WrappingKeySpec": "RSA_2048",
    });
    fixture.kms("GetParametersForImport", parameters).unwrap();
    let trust = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:*",
    }]));
    let role = fixture.role(ACCOUNT, "role", &trust, &[]);
    fixture.session(&Who::admin(), &role, &[]);
    let order = json!({ "identifiers": [{ "type": "dns", "value": "a.example.com" }] });
    world.post(&account.signer, Some(&account.url), &world.url("new-order"), &order.to_string());

    let other = Fixture::new();
    let root = fixture.service.root();
    let fails = |record_key: &str, value: Vec<u8>| {
        // What looks sealed exists and cannot be opened.
        let sealed = matches!(value.first(), Some(1 | 2));
        write(fixture, record_key, Some(value));
        let mut work = Work::new(&*fixture.store, root, 0);
        let got = work.get::<Value>(record_key).map(|_| ());
        let scanned =
            Work::new(&*fixture.store, root, 0).scan::<Value>(record_key, "", 1).map(|_| ());
        assert_eq!(got, Err(Fault::Forged(record_key.to_owned())));
        assert_eq!(scanned, Err(Fault::Forged(record_key.to_owned())));
        let there = Work::new(&*fixture.store, root, 0).exists(record_key).map(|_| ());
        if !sealed {
            assert_eq!(there, Err(Fault::Forged(record_key.to_owned())));
        }
        // A new record would hide the old one. Some are written without being read first, so that no caller waits.
        let blind = ["ca/crl-mark/", "ca/ocsp-epoch/", "tsa/last/"];
        if !blind.iter().any(|prefix| record_key.starts_with(prefix)) {
            assert_eq!(work.put(record_key, &json!({})), Err(Fault::Forged(record_key.to_owned())));
        }
    };
    let records = fixture.store.scan("", "", 10_000).unwrap();
    let plain = ["kms/last-use/", "meta/root-key/", "ca/crl-der/"];
    let (mut kinds, mut flipped) = (std::collections::BTreeSet::new(), 0);
    for (record_key, record) in &records {
        if matches!(record.value[0], 1 | 2)
            || plain.iter().any(|prefix| record_key.starts_with(prefix))
        {
            continue;
        }
        kinds.insert(record_key.split('/').take(2).collect::<Vec<_>>().join("/"));
        // All bytes before the JSON, and some of the JSON: the tag covers everything.
        let step = if record.value.len() > 400 { 7 } else { 1 };
        for at in (0..49).chain((49..record.value.len()).step_by(step)) {
            let mut value = record.value.clone();
            value[at] ^= 1 << (at % 8);
            fails(record_key, value);
            flipped += 1;
        }
        for at in [0, 1, 48, 49, record.value.len() - 1] {
            fails(record_key, record.value[..at].to_vec());
        }
        fails(record_key, outlast_domain::seal::json(&record.value).to_vec());
        let elsewhere = records.iter().find(|(at, _)| at > record_key).unwrap_or(&records[0]);
        fails(record_key, elsewhere.1.value.clone());
        let mut work = Work::new(&*other.store, other.service.root(), 0);
        work.put(record_key, &says(&record.value)).unwrap();
        let of_other_store = work.into_transaction(Vec::new()).writes.remove(0).1.unwrap();
        fails(record_key, of_other_store);
        write(fixture, record_key, Some(record.value.clone()));
        Work::new(&*fixture.store, root, 0).get::<Value>(record_key).unwrap();
    }
    println!("{} kinds of records, {flipped} flipped bytes", kinds.len());
    assert!(kinds.len() >= 25 && flipped > 5000, "{kinds:?}");
}

/// A forged record is not taken to be due, and delays no other.
#[test]
fn a_forged_row_is_not_due() {
    let fixture = Fixture::new();
    let trust = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:*",
    }]));
    let role = fixture.role(ACCOUNT, "role", &trust, &[allow(&["kms:ListKeys"])]);
    let sessions: Vec<_> = (0..3)
        .map(|_| fixture.session(&Who::admin(), &role, &[("DurationSeconds", "900")]))
        .collect();
    let record_key = |who: &Who| format!("iam/session/{}", who.id);
    let value = read(&fixture, &record_key(&sessions[1])).unwrap();
    write(
        &fixture,
        &record_key(&sessions[1]),
        Some(edited(&value, |said| said["expires_ms"] = 0.into())),
    );
    assert!(fixture.service.run_housekeeping(fixture.now.get() * 1000).is_err());
    assert_eq!(fixture.store.scan("iam/session/", "", 10).unwrap().len(), 3, "it was deleted");
    fixture.advance(1000);
    assert!(fixture.service.run_housekeeping(fixture.now.get() * 1000).is_err());
    assert_eq!(only(&fixture, "iam/session/"), record_key(&sessions[1]));
}

/// A service whose store two processes write to accepts the other's writes.
#[test]
fn what_another_process_writes_is_no_forgery() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    for round in 0..5 {
        let call = || fixture.kms_as(&user, "ListKeys", json!({}));
        assert_eq!(code(call()), "AccessDeniedException", "{round}");
        fixture.directory(|work| {
            let user = User::find(work, ACCOUNT, "user").unwrap();
            user.put_policy(work, "p", &allow(&["kms:*"]).to_string()).unwrap();
        });
        call().unwrap();
        fixture.directory(|work| {
            User::find(work, ACCOUNT, "user").unwrap().delete_policy(work, "p").unwrap();
        });
    }
    // Deleted and created again under the same name, also within one millisecond.
    for _ in 0..3 {
        fixture.directory(|work| User::find(work, ACCOUNT, "user").unwrap().delete(work));
        assert_eq!(
            code(fixture.kms_as(&user, "ListKeys", json!({}))),
            "UnrecognizedClientException"
        );
        fixture.user(ACCOUNT, "user", &[]);
        assert_eq!(code(fixture.kms_as(&user, "ListKeys", json!({}))), "AccessDeniedException");
    }
}
