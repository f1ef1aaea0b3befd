//! Attacks on approvals: each of them must leave the key without a signature.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::approvals_support::{ECDSA, Scene, file, refused, rule, user_arn};
use crate::common::{self, ACCOUNT, HOST, Who, allow, b64, policy, says, text, with};
use crate::rolesanywhere_support;
use http::{HeaderMap, Method};
use outlast_api::service::{Request, Route, Step};
use outlast_api::wire::sigv4::{Credentials, Target, sign};
use outlast_crypto::Secret;
use outlast_domain::identity::{Entry, Role, User};
use outlast_store::{Store, StoreError, Transaction};
use serde_json::{Value, json};

/// A role that everybody in the account may assume.
fn role(scene: &Scene, name: &str) -> String {
    let trust = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:*",
    }]));
    scene.fixture.role(ACCOUNT, name, &trust, &[allow(&["outlast:*", "kms:Sign", "sts:*"])])
}

/// The scene with another key, and this rule for it.
fn under(scene: Scene, of: &Value) -> Scene {
    let key = scene.fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY");
    let scene = Scene { key, ..scene };
    assert_eq!(scene.put(of).unwrap()["Status"], "APPLIED");
    scene
}

#[test]
fn nobody_counts_twice() {
    let scene = Scene::new();
    let (one, two) = (role(&scene, "one"), role(&scene, "two"));
    let approvers = [user_arn("alice"), one.clone(), two.clone()];
    let scene = under(scene, &rule(2, &approvers));
    let made = scene.asked(&["text"]);
    scene.approve(&scene.alice, &made).unwrap();
    assert_eq!(common::code(scene.approve(&scene.alice, &made)), "AlreadyExistsException");
    // Alice in a session of a role that may approve, also by way of another role.
    let session = scene.fixture.session(&scene.alice, &one, &[]);
    refused(scene.approve(&session, &made), "the same person");
    let chained = scene.fixture.session(&session, &two, &[]);
    refused(scene.approve(&chained, &made), "the same person");
    refused(scene.sign("text"), "1 approvals");
    // Sessions of a role are one approver, also those of different users.
    let other = scene.asked(&["other"]);
    let first = scene.fixture.session(&scene.bob, &one, &[]);
    let second = scene.fixture.session(&scene.carol, &one, &[]);
    scene.approve(&first, &other).unwrap();
    assert_eq!(common::code(scene.approve(&second, &other)), "AlreadyExistsException");
    refused(scene.sign("other"), "1 approvals");
    // Somebody else makes it two.
    scene.approve(&scene.alice, &other).unwrap();
    scene.sign("other").unwrap();
}

#[test]
fn the_requester_alone_gets_nothing() {
    let scene = Scene::new();
    let one = role(&scene, "one");
    let scene = under(scene, &rule(1, &[user_arn("rita"), one.clone(), user_arn("alice")]));
    let made = scene.asked(&["text"]);
    refused(scene.approve(&scene.rita, &made), "the same person");
    let session = scene.fixture.session(&scene.rita, &one, &[]);
    refused(scene.approve(&session, &made), "the same person");
    refused(scene.sign("text"), "0 approvals");
    // Nor does she by asking in a session and approving as herself.
    let made = scene.asked_by(&session, &["another"]).unwrap();
    refused(scene.approve(&scene.rita, &made), "the same person");
    refused(scene.approve(&session, &made), "the same person");
    refused(scene.sign_by(&session, "another"), "0 approvals");
    // Somebody who is no approver approves nothing.
    refused(scene.approve(&scene.bob, &made), "not an approver");
    refused(scene.approve(&Who::admin(), &made), "not an approver");
}

#[test]
fn approvals_end() {
    let scene = Scene::new();
    let made = scene.asked(&["text"]);
    scene.approved(&made);
    scene.fixture.advance(1440 * 60 - 1);
    let late = scene.asked(&["late"]);
    scene.approve(&scene.alice, &late).unwrap();
    scene.fixture.advance(1);
    refused(scene.sign("text"), "has ended");
    assert_eq!(scene.request(&made)["Status"], "EXPIRED");
    assert_eq!(common::code(scene.approve(&scene.carol, &made)), "KMSInvalidStateException");
    scene.fixture.advance(1440 * 60);
    assert_eq!(common::code(scene.approve(&scene.bob, &late)), "KMSInvalidStateException");
    // A new request needs new approvals.
    let again = scene.asked(&["text"]);
    refused(scene.sign("text"), "0 approvals");
    scene.approved(&again);
    scene.sign("text").unwrap();
    // A rule that becomes shorter ends what is pending.
    let pending = scene.asked(&["pending"]);
    scene.approved(&pending);
    let shorter = rule(2, &["alice", "bob", "carol"].map(user_arn));
    let shorter = with(&shorter, json!({ "ValidForMinutes": 10 }));
    let change = scene.put(&shorter).unwrap();
    scene.approved(&change);
    assert_eq!(scene.put(&shorter).unwrap()["Status"], "APPLIED");
    scene.fixture.advance(599);
    assert_eq!(scene.request(&pending)["Status"], "APPROVED");
    scene.fixture.advance(1);
    refused(scene.sign("pending"), "has ended");
}

#[test]
fn an_approval_is_for_one_digest() {
    let scene = Scene::new();
    let (one, two) = (scene.asked(&["one"]), scene.asked(&["two"]));
    let mixed = json!({ "RequestId": one["RequestId"], "RequestDigest": two["RequestDigest"] });
    assert_eq!(common::code(scene.approve(&scene.alice, &mixed)), "DigestMismatchException");
    let missing = json!({ "RequestId": "00000000-0000-0000-0000-000000000000", "RequestDigest": two["RequestDigest"] });
    assert_eq!(common::code(scene.approve(&scene.alice, &missing)), "NotFoundException");
    // Another account's caller does not even reach it.
    let stranger = scene.approve(&Who::stranger(), &one);
    assert_eq!(common::code(stranger), "NotFoundException");
    scene.approved(&one);
    refused(scene.sign("two"), "0 approvals");
    refused(scene.sign("three"), "no request");
    refused(scene.sign("one "), "no request");
}

/// Neither another algorithm nor another form of the message, and not with another key.
#[test]
fn an_approval_is_for_one_signature() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let rsa = fixture.key_of("RSA_2048", "SIGN_VERIFY");
    let ml_dsa = fixture.key_of("ML_DSA_65", "SIGN_VERIFY");
    let of = rule(2, &["alice", "bob", "carol"].map(user_arn));
    for (key, algorithm, others) in [
        (
            &rsa,
            "RSASSA_PSS_SHA_256",
            vec![
                json!({ "SigningAlgorithm": "RSASSA_PKCS1_V1_5_SHA_256" }),
                json!({ "SigningAlgorithm": "RSASSA_PSS_SHA_512" }),
            ],
        ),
        (
            &ml_dsa,
            "ML_DSA_SHAKE_256",
            vec![json!({ "MessageType": "EXTERNAL_MU", "Message": b64(&[7; 64]) })],
        ),
    ] {
        let put = json!({ "KeyId": key, "Rule": of });
        fixture.outlast("PutSigningApprovalRule", &put).unwrap();
        let body = json!({ "KeyId": key, "Files": [file("a", b"text", algorithm)] });
        let made = fixture.outlast_as(&scene.rita, "RequestSigningApproval", &body).unwrap();
        scene.approved(&made);
        let good = json!({ "KeyId": key, "Message": b64(b"text"), "SigningAlgorithm": algorithm });
        for other in others {
            refused(fixture.kms_as(&scene.rita, "Sign", with(&good, other)), "no request");
        }
        refused(scene.sign("text"), "no request");
        fixture.kms_as(&scene.rita, "Sign", good.clone()).unwrap();
        refused(fixture.kms_as(&scene.rita, "Sign", good), "used for it already");
    }
}

#[test]
fn principals_who_are_gone_do_not_count() {
    let scene = Scene::new();
    let (one, two) = (scene.asked(&["one"]), scene.asked(&["two"]));
    scene.approved(&one);
    scene.approved(&two);
    // Alice is deleted, and another Alice takes her name.
    scene.fixture.directory(|work| User::find(work, ACCOUNT, "alice").unwrap().delete(work));
    refused(scene.sign("one"), "1 approvals");
    let second = scene.fixture.user(ACCOUNT, "alice", &[allow(&["outlast:*"])]);
    refused(scene.sign("one"), "1 approvals");
    refused(scene.approve(&second, &one), "not an approver");
    let shown = scene.request(&one);
    assert_eq!(
        (&shown["Approvals"][0]["Counts"], &shown["Status"]),
        (&json!(false), &json!("PENDING"))
    );
    // Bob is taken out of the rule: his approval of the other request does not count any more.
    let without = rule(2, &["carol", "rita"].map(user_arn));
    let change = scene.put(&without).unwrap();
    scene.approve(&scene.bob, &change).unwrap();
    scene.approve(&scene.carol, &change).unwrap();
    assert_eq!(scene.put(&without).unwrap()["Status"], "APPLIED");
    refused(scene.sign("two"), "0 approvals");
    assert_eq!(scene.request(&change)["Status"], "FINISHED");
}

/// An administrator without approvals gets no signature and cannot change the rule.
#[test]
fn the_administrator_cannot_remove_the_rule() {
    let scene = Scene::new();
    let of = json!({ "KeyId": scene.key });
    let removal = scene.fixture.outlast("DeleteSigningApprovalRule", &of).unwrap();
    for _ in 0..2 {
        let again = scene.fixture.outlast("DeleteSigningApprovalRule", &of).unwrap();
        assert_eq!(again["RequestId"], removal["RequestId"]);
    }
    refused(scene.approve(&Who::admin(), &removal), "not an approver");
    let own = scene.put(&rule(1, &[user_arn("admin")])).unwrap();
    assert_eq!(own["Status"], "PENDING_APPROVAL");
    refused(scene.approve(&Who::admin(), &own), "not an approver");
    let made = scene.asked_by(&Who::admin(), &["text"]).unwrap();
    refused(scene.approve(&Who::admin(), &made), "not an approver");
    refused(scene.sign_by(&Who::admin(), "text"), "0 approvals");
    // An approved removal is used by the caller who asked for it, once.
    scene.approved(&removal);
    let other = scene.fixture.user(ACCOUNT, "other", &[allow(&["outlast:*", "kms:*"])]);
    let theirs = scene.fixture.outlast_as(&other, "DeleteSigningApprovalRule", &of).unwrap();
    assert_eq!(theirs["Status"], "PENDING_APPROVAL");
    scene.fixture.outlast("DeleteSigningApprovalRule", &of).unwrap();
    let back = rule(2, &["alice", "bob"].map(user_arn));
    assert_eq!(scene.put(&back).unwrap()["Status"], "APPLIED");
    let again = scene.fixture.outlast("DeleteSigningApprovalRule", &of).unwrap();
    assert_eq!(again["Status"], "PENDING_APPROVAL", "the approvals were used");
}

fn write(scene: &Scene, record_key: &str, value: Option<Vec<u8>>) {
    let writes = vec![(record_key.to_owned(), value)];
    scene.fixture.store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
}

fn read(scene: &Scene, record_key: &str) -> Vec<u8> {
    scene.fixture.store.read(record_key).unwrap().unwrap().value
}

/// Somebody who can write to the database.
#[test]
fn records_of_approvals_cannot_be_forged() {
    let scene = Scene::new();
    let made = scene.asked(&["one"]);
    let of_request = |made: &Value| {
        format!("kms/signing-request/{ACCOUNT}/{}/{}", common::REGION, text(&made["RequestId"]))
    };
    let record_key = of_request(&made);
    let unapproved = read(&scene, &record_key);
    scene.approve(&scene.alice, &made).unwrap();
    let once = read(&scene, &record_key);
    let head = &once[..once.len() - outlast_domain::seal::json(&once).len()];
    // Another approval is written in.
    let mut said = says(&once);
    let bob = scene.fixture.record(&format!("iam/user/{ACCOUNT}/bob"))["id"].clone();
    let mut forged = said["approvals"][0].clone();
    forged["ids"] = json!([bob]);
    forged["principal"] = json!(user_arn("bob"));
    said["approvals"].as_array_mut().unwrap().push(forged);
    write(&scene, &record_key, Some([head, said.to_string().as_bytes()].concat()));
    assert_eq!(scene.sign("one").unwrap_err().status, 500);
    write(&scene, &record_key, Some(once.clone()));
    // The approved request of another message is put in its place.
    let other = scene.asked(&["other"]);
    scene.approved(&other);
    let approved = read(&scene, &of_request(&other));
    write(&scene, &record_key, Some(approved));
    assert_eq!(scene.sign("one").unwrap_err().status, 500);
    write(&scene, &record_key, Some(once.clone()));
    // A request from before it was used is put back.
    scene.approve(&scene.carol, &made).unwrap();
    let twice = read(&scene, &record_key);
    scene.sign("one").unwrap();
    let used = read(&scene, &record_key);
    for old in [unapproved, once, twice] {
        write(&scene, &record_key, Some(old));
        assert_eq!(scene.sign("one").unwrap_err().status, 500);
    }
    write(&scene, &record_key, Some(used));
    refused(scene.sign("one"), "used for it already");
    // The rule is taken out of the key.
    let key = format!("kms/key/{ACCOUNT}/{}/{}", common::REGION, scene.key);
    let before = read(&scene, &key);
    let head = &before[..before.len() - outlast_domain::seal::json(&before).len()];
    let mut said = says(&before);
    assert!(said.as_object_mut().unwrap().remove("approval_rule").is_some());
    write(&scene, &key, Some([head, said.to_string().as_bytes()].concat()));
    assert_eq!(scene.sign("two").unwrap_err().status, 500);
    write(&scene, &key, Some(before));
}

/// Two calls that sign at the same time: one of them is committed.
#[test]
fn simultaneous_finishes_give_one_signature() {
    let scene = Scene::new();
    let made = scene.asked(&["one"]);
    scene.approved(&made);
    let body = json!({ "KeyId": scene.key, "Message": b64(b"one"), "SigningAlgorithm": ECDSA });
    let prepare = || {
        let body = body.to_string();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        headers.insert("x-amz-target", "TrentService.Sign".parse().unwrap());
        let target = Target {
            path: "/",
            host: HOST,
            body: body.as_bytes(),
            region: common::REGION,
            service: "kms",
        };
        let credentials = Credentials {
            access_key_id: scene.rita.id.clone(),
            secret: Secret::new(scene.rita.secret.clone()),
            token: None,
        };
        sign(&mut headers, &target, &credentials, scene.fixture.now.get()).unwrap();
        headers.insert("host", HOST.parse().unwrap());
        let request = Request {
            method: &Method::POST,
            path: "/",
            query: "",
            host: HOST,
            headers: &headers,
            body: body.as_bytes(),
            source_ip: "127.0.0.1",
            tls: None,
            now_ms: scene.fixture.now.get() * 1000,
            request_id: "00000000-0000-0000-0000-000000000000",
        };
        let route = Route::find(&Method::POST, "/", &headers).ok().unwrap();
        match scene.fixture.service.prepare(route, &request) {
            Step::Commit(prepared) => prepared,
            _ => panic!("it was not prepared"),
        }
    };
    let prepared: Vec<_> = (0..4).map(|_| prepare()).collect();
    assert!(prepared.iter().all(|one| one.response.status == 200));
    let mut committed = 0;
    for mut one in prepared {
        let transaction = std::mem::take(&mut one.transaction);
        match scene.fixture.store.commit_and_wait(transaction) {
            Ok(()) => committed += 1,
            Err(error) => assert!(matches!(error, StoreError::Conflict), "{error}"),
        }
    }
    assert_eq!(committed, 1);
    refused(scene.sign("one"), "used for it already");
}

/// A role that was deleted and made again is another approver.
#[test]
fn a_role_of_the_same_name_is_another() {
    let scene = Scene::new();
    let one = role(&scene, "one");
    let scene = under(scene, &rule(1, std::slice::from_ref(&one)));
    let made = scene.asked(&["text"]);
    scene.fixture.directory(|work| Role::find(work, ACCOUNT, "one").unwrap().delete(work));
    role(&scene, "one");
    let session = scene.fixture.session(&scene.bob, &one, &[]);
    refused(scene.approve(&session, &made), "not an approver");
}

/// Sessions that begin with certificates are only their role: two certificates are no two approvers, and none approves what
/// another one has asked for.
#[test]
fn certificates_of_one_role_are_one_approver() {
    let world = rolesanywhere_support::Scene::new();
    let fixture = &world.fixture;
    let key = fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY");
    let own = allow(&["outlast:*", "kms:Sign"]);
    let [rita, alice] =
        ["rita", "alice"].map(|name| fixture.user(ACCOUNT, name, std::slice::from_ref(&own)));
    let of = rule(2, &[world.role.clone(), user_arn("alice")]);
    fixture.outlast("PutSigningApprovalRule", &json!({ "KeyId": key, "Rule": of })).unwrap();
    let [one, two] = ["CN=one", "CN=two"].map(|subject| {
        let leaf = world.root.issue("ECC_NIST_P256", rolesanywhere_support::workload(subject));
        rolesanywhere_support::who(&world.session(&leaf).unwrap())
    });
    let ask = |who: &Who, contents: &[u8]| {
        let body = json!({ "KeyId": key, "Files": [file("a", contents, ECDSA)] });
        fixture.outlast_as(who, "RequestSigningApproval", &body).unwrap()
    };
    let approve = |who: &Who, made: &Value| {
        let body =
            json!({ "RequestId": made["RequestId"], "RequestDigest": made["RequestDigest"] });
        fixture.outlast_as(who, "ApproveSigning", &body)
    };
    let sign = |who: &Who, contents: &[u8]| {
        let body = json!({ "KeyId": key, "Message": b64(contents), "SigningAlgorithm": ECDSA });
        fixture.kms_as(who, "Sign", body)
    };
    let made = ask(&rita, b"text");
    approve(&one, &made).unwrap();
    assert_eq!(common::code(approve(&two, &made)), "AlreadyExistsException");
    refused(sign(&rita, b"text"), "1 approvals");
    approve(&alice, &made).unwrap();
    sign(&rita, b"text").unwrap();
    let made = ask(&one, b"own");
    refused(approve(&two, &made), "the same person");
    approve(&alice, &made).unwrap();
    refused(sign(&one, b"own"), "1 approvals");
}
