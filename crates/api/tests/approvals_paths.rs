//! Ways around the approvals of a key: every operation that could sign with its material, or carry it elsewhere.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::approvals_support::{ECDSA, Scene, file, refused, rule, user_arn};
use crate::common::{self, ACCOUNT, Fixture, Who, allow, b64, text, with};
use outlast_crypto::digests::Digest;
use outlast_domain::arn::Scope;
use outlast_domain::identity::{self, PolicyCache, action, authorize};
use outlast_domain::kms;
use outlast_domain::kms::approval::{self, NewApproval, NewFile, Wanted};
use outlast_domain::policy::ConditionKeys;
use serde_json::{Value, json};

/// Nobody has approved anything: no name of the key, no state that it has been in, and no grant lets it sign.
#[test]
fn every_name_of_the_key_has_the_rule() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let alias = "alias/release";
    fixture.kms("CreateAlias", json!({ "AliasName": alias, "TargetKeyId": scene.key })).unwrap();
    let arn = common::key_arn(ACCOUNT, common::REGION, &scene.key);
    let alias_arn = format!("arn:aws:kms:{}:{ACCOUNT}:{alias}", common::REGION);
    let body =
        |name: &str| json!({ "KeyId": name, "Message": b64(b"text"), "SigningAlgorithm": ECDSA });
    for name in [scene.key.as_str(), &arn, alias, &alias_arn] {
        refused(fixture.kms("Sign", body(name)), "no request");
        let dry = with(&body(name), json!({ "DryRun": true }));
        refused(fixture.kms("Sign", dry), "no request");
    }
    // A grant, by itself and by its token.
    let guest = fixture.user(ACCOUNT, "guest", &[]);
    let grant = json!({
        "KeyId": scene.key, "GranteePrincipal": user_arn("guest"), "Operations": ["Sign"],
    });
    let granted = fixture.kms("CreateGrant", grant).unwrap();
    refused(fixture.kms_as(&guest, "Sign", body(&arn)), "no request");
    let by_token = with(&body(&arn), json!({ "GrantTokens": [granted["GrantToken"]] }));
    refused(fixture.kms_as(&guest, "Sign", by_token), "no request");
    // Another key policy, other states, a moved alias.
    let open = common::key_policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": user_arn("guest") }, "Action": "kms:*", "Resource": "*",
    }]));
    fixture.kms("PutKeyPolicy", json!({ "KeyId": scene.key, "Policy": open })).unwrap();
    refused(fixture.kms_as(&guest, "Sign", body(&arn)), "no request");
    let of = json!({ "KeyId": scene.key });
    for (away, back) in [("DisableKey", "EnableKey"), ("ScheduleKeyDeletion", "CancelKeyDeletion")]
    {
        fixture.kms(away, of.clone()).unwrap();
        assert_ne!(common::code(fixture.kms("Sign", body(&arn))), "AccessDeniedException");
        fixture.kms(back, of.clone()).unwrap();
        fixture.kms("EnableKey", of.clone()).unwrap();
        refused(fixture.kms("Sign", body(&arn)), "no request");
    }
    let other = fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY");
    fixture.kms("UpdateAlias", json!({ "AliasName": alias, "TargetKeyId": other })).unwrap();
    refused(fixture.kms("Sign", body(&arn)), "no request");
    for (operation, more) in [
        ("UpdateKeyDescription", json!({ "Description": "x" })),
        ("TagResource", json!({ "Tags": [{ "TagKey": "a", "TagValue": "b" }] })),
        ("UntagResource", json!({ "TagKeys": ["a"] })),
    ] {
        fixture.kms(operation, with(&of, more)).unwrap();
        refused(fixture.kms("Sign", body(&arn)), "no request");
    }
}

/// No other operation uses the material of a signing key.
#[test]
fn no_other_operation_signs() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let of = json!({ "KeyId": scene.key });
    let message = b64(b"text");
    let peer = fixture.key_of("ECC_NIST_P256", "KEY_AGREEMENT");
    let peer = fixture.kms("GetPublicKey", json!({ "KeyId": peer })).unwrap()["PublicKey"].clone();
    for (operation, more) in [
        ("GenerateMac", json!({ "Message": message, "MacAlgorithm": "HMAC_SHA_256" })),
        ("DeriveSharedSecret", json!({ "KeyAgreementAlgorithm": "ECDH", "PublicKey": peer })),
        ("Encrypt", json!({ "Plaintext": message })),
        ("GenerateDataKey", json!({ "KeySpec": "AES_256" })),
        ("GenerateDataKeyPair", json!({ "KeyPairSpec": "ECC_NIST_P256" })),
        ("Encapsulate", json!({ "EncapsulationAlgorithm": "ML_KEM" })),
        ("EnableKeyRotation", json!({})),
        ("RotateKeyOnDemand", json!({})),
        (
            "GetParametersForImport",
            json!({
                "WrappingAlgorithm": "RSAES_OAEP_SHA_256", "WrappingKeySpec": "RSA_2048",
            }),
        ),
        ("DeleteImportedKeyMaterial", json!({})),
    ] {
        let answer = fixture.kms(operation, with(&of, more));
        assert!(answer.is_err(), "{operation}: {answer:?}");
    }
    // A private CA has a key of its own: no operation of Private CA or Certificate Manager takes a KMS key.
    for service in outlast_api::ops::SERVICES {
        if !["acm-pca", "acm"].contains(&service.model.signing_name) {
            continue;
        }
        for row in service.operations {
            let names = row.input.names();
            let takes = names.iter().any(|name| name.contains("KeyId") || name.contains("KmsKey"));
            assert!(!takes, "{}: {names:?}", row.name);
        }
    }
    // What signs for a certificate request is Sign.
    refused(scene.sign_by(&Who::admin(), "a certificate request"), "no request");
}

/// Material that somebody else may have signs without the service, so such a key gets no rule; nor does one that does not
/// sign.
#[test]
fn keys_that_could_be_bypassed_get_no_rule() {
    let scene = Scene::new();
    let of = rule(1, &[user_arn("alice")]);
    for (new, code) in [
        (
            json!({ "KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY", "Origin": "EXTERNAL" }),
            "UnsupportedOperationException",
        ),
        (
            json!({ "KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC" }),
            "InvalidKeyUsageException",
        ),
        (json!({}), "InvalidKeyUsageException"),
        (
            json!({ "KeySpec": "ECC_NIST_P256", "KeyUsage": "KEY_AGREEMENT" }),
            "InvalidKeyUsageException",
        ),
    ] {
        let key = scene.fixture.key(new);
        let body = json!({ "KeyId": key, "Rule": of });
        assert_eq!(common::code(scene.fixture.outlast("PutSigningApprovalRule", &body)), code);
    }
}

/// The keys of a multi-Region set have one material, and one rule.
#[test]
fn replicas_have_the_rule() {
    let fixture = Fixture::new();
    let spec =
        json!({ "KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY", "MultiRegion": true });
    let key = fixture.key(spec);
    let replicate = |region: &str| {
        let body = json!({ "KeyId": key, "ReplicaRegion": region });
        fixture.kms("ReplicateKey", body).unwrap();
    };
    // One from before the rule, one from after it.
    replicate("us-east-1");
    let scene = Scene::with_key(fixture, key.clone());
    let fixture = &scene.fixture;
    let body = json!({ "KeyId": key, "ReplicaRegion": "us-west-2" });
    fixture.kms("ReplicateKey", body).unwrap();
    let regions = [common::REGION, "us-east-1", "us-west-2"];
    let sign = |who: &Who, region: &str| {
        let body = json!({ "KeyId": key, "Message": b64(b"one"), "SigningAlgorithm": ECDSA });
        fixture.kms_as(&who.at(region), "Sign", body)
    };
    for region in regions {
        refused(sign(&Who::admin(), region), "no request");
    }
    // An approval in one Region is for the key there.
    let made = scene.asked(&["one"]);
    scene.approved(&made);
    for region in &regions[1..] {
        refused(sign(&scene.rita, region), "no request");
    }
    sign(&scene.rita, regions[0]).unwrap();
    for region in regions {
        assert!(sign(&scene.rita, region).is_err());
    }
    // A replica's rule is that of the primary key.
    let there = Who::admin().at("us-east-1");
    let of = json!({ "KeyId": key });
    let refused_there = fixture.outlast_as(&there, "DeleteSigningApprovalRule", &of);
    assert_eq!(common::code(refused_there), "UnsupportedOperationException");
    // The primary key moves, and the rule with it.
    let moved = json!({ "KeyId": key, "PrimaryRegion": "us-east-1" });
    fixture.kms("UpdatePrimaryRegion", moved).unwrap();
    let change = fixture.outlast_as(&there, "DeleteSigningApprovalRule", &of).unwrap();
    assert_eq!(change["Status"], "PENDING_APPROVAL");
    for region in regions {
        refused(sign(&Who::admin(), region), "no request");
    }
    for who in [&scene.alice, &scene.bob] {
        let body =
            json!({ "RequestId": change["RequestId"], "RequestDigest": change["RequestDigest"] });
        fixture.outlast_as(&who.at("us-east-1"), "ApproveSigning", &body).unwrap();
    }
    fixture.outlast_as(&there, "DeleteSigningApprovalRule", &of).unwrap();
    for region in regions {
        sign(&Who::admin(), region).unwrap();
    }
}

/// A request belongs to the user or role that made it: not to somebody with a grant, and not to another user of the role's
/// permissions.
#[test]
fn requests_of_a_role_are_its_sessions() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let trust = common::policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:*",
    }]));
    let ci = fixture.role(ACCOUNT, "ci", &trust, &[allow(&["outlast:*", "kms:Sign"])]);
    let (first, second) =
        (fixture.session(&Who::admin(), &ci, &[]), fixture.session(&scene.rita, &ci, &[]));
    let body = json!({ "KeyId": scene.key, "Files": [file("a", b"one", ECDSA)] });
    let made: Value = fixture.outlast_as(&first, "RequestSigningApproval", &body).unwrap();
    scene.approved(&made);
    refused(scene.sign_by(&Who::admin(), "one"), "no request");
    refused(scene.sign_by(&scene.rita, "one"), "no request");
    scene.sign_by(&second, "one").unwrap();
    assert!(text(&scene.request(&made)["RequesterArn"]).contains("assumed-role/ci/"));
}

/// The functions of the domain refuse a permit for another key or request.
#[test]
fn a_permit_for_one_opens_no_other() {
    let scene = Scene::new();
    let made = scene.asked(&["one"]);
    let other = scene.fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY");
    let id = text(&made["RequestId"]);
    let scope = Scope { account: ACCOUNT.into(), region: common::REGION.into() };
    let mut work = scene.fixture.service.work(common::NOW * 1000);
    let (policies, conditions) = (PolicyCache::default(), ConditionKeys::new());
    let caller = identity::find_credential(&mut work, &policies, common::ACCESS_KEY);
    let caller = caller.unwrap().unwrap().caller;
    let key = kms::find(&mut work, &scope, &scene.key).unwrap();
    let other = kms::find(&mut work, &scope, &other).unwrap();
    let (of_key, of_request) =
        (approval::approval_arn(&other), approval::request_arn(&scope, "another"));
    fn misused<T, E: ToString>(result: Result<T, E>) {
        let error = result.err().expect("it was done").to_string();
        assert!(error.contains("was used on another resource"), "{error}");
    }
    macro_rules! permit {
        ($action:ident, $arn:expr) => {
            &authorize(&caller, &conditions, action::outlast::$action, $arn).unwrap()
        };
    }
    let access = kms::Access {
        caller: &caller,
        conditions: &conditions,
        policies: &policies,
        tokens: &[],
        context: None,
    };
    let none = String::new;
    let right = kms::authorize(&mut work, access, action::kms::PutKeyPolicy, &key).unwrap();
    let wrong = kms::authorize(&mut work, access, action::kms::PutKeyPolicy, &other).unwrap();
    let p = permit!(DeleteSigningApprovalRule, &of_key);
    misused(approval::change_rule(&mut work, key.clone(), &caller, None, none(), p, &right));
    let p = permit!(DeleteSigningApprovalRule, &approval::approval_arn(&key));
    misused(approval::change_rule(&mut work, key.clone(), &caller, None, none(), p, &wrong));
    let p = permit!(RequestSigningApproval, &of_key);
    let wanted = vec![Wanted { key: &key, files: Vec::new(), permit: p }];
    misused(approval::request_approval(&mut work, wanted, &caller, none()));
    // Of two keys each needs its own.
    let right = permit!(RequestSigningApproval, &approval::approval_arn(&key));
    let new = |message: &[u8]| NewFile {
        name: "two".into(),
        digest_algorithm: "sha512".into(),
        digest: Digest::by_name("sha512").unwrap().digest(message),
        algorithm: ECDSA.into(),
        message: message.to_vec(),
    };
    let wanted = [&key, &other].map(|key| Wanted { key, files: vec![new(b"two")], permit: right });
    misused(approval::request_approval(&mut work, wanted.into(), &caller, none()));
    misused(approval::rule_of(&key, permit!(GetSigningApprovalRule, &of_key)));
    let new = NewApproval { digest: text(&made["RequestDigest"]), signed: None };
    let p = permit!(ApproveSigning, &of_request);
    misused(approval::approve(&mut work, &scope, id, &caller, new, p));
    let p = permit!(DenySigning, &of_request);
    misused(approval::deny(&mut work, &scope, id, &caller, none(), p));
    misused(approval::shown(&mut work, &scope, id, permit!(GetSigningRequest, &of_request)));
    let p = permit!(ListSigningRequests, &of_request);
    misused(approval::requests(&work, &scope, None, 10, p));
}
