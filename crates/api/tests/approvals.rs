//! Approvals of signatures: asked for, given, used, denied, and the rule that asks for them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::approvals_support::{ECDSA, Scene, file, refused, rule, user_arn};
use crate::common::{self, ACCOUNT, REGION, Who, allow, b64, text, unb64, with};
use outlast_crypto::digests::{Digest, sha256};
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::Message;
use outlast_domain::kms::approval::approval_message;
use outlast_store::Store;
use serde_json::{Value, json};

#[test]
fn a_key_signs_what_was_approved_once() {
    let scene = Scene::new();
    refused(scene.sign("one"), "no request for this message");
    let made = scene.asked(&["one", "two"]);
    refused(scene.sign("one"), "0 approvals");
    scene.approve(&scene.alice, &made).unwrap();
    refused(scene.sign("one"), "1 approvals");
    scene.approve(&scene.carol, &made).unwrap();
    assert_eq!(scene.request(&made)["Status"], "APPROVED");
    // A caller who did not ask does not get it, not even the administrator.
    refused(scene.sign_by(&Who::admin(), "one"), "no request for this message");
    refused(scene.sign_by(&scene.alice, "one"), "no request for this message");
    let signed = scene.sign("one").unwrap();
    let verify = json!({
        "KeyId": scene.key, "Message": b64(b"one"), "SigningAlgorithm": ECDSA,
        "Signature": signed["Signature"],
    });
    assert_eq!(scene.fixture.kms("Verify", verify).unwrap()["SignatureValid"], true);
    refused(scene.sign("one"), "used for it already");
    assert_eq!(scene.request(&made)["Status"], "APPROVED");
    // For ECDSA a message and its digest are the same.
    let digest = json!({
        "KeyId": scene.key, "Message": b64(&sha256(b"two")), "MessageType": "DIGEST",
        "SigningAlgorithm": ECDSA,
    });
    scene.fixture.kms_as(&scene.rita, "Sign", digest.clone()).unwrap();
    refused(scene.fixture.kms_as(&scene.rita, "Sign", digest), "used for it already");
    refused(scene.sign("two"), "used for it already");
    let request = scene.request(&made);
    assert_eq!(request["Status"], "FINISHED");
    assert!(request["Files"][0]["SignedAt"].is_number(), "{request}");
    assert_eq!(request["Approvals"][1]["PrincipalArn"], user_arn("carol"));
}

#[test]
fn every_step_is_in_the_audit_trail() {
    let scene = Scene::new();
    let body = json!({
        "KeyId": scene.key, "Files": [file("a.txt", b"some text", ECDSA)], "Reason": "release 1.0",
    });
    let made = scene.fixture.outlast_as(&scene.rita, "RequestSigningApproval", &body).unwrap();
    assert_eq!(made["KeyId"], common::key_arn(ACCOUNT, REGION, &scene.key));
    assert_eq!((text(&made["RequestDigest"]).len(), &made["ApproversRequired"]), (64, &json!(2)));
    scene.approved(&made);
    scene.sign("some text").unwrap();
    let other = scene.asked(&["other"]);
    let deny = json!({ "RequestId": other["RequestId"], "Reason": "not tested" });
    scene.fixture.outlast_as(&scene.bob, "DenySigning", &deny).unwrap();
    let events: Vec<_> =
        scene.fixture.events().into_iter().filter(|event| event["eventSource"] != "iam").collect();
    let names: Vec<_> = events.iter().map(|event| text(&event["eventName"])).collect();
    let expected = [
        "PutSigningApprovalRule",
        "RequestSigningApproval",
        "ApproveSigning",
        "ApproveSigning",
        "Sign",
        "RequestSigningApproval",
        "DenySigning",
    ];
    assert_eq!(names[names.len() - 7..], expected);
    let last = &events[events.len() - 7..];
    assert_eq!(
        last[0]["requestParameters"]["rule"]["approvers"][0]["principalArn"],
        user_arn("alice")
    );
    assert_eq!(last[1]["requestParameters"]["files"][0]["name"], "a.txt");
    assert_eq!(last[1]["requestParameters"]["reason"], "release 1.0");
    assert_eq!(last[1]["responseElements"]["requestDigest"], made["RequestDigest"]);
    assert_eq!(last[3]["requestParameters"]["requestDigest"], made["RequestDigest"]);
    assert_eq!(last[3]["userIdentity"]["arn"], user_arn("bob"));
    assert_eq!(last[3]["responseElements"]["status"], "APPROVED");
    assert_eq!(last[4]["additionalEventData"]["signingRequestId"], made["RequestId"]);
    assert_eq!(last[6]["requestParameters"]["reason"], "not tested");
    let id = text(&made["RequestId"]);
    let arn = format!("arn:aws:outlast:{REGION}:{ACCOUNT}:signing-request/{id}");
    for event in &last[1..4] {
        let named = event["resources"].as_array().unwrap().iter().any(|one| one["ARN"] == arn);
        assert!(named && event["eventSource"] == "outlast", "{event}");
    }
}

#[test]
fn a_message_must_stand_for_its_file() {
    let scene = Scene::new();
    let good = file("a.txt", b"some text", ECDSA);
    for (change, code, words) in [
        (json!({ "Message": b64(b"another text") }), "ValidationException", "neither the file"),
        (json!({ "Message": b64(b"\x31\x00") }), "ValidationException", "contentType"),
        (json!({ "Digest": b64(&[7; 32]) }), "ValidationException", "length"),
        (json!({ "Name": "a\nb" }), "ValidationException", "control character"),
        (json!({ "Name": "a\u{202e}nib.b" }), "ValidationException", "invisible"),
        (json!({ "Name": "a\u{200b}b" }), "ValidationException", "invisible"),
        (
            json!({ "SigningAlgorithm": "ML_DSA_SHAKE_256" }),
            "InvalidKeyUsageException",
            "incompatible",
        ),
    ] {
        let body = json!({ "KeyId": scene.key, "Files": [with(&good, change)] });
        let refused = scene.fixture.outlast("RequestSigningApproval", &body).unwrap_err();
        assert_eq!(refused.code, code, "{}", refused.message);
        assert!(refused.message.contains(words), "{}", refused.message);
    }
    let twice = json!({ "KeyId": scene.key, "Files": [good, good] });
    let refused = scene.fixture.outlast("RequestSigningApproval", &twice).unwrap_err();
    assert_eq!(refused.code, "ValidationException");
    let made = scene.asked(&["one"]);
    let again = scene.asked_by(&scene.rita, &["one"]).unwrap_err();
    assert_eq!(again.code, "AlreadyExistsException");
    assert!(again.message.contains(text(&made["RequestId"])), "{}", again.message);
}

#[test]
fn a_caller_who_may_not_sign_may_not_ask() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let body = json!({ "KeyId": scene.key, "Files": [file("a", b"text", ECDSA)] });
    let asks = fixture.user(ACCOUNT, "asks", &[allow(&["outlast:*"])]);
    let signs = fixture.user(ACCOUNT, "signs", &[allow(&["kms:*"])]);
    let both =
        fixture.user(ACCOUNT, "both", &[allow(&["kms:Sign", "outlast:RequestSigningApproval"])]);
    for who in [&asks, &signs] {
        let refused = fixture.outlast_as(who, "RequestSigningApproval", &body);
        assert_eq!(common::code(refused), "AccessDeniedException");
    }
    fixture.outlast_as(&both, "RequestSigningApproval", &body).unwrap();
    // Another account's caller, although the key's policy lets the account in.
    let root = "arn:aws:iam::210987654321:root";
    let policy = common::key_policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": root }, "Action": "kms:*", "Resource": "*",
    }]));
    fixture.kms("PutKeyPolicy", json!({ "KeyId": scene.key, "Policy": policy })).unwrap();
    let arn = common::key_arn(ACCOUNT, REGION, &scene.key);
    let body = with(&body, json!({ "KeyId": arn }));
    let stranger = fixture.outlast_as(&Who::stranger(), "RequestSigningApproval", &body);
    assert_eq!(common::code(stranger), "AccessDeniedException");
    // Approvals do not replace the permission to sign.
    let made = scene.asked(&["one"]);
    scene.approved(&made);
    let denied = common::key_policy(json!([{
        "Effect": "Deny", "Principal": { "AWS": user_arn("rita") }, "Action": "kms:Sign", "Resource": "*",
    }]));
    fixture.kms("PutKeyPolicy", json!({ "KeyId": scene.key, "Policy": denied })).unwrap();
    refused(scene.sign("one"), "explicit deny");
}

#[test]
fn a_request_can_be_denied_and_withdrawn() {
    let scene = Scene::new();
    let (one, two) = (scene.asked(&["one"]), scene.asked(&["two"]));
    scene.approved(&one);
    let deny = |who: &Who, made: &Value| {
        scene.fixture.outlast_as(who, "DenySigning", &json!({ "RequestId": made["RequestId"] }))
    };
    refused(deny(&Who::admin(), &one), "not an approver");
    assert_eq!(deny(&scene.carol, &one).unwrap()["Status"], "DENIED");
    refused(scene.sign("one"), "was denied");
    assert_eq!(common::code(scene.approve(&scene.carol, &one)), "KMSInvalidStateException");
    assert_eq!(common::code(deny(&scene.carol, &one)), "KMSInvalidStateException");
    deny(&scene.rita, &two).unwrap();
    // The same can be asked for again.
    let again = scene.asked(&["one"]);
    scene.approved(&again);
    scene.sign("one").unwrap();
    let listed = scene.fixture.outlast("ListSigningRequests", &json!({})).unwrap();
    let mut states: Vec<_> = listed["Requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["Status"]).to_owned())
        .collect();
    states.sort_unstable();
    assert_eq!(states, ["DENIED", "DENIED", "FINISHED"]);
    let first = scene.fixture.outlast("ListSigningRequests", &json!({ "MaxResults": 2 })).unwrap();
    let next = json!({ "NextToken": first["NextToken"] });
    let second = scene.fixture.outlast("ListSigningRequests", &next).unwrap();
    assert_eq!(second["Requests"].as_array().unwrap().len(), 1);
    assert!(second.get("NextToken").is_none());
}

#[test]
fn a_rule_is_changed_by_those_it_names() {
    let scene = Scene::new();
    let one = rule(1, &[user_arn("alice")]);
    let asked = scene.put(&one).unwrap();
    assert_eq!(asked["Status"], "PENDING_APPROVAL");
    // The same call again asks for nothing new, and the rule in force stays.
    assert_eq!(scene.put(&one).unwrap()["RequestId"], asked["RequestId"]);
    let of = json!({ "KeyId": scene.key });
    let shown = scene.fixture.outlast("GetSigningApprovalRule", &of).unwrap();
    assert_eq!(shown["Rule"]["ApproversRequired"], 2);
    assert_eq!(scene.request(&asked)["NewRule"]["ApproversRequired"], 1);
    scene.approved(&asked);
    // Approved is another rule than this.
    assert_eq!(scene.put(&rule(1, &[user_arn("bob")])).unwrap()["Status"], "PENDING_APPROVAL");
    assert_eq!(scene.put(&one).unwrap()["Status"], "APPLIED");
    let shown = scene.fixture.outlast("GetSigningApprovalRule", &of).unwrap();
    assert_eq!(shown["Rule"]["ApproversRequired"], 1);
    assert_eq!(scene.put(&one).unwrap()["Status"], "APPLIED", "no change");
    // Removing it needs the approval of the new one.
    let removal = scene.fixture.outlast("DeleteSigningApprovalRule", &of).unwrap();
    assert_eq!(removal["Status"], "PENDING_APPROVAL");
    assert_eq!(scene.request(&removal)["RemovesRule"], true);
    refused(scene.sign("one"), "no request");
    scene.approve(&scene.alice, &removal).unwrap();
    refused(scene.sign("one"), "no request");
    let done = scene.fixture.outlast("DeleteSigningApprovalRule", &of).unwrap();
    assert_eq!(done["Status"], "APPLIED");
    scene.sign("one").unwrap();
    let gone = scene.fixture.outlast("GetSigningApprovalRule", &of);
    assert_eq!(common::code(gone), "NotFoundException");
    let gone = scene.fixture.outlast("DeleteSigningApprovalRule", &of);
    assert_eq!(common::code(gone), "NotFoundException");
    let useless = scene.asked_by(&scene.rita, &["two"]);
    assert_eq!(common::code(useless), "KMSInvalidStateException");
}

#[test]
fn a_rule_that_cannot_work_is_refused() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let session = format!("arn:aws:sts::{ACCOUNT}:assumed-role/r/s");
    let elsewhere = "arn:aws:iam::210987654321:user/admin".to_owned();
    for (rule, words) in [
        (rule(3, &["alice", "bob"].map(user_arn)), "there are 2 approvers"),
        (rule(1, &[user_arn("nobody")]), "does not exist"),
        (rule(1, &[session]), "a role stands for all its sessions"),
        (rule(1, &[elsewhere]), "key's account"),
        (rule(1, &[format!("arn:aws:iam::{ACCOUNT}:root")]), "key's account"),
        (rule(2, &[user_arn("alice"), user_arn("alice")]), "more than once"),
        (
            rule(2, &[user_arn("alice"), user_arn("alice").replacen(":aws:", ":aws-cn:", 1)]),
            "more than once",
        ),
        (
            json!({ "ApproversRequired": 1, "Approvers": [
                { "PrincipalArn": user_arn("alice"), "PublicKey": b64(b"no key") },
            ] }),
            "SubjectPublicKeyInfo",
        ),
    ] {
        let refused = scene.put(&rule).unwrap_err();
        assert_eq!(refused.code, "ValidationException", "{}", refused.message);
        assert!(refused.message.contains(words), "{}", refused.message);
    }
    let key = fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY");
    let body = json!({ "KeyId": key, "Rule": rule(1, &[user_arn("alice")]) });
    let some = allow(&["outlast:*"]);
    let only_outlast = fixture.user(ACCOUNT, "onlyoutlast", &[some]);
    let only_kms = fixture.user(ACCOUNT, "onlykms", &[allow(&["kms:*"])]);
    for who in [&only_outlast, &only_kms] {
        let refused = fixture.outlast_as(who, "PutSigningApprovalRule", &body);
        assert_eq!(common::code(refused), "AccessDeniedException");
    }
}

/// Alice's approvals must be signed by her own key.
#[test]
fn an_approver_with_a_key_must_sign() {
    let scene = Scene::new();
    let spec = KeySpec::by_name("ML_DSA_65").unwrap();
    let stored = spec.generate().unwrap();
    let own = spec.load(&stored).unwrap();
    let spki = own.public_key().unwrap();
    let key = scene.fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY");
    let scene = Scene { key, ..scene };
    let approvers = json!([
        { "PrincipalArn": user_arn("alice"), "PublicKey": b64(spki) },
        { "PrincipalArn": user_arn("bob") },
    ]);
    scene.put(&json!({ "ApproversRequired": 1, "Approvers": approvers })).unwrap();
    let made = scene.asked(&["one"]);
    let unsigned = scene.approve(&scene.alice, &made).unwrap_err();
    assert!(unsigned.message.contains("are required"), "{}", unsigned.message);
    let arn = text(&scene.request(&made)["RequestArn"]).to_owned();
    let sign = |arn: &str, digest: &Value| {
        let message = approval_message(arn, text(digest));
        b64(&own.sign(spec.signing[0], Message::Raw(&message)).unwrap())
    };
    let body = |signature: String| {
        json!({
            "RequestId": made["RequestId"], "RequestDigest": made["RequestDigest"],
            "SigningAlgorithm": "ML_DSA_SHAKE_256", "Signature": signature,
        })
    };
    let wrong = sign(&arn, &json!("00".repeat(32)));
    let refused = scene.fixture.outlast_as(&scene.alice, "ApproveSigning", &body(wrong));
    assert_eq!(common::code(refused), "KMSInvalidSignatureException");
    let good = body(sign(&arn, &made["RequestDigest"]));
    // Bob has no key, and Alice's signature is not his.
    let refused = scene.fixture.outlast_as(&scene.bob, "ApproveSigning", &good);
    assert_eq!(common::code(refused), "ValidationException");
    let done = scene.fixture.outlast_as(&scene.alice, "ApproveSigning", &good).unwrap();
    assert_eq!(done["Status"], "APPROVED");
    let event = scene.fixture.events().pop().unwrap();
    let logged = hex::decode(text(&event["requestParameters"]["signature"])).unwrap();
    assert_eq!(logged, unb64(&good["Signature"]));
    let shown = scene.request(&made);
    assert_eq!(shown["Approvals"][0]["Signature"], good["Signature"]);
    scene.sign("one").unwrap();
}

#[test]
fn the_requesters_own_approval_counts_if_the_rule_says_so() {
    let scene = Scene::new();
    let key = scene.fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY");
    let scene = Scene { key, ..scene };
    let with_her = rule(2, &["alice", "rita"].map(user_arn));
    scene.put(&with(&with_her, json!({ "RequesterMayApprove": true }))).unwrap();
    let made = scene.asked(&["one"]);
    scene.approve(&scene.rita, &made).unwrap();
    refused(scene.sign("one"), "1 approvals");
    scene.approve(&scene.alice, &made).unwrap();
    scene.sign("one").unwrap();
}

#[test]
fn requests_go_a_week_after_their_end() {
    let scene = Scene::new();
    let made = scene.asked(&["one"]);
    let count = || scene.fixture.store.scan("kms/signing-", "", 10).unwrap().len();
    assert_eq!(count(), 2);
    scene.fixture.advance(7 * 86_400);
    scene.fixture.run_housekeeping();
    assert_eq!(scene.request(&made)["Status"], "EXPIRED");
    scene.fixture.advance(86_400);
    scene.fixture.run_housekeeping();
    assert_eq!(count(), 0);
    let event = scene.fixture.events().pop().unwrap();
    assert_eq!(event["eventName"], "DeleteSigningRequest");
}

/// The digest is over everything that an approver should see.
#[test]
fn the_digest_covers_the_request() {
    let scene = Scene::new();
    let made = scene.asked(&["one"]);
    let shown = scene.request(&made);
    let file = &shown["Files"][0];
    let digest = hex::encode(Digest::by_name("sha512").unwrap().digest(b"one"));
    let statement = format!(
        "outlast signing request, version 1\nrequest {}\nkey {}\nrequester {}\nexpires {}\nreason \"\"\n\
         sign {ECDSA} sha256:{} as \"one.txt\" sha512:{digest}\n",
        text(&shown["RequestArn"]),
        text(&shown["KeyId"]),
        text(&shown["RequesterArn"]),
        shown["ExpiresAt"],
        hex::encode(sha256(&unb64(&file["Message"]))),
    );
    assert_eq!(made["RequestDigest"], hex::encode(sha256(statement.as_bytes())));
}
