//! Approvals of signatures by two keys that sign the same files: each key's own rule counts, and none signs before both are
//! satisfied.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::approvals_support::{ECDSA, Scene, file, refused, rule, user_arn};
use crate::common::{self, ACCOUNT, Answer, REGION, Who, b64, text, with};
use outlast_crypto::digests::{Digest, sha256};
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::Message;
use outlast_domain::kms::approval::approval_message;
use serde_json::{Value, json};

const ML_DSA: &str = "ML_DSA_SHAKE_256";

/// A second key beside that of the scene, with a rule of its own.
struct Two {
    scene: Scene,
    second: String,
    algorithm: &'static str,
}

impl Two {
    /// The first key needs two of Alice, Bob and Carol, the second one by this rule.
    fn new(of: &Value) -> Self {
        Self::with_second(of, "ML_DSA_65", ML_DSA)
    }

    fn with_second(of: &Value, spec: &str, algorithm: &'static str) -> Self {
        let scene = Scene::new();
        let second = scene.fixture.key_of(spec, "SIGN_VERIFY");
        let two = Self { scene, second, algorithm };
        assert_eq!(two.put_second(of).unwrap()["Status"], "APPLIED");
        two
    }

    fn put_second(&self, of: &Value) -> Answer {
        let body = json!({ "KeyId": self.second, "Rule": of });
        self.scene.fixture.outlast("PutSigningApprovalRule", &body)
    }

    /// What both keys are to sign for a file.
    fn files(&self, text: &str) -> Vec<Value> {
        let name = format!("{text}.txt");
        let of_second = file(&name, text.as_bytes(), self.algorithm);
        vec![file(&name, text.as_bytes(), ECDSA), with(&of_second, json!({ "KeyId": self.second }))]
    }

    fn ask(&self, who: &Who, files: &[Value]) -> Answer {
        let body = json!({ "KeyId": self.scene.key, "Files": files });
        self.scene.fixture.outlast_as(who, "RequestSigningApproval", &body)
    }

    #[track_caller]
    fn asked(&self, text: &str) -> Value {
        self.ask(&self.scene.rita, &self.files(text)).unwrap()
    }

    fn sign_second(&self, who: &Who, text: &str) -> Answer {
        let body = json!({
            "KeyId": self.second, "Message": b64(text.as_bytes()),
            "SigningAlgorithm": self.algorithm,
        });
        self.scene.fixture.kms_as(who, "Sign", body)
    }

    fn arns(&self) -> [String; 2] {
        [&self.scene.key, &self.second].map(|id| common::key_arn(ACCOUNT, REGION, id))
    }
}

fn of(names: &[&str], required: usize) -> Value {
    let names: Vec<_> = names.iter().map(|name| user_arn(name)).collect();
    rule(required, &names)
}

#[test]
fn neither_key_signs_before_both_rules_are_satisfied() {
    let two = Two::new(&of(&["carol"], 1));
    let scene = &two.scene;
    let [first, second] = two.arns();
    let made = two.asked("one");
    assert_eq!((&made["KeyId"], &made["ApproversRequired"]), (&json!(first), &json!(2)));
    let others = json!([{ "KeyId": second, "ApproversRequired": 1, "ApprovalsCounted": 0 }]);
    assert_eq!(made["OtherKeys"], others);
    refused(scene.sign("one"), "0 approvals");
    refused(two.sign_second(&scene.rita, "one"), "0 approvals");
    // The first key's approvers are enough for the first key, and for nothing yet.
    scene.approve(&scene.alice, &made).unwrap();
    let done = scene.approve(&scene.bob, &made).unwrap();
    assert_eq!((&done["Status"], &done["ApprovalsCounted"]), (&json!("PENDING"), &json!(2)));
    assert_eq!(done["OtherKeys"], others);
    refused(scene.sign("one"), "which signs the same files");
    refused(two.sign_second(&scene.rita, "one"), "0 approvals");
    // Carol approves for both, once.
    let done = scene.approve(&scene.carol, &made).unwrap();
    assert_eq!((&done["Status"], &done["ApprovalsCounted"]), (&json!("APPROVED"), &json!(3)));
    assert_eq!(common::code(scene.approve(&scene.carol, &made)), "AlreadyExistsException");
    let shown = scene.request(&made);
    assert_eq!(shown["Approvals"][0]["CountsFor"], json!([first]));
    assert_eq!(shown["Approvals"][2]["CountsFor"], json!([first, second]));
    assert_eq!(shown["OtherKeys"][0]["Rule"]["Approvers"][0]["PrincipalArn"], user_arn("carol"));
    assert_eq!(shown["Files"][1]["KeyId"], second);
    let listed = scene.fixture.outlast("ListSigningRequests", &json!({})).unwrap();
    assert_eq!(listed["Requests"][0]["FileCount"], 1);
    assert_eq!(listed["Requests"][0]["OtherKeys"][0]["ApprovalsCounted"], 1);
    // Each signs once, for her who has asked.
    refused(two.sign_second(&scene.carol, "one"), "no request");
    refused(scene.sign_by(&Who::admin(), "one"), "no request");
    two.sign_second(&scene.rita, "one").unwrap();
    refused(two.sign_second(&scene.rita, "one"), "used for it already");
    scene.sign("one").unwrap();
    refused(scene.sign("one"), "used for it already");
    assert_eq!(scene.request(&made)["Status"], "FINISHED");
}

/// The keys sign the same bytes by the same algorithm, so that only the request says which key may.
#[test]
fn an_approval_of_one_key_is_none_of_the_other() {
    let two = Two::with_second(&of(&["alice", "bob"], 2), "ECC_NIST_P256", ECDSA);
    let scene = &two.scene;
    let made = scene.asked(&["one"]);
    scene.approved(&made);
    refused(two.sign_second(&scene.rita, "one"), "no request");
    // A third key, whose rule the same approvers satisfy.
    let other = scene.fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY");
    let put = json!({ "KeyId": other, "Rule": of(&["alice", "bob"], 2) });
    scene.fixture.outlast("PutSigningApprovalRule", &put).unwrap();
    let both = two.asked("both");
    scene.approved(&both);
    let sign = json!({ "KeyId": other, "Message": b64(b"both"), "SigningAlgorithm": ECDSA });
    refused(scene.fixture.kms_as(&scene.rita, "Sign", sign), "no request");
    // The first key does not sign in place of the second one.
    scene.sign("both").unwrap();
    refused(scene.sign("both"), "used for it already");
    two.sign_second(&scene.rita, "both").unwrap();
    refused(two.sign_second(&scene.rita, "both"), "used for it already");
    // A second request for one of them, as long as the first can be used, is refused.
    two.asked("again");
    let single = json!({
        "KeyId": two.second, "Files": [file("again.txt", b"again", ECDSA)],
    });
    let refused = scene.fixture.outlast_as(&scene.rita, "RequestSigningApproval", &single);
    assert_eq!(common::code(refused), "AlreadyExistsException");
}

#[test]
fn the_keys_of_a_request_sign_the_same_files() {
    let two = Two::new(&of(&["carol"], 1));
    let scene = &two.scene;
    let good = two.files("one");
    let other = two.files("two");
    let swapped = with(&other[1], json!({ "Name": "one.txt" }));
    let of_first = |one: &Value| with(one, json!({ "KeyId": scene.key }));
    let no_rule = scene.fixture.key_of("ML_DSA_65", "SIGN_VERIFY");
    let unknown = json!({ "KeyId": "00000000-0000-0000-0000-000000000000" });
    for (files, code, words) in [
        (vec![good[0].clone(), swapped], "ValidationException", "two digests"),
        (vec![good[0].clone(), other[1].clone()], "ValidationException", "is missing"),
        (
            vec![good[0].clone(), good[1].clone(), other[0].clone()],
            "ValidationException",
            "is missing",
        ),
        (vec![good[1].clone()], "ValidationException", "is to sign nothing"),
        (vec![of_first(&good[0]), good[0].clone()], "ValidationException", "the same message"),
        (
            vec![good[0].clone(), with(&good[1], json!({ "KeyId": no_rule }))],
            "KMSInvalidStateException",
            "has no rule",
        ),
        (vec![good[0].clone(), with(&good[1], unknown)], "NotFoundException", "does not exist"),
    ] {
        let refused = two.ask(&scene.rita, &files).unwrap_err();
        assert_eq!(refused.code, code, "{}", refused.message);
        assert!(refused.message.contains(words), "{words}: {}", refused.message);
    }
    // More keys than a request can name.
    let mut many = vec![good[0].clone()];
    for _ in 0..4 {
        let key = scene.fixture.key_of("ML_DSA_65", "SIGN_VERIFY");
        let put = json!({ "KeyId": key, "Rule": of(&["carol"], 1) });
        scene.fixture.outlast("PutSigningApprovalRule", &put).unwrap();
        many.push(with(&good[1], json!({ "KeyId": key })));
    }
    let refused = two.ask(&scene.rita, &many).unwrap_err();
    assert!(refused.message.contains("can name 4 keys"), "{}", refused.message);
    two.ask(&scene.rita, &many[..4]).unwrap();
    // The first key may be named with its files, too.
    let named = [of_first(&good[0]), good[1].clone()];
    let again = two.ask(&scene.rita, &named).unwrap_err();
    assert_eq!(again.code, "AlreadyExistsException", "{}", again.message);
}

/// A caller who may not sign with one of the keys, or not ask for it, gets no request for the other.
#[test]
fn permission_is_needed_for_each_key() {
    let two = Two::new(&of(&["carol"], 1));
    let fixture = &two.scene.fixture;
    let [_, second] = two.arns();
    let resource = format!("arn:aws:outlast:{REGION}:{ACCOUNT}:key/{}", two.second);
    for (name, action, resource) in
        [("nosign", "kms:Sign", second), ("noask", "outlast:RequestSigningApproval", resource)]
    {
        let deny = common::policy(json!([
            { "Effect": "Allow", "Action": ["kms:*", "outlast:*"], "Resource": "*" },
            { "Effect": "Deny", "Action": action, "Resource": resource },
        ]));
        let who = fixture.user(ACCOUNT, name, &[deny]);
        let refused = two.ask(&who, &two.files(name)).unwrap_err();
        assert_eq!(refused.code, "AccessDeniedException", "{name}: {}", refused.message);
        assert!(refused.message.contains("explicit deny"), "{name}: {}", refused.message);
        // The first key alone is allowed.
        two.ask(&who, &two.files(name)[..1]).unwrap();
    }
}

#[test]
fn what_ends_one_key_ends_the_request() {
    let two = Two::new(&of(&["carol"], 1));
    let scene = &two.scene;
    // The second key's approver, who is none of the first one, denies it.
    let other = two.asked("denied");
    let change = two.put_second(&of(&["rita"], 1)).unwrap();
    assert_eq!(scene.approve(&scene.carol, &change).unwrap()["Status"], "APPROVED");
    assert_eq!(two.put_second(&of(&["rita"], 1)).unwrap()["Status"], "APPLIED");
    let made = two.ask(&scene.alice, &two.files("one")).unwrap();
    let deny = json!({ "RequestId": made["RequestId"] });
    let done = scene.fixture.outlast_as(&scene.rita, "DenySigning", &deny).unwrap();
    assert_eq!(done["Status"], "DENIED");
    refused(scene.sign_by(&scene.alice, "one"), "was denied");
    refused(two.sign_second(&scene.alice, "one"), "was denied");
    // Rita cannot approve for herself: not for the second key either, whose only approver she is.
    scene.approve(&scene.alice, &other).unwrap();
    scene.approve(&scene.bob, &other).unwrap();
    refused(scene.approve(&scene.rita, &other), "the same person");
    refused(scene.sign("denied"), "which signs the same files");
    // A shorter rule of one key ends the request of both.
    let shorter = with(&of(&["carol"], 1), json!({ "ValidForMinutes": 10 }));
    let change = two.put_second(&shorter).unwrap();
    scene.approve(&scene.rita, &change).unwrap();
    assert_eq!(two.put_second(&shorter).unwrap()["Status"], "APPLIED");
    let made = two.asked("late");
    scene.approve(&scene.alice, &made).unwrap();
    assert_eq!(scene.approve(&scene.carol, &made).unwrap()["Status"], "APPROVED");
    scene.fixture.advance(600);
    refused(scene.sign("late"), "has ended");
    // So does the removal of a rule: the approvals were for signatures that belong together.
    let made = two.asked("last");
    scene.approve(&scene.alice, &made).unwrap();
    scene.approve(&scene.carol, &made).unwrap();
    let key = json!({ "KeyId": two.second });
    let removal = scene.fixture.outlast("DeleteSigningApprovalRule", &key).unwrap();
    scene.approve(&scene.carol, &removal).unwrap();
    scene.fixture.outlast("DeleteSigningApprovalRule", &key).unwrap();
    assert_eq!(scene.request(&made)["Status"], "EXPIRED");
    refused(scene.sign("last"), "has ended");
}

/// The rules ask for signatures of Alice by two different keys: each approval counts for one of them.
#[test]
fn an_approver_signs_for_each_key_as_its_rule_says() {
    let spec = KeySpec::by_name("ML_DSA_65").unwrap();
    let keys = [(); 2].map(|()| spec.load(&spec.generate().unwrap()).unwrap());
    let named = |index: usize| {
        let key = b64(keys[index].public_key().unwrap());
        let alice = json!({ "PrincipalArn": user_arn("alice"), "PublicKey": key });
        json!({ "ApproversRequired": 1, "Approvers": [alice] })
    };
    let two = Two::new(&named(1));
    let scene = &two.scene;
    let first = scene.fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY");
    let put = json!({ "KeyId": first, "Rule": named(0) });
    scene.fixture.outlast("PutSigningApprovalRule", &put).unwrap();
    let body = json!({ "KeyId": first, "Files": two.files("one") });
    let made = scene.fixture.outlast_as(&scene.rita, "RequestSigningApproval", &body).unwrap();
    let arn = text(&scene.request(&made)["RequestArn"]).to_owned();
    let approve = |index: usize| {
        let message = approval_message(&arn, text(&made["RequestDigest"]));
        let signature = keys[index].sign(spec.signing[0], Message::Raw(&message)).unwrap();
        let body = json!({
            "RequestId": made["RequestId"], "RequestDigest": made["RequestDigest"],
            "SigningAlgorithm": ML_DSA, "Signature": b64(&signature),
        });
        scene.fixture.outlast_as(&scene.alice, "ApproveSigning", &body)
    };
    let unsigned = scene.approve(&scene.alice, &made).unwrap_err();
    assert!(unsigned.message.contains("are required"), "{}", unsigned.message);
    let done = approve(1).unwrap();
    assert_eq!((&done["Status"], &done["ApprovalsCounted"]), (&json!("PENDING"), &json!(0)));
    assert_eq!(done["OtherKeys"][0]["ApprovalsCounted"], 1);
    // The same signature again is not one by the other key.
    assert_eq!(common::code(approve(1)), "KMSInvalidSignatureException");
    refused(two.sign_second(&scene.rita, "one"), "which signs the same files");
    assert_eq!(approve(0).unwrap()["Status"], "APPROVED");
    assert_eq!(common::code(approve(0)), "AlreadyExistsException");
    two.sign_second(&scene.rita, "one").unwrap();
    let sign = json!({ "KeyId": first, "Message": b64(b"one"), "SigningAlgorithm": ECDSA });
    scene.fixture.kms_as(&scene.rita, "Sign", sign).unwrap();
}

/// The statement that approvers approve says which key signs what.
#[test]
fn the_digest_says_which_key_signs_what() {
    let two = Two::new(&of(&["carol"], 1));
    let made = two.asked("one");
    let shown = two.scene.request(&made);
    let [first, second] = two.arns();
    let digest = hex::encode(Digest::by_name("sha512").unwrap().digest(b"one"));
    let message = hex::encode(sha256(b"one"));
    let statement = format!(
        "outlast signing request, version 1\nrequest {}\nkey {first}\nrequester {}\nexpires {}\nreason \"\"\n\
         sign {ECDSA} sha256:{message} as \"one.txt\" sha512:{digest}\n\
         sign {ML_DSA} sha256:{message} as \"one.txt\" sha512:{digest} with {second}\n",
        text(&shown["RequestArn"]),
        text(&shown["RequesterArn"]),
        shown["ExpiresAt"],
    );
    assert_eq!(made["RequestDigest"], hex::encode(sha256(statement.as_bytes())));
}
