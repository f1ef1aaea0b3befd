//! SSH certificate authorities: what is signed, for whom, and what is in the audit trail.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_domain::ssh_ca::{KINDS_TAG, ROLE, SECOND_KEY_TAG};
use outlast_ssh::{Certificate, CertificateKind, KeyKind, PrivateKey, option_value};
use serde_json::{Value, json};

use crate::common::{
    ACCOUNT, Answer, Fixture, NOW, REGION, Who, code, key_arn, key_policy, policy, text, with,
};

const SIGN: &str = "SignSshCertificate";

fn tagged(spec: &str, tags: &[(&str, &str)]) -> Value {
    let tag = |(key, value): &(&str, &str)| json!({ "TagKey": key, "TagValue": value });
    let tags: Vec<_> = tags.iter().map(tag).collect();
    json!({ "KeySpec": spec, "KeyUsage": "SIGN_VERIFY", "Tags": tags })
}

/// An authority for users and hosts.
fn authority(fixture: &Fixture, spec: &str) -> String {
    fixture.key(tagged(spec, &[(KINDS_TAG, "user host")]))
}

/// An authority `ssh-mldsa44-ed25519`.
fn composite(fixture: &Fixture) -> String {
    let second = key_arn(ACCOUNT, REGION, &authority(fixture, "ECC_NIST_EDWARDS25519"));
    fixture.key(tagged("ML_DSA_44", &[(KINDS_TAG, "user"), (SECOND_KEY_TAG, &second)]))
}

fn public_key(kind: KeyKind) -> String {
    PrivateKey::generate(kind).unwrap().public_key().to_openssh_line()
}

fn wanted(key: &str) -> Value {
    json!({ "KeyId": key, "PublicKey": public_key(KeyKind::Ed25519), "CertificateType": "USER" })
}

fn certificate(answer: &Answer) -> Certificate {
    let answer = answer.as_ref().unwrap_or_else(|refused| panic!("{refused:?}"));
    Certificate::from_openssh_line(text(&answer["Certificate"])).unwrap()
}

/// Each type of authority certifies each type of key. `parse` verifies the signature.
#[test]
fn each_kind_of_key_is_an_authority() {
    let fixture = Fixture::new();
    let authorities = [
        (authority(&fixture, "ECC_NIST_P256"), "ecdsa-sha2-nistp256"),
        (authority(&fixture, "ECC_NIST_P384"), "ecdsa-sha2-nistp384"),
        (authority(&fixture, "ECC_NIST_P521"), "ecdsa-sha2-nistp521"),
        (authority(&fixture, "ECC_NIST_EDWARDS25519"), "ssh-ed25519"),
        (authority(&fixture, "RSA_2048"), "rsa-sha2-512"),
        (composite(&fixture), "ssh-mldsa44-ed25519"),
    ];
    for (key, algorithm) in authorities {
        for kind in
            [KeyKind::Ed25519, KeyKind::EcdsaP384, KeyKind::Rsa2048, KeyKind::MlDsa44Ed25519]
        {
            let body = with(&wanted(&key), json!({ "PublicKey": public_key(kind) }));
            let answer = fixture.outlast(SIGN, &body);
            let found = certificate(&answer);
            assert_eq!(found.signature_algorithm(), algorithm);
            assert_eq!(found.key().to_openssh_line(), text(&body["PublicKey"]));
            let answer = answer.unwrap();
            assert_eq!(text(&answer["AuthorityFingerprint"]), found.authority().fingerprint());
            assert_eq!(text(&answer["KeyId"]), key_arn(ACCOUNT, REGION, &key));
        }
    }
}

#[test]
fn a_certificate_says_what_was_asked_for() {
    let fixture = Fixture::new();
    let key = authority(&fixture, "ECC_NIST_P256");
    let body = with(
        &wanted(&key),
        json!({
            "Principals": ["alice", "ops"], "Identity": "alice at work", "SerialNumber": 42,
            "ValidAfter": NOW + 10, "ValidBefore": NOW + 3600,
            "CriticalOptions": { "source-address": "192.0.2.0/24,2001:db8::1", "force-command": "true" },
            "Extensions": { "permit-pty": "", "login@example.com": "alice" },
        }),
    );
    let found = certificate(&fixture.outlast(SIGN, &body));
    let fields = found.fields();
    assert_eq!((fields.serial, fields.key_id.as_str()), (42, "alice at work"));
    assert_eq!(fields.principals, ["alice", "ops"]);
    let now = u64::try_from(NOW).unwrap();
    assert_eq!((fields.valid_after_s, fields.valid_before_s), (now + 10, now + 3600));
    let option = |name: &str, value: &str| {
        (name.to_owned(), option_value((!value.is_empty()).then_some(value)))
    };
    assert_eq!(
        fields.critical_options,
        [option("force-command", "true"), option("source-address", "192.0.2.0/24,2001:db8::1")]
    );
    assert_eq!(fields.extensions, [option("login@example.com", "alice"), option("permit-pty", "")]);
    // What is not said.
    let user = fixture.user(ACCOUNT, "bob", &[crate::common::allow(&["outlast:*"])]);
    let found = certificate(&fixture.outlast_as(&user, SIGN, &wanted(&key)));
    let fields = found.fields();
    assert_eq!(fields.principals, ["bob"]);
    assert_eq!(fields.key_id, format!("arn:aws:iam::{ACCOUNT}:user/bob"));
    assert_eq!((fields.valid_after_s, fields.valid_before_s), (now - 60, now + 16 * 3600));
    assert!(fields.critical_options.is_empty() && fields.extensions.is_empty());
    assert!(fields.serial > 1 << 32);
    let host = json!({ "CertificateType": "HOST", "Principals": ["a.example.com"] });
    let found = certificate(&fixture.outlast(SIGN, &with(&wanted(&key), host)));
    assert_eq!(found.fields().kind, CertificateKind::Host);
    assert_eq!(found.fields().valid_before_s, now + 90 * 86_400);
}

/// The name of a session is its source identity if it has one, because who assumes a role chooses the session's name.
#[test]
fn a_session_is_named_by_what_it_did_not_choose() {
    let fixture = Fixture::new();
    let key = authority(&fixture, "ECC_NIST_P256");
    let who = fixture.user(ACCOUNT, "carol", &[crate::common::allow(&["sts:*"])]);
    let root = format!("arn:aws:iam::{ACCOUNT}:root");
    let trust = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": root }, "Action": ["sts:AssumeRole", "sts:SetSourceIdentity"],
    }]));
    let role = fixture.role(ACCOUNT, "ops", &trust, &[crate::common::allow(&["outlast:*"])]);
    for (more, expected) in [(&[][..], "session"), (&[("SourceIdentity", "carol")], "carol")] {
        let session = fixture.session(&who, &role, more);
        let found = certificate(&fixture.outlast_as(&session, SIGN, &wanted(&key)));
        assert_eq!(found.fields().principals, [expected]);
    }
}

/// The policy of the guide: users get short certificates for their own name or their team's, and no forwarding.
fn enrolment() -> Value {
    policy(json!([{
        "Effect": "Allow", "Action": "outlast:SignSshCertificate", "Resource": "*",
        "Condition": {
            "StringEquals": {
                "outlast:SshCertificateType": "user",
                "outlast:SshKeyId": format!("arn:aws:iam::{ACCOUNT}:user/${{aws:username}}"),
            },
            "ForAllValues:StringEquals": {
                "outlast:SshPrincipals": ["${aws:username}", "team-${aws:PrincipalTag/team}"],
                "outlast:SshExtensions": ["permit-pty"],
                "outlast:SshCriticalOptions": ["source-address=192.0.2.0/24"],
            },
            "NumericLessThanEquals": { "outlast:SshValiditySeconds": "28800" },
        },
    }]))
}

#[test]
fn the_callers_policies_decide_what_a_certificate_says() {
    let fixture = Fixture::new();
    let key = authority(&fixture, "ECC_NIST_P256");
    let alice = fixture.user(ACCOUNT, "alice", &[enrolment()]);
    let right = with(&wanted(&key), json!({ "ValidBefore": NOW + 28_800 }));
    let rows = [
        ("as it is", json!({}), true),
        ("her team", json!({ "Principals": ["alice", "team-alice"] }), true),
        ("somebody else", json!({ "Principals": ["root"] }), false),
        ("somebody else, too", json!({ "Principals": ["alice", "root"] }), false),
        ("a pattern", json!({ "Principals": ["*"] }), false),
        ("another case", json!({ "Principals": ["Alice"] }), false),
        ("longer", json!({ "ValidBefore": NOW + 28_801 }), false),
        (
            "longer, later",
            json!({ "ValidAfter": NOW + 28_000, "ValidBefore": NOW + 30_000 }),
            false,
        ),
        ("the default", json!({ "ValidBefore": null }), false),
        ("an extension", json!({ "Extensions": { "permit-pty": "" } }), true),
        (
            "another one",
            json!({ "Extensions": { "permit-pty": "", "permit-port-forwarding": "" } }),
            false,
        ),
        ("one with a value", json!({ "Extensions": { "login@example.com": "x" } }), false),
        ("an address", json!({ "CriticalOptions": { "source-address": "192.0.2.0/24" } }), true),
        ("another one", json!({ "CriticalOptions": { "source-address": "0.0.0.0/0" } }), false),
        ("another identity", json!({ "Identity": "root" }), false),
        (
            "an identity that ends alike",
            json!({ "Identity": "arn:aws:iam::1:user/root:user/alice" }),
            false,
        ),
        ("a host", json!({ "CertificateType": "HOST", "Principals": ["alice"] }), false),
    ];
    for (what, more, expected) in rows {
        let body = with(&right, more);
        let answer = fixture.outlast_as(&alice, SIGN, &body);
        let events = fixture.events();
        match expected {
            true => drop(certificate(&answer)),
            false => {
                assert_eq!(code(answer), "AccessDeniedException", "{what}");
                let last = events.last().unwrap();
                assert_eq!(last["errorCode"], "AccessDeniedException", "{what}: {last}");
                assert_eq!(last["eventName"], SIGN);
            }
        }
    }
    // Nobody needs a permission for the key, and nobody without one of ours gets a certificate.
    let sign = json!({ "KeyId": key, "Message": "AAAA", "SigningAlgorithm": "ECDSA_SHA_256" });
    assert_eq!(code(fixture.kms_as(&alice, "Sign", sign)), "AccessDeniedException");
    let dave = fixture.user(ACCOUNT, "dave", &[crate::common::allow(&["kms:*"])]);
    assert_eq!(code(fixture.outlast_as(&dave, SIGN, &right)), "AccessDeniedException");
    let other = Who::stranger();
    let foreign = with(&right, json!({ "KeyId": key_arn(ACCOUNT, REGION, &key) }));
    assert_eq!(code(fixture.outlast_as(&other, SIGN, &foreign)), "AccessDeniedException");
}

/// What policies see of a certificate is what clients believe.
#[test]
fn a_certificate_says_nothing_that_policies_cannot_see() {
    let fixture = Fixture::new();
    let key = authority(&fixture, "ECC_NIST_P256");
    let rows = [
        json!({ "CertificateType": "HOST", "Principals": ["*.example.com"] }),
        json!({ "CertificateType": "HOST", "Principals": ["d?.example.com"] }),
        json!({ "CriticalOptions": { "force-command=/usr/bin/rsync a@b": "" } }),
        json!({ "CriticalOptions": { "x=1@example.com": "" } }),
        json!({ "Extensions": { "login@example.com=root": "" } }),
    ];
    for more in rows {
        let answer = fixture.outlast(SIGN, &with(&wanted(&key), more.clone()));
        assert_eq!(code(answer), "ValidationException", "{more}");
    }
}

#[test]
fn a_key_is_an_authority_only_if_its_owner_says_so() {
    let fixture = Fixture::new();
    let refused = |key: &str, expected: &str, why: &str| {
        let before = fixture.events().len();
        let answer = fixture.outlast(SIGN, &wanted(key)).unwrap_err();
        assert_eq!(answer.code, expected, "{answer:?}");
        assert!(answer.message.contains(why), "{answer:?}");
        assert_eq!(fixture.events().len(), before + 1, "one event, and no signature");
    };
    let unsupported = "UnsupportedOperationException";
    let plain = fixture.key(tagged("ECC_NIST_P256", &[]));
    refused(&plain, unsupported, "outlast:ssh-ca");
    for value in ["host", "users", "User", ""] {
        let key = fixture.key(tagged("ECC_NIST_P256", &[(KINDS_TAG, value)]));
        refused(&key, unsupported, "for user certificates");
    }
    let symmetric = json!({ "Tags": [{ "TagKey": KINDS_TAG, "TagValue": "user" }] });
    refused(&fixture.key(symmetric), unsupported, "symmetric");
    for spec in ["ECC_SECG_P256K1", "ML_DSA_65"] {
        refused(&authority(&fixture, spec), "InvalidKeyUsageException", "ECC_NIST_P256");
    }
    // Halves of a composite key that do not belong together.
    refused(&authority(&fixture, "ML_DSA_44"), "InvalidKeyUsageException", SECOND_KEY_TAG);
    let arn = |key: &str| key_arn(ACCOUNT, REGION, key);
    for (second, expected, why) in [
        (arn(&authority(&fixture, "ECC_NIST_P256")), "InvalidKeyUsageException", "Ed25519"),
        (arn(&fixture.key(tagged("ECC_NIST_EDWARDS25519", &[]))), unsupported, "outlast:ssh-ca"),
    ] {
        let tags = [(KINDS_TAG, "user"), (SECOND_KEY_TAG, second.as_str())];
        refused(&fixture.key(tagged("ML_DSA_44", &tags)), expected, why);
    }
    let disabled = authority(&fixture, "ECC_NIST_P256");
    fixture.kms("DisableKey", json!({ "KeyId": disabled })).unwrap();
    refused(&disabled, "DisabledException", "disabled");
    // A key policy can object.
    let objecting = authority(&fixture, "ECC_NIST_P256");
    let role = format!("arn:aws:iam::{ACCOUNT}:role/{ROLE}");
    let deny = key_policy(json!([{
        "Effect": "Deny", "Principal": "*", "Action": "kms:Sign", "Resource": "*",
        "Condition": { "ArnEquals": { "aws:PrincipalArn": role } },
    }]));
    fixture.kms("PutKeyPolicy", json!({ "KeyId": objecting, "Policy": deny })).unwrap();
    refused(&objecting, "AccessDeniedException", "OutlastServiceRoleForSshCertificates");
    let objecting = authority(&fixture, "ECC_NIST_P256");
    let deny = key_policy(json!([{
        "Effect": "Deny", "Principal": { "AWS": role }, "Action": "kms:Sign", "Resource": "*",
    }]));
    fixture.kms("PutKeyPolicy", json!({ "KeyId": objecting, "Policy": deny })).unwrap();
    refused(&objecting, "AccessDeniedException", "OutlastServiceRoleForSshCertificates");
    // A rule of approvals cannot be met.
    let approved = authority(&fixture, "ECC_NIST_P256");
    fixture.user(ACCOUNT, "eve", &[]);
    let rule = crate::approvals_support::rule(1, &[crate::approvals_support::user_arn("eve")]);
    fixture.outlast("PutSigningApprovalRule", &json!({ "KeyId": approved, "Rule": rule })).unwrap();
    refused(&approved, unsupported, "approvals");
}

#[test]
fn every_certificate_and_every_signature_is_in_the_audit_trail() {
    let fixture = Fixture::new();
    let key = composite(&fixture);
    let alice = fixture.user(ACCOUNT, "alice", &[crate::common::allow(&["outlast:*"])]);
    let body = with(&wanted(&key), json!({ "Extensions": { "permit-pty": "" } }));
    let answer = fixture.outlast_as(&alice, SIGN, &body);
    let found = certificate(&answer);
    let events = fixture.events();
    let [event, first, second] = &events[events.len() - 3..] else { panic!("three events") };
    let said = &event["requestParameters"];
    let serial = found.fields().serial.to_string();
    assert_eq!((&event["eventName"], &event["eventSource"]), (&json!(SIGN), &json!("outlast")));
    assert_eq!(event["userIdentity"]["arn"], format!("arn:aws:iam::{ACCOUNT}:user/alice"));
    assert_eq!(said["serialNumber"], serial);
    assert_eq!(said["principals"], json!(["alice"]));
    assert_eq!(said["extensions"], json!(["permit-pty"]));
    assert_eq!(said["certificateType"], "user");
    assert_eq!(said["publicKeyFingerprint"], found.key().fingerprint());
    assert_eq!(event["responseElements"]["authorityFingerprint"], found.authority().fingerprint());
    for event in [first, second] {
        assert_eq!(
            (&event["eventName"], &event["eventSource"]),
            (&json!("Sign"), &json!("kms.amazonaws.com"))
        );
        assert_eq!(event["userIdentity"]["invokedBy"], "ssh.outlast");
        assert_eq!(event["additionalEventData"]["sshCertificate"]["serialNumber"], serial);
    }
    assert_eq!(first["requestParameters"]["signingAlgorithm"], "ML_DSA_SHAKE_256");
    assert_eq!(second["requestParameters"]["signingAlgorithm"], "ED25519_SHA_512");
    // The owner of the key finds its signature by the hash.
    let listed = fixture.outlast("ListKeySignatures", &json!({ "KeyId": key })).unwrap();
    let listed = listed["Signatures"].as_array().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["SignatureSha256"], first["additionalEventData"]["signatureSha256"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let fixture = Fixture::new();
    let key = authority(&fixture, "ECC_NIST_P256");
    let line = public_key(KeyKind::Ed25519);
    let long = "x".repeat(257);
    let host = |more: Value| {
        with(&json!({ "CertificateType": "HOST", "Principals": ["a.example.com"] }), more)
    };
    for more in [
        json!({ "PublicKey": "ssh-ed25519 AAAA" }),
        json!({ "PublicKey": format!("command=\"x\" {line}") }),
        json!({ "PublicKey": "" }),
        json!({ "CertificateType": "user" }),
        json!({ "Principals": [] }),
        json!({ "Principals": [""] }),
        json!({ "Principals": ["a,b"] }),
        json!({ "Principals": ["a b"] }),
        json!({ "Principals": ["a\n"] }),
        json!({ "Principals": [long] }),
        json!({ "Principals": vec!["a"; 65] }),
        json!({ "Identity": "a\u{1b}" }),
        json!({ "SerialNumber": 0 }),
        json!({ "ValidAfter": NOW - 3601 }),
        json!({ "ValidBefore": NOW }),
        json!({ "ValidBefore": NOW + 3653 * 86_400 + 1 }),
        json!({ "ValidAfter": NOW + 100, "ValidBefore": NOW + 100 }),
        json!({ "CriticalOptions": { "unknown": "" } }),
        json!({ "CriticalOptions": { "force-command": "" } }),
        json!({ "CriticalOptions": { "source-address": "192.0.2.0/33" } }),
        json!({ "CriticalOptions": { "source-address": "10.0.0.0/0" } }),
        json!({ "CriticalOptions": { "source-address": "192.0.2.0/24,192.0.2.5/24" } }),
        json!({ "CriticalOptions": { "source-address": "" } }),
        json!({ "CriticalOptions": { "verify-required": "yes" } }),
        json!({ "Extensions": { "a b": "" } }),
        json!({ "Extensions": { "no-touch-required": "x" } }),
        json!({ "Extensions": { "a": "\u{0}" } }),
        json!({ "CertificateType": "HOST" }),
        host(json!({ "Extensions": { "permit-pty": "" } })),
        host(json!({ "CriticalOptions": { "force-command": "true" } })),
    ] {
        let answer = fixture.outlast(SIGN, &with(&wanted(&key), more.clone()));
        assert_eq!(code(answer), "ValidationException", "{more}");
    }
    let before = json!({ "ValidAfter": NOW - 3600 });
    drop(certificate(&fixture.outlast(SIGN, &with(&wanted(&key), before))));
}
