//! CreateSession of Roles Anywhere: who gets a session, with which name, tags and limits.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;
use crate::rolesanywhere_support;

use common::{ACCOUNT, NOW, REGION, code, policy, text, with};
use outlast_pki::certificate::Certificate;
use outlast_pki::extensions::subject_alternative_names;
use outlast_pki::general_name::GeneralName;
use outlast_pki::name;
use rolesanywhere_support::{
    Holder, Scene, Signing, anchor, authority, everything, id, may_call, profile, trust, who,
    workload,
};
use serde_json::{Value, json};

#[test]
fn every_kind_of_key_gets_a_session() {
    let scene = Scene::new();
    for spec in [
        "RSA_2048",
        "RSA_4096",
        "ECC_NIST_P256",
        "ECC_NIST_P384",
        "ECC_NIST_P521",
        "ML_DSA_44",
        "ML_DSA_65",
        "ML_DSA_87",
    ] {
        let leaf = scene.root.issue(spec, workload("CN=alice"));
        let answer = scene.session(&leaf).unwrap_or_else(|error| panic!("{spec}: {error:?}"));
        let set = &answer["credentialSet"][0];
        let serial = hex::encode(leaf.certificate.serial());
        let arn = format!("arn:aws:sts::{ACCOUNT}:assumed-role/workload/{serial}");
        assert_eq!(set["assumedRoleUser"]["arn"], arn);
        assert_eq!(
            (&set["roleArn"], &set["sourceIdentity"]),
            (&json!(scene.role), &json!("CN=alice"))
        );
        assert_eq!(set["credentials"]["expiration"], "2026-11-21T01:00:00Z");
        let caller = scene.fixture.sts_as(&who(&answer), &[("Action", "GetCallerIdentity")]);
        let xml = String::from_utf8(caller.body).unwrap();
        assert_eq!(common::element(&xml, "Arn"), arn);
        assert!(may_call(&scene.fixture, &who(&answer)));
    }
    // Keys that no algorithm of the service has.
    for spec in ["ECC_SECG_P256K1", "ECC_NIST_EDWARDS25519", "SLH_DSA_SHA2_128S"] {
        let leaf = scene.root.issue(spec, workload("CN=alice"));
        let mut signing = scene.signing(&leaf);
        signing.algorithm = Some("AWS4-X509-MLDSA");
        let refused = scene.answer(&signing.sign()).unwrap_err();
        assert_eq!((refused.code.as_str(), refused.status), ("AccessDeniedException", 403));
        assert!(refused.message.contains("is not one for"), "{}", refused.message);
    }
}

#[test]
fn chain_leads_to_the_anchor() {
    let scene = Scene::new();
    let one = scene.root.issue("ML_DSA_65", authority("CN=One"));
    let two = one.issue("RSA_2048", authority("CN=Two"));
    let leaf = two.issue("ML_DSA_44", workload("CN=alice"));
    let chain = vec![two.certificate.clone(), one.certificate.clone()];
    let signing = |chain: &[Certificate]| {
        let mut signing = scene.signing(&leaf);
        signing.chain = chain.to_vec();
        scene.answer(&signing.sign())
    };
    signing(&chain).unwrap();
    // In any order, with the root, and with others.
    signing(&[chain[1].clone(), scene.root.certificate.clone(), chain[0].clone()]).unwrap();
    for chain in [&chain[..1], &chain[1..], &[]] {
        let refused = signing(chain).unwrap_err();
        assert_eq!(refused.message, "Untrusted signing certificate");
    }
    // Issued by the intermediate CA, which can be an anchor itself.
    let fixture = &scene.fixture;
    let anchor = anchor(fixture, &two.pem());
    scene.session_with(&leaf, json!({ "trustAnchorArn": anchor })).unwrap();
    let many = vec![one.certificate.clone(); 6];
    let refused = signing(&many).unwrap_err();
    assert!(refused.message.contains("more than 5 certificates"), "{}", refused.message);
}

#[test]
fn arns_may_be_in_the_query_string() {
    let scene = Scene::new();
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let mut signing = Signing::new(&leaf, &json!({ "durationSeconds": 900 }), NOW);
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    pairs.append_pair("profileArn", &scene.profile).append_pair("roleArn", &scene.role);
    pairs.append_pair("trustAnchorArn", &scene.anchor);
    signing.query = pairs.finish();
    let answer = scene.answer(&signing.sign()).unwrap();
    assert_eq!(answer["credentialSet"][0]["credentials"]["expiration"], "2026-11-21T00:15:00Z");
}

#[test]
fn duration_is_the_least_of_both_and_within_the_role() {
    let scene = Scene::new();
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let fixture = &scene.fixture;
    let session = |profile_seconds: i64, asked: Option<i64>| {
        let of = json!({ "profileId": id(&scene.profile), "durationSeconds": profile_seconds });
        fixture.ra("UpdateProfile", of).unwrap();
        let more = asked.map_or_else(|| json!({}), |asked| json!({ "durationSeconds": asked }));
        let answer = scene.session_with(&leaf, more)?;
        Ok::<_, common::Refused>(
            text(&answer["credentialSet"][0]["credentials"]["expiration"]).to_owned(),
        )
    };
    assert_eq!(session(3600, None).unwrap(), "2026-11-21T01:00:00Z");
    assert_eq!(session(3600, Some(900)).unwrap(), "2026-11-21T00:15:00Z");
    assert_eq!(session(900, Some(3600)).unwrap(), "2026-11-21T00:15:00Z");
    // The role allows two hours.
    assert_eq!(session(7200, None).unwrap(), "2026-11-21T02:00:00Z");
    assert_eq!(session(43_200, Some(7200)).unwrap(), "2026-11-21T02:00:00Z");
    for refused in [session(7201, None), session(43_200, Some(43_200))] {
        assert!(refused.unwrap_err().message.contains("MaxSessionDuration"));
    }
    let who = who(&scene
        .session(&leaf)
        .unwrap_or_else(|_| scene.session_with(&leaf, json!({ "durationSeconds": 900 })).unwrap()));
    assert!(may_call(fixture, &who));
    fixture.advance(7201);
    assert!(!may_call(fixture, &who));
}

#[test]
fn trust_policy_sees_the_certificate() {
    let scene = Scene::new();
    let names = [
        GeneralName::DnsName("a.example".into()),
        GeneralName::DnsName("b.example".into()),
        GeneralName::UniformResourceIdentifier("spiffe://example.com/alice".into()),
        GeneralName::DirectoryName(name::parse("CN=Alice,O=Inner").unwrap()),
    ];
    let mut made = workload("CN=alice,OU=Two,OU=One,O=Example,C=DE");
    made.extensions.push(subject_alternative_names(&names, false).unwrap());
    let leaf = scene.root.issue("ECC_NIST_P256", made);
    let serial = hex::encode(leaf.certificate.serial());
    let attempt = |condition: &Value| {
        let name = format!("r{}", scene.fixture.events().len());
        let role = scene.fixture.role(ACCOUNT, &name, &trust(condition), &[everything()]);
        let profile = profile(&scene.fixture, &[&role], json!({}));
        scene.session_with(&leaf, json!({ "roleArn": role, "profileArn": profile }))
    };
    for (key, value) in [
        ("aws:PrincipalTag/x509Subject/CN", "alice"),
        ("aws:PrincipalTag/x509Subject/OU", "One/Two"),
        ("aws:PrincipalTag/x509Subject/O", "Example"),
        ("aws:PrincipalTag/x509Subject/C", "DE"),
        ("aws:PrincipalTag/x509Issuer/CN", "Root"),
        ("aws:PrincipalTag/x509Issuer/O", "Example"),
        ("aws:PrincipalTag/x509SAN/DNS", "a.example"),
        ("aws:PrincipalTag/x509SAN/URI", "spiffe://example.com/alice"),
        ("aws:PrincipalTag/x509SAN/Name/CN", "Alice"),
        ("aws:RequestTag/x509Subject/CN", "alice"),
        ("aws:SourceArn", &scene.anchor),
        ("aws:SourceAccount", ACCOUNT),
        ("sts:RoleSessionName", &serial),
        ("sts:SourceIdentity", "CN=alice"),
        ("aws:PrincipalServiceName", "rolesanywhere.amazonaws.com"),
        ("aws:PrincipalIsAWSService", "true"),
    ] {
        attempt(&json!({ "StringEquals": { key: value } }))
            .unwrap_or_else(|e| panic!("{key} {e:?}"));
        for other in [format!("{value}x"), value.to_ascii_uppercase()] {
            if other == value {
                continue;
            }
            let refused = attempt(&json!({ "StringEquals": { key: other } })).unwrap_err();
            assert_eq!((refused.code.as_str(), refused.status), ("AccessDeniedException", 403));
            assert!(
                refused.message.starts_with("Unable to assume role for "),
                "{}",
                refused.message
            );
        }
    }
    let keys = ["x509Subject/CN", "x509Issuer/CN", "x509SAN/URI"];
    for key in keys {
        attempt(&json!({ "ForAnyValue:StringEquals": { "aws:TagKeys": key } })).unwrap();
    }
}

#[test]
fn role_gives_the_service_all_three_actions() {
    let scene = Scene::new();
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let all = ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"];
    let service = json!({ "Service": "rolesanywhere.amazonaws.com" });
    let mut number = 0;
    let mut attempt = |trust: Value| {
        number += 1;
        let role = scene.fixture.role(ACCOUNT, &format!("r{number}"), &trust, &[everything()]);
        let profile = profile(&scene.fixture, &[&role], json!({}));
        scene.session_with(&leaf, json!({ "roleArn": role, "profileArn": profile }))
    };
    let allow = |principal: &Value, actions: &[&str]| json!({ "Effect": "Allow", "Principal": principal, "Action": actions });
    attempt(policy(json!([allow(&service, &all)]))).unwrap();
    attempt(policy(json!([
        allow(&service, &all[..1]),
        allow(&service, &all[1..2]),
        allow(&service, &all[2..]),
    ])))
    .unwrap();
    for missing in all {
        let two: Vec<_> = all.into_iter().filter(|action| *action != missing).collect();
        assert_eq!(code(attempt(policy(json!([allow(&service, &two)])))), "AccessDeniedException");
        let deny = json!({ "Effect": "Deny", "Principal": service, "Action": missing });
        let refused = attempt(policy(json!([allow(&service, &all), deny])));
        assert_eq!(code(refused), "AccessDeniedException", "{missing}");
    }
    for principal in [
        json!({ "Service": "acm-acme.amazonaws.com" }),
        json!({ "AWS": ACCOUNT }),
        json!({ "AWS": format!("arn:aws:iam::{ACCOUNT}:user/admin") }),
    ] {
        let refused = attempt(policy(json!([allow(&principal, &all)])));
        assert_eq!(code(refused), "AccessDeniedException", "{principal}");
    }
}

#[test]
fn mapping_decides_what_becomes_a_tag() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let mut made = workload("CN=alice,O=Example");
    let names = [GeneralName::DnsName("a.example".into())];
    made.extensions.push(subject_alternative_names(&names, false).unwrap());
    let leaf = scene.root.issue("ECC_NIST_P256", made);
    let of = json!({ "profileId": id(&scene.profile) });
    let put = |field: &str, specifiers: &[&str]| {
        let rules: Vec<_> = specifiers.iter().map(|one| json!({ "specifier": one })).collect();
        let body = with(&of, json!({ "certificateField": field, "mappingRules": rules }));
        fixture.ra("PutAttributeMapping", body).unwrap();
    };
    // What a policy of the role's compares with.
    let has = |tag: &str, value: &str| {
        let name = format!("t{}", fixture.events().len());
        let only = policy(json!([{
            "Effect": "Allow", "Action": "kms:*", "Resource": "*",
            "Condition": { "StringEquals": { format!("aws:PrincipalTag/{tag}"): value } },
        }]));
        let role = fixture.role(ACCOUNT, &name, &trust(&json!({})), &[only]);
        fixture.ra("UpdateProfile", with(&of, json!({ "roleArns": [role] }))).unwrap();
        let answer = scene.session_with(&leaf, json!({ "roleArn": role })).unwrap();
        fixture.kms_as(&who(&answer), "ListKeys", json!({})).is_ok()
    };
    assert!(has("x509Subject/CN", "alice") && has("x509Subject/O", "Example"));
    put("x509Subject", &["O"]);
    assert!(!has("x509Subject/CN", "alice") && has("x509Subject/O", "Example"));
    put("x509Subject", &["2.5.4.3"]);
    assert!(has("x509Subject/CN", "alice") && !has("x509Subject/O", "Example"));
    put("x509SAN", &["URI"]);
    assert!(!has("x509SAN/DNS", "a.example"));
    put("x509SAN", &["DNS"]);
    assert!(has("x509SAN/DNS", "a.example") && has("x509Issuer/CN", "Root"));
    let body = with(&of, json!({ "certificateField": "x509Issuer" }));
    fixture.ra("DeleteAttributeMapping", body).unwrap();
    assert!(!has("x509Issuer/CN", "Root"));
    // A value that no tag may have is none: "The service ignores values that do not match this pattern."
    put("x509Subject", &["*"]);
    let odd = scene.root.issue("ECC_NIST_P256", workload("CN=bob,O=a\\,b"));
    let condition = json!({ "Null": { "aws:PrincipalTag/x509Subject/O": "true" } });
    let role = fixture.role(ACCOUNT, "odd", &trust(&condition), &[]);
    fixture.ra("UpdateProfile", with(&of, json!({ "roleArns": [role] }))).unwrap();
    scene.session_with(&odd, json!({ "roleArn": role })).unwrap();
}

#[test]
fn source_identity_follows_the_rules() {
    let scene = Scene::new();
    let identity = |subject: &str| {
        let leaf = scene.root.issue("ECC_NIST_P256", workload(subject));
        let answer = scene.session(&leaf)?;
        let serial = hex::encode(leaf.certificate.serial());
        let found = text(&answer["credentialSet"][0]["sourceIdentity"]).to_owned();
        Ok::<_, common::Refused>(found.replace(&serial, "SERIAL"))
    };
    let long = |len: usize| format!("CN={}", "a".repeat(len));
    assert_eq!(identity("CN=Alice B").unwrap(), "CN=Alice B");
    assert_eq!(identity("O=Example").unwrap(), "ID=SERIAL");
    assert_eq!(identity(&long(61)).unwrap(), long(61));
    assert_eq!(identity(&long(62)).unwrap(), "a".repeat(62));
    assert_eq!(identity(&long(64)).unwrap(), "a".repeat(64));
    // Without a prefix of its own it would be the source identity of the name behind the prefix.
    let prefixed = |prefix: &str| identity(&format!("CN={prefix}{}", "a".repeat(59)));
    assert_eq!(identity(&long(59)).unwrap(), long(59));
    for refused in [
        identity(&long(65)),
        identity("CN=a\\,b"),
        identity("CN=a*"),
        prefixed("CN="),
        prefixed("cn="),
    ] {
        let refused = refused.unwrap_err();
        assert!(refused.message.contains("cannot be a source identity"), "{}", refused.message);
    }
}

#[test]
fn session_name_is_free_only_if_the_profile_says_so() {
    let scene = Scene::new();
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let named = |name: &str| scene.session_with(&leaf, json!({ "roleSessionName": name }));
    let refused = named("build").unwrap_err();
    assert_eq!((refused.code.as_str(), refused.status), ("AccessDeniedException", 403));
    let of = json!({ "profileId": id(&scene.profile), "acceptRoleSessionName": true });
    scene.fixture.ra("UpdateProfile", of).unwrap();
    let answer = named("build").unwrap();
    let arn = text(&answer["credentialSet"][0]["assumedRoleUser"]["arn"]).to_owned();
    assert!(arn.ends_with(":assumed-role/workload/build"), "{arn}");
    for wrong in ["a b", "a/b", "x", &"x".repeat(65)] {
        assert_eq!(code(named(wrong)), "ValidationException", "{wrong}");
    }
    // AWS's old member has no effect.
    let old = scene.session_with(&leaf, json!({ "sessionName": "old" })).unwrap();
    let arn = text(&old["credentialSet"][0]["assumedRoleUser"]["arn"]).to_owned();
    assert!(arn.ends_with(&hex::encode(leaf.certificate.serial())), "{arn}");
}

#[test]
fn profile_policies_limit_the_session() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let key = fixture.key(json!({}));
    let of = json!({ "profileId": id(&scene.profile) });
    let list = policy(json!([{ "Effect": "Allow", "Action": "kms:ListKeys", "Resource": "*" }]));
    let no_describe =
        policy(json!([{ "Effect": "Deny", "Action": "kms:DescribeKey", "Resource": "*" }]));
    let user = "arn:aws:iam::aws:policy/AWSKeyManagementServicePowerUser";
    let may = |more: Value| {
        fixture.ra("UpdateProfile", with(&of, more)).unwrap();
        let who = who(&scene.session(&leaf).unwrap());
        let ok = |operation: &str, body: Value| fixture.kms_as(&who, operation, body).is_ok();
        (
            ok("ListKeys", json!({})),
            ok("DescribeKey", json!({ "KeyId": key })),
            ok("ScheduleKeyDeletion", json!({ "KeyId": UNKNOWN_KEY })),
        )
    };
    assert!(may(json!({})).0);
    assert_eq!(may(json!({ "sessionPolicy": list.to_string() })), (true, false, false));
    // Several limit together: one must allow, none may deny.
    assert_eq!(may(json!({ "managedPolicyArns": [user] })), (true, true, false));
    let both = json!({ "sessionPolicy": no_describe.to_string() });
    assert_eq!(may(both), (true, false, false));
    // A policy that this server does not know, as after a return to an earlier version: no session without its limit.
    let running = who(&scene.session(&leaf).unwrap());
    fixture.directory(|work| {
        let record_key = format!("rolesanywhere/profile/{ACCOUNT}/{REGION}/{}", id(&scene.profile));
        let mut record: Value = work.get(&record_key).unwrap().unwrap();
        record["managed_policy_arns"] = json!([user, "arn:aws:iam::aws:policy/Vanished"]);
        work.put(&record_key, &record).unwrap();
    });
    let refused = scene.session(&leaf).unwrap_err();
    assert_eq!((refused.code.as_str(), refused.status), ("AccessDeniedException", 403));
    assert!(refused.message.contains("policy/Vanished"), "{}", refused.message);
    assert!(may_call(fixture, &running));
    let unlimited = json!({ "managedPolicyArns": ["arn:aws:iam::aws:policy/Vanished"] });
    let refused = fixture.ra("UpdateProfile", with(&of, unlimited)).unwrap_err();
    assert_eq!(refused.code, "ValidationException");
    assert!(may(json!({ "managedPolicyArns": [user], "sessionPolicy": list.to_string() })).0);
}

const UNKNOWN_KEY: &str = "00000000-0000-0000-0000-000000000000";

#[test]
fn session_is_in_the_audit_log_with_its_certificate() {
    let scene = Scene::new();
    let leaf = scene.root.issue("ML_DSA_65", workload("CN=alice,O=Example"));
    let answer = scene.session(&leaf).unwrap();
    let event = scene.fixture.events().pop().unwrap();
    assert_eq!(event["eventName"], "CreateSession");
    assert_eq!(event["eventSource"], "rolesanywhere.amazonaws.com");
    assert_eq!(event["userIdentity"]["type"], "Unknown");
    assert_eq!(
        (&event["userIdentity"]["accountId"], &event["recipientAccountId"]),
        (&json!(ACCOUNT), &json!(ACCOUNT))
    );
    assert_eq!(
        (&event["awsRegion"], &event["sourceIPAddress"]),
        (&json!(REGION), &json!("192.0.2.7"))
    );
    assert_eq!(
        event["additionalEventData"]["x509Certificate"],
        json!({
            "subject": "CN=alice,O=Example", "issuer": "CN=Root,O=Example",
            "serialNumber": hex::encode(leaf.certificate.serial()),
        })
    );
    let parameters = &event["requestParameters"];
    assert_eq!(parameters["trustAnchorArn"], scene.anchor.as_str());
    assert_eq!(parameters["profileArn"], scene.profile.as_str());
    assert_eq!(
        (&parameters["roleArn"], &parameters["durationSeconds"]),
        (&json!(scene.role), &json!(3600))
    );
    let found = &answer["credentialSet"][0]["credentials"];
    assert_eq!(event["responseElements"]["accessKeyId"], found["accessKeyId"]);
    let arns: Vec<_> =
        event["resources"].as_array().unwrap().iter().map(|one| &one["ARN"]).collect();
    assert_eq!(arns, [&json!(scene.anchor), &answer["subjectArn"]]);
    let whole = event.to_string();
    assert!(!whole.contains(text(&found["secretAccessKey"])));
    assert!(!whole.contains(text(&found["sessionToken"])));
    // What the session does later is recorded under its name.
    assert!(may_call(&scene.fixture, &who(&answer)));
    let event = scene.fixture.events().pop().unwrap();
    assert!(text(&event["userIdentity"]["arn"]).ends_with(&hex::encode(leaf.certificate.serial())));
    // A refusal after the certificate was trusted is recorded, too, and one before is not.
    scene.session_with(&leaf, json!({ "roleArn": format!("{}x", scene.role) })).unwrap_err();
    let event = scene.fixture.events().pop().unwrap();
    assert_eq!(
        (&event["eventName"], &event["errorCode"]),
        (&json!("CreateSession"), &json!("AccessDeniedException"))
    );
    let before = scene.fixture.events().len();
    let stranger = Holder::root("ECC_NIST_P256", "CN=Root,O=Example");
    scene.session(&stranger.issue("ECC_NIST_P256", workload("CN=alice"))).unwrap_err();
    assert_eq!(scene.fixture.events().len(), before);
}
