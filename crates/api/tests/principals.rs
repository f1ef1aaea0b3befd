//! Policies and grants are bound to the user or role that they were written for: one that is deleted and created
//! again under the same name gets nothing of the old one's.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::certificates;
use crate::common;

use certificates::{ca, pca};
use common::{ACCOUNT, Fixture, OTHER_ACCOUNT, Who, code, element, key_policy, policy, text, with};
use outlast_domain::identity::{Entry, Role, User};
use outlast_store::Store;
use serde_json::{Value, json};

fn user_arn(name: &str) -> String {
    format!("arn:aws:iam::{ACCOUNT}:user/{name}")
}

fn user_id(fixture: &Fixture, name: &str) -> String {
    fixture.directory(|work| User::find(work, ACCOUNT, name).unwrap().id)
}

/// Deletes a user and creates another with the same name, without policies.
fn made_again(fixture: &Fixture, name: &str) -> Who {
    delete(fixture, name);
    fixture.user(ACCOUNT, name, &[])
}

fn delete(fixture: &Fixture, name: &str) {
    fixture.directory(|work| User::find(work, ACCOUNT, name).unwrap().delete(work));
}

fn delete_role(fixture: &Fixture, name: &str) {
    fixture.directory(|work| Role::find(work, ACCOUNT, name).unwrap().delete(work));
}

fn trust(principal: &Value) -> Value {
    policy(json!([{ "Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole" }]))
}

fn encrypts(principal: &str) -> Value {
    json!({ "Effect": "Allow", "Principal": { "AWS": principal }, "Action": "kms:Encrypt", "Resource": "*" })
}

fn encrypt(fixture: &Fixture, who: &Who, key: &str) -> Result<(), String> {
    let body = json!({ "KeyId": key, "Plaintext": "YQ==" });
    fixture.kms_as(who, "Encrypt", body).map(drop).map_err(|refused| refused.code)
}

fn refused() -> Result<(), String> {
    Err("AccessDeniedException".to_owned())
}

/// Principals of the second statement of a key's policy, as GetKeyPolicy shows them.
fn shown(fixture: &Fixture, key: &str) -> Value {
    let found = fixture.kms("GetKeyPolicy", json!({ "KeyId": key })).unwrap();
    let policy: Value = serde_json::from_str(text(&found["Policy"])).unwrap();
    policy["Statement"][1]["Principal"]["AWS"].clone()
}

/// Removes the unique ids from the records below `prefix`, as earlier builds left them.
fn forget_ids(fixture: &Fixture, prefix: &str) {
    let record_keys: Vec<_> =
        fixture.store.scan(prefix, "", 1000).unwrap().into_iter().map(|row| row.0).collect();
    fixture.directory(|work| {
        for record_key in record_keys {
            let mut record: Value = work.get(&record_key).unwrap().unwrap();
            let Some(members) = record.as_object_mut() else { continue };
            for member in ["principals", "trusted", "grantee_id", "retiring_id"] {
                members.remove(member);
            }
            work.put(&record_key, &record).unwrap();
        }
    });
}

#[test]
fn a_key_policy_is_not_for_who_is_made_again() {
    let fixture = Fixture::new();
    let alice = fixture.user(ACCOUNT, "alice", &[]);
    let id = user_id(&fixture, "alice");
    let written = key_policy(json!([encrypts(&user_arn("alice"))]));
    let key = fixture.key(json!({ "Policy": written }));
    assert_eq!(encrypt(&fixture, &alice, &key), Ok(()));
    assert_eq!(shown(&fixture, &key), user_arn("alice"));
    let alice = made_again(&fixture, "alice");
    assert_ne!(user_id(&fixture, "alice"), id);
    assert_eq!(encrypt(&fixture, &alice, &key), refused());
    assert_eq!(shown(&fixture, &key), id.as_str());
    // Putting it again binds it to the new user, and it is shown as it was written.
    fixture.kms("PutKeyPolicy", json!({ "KeyId": key, "Policy": written })).unwrap();
    assert_eq!(encrypt(&fixture, &alice, &key), Ok(()));
    let found = fixture.kms("GetKeyPolicy", json!({ "KeyId": key })).unwrap();
    assert_eq!(text(&found["Policy"]), written);
    // A replica has its own policy, with principals of its own.
    let primary = fixture.key(json!({ "MultiRegion": true, "Policy": written }));
    let body = json!({ "KeyId": primary, "ReplicaRegion": "us-east-1", "Policy": written });
    fixture.kms("ReplicateKey", body).unwrap();
    let there = alice.at("us-east-1");
    assert_eq!(encrypt(&fixture, &there, &primary), Ok(()));
    let there = made_again(&fixture, "alice").at("us-east-1");
    assert_eq!(encrypt(&fixture, &there, &primary), refused());
    // A policy that is shown with a unique id cannot be put again: its principal is gone.
    let found = fixture.kms("GetKeyPolicy", json!({ "KeyId": key })).unwrap();
    let again = fixture.kms("PutKeyPolicy", json!({ "KeyId": key, "Policy": found["Policy"] }));
    assert_eq!(code(again), "MalformedPolicyDocumentException");
}

#[test]
fn a_denial_does_not_spare_who_is_made_again() {
    let fixture = Fixture::new();
    let everything = common::allow(&["kms:*"]);
    let alice = fixture.user(ACCOUNT, "alice", std::slice::from_ref(&everything));
    let root = format!("arn:aws:iam::{ACCOUNT}:root");
    let but = json!([{ "Effect": "Deny", "NotPrincipal": { "AWS": [root, user_arn("alice")] },
        "Action": "kms:Encrypt", "Resource": "*" }]);
    let key = fixture.key(json!({ "Policy": key_policy(but) }));
    assert_eq!(encrypt(&fixture, &alice, &key), Ok(()));
    delete(&fixture, "alice");
    let alice = fixture.user(ACCOUNT, "alice", &[everything]);
    assert_eq!(encrypt(&fixture, &alice, &key), refused());
}

#[test]
fn a_grant_is_not_for_who_is_made_again() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let (alice, bob) = (fixture.user(ACCOUNT, "alice", &[]), fixture.user(ACCOUNT, "bob", &[]));
    let ids = (user_id(&fixture, "alice"), user_id(&fixture, "bob"));
    let body = json!({
        "KeyId": key, "Name": "same", "GranteePrincipal": user_arn("alice"),
        "RetiringPrincipal": user_arn("bob"), "Operations": ["Encrypt"],
    });
    let grant = |body: &Value| {
        text(&fixture.kms("CreateGrant", body.clone()).unwrap()["GrantId"]).to_owned()
    };
    let first = grant(&body);
    assert_eq!(grant(&body), first);
    assert_eq!(encrypt(&fixture, &alice, &key), Ok(()));
    let listed = |more: Value| {
        let body = with(&json!({ "KeyId": key }), more);
        fixture.kms("ListGrants", body).unwrap()["Grants"].as_array().unwrap().clone()
    };
    assert_eq!(listed(json!({}))[0]["GranteePrincipal"], user_arn("alice"));
    let (alice, bob_again) = (made_again(&fixture, "alice"), made_again(&fixture, "bob"));
    drop(bob);
    assert_eq!(encrypt(&fixture, &alice, &key), refused());
    for asked in [json!({}), json!({ "GrantId": first })] {
        let found = &listed(asked)[0];
        assert_eq!(found["GranteePrincipal"], ids.0.as_str());
        assert_eq!(found["RetiringPrincipal"], ids.1.as_str());
    }
    assert!(listed(json!({ "GranteePrincipal": user_arn("alice") })).is_empty());
    let retirable = || {
        let asked = json!({ "RetiringPrincipal": user_arn("bob") });
        fixture.kms("ListRetirableGrants", asked).unwrap()["Grants"].as_array().unwrap().len()
    };
    assert_eq!(retirable(), 0);
    let retire = json!({ "KeyId": key, "GrantId": first });
    let retired = fixture.kms_as(&bob_again, "RetireGrant", retire.clone());
    assert_eq!(code(retired), "AccessDeniedException");
    // The same request now means another principal, and the two grants do not interfere.
    let second = grant(&body);
    assert_ne!(second, first);
    assert_eq!(grant(&body), second);
    assert_eq!((encrypt(&fixture, &alice, &key), retirable()), (Ok(()), 1));
    fixture.kms("RevokeGrant", retire).unwrap();
    assert_eq!((grant(&body), encrypt(&fixture, &alice, &key)), (second, Ok(())));
}

#[test]
fn a_trust_policy_is_not_for_who_is_made_again() {
    let fixture = Fixture::new();
    let alice = fixture.user(ACCOUNT, "alice", &[]);
    let id = user_id(&fixture, "alice");
    let role = fixture.role(ACCOUNT, "role", &trust(&json!({ "AWS": [user_arn("alice")] })), &[]);
    let assume = |who: &Who| {
        let form =
            [("Action", "AssumeRole"), ("RoleArn", role.as_str()), ("RoleSessionName", "test")];
        fixture.sts_as(who, &form).status
    };
    let shown = || {
        let shown = fixture.directory(|work| {
            Role::find(work, ACCOUNT, "role").unwrap().shown_trust(work).unwrap()
        });
        let shown: Value = serde_json::from_str(&shown).unwrap();
        shown["Statement"][0]["Principal"]["AWS"][0].clone()
    };
    assert_eq!((assume(&alice), shown()), (200, json!(user_arn("alice"))));
    let alice = made_again(&fixture, "alice");
    assert_eq!((assume(&alice), shown()), (403, json!(id)));
    fixture.directory(|work| {
        let text = trust(&json!({ "AWS": user_arn("alice") })).to_string();
        Role::find(work, ACCOUNT, "role").unwrap().put_trust(work, &text).unwrap();
    });
    assert_eq!(assume(&alice), 200);
}

#[test]
fn the_policy_of_an_authority_is_not_for_who_is_made_again() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let action = "acm-pca:DescribeCertificateAuthority";
    let alice = fixture.user(OTHER_ACCOUNT, "alice", &[common::allow(&["acm-pca:*"])]);
    let arn = format!("arn:aws:iam::{OTHER_ACCOUNT}:user/alice");
    let id = fixture.directory(|work| User::find(work, OTHER_ACCOUNT, "alice").unwrap().id);
    let written = policy(json!([{ "Effect": "Allow", "Principal": { "AWS": arn },
        "Action": action, "Resource": authority }]));
    let put = json!({ "ResourceArn": authority, "Policy": written.to_string() });
    pca(&fixture, "PutPolicy", &put).unwrap();
    let describe = |who: &Who| {
        let mut headers = http::HeaderMap::new();
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        let target = "ACMPrivateCA.DescribeCertificateAuthority";
        headers.insert("x-amz-target", target.parse().unwrap());
        let body = json!({ "CertificateAuthorityArn": authority }).to_string();
        fixture.request(who, "acm-pca", headers, body.as_bytes()).status
    };
    let shown = || {
        let found = pca(&fixture, "GetPolicy", &json!({ "ResourceArn": authority })).unwrap();
        let found: Value = serde_json::from_str(text(&found["Policy"])).unwrap();
        found["Statement"][0]["Principal"]["AWS"].clone()
    };
    assert_eq!((describe(&alice), shown()), (200, json!(arn)));
    fixture.directory(|work| User::find(work, OTHER_ACCOUNT, "alice").unwrap().delete(work));
    assert_eq!(shown(), json!(id));
    let alice = fixture.user(OTHER_ACCOUNT, "alice", &[common::allow(&["acm-pca:*"])]);
    assert_eq!((describe(&alice), shown()), (400, json!(id)));
    let nobody = written.to_string().replace("user/alice", "user/nobody");
    let put = json!({ "ResourceArn": authority, "Policy": nobody });
    assert_eq!(code(pca(&fixture, "PutPolicy", &put)), "InvalidPolicyException");
}

#[test]
fn a_session_is_its_roles() {
    let fixture = Fixture::new();
    let trusted = trust(&json!({ "AWS": user_arn("admin") }));
    let role = fixture.role(ACCOUNT, "role", &trusted, &[]);
    let id = fixture.directory(|work| Role::find(work, ACCOUNT, "role").unwrap().id);
    let session = format!("arn:aws:sts::{ACCOUNT}:assumed-role/role/session");
    let key = fixture.key(json!({ "Policy": key_policy(json!([encrypts(&session)])) }));
    let of_role = fixture.key(json!({ "Policy": key_policy(json!([encrypts(&role)])) }));
    let who = fixture.session(&Who::admin(), &role, &[]);
    assert_eq!(
        (encrypt(&fixture, &who, &key), encrypt(&fixture, &who, &of_role)),
        (Ok(()), Ok(()))
    );
    delete_role(&fixture, "role");
    assert_eq!(shown(&fixture, &key), format!("{id}:session"));
    assert_eq!(shown(&fixture, &of_role), id.as_str());
    fixture.role(ACCOUNT, "role", &trusted, &[]);
    let who = fixture.session(&Who::admin(), &role, &[]);
    for key in [&key, &of_role] {
        assert_eq!(encrypt(&fixture, &who, key), refused());
    }
}

/// Principals that do not exist, and services without such a name.
fn nobodies() -> Vec<Value> {
    let arns = [
        user_arn("nobody"),
        format!("arn:aws:iam::{ACCOUNT}:role/nobody"),
        // There is no user with the name of this role.
        format!("arn:aws:iam::{ACCOUNT}:role/admin"),
        format!("arn:aws:iam::{ACCOUNT}:user/path/admin"),
        format!("arn:aws:iam::{OTHER_ACCOUNT}:user/nobody"),
        "arn:aws:iam::999999999999:user/admin".to_owned(),
        format!("arn:aws:sts::{ACCOUNT}:assumed-role/nobody/session"),
        format!("arn:aws:sts::{ACCOUNT}:federated-user/admin"),
        format!("arn:aws:iam::{ACCOUNT}:role/aws-service-role/x.amazonaws.com/X"),
        "AIDAQQQQQQQQQQQQQQQQQ".to_owned(),
    ];
    let services = ["nobody", "KMS.amazonaws.com", "x..amazonaws.com", "amazonaws.com.evil", "*"];
    let arns = arns.into_iter().map(|arn| json!({ "AWS": arn }));
    arns.chain(services.map(|name| json!({ "Service": name }))).collect()
}

/// Principals that exist, and principals whose existence cannot be checked.
fn somebodies() -> Vec<Value> {
    vec![
        json!({ "AWS": user_arn("admin") }),
        json!({ "AWS": format!("arn:aws:iam::{OTHER_ACCOUNT}:user/admin") }),
        json!({ "AWS": "999999999999" }),
        json!({ "AWS": "arn:aws:iam::999999999999:root" }),
        json!({ "AWS": format!("arn:aws:iam::{ACCOUNT}:role/aws-service-role/acm.amazonaws.com/\
            AWSServiceRoleForCertificateManager") }),
        json!({ "Service": "logs.eu-west-1.amazonaws.com" }),
        json!({ "Service": "ec2.amazonaws.com.cn" }),
    ]
}

#[test]
fn who_is_named_must_exist() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let of = |principal: &Value| {
        key_policy(json!([{ "Effect": "Deny", "Principal": principal,
            "Action": "kms:Encrypt", "Resource": "*" }]))
    };
    let create_role = |principal: &Value| {
        let text = trust(principal).to_string();
        fixture.directory(|work| {
            let made = outlast_domain::identity::create_role(work, ACCOUNT, "r", &text, 3600);
            made.map(|role| role.delete(work)).map_err(|error| error.to_string())
        })
    };
    for principal in nobodies() {
        let text = of(&principal);
        for (operation, body) in [
            ("CreateKey", json!({ "Policy": text })),
            ("PutKeyPolicy", json!({ "KeyId": key, "Policy": text })),
        ] {
            let answer = fixture.kms(operation, body).unwrap_err();
            assert_eq!(answer.code, "MalformedPolicyDocumentException", "{operation} {principal}");
            if !principal.to_string().contains("AIDA") {
                let expected = "Policy contains a statement with one or more invalid principals.";
                assert_eq!(answer.message, expected, "{principal}");
            }
        }
        let error = create_role(&principal).unwrap_err();
        assert!(error.contains("not valid"), "{principal}: {error}");
        if let Some(arn) = principal["AWS"].as_str() {
            for member in ["GranteePrincipal", "RetiringPrincipal"] {
                let body = json!({ "KeyId": key, "GranteePrincipal": user_arn("admin"),
                    "Operations": ["Encrypt"] });
                let answer = fixture.kms("CreateGrant", with(&body, json!({ member: arn })));
                assert_eq!(code(answer), "InvalidArnException", "{member} {arn}");
            }
        }
    }
    for principal in somebodies() {
        fixture.kms("PutKeyPolicy", json!({ "KeyId": key, "Policy": of(&principal) })).unwrap();
        create_role(&principal).unwrap();
    }
    let service = json!({
        "KeyId": key, "GranteeServicePrincipal": "nobody", "Operations": ["Encrypt"],
        "Constraints": { "SourceArn": "arn:aws:s3:::bucket-of-somebody" },
        "RetiringPrincipal": user_arn("admin"),
    });
    assert_eq!(code(fixture.kms("CreateGrant", service)), "ValidationException");
}

#[test]
fn old_records_refer_by_name_until_rewritten() {
    let fixture = Fixture::new();
    let alice = fixture.user(ACCOUNT, "alice", &[]);
    let written = key_policy(json!([encrypts(&user_arn("alice"))]));
    let key = fixture.key(json!({ "Policy": written }));
    let granted = fixture.key(json!({}));
    let body = json!({ "KeyId": granted, "Name": "same", "GranteePrincipal": user_arn("alice"),
        "Operations": ["Encrypt"] });
    let grant = fixture.kms("CreateGrant", body.clone()).unwrap();
    let role = fixture.role(ACCOUNT, "role", &trust(&json!({ "AWS": user_arn("alice") })), &[]);
    for prefix in ["kms/key/", "kms/grant/", "iam/role/"] {
        forget_ids(&fixture, prefix);
    }
    // They were also found by the grantee's name.
    let digest = hex::encode(outlast_crypto::digests::sha256(user_arn("alice").as_bytes()));
    let region = common::REGION;
    let old =
        format!("kms/grant-to/{ACCOUNT}/{region}/{granted}/{digest}/{}", text(&grant["GrantId"]));
    let pointer = json!({ "account": ACCOUNT, "key_id": granted, "grant_id": grant["GrantId"] });
    let pointers = fixture.store.scan("kms/by-grantee/", "", 100).unwrap();
    fixture.directory(|work| {
        pointers.iter().for_each(|(record_key, _)| work.delete(record_key));
        work.put(&old, &pointer).unwrap();
    });
    let works = |who: &Who| {
        assert_eq!(encrypt(&fixture, who, &key), Ok(()));
        assert_eq!(encrypt(&fixture, who, &granted), Ok(()));
        fixture.session(who, &role, &[]);
        assert_eq!(shown(&fixture, &key), user_arn("alice"));
    };
    works(&alice);
    assert_eq!(fixture.kms("CreateGrant", body).unwrap()["GrantId"], grant["GrantId"]);
    works(&made_again(&fixture, "alice"));
    fixture.kms("PutKeyPolicy", json!({ "KeyId": key, "Policy": written })).unwrap();
    let alice = made_again(&fixture, "alice");
    assert_eq!(encrypt(&fixture, &alice, &key), refused());
    let identity = fixture.sts_as(&alice, &[("Action", "GetCallerIdentity")]);
    let xml = String::from_utf8(identity.body).unwrap();
    assert_eq!(element(&xml, "UserId"), user_id(&fixture, "alice"));
}

#[test]
fn an_access_key_is_not_for_who_is_made_again() {
    let fixture = Fixture::new();
    let alice = fixture.user(ACCOUNT, "alice", &[common::allow(&["kms:*"])]);
    let asked = |who: &Who| fixture.kms_as(who, "ListKeys", json!({})).is_ok();
    assert!(asked(&alice));
    // A key that was left behind, for instance by a record that somebody put back.
    let left = fixture.directory(|work| {
        let mut user = User::find(work, ACCOUNT, "alice").unwrap();
        user.access_keys.clear();
        user.delete(work);
        let tags = Default::default();
        let user = outlast_domain::identity::create_user(work, ACCOUNT, "alice", tags).unwrap();
        user.put_policy(work, "p", &common::allow(&["kms:*"]).to_string()).unwrap();
        alice.clone()
    });
    assert!(!asked(&left));
}
