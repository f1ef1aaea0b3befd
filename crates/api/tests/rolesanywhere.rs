//! Roles Anywhere: trust anchors, profiles, imported CRLs, subjects, aliases and tags.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::certificates;
use crate::common;
use crate::rolesanywhere_support;

use common::{ACCOUNT, Fixture, OTHER_ACCOUNT, REGION, Who, b64, code, policy, text, unb64, with};
use outlast_pki::extensions::{self, KeyUsages};
use rolesanywhere_support::{Holder, Made, Scene, anchor, authority, id, profile, trust, workload};
use serde_json::{Value, json};

const UNKNOWN: &str = "00000000-0000-0000-0000-000000000000";

fn source(certificates: &str) -> Value {
    json!({
        "sourceType": "CERTIFICATE_BUNDLE", "sourceData": { "x509CertificateData": certificates },
    })
}

#[test]
fn trust_anchor_goes_through_its_life() {
    let fixture = Fixture::new();
    let root = Holder::root("ML_DSA_65", "CN=Root");
    let body = json!({ "name": "my anchor", "source": source(&root.pem()) });
    let made = fixture.ra("CreateTrustAnchor", body).unwrap()["trustAnchor"].clone();
    let arn = text(&made["trustAnchorArn"]).to_owned();
    let of = json!({ "trustAnchorId": id(&arn) });
    assert_eq!(arn, format!("arn:aws:rolesanywhere:{REGION}:{ACCOUNT}:trust-anchor/{}", id(&arn)));
    assert_eq!(made["trustAnchorId"], of["trustAnchorId"]);
    assert_eq!((&made["name"], &made["enabled"]), (&json!("my anchor"), &json!(false)));
    assert_eq!(made["source"], source(&root.pem()));
    assert_eq!(made["createdAt"], "2026-11-21T00:00:00Z");
    let events: Vec<_> = made["notificationSettings"].as_array().unwrap().iter().collect();
    assert_eq!(events.len(), 2);
    assert_eq!(
        *events[0],
        json!({
            "event": "CA_CERTIFICATE_EXPIRY", "enabled": true, "threshold": 45, "channel": "ALL",
            "configuredBy": "rolesanywhere.amazonaws.com",
        })
    );
    assert_eq!(fixture.ra("GetTrustAnchor", of.clone()).unwrap()["trustAnchor"], made);
    let by_arn = fixture.ra("GetTrustAnchor", json!({ "trustAnchorId": arn })).unwrap();
    assert_eq!(by_arn["trustAnchor"], made);

    fixture.advance(60);
    let enabled = fixture.ra("EnableTrustAnchor", of.clone()).unwrap();
    assert_eq!(enabled["trustAnchor"]["enabled"], true);
    assert_eq!(enabled["trustAnchor"]["updatedAt"], "2026-11-21T00:01:00Z");
    let disabled = fixture.ra("DisableTrustAnchor", of.clone()).unwrap();
    assert_eq!(disabled["trustAnchor"]["enabled"], false);

    let other = Holder::root("RSA_2048", "CN=Other");
    let both = format!("{}{}", root.pem(), other.pem());
    let update = with(&of, json!({ "name": "renamed", "source": source(&both) }));
    let updated = fixture.ra("UpdateTrustAnchor", update).unwrap()["trustAnchor"].clone();
    assert_eq!((&updated["name"], &updated["source"]), (&json!("renamed"), &source(&both)));

    let set = json!({
        "trustAnchorId": id(&arn),
        "notificationSettings": [{ "event": "CA_CERTIFICATE_EXPIRY", "enabled": false, "threshold": 9 }],
    });
    let set = fixture.ra("PutNotificationSettings", set).unwrap();
    let set = &set["trustAnchor"]["notificationSettings"];
    assert_eq!((&set[0]["enabled"], &set[0]["threshold"]), (&json!(false), &json!(9)));
    assert_eq!(set[0]["configuredBy"], ACCOUNT);
    assert_eq!(set[1]["configuredBy"], "rolesanywhere.amazonaws.com");
    let reset = json!({
        "trustAnchorId": id(&arn),
        "notificationSettingKeys": [{ "event": "CA_CERTIFICATE_EXPIRY", "channel": "ALL" }],
    });
    let reset = fixture.ra("ResetNotificationSettings", reset).unwrap();
    assert_eq!(reset["trustAnchor"]["notificationSettings"], made["notificationSettings"]);

    let deleted = fixture.ra("DeleteTrustAnchor", of.clone()).unwrap();
    assert_eq!(deleted["trustAnchor"]["trustAnchorArn"], arn.as_str());
    for operation in
        ["GetTrustAnchor", "DeleteTrustAnchor", "EnableTrustAnchor", "DisableTrustAnchor"]
    {
        let refused = fixture.ra(operation, of.clone()).unwrap_err();
        assert_eq!((refused.code.as_str(), refused.status), ("ResourceNotFoundException", 404));
    }
    let found = fixture.events().into_iter().filter(|event| {
        event["eventSource"] == "rolesanywhere.amazonaws.com" && event["errorCode"].is_null()
    });
    let names: Vec<_> = found.map(|event| text(&event["eventName"]).to_owned()).collect();
    assert_eq!(names[0], "CreateTrustAnchor");
    assert_eq!(names.last().map(String::as_str), Some("DeleteTrustAnchor"));
}

#[test]
fn only_certificates_of_cas_are_trusted() {
    let fixture = Fixture::new();
    let root = Holder::root("ECC_NIST_P256", "CN=Root");
    let leaf = root.issue("ECC_NIST_P256", workload("CN=leaf"));
    let no_sign = Made {
        extensions: vec![
            extensions::basic_constraints(true, None, true).unwrap(),
            extensions::key_usage(&[KeyUsages::CRLSign]).unwrap(),
        ],
        ..authority("CN=No sign")
    };
    let no_usage = Made {
        extensions: vec![extensions::basic_constraints(true, None, true).unwrap()],
        ..authority("CN=No usage")
    };
    let (no_sign, no_usage) =
        (root.issue("ECC_NIST_P256", no_sign), root.issue("ECC_NIST_P256", no_usage));
    let secret =
        format!("{}-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", root.pem());
    let many = root.pem().repeat(101);
    for (certificates, part) in [
        (leaf.pem(), "Incorrect basic constraints for CA certificate"),
        (format!("{}{}", root.pem(), leaf.pem()), "Incorrect basic constraints for CA certificate"),
        (no_sign.pem(), "Incorrect key usage for CA certificate"),
        (no_usage.pem(), "Incorrect key usage for CA certificate"),
        ("x".to_owned(), "not a valid certificate"),
        (secret, "private key"),
        (many, "at most 100 certificates"),
    ] {
        let body = json!({ "name": "a", "source": source(&certificates) });
        let refused = fixture.ra("CreateTrustAnchor", body).unwrap_err();
        assert_eq!((refused.code.as_str(), refused.status), ("ValidationException", 400));
        assert!(refused.message.contains(part), "{}", refused.message);
    }
    let pem = root.pem();
    for source in [
        json!({ "sourceType": "CERTIFICATE_BUNDLE" }),
        json!({ "sourceType": "AWS_ACM_PCA", "sourceData": { "x509CertificateData": pem } }),
        json!({ "sourceType": "CERTIFICATE_BUNDLE", "sourceData": { "acmPcaArn": "x" } }),
        json!({ "sourceData": { "x509CertificateData": pem } }),
        json!({ "sourceType": "SELF_SIGNED_REPOSITORY", "sourceData": { "x509CertificateData": pem } }),
        json!({ "sourceType": "AWS_ACM_PCA", "sourceData": { "acmPcaArn": "arn:x" } }),
    ] {
        let refused = fixture.ra("CreateTrustAnchor", json!({ "name": "a", "source": source }));
        assert_eq!(code(refused), "ValidationException", "{source}");
    }
    let fetch = json!({ "name": "a", "source": source(&pem), "crlDpRevocationEnabled": true });
    assert_eq!(code(fixture.ra("CreateTrustAnchor", fetch.clone())), "ValidationException");
    fixture
        .ra("CreateTrustAnchor", with(&fetch, json!({ "crlDpRevocationEnabled": false })))
        .unwrap();
}

#[test]
fn private_ca_is_an_anchor_once_it_has_a_certificate() {
    let fixture = Fixture::new();
    let of = |arn: &str| {
        json!({
            "name": "pca", "enabled": true,
            "source": { "sourceType": "AWS_ACM_PCA", "sourceData": { "acmPcaArn": arn } },
        })
    };
    let new = json!({
        "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": "ML_DSA_65", "SigningAlgorithm": "ML_DSA_65", "Subject": { "CommonName": "Root" },
        },
        "CertificateAuthorityType": "ROOT",
    });
    let made = certificates::pca(&fixture, "CreateCertificateAuthority", &new).unwrap();
    let arn = text(&made["CertificateAuthorityArn"]).to_owned();
    let refused = fixture.ra("CreateTrustAnchor", of(&arn)).unwrap_err();
    assert!(refused.message.contains("has no certificate"), "{}", refused.message);
    certificates::certify(&fixture, &arn, "ML_DSA_65", 30);
    let made = fixture.ra("CreateTrustAnchor", of(&arn)).unwrap();
    assert_eq!(made["trustAnchor"]["source"]["sourceData"]["acmPcaArn"], arn.as_str());
    // Not one of another account or Region, or one that is not there.
    for who in [Who::stranger(), Who::admin().at("us-east-1")] {
        let refused = fixture.ra_as(&who, "CreateTrustAnchor", of(&arn)).unwrap_err();
        assert!(refused.message.contains("was not found"), "{}", refused.message);
    }
    let other = arn.replace(id(&arn), UNKNOWN);
    assert_eq!(code(fixture.ra("CreateTrustAnchor", of(&other))), "ValidationException");
}

#[test]
fn profile_goes_through_its_life() {
    let fixture = Fixture::new();
    let role = fixture.role(ACCOUNT, "one", &trust(&json!({})), &[]);
    let session = policy(json!([{ "Effect": "Allow", "Action": "kms:*", "Resource": "*" }]));
    let body = json!({
        "name": "p", "roleArns": [role, role], "sessionPolicy": session.to_string(),
        "managedPolicyArns": ["arn:aws:iam::aws:policy/AWSKeyManagementServicePowerUser"],
        "durationSeconds": 900, "acceptRoleSessionName": true, "requireInstanceProperties": false,
    });
    let made = fixture.ra("CreateProfile", body).unwrap()["profile"].clone();
    let of = json!({ "profileId": made["profileId"] });
    assert_eq!(made["roleArns"], json!([role]));
    assert_eq!(made["createdBy"], format!("arn:aws:iam::{ACCOUNT}:user/admin"));
    assert_eq!((&made["enabled"], &made["durationSeconds"]), (&json!(false), &json!(900)));
    assert_eq!(
        made["attributeMappings"],
        json!([
            { "certificateField": "x509Issuer", "mappingRules": [{ "specifier": "*" }] },
            { "certificateField": "x509SAN", "mappingRules": [
                { "specifier": "DNS" }, { "specifier": "URI" }, { "specifier": "Name/*" },
            ] },
            { "certificateField": "x509Subject", "mappingRules": [{ "specifier": "*" }] },
        ])
    );
    assert_eq!(fixture.ra("GetProfile", of.clone()).unwrap()["profile"], made);
    assert_eq!(fixture.ra("EnableProfile", of.clone()).unwrap()["profile"]["enabled"], true);
    assert_eq!(fixture.ra("DisableProfile", of.clone()).unwrap()["profile"]["enabled"], false);
    let two = fixture.role(ACCOUNT, "two", &trust(&json!({})), &[]);
    let update = json!({
        "name": "q", "roleArns": [two], "managedPolicyArns": [], "durationSeconds": 1800,
        "acceptRoleSessionName": false,
    });
    let updated = fixture.ra("UpdateProfile", with(&of, update)).unwrap()["profile"].clone();
    assert_eq!((&updated["name"], &updated["roleArns"]), (&json!("q"), &json!([two])));
    assert_eq!(updated["managedPolicyArns"], json!([]));
    assert_eq!(updated["sessionPolicy"], session.to_string());
    assert_eq!(updated["durationSeconds"], 1800);
    let none = with(&of, json!({ "roleArns": [] }));
    assert_eq!(fixture.ra("UpdateProfile", none).unwrap()["profile"]["roleArns"], json!([]));

    let rules = |field: &str, specifiers: &[&str]| {
        let rules: Vec<_> = specifiers.iter().map(|one| json!({ "specifier": one })).collect();
        with(&of, json!({ "certificateField": field, "mappingRules": rules }))
    };
    let put =
        fixture.ra("PutAttributeMapping", rules("x509SAN", &["Name", "URI", "Name/"])).unwrap();
    assert_eq!(
        put["profile"]["attributeMappings"][1]["mappingRules"],
        json!([{ "specifier": "Name/*" }, { "specifier": "URI" }])
    );
    for (field, specifier) in [("x509SAN", "IP"), ("x509Subject", "commonName"), ("x509Issuer", "")]
    {
        let refused = fixture.ra("PutAttributeMapping", rules(field, &[specifier]));
        assert_eq!(code(refused), "ValidationException", "{field} {specifier}");
    }
    let many: Vec<_> = (1..=51).map(|n| format!("1.3.6.1.4.1.{n}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let refused = fixture.ra("PutAttributeMapping", rules("x509Subject", &many));
    assert_eq!(code(refused), "ValidationException");
    let less = with(&of, json!({ "certificateField": "x509SAN", "specifiers": ["URI"] }));
    let left = fixture.ra("DeleteAttributeMapping", less.clone()).unwrap();
    assert_eq!(
        left["profile"]["attributeMappings"][1]["mappingRules"],
        json!([{ "specifier": "Name/*" }])
    );
    assert_eq!(code(fixture.ra("DeleteAttributeMapping", less)), "ValidationException");
    let all = with(&of, json!({ "certificateField": "x509SAN" }));
    let left = fixture.ra("DeleteAttributeMapping", all).unwrap();
    assert_eq!(left["profile"]["attributeMappings"].as_array().unwrap().len(), 2);

    let deleted = fixture.ra("DeleteProfile", of.clone()).unwrap();
    assert_eq!(deleted["profile"]["profileId"], made["profileId"]);
    assert_eq!(code(fixture.ra("GetProfile", of)), "ResourceNotFoundException");
}

#[test]
fn profile_refuses_what_it_cannot_keep() {
    let fixture = Fixture::new();
    let theirs = fixture.role(OTHER_ACCOUNT, "theirs", &trust(&json!({})), &[]);
    let role = format!("arn:aws:iam::{ACCOUNT}:role/one");
    for (more, part) in [
        (json!({ "roleArns": [format!("arn:aws:iam::{ACCOUNT}:role")] }), "not the ARN of a role"),
        (json!({ "roleArns": [format!("{role}*/x//y")] }), "not the ARN of a role"),
        (json!({ "roleArns": [role], "sessionPolicy": "{" }), "session policy is not valid"),
        (
            json!({ "roleArns": [role], "managedPolicyArns": ["arn:aws:iam::aws:policy/ReadOnlyAccess"] }),
            "is not known here",
        ),
        (json!({ "roleArns": [role], "durationSeconds": 899 }), "greater than or equal to 900"),
        (json!({ "roleArns": [role], "durationSeconds": 43_201 }), "less than or equal to 43200"),
        (json!({ "roleArns": [role], "aliasName": "a//b" }), "must not contain //"),
    ] {
        let refused = fixture.ra("CreateProfile", with(&json!({ "name": "p" }), more)).unwrap_err();
        assert_eq!(refused.code, "ValidationException", "{}", refused.message);
        assert!(refused.message.contains(part), "{}", refused.message);
    }
    // Nobody may pass a role of another account.
    let refused = fixture.ra("CreateProfile", json!({ "name": "p", "roleArns": [theirs] }));
    assert_eq!(code(refused), "AccessDeniedException");
}

#[test]
fn naming_a_role_takes_the_right_to_pass_it() {
    let fixture = Fixture::new();
    let role = |name: &str| fixture.role(ACCOUNT, name, &trust(&json!({})), &[]);
    let (mine, other) = (role("mine"), role("other"));
    let pass = |condition: Value| {
        policy(json!([
            { "Effect": "Allow", "Action": "rolesanywhere:*", "Resource": "*" },
            { "Effect": "Allow", "Action": "iam:PassRole", "Resource": mine, "Condition": condition },
        ]))
    };
    let to_service =
        json!({ "StringEquals": { "iam:PassedToService": "rolesanywhere.amazonaws.com" } });
    let elsewhere = json!({ "StringEquals": { "iam:PassedToService": "acm.amazonaws.com" } });
    let may = fixture.user(ACCOUNT, "may", &[pass(to_service)]);
    let may_not = fixture.user(ACCOUNT, "maynot", &[pass(elsewhere)]);
    let new = |roles: &[&String]| json!({ "name": "p", "roleArns": roles });
    let made = fixture.ra_as(&may, "CreateProfile", new(&[&mine])).unwrap();
    let of = json!({ "profileId": made["profile"]["profileId"] });
    for (who, roles) in [(&may, vec![&other]), (&may, vec![&mine, &other]), (&may_not, vec![&mine])]
    {
        let refused = fixture.ra_as(who, "CreateProfile", new(&roles)).unwrap_err();
        assert_eq!((refused.code.as_str(), refused.status), ("AccessDeniedException", 403));
        assert!(refused.message.contains("iam:PassRole"), "{}", refused.message);
        let update = with(&of, json!({ "roleArns": roles }));
        assert_eq!(code(fixture.ra_as(who, "UpdateProfile", update)), "AccessDeniedException");
    }
    // Without a change of the roles none is passed.
    fixture.ra_as(&may_not, "UpdateProfile", with(&of, json!({ "name": "q" }))).unwrap();
    assert_eq!(fixture.ra("GetProfile", of).unwrap()["profile"]["roleArns"], json!([mine]));
}

#[test]
fn imported_crl_goes_through_its_life() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=leaf"));
    let der = scene.root.crl(&[&leaf.certificate], common::NOW);
    let import = |data: &[u8], more: Value| {
        let body = json!({ "name": "c", "trustAnchorArn": scene.anchor, "crlData": b64(data) });
        fixture.ra("ImportCrl", with(&body, more))
    };
    let made = import(&der, json!({})).unwrap()["crl"].clone();
    let of = json!({ "crlId": made["crlId"] });
    assert_eq!(unb64(&made["crlData"]), der);
    assert_eq!((&made["enabled"], &made["trustAnchorArn"]), (&json!(false), &json!(scene.anchor)));
    assert_eq!(fixture.ra("GetCrl", of.clone()).unwrap()["crl"], made);
    assert_eq!(fixture.ra("EnableCrl", of.clone()).unwrap()["crl"]["enabled"], true);
    assert_eq!(fixture.ra("DisableCrl", of.clone()).unwrap()["crl"]["enabled"], false);
    // A newer one, in PEM.
    let empty = scene.root.crl(&[], common::NOW + 1);
    let text_of = format!(
        "-----BEGIN X509 CRL-----\n{}\n-----END X509 CRL-----\n",
        b64(&empty)
            .as_bytes()
            .chunks(64)
            .map(|line| String::from_utf8_lossy(line))
            .collect::<Vec<_>>()
            .join("\n")
    );
    let newer = with(&of, json!({ "name": "d", "crlData": b64(text_of.as_bytes()) }));
    let updated = fixture.ra("UpdateCrl", newer).unwrap()["crl"].clone();
    assert_eq!((&updated["name"], unb64(&updated["crlData"])), (&json!("d"), text_of.into_bytes()));

    // Two for an anchor, and nothing that its CA has not signed.
    let second = import(&der, json!({})).unwrap()["crl"]["crlId"].clone();
    let refused = import(&der, json!({})).unwrap_err();
    assert!(refused.message.contains("2 CRLs of a trust anchor"), "{}", refused.message);
    fixture.ra("DeleteCrl", json!({ "crlId": second })).unwrap();
    let stranger = Holder::root("ECC_NIST_P256", "CN=Root,O=Example");
    let mut changed = der.clone();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    let intermediate = scene.root.issue("ECC_NIST_P256", authority("CN=Intermediate"));
    for (data, what) in [
        (stranger.crl(&[], common::NOW), "signed by another CA of the same name"),
        (stranger.crl_as(&scene.root.certificate, &[], common::NOW), "in the name of the anchor"),
        (intermediate.crl(&[], common::NOW), "by a CA below the anchor"),
        (leaf.crl_as(&scene.root.certificate, &[], common::NOW), "by a workload"),
        (changed, "changed"),
        (b"x".to_vec(), "no CRL"),
        (scene.root.certificate.der().to_vec(), "a certificate"),
    ] {
        let refused = import(&data, json!({})).unwrap_err();
        assert_eq!(refused.code, "ValidationException", "{what}");
        assert!(refused.message.starts_with("Invalid CRL"), "{what}: {}", refused.message);
        let update = with(&of, json!({ "crlData": b64(&data) }));
        assert_eq!(code(fixture.ra("UpdateCrl", update)), "ValidationException", "{what}");
    }
    let listed = fixture.ra("ListCrls", json!({})).unwrap();
    assert_eq!(listed["crls"].as_array().unwrap().len(), 1);
    // With the anchor its CRLs go.
    fixture.ra("DeleteTrustAnchor", json!({ "trustAnchorId": id(&scene.anchor) })).unwrap();
    assert_eq!(code(fixture.ra("GetCrl", of.clone())), "ResourceNotFoundException");
    assert_eq!(code(fixture.ra("DeleteCrl", of)), "ResourceNotFoundException");
    // AWS's ImportCrl has no error for what is missing.
    assert_eq!(code(import(&der, json!({}))), "ValidationException");
}

#[test]
fn lists_have_pages_and_borders() {
    let fixture = Fixture::new();
    let root = Holder::root("ECC_NIST_P256", "CN=Root");
    let mut made: Vec<_> = (0..5).map(|_| anchor(&fixture, &root.pem())).collect();
    made.sort_unstable();
    let mut found = Vec::new();
    let mut token = Value::Null;
    loop {
        let mut body = json!({ "pageSize": 2 });
        if !token.is_null() {
            body["nextToken"] = token;
        }
        let page = fixture.ra("ListTrustAnchors", body).unwrap();
        let anchors = page["trustAnchors"].as_array().unwrap();
        assert!(anchors.len() <= 2);
        found.extend(anchors.iter().map(|one| text(&one["trustAnchorArn"]).to_owned()));
        token = page["nextToken"].clone();
        if token.is_null() {
            break;
        }
    }
    assert_eq!(found, made);
    // Other accounts and Regions see and reach none of them.
    for who in [Who::stranger(), Who::admin().at("us-east-1")] {
        let page = fixture.ra_as(&who, "ListTrustAnchors", json!({})).unwrap();
        assert_eq!(page["trustAnchors"], json!([]));
        for name in [made[0].as_str(), id(&made[0])] {
            let get = fixture.ra_as(&who, "GetTrustAnchor", json!({ "trustAnchorId": name }));
            assert_eq!(code(get), "ResourceNotFoundException");
        }
    }
    for (operation, member) in
        [("ListProfiles", "profiles"), ("ListCrls", "crls"), ("ListSubjects", "subjects")]
    {
        assert_eq!(fixture.ra(operation, json!({})).unwrap()[member], json!([]));
        for body in
            [json!({ "pageSize": 0 }), json!({ "pageSize": 1001 }), json!({ "nextToken": "!" })]
        {
            assert_eq!(code(fixture.ra(operation, body)), "ValidationException");
        }
    }
}

#[test]
fn alias_stands_for_one_resource() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let alias = |kind: &str, name: &str| {
        format!("arn:aws:rolesanywhere:{REGION}:{ACCOUNT}:alias/{kind}/{name}")
    };
    let of = json!({ "trustAnchorId": id(&scene.anchor) });
    let named = with(&of, json!({ "aliasName": "team/main" }));
    let named = fixture.ra("UpdateTrustAnchor", named).unwrap()["trustAnchor"].clone();
    assert_eq!(named["aliasName"], "team/main");
    assert_eq!(named["aliasArn"], alias("trust-anchor", "team/main"));
    let get = |name: &str| {
        let found = fixture.ra("GetTrustAnchor", json!({ "trustAnchorId": name }))?;
        Ok::<_, common::Refused>(found["trustAnchor"]["trustAnchorArn"].clone())
    };
    assert_eq!(get(&alias("trust-anchor", "team/main")).unwrap(), scene.anchor.as_str());
    assert!(get(&alias("trust-anchor", "team/other")).is_err());
    assert_eq!(code(get(&alias("profile", "team/main"))), "ValidationException");
    // A profile may have the same name, another anchor may not.
    let role = format!("arn:aws:iam::{ACCOUNT}:role/workload");
    profile(fixture, &[&role], json!({ "aliasName": "team/main" }));
    let another = json!({
        "name": "b", "source": source(&scene.root.pem()), "aliasName": "team/main",
    });
    let refused = fixture.ra("CreateTrustAnchor", another.clone()).unwrap_err();
    assert!(refused.message.contains("already exists"), "{}", refused.message);
    // Renamed, the old name is free.
    let renamed = with(&of, json!({ "aliasName": "x" }));
    let renamed = fixture.ra("UpdateTrustAnchor", renamed).unwrap()["trustAnchor"].clone();
    assert_eq!(renamed["previousAliasName"], "team/main");
    assert!(get(&alias("trust-anchor", "team/main")).is_err());
    let second = fixture.ra("CreateTrustAnchor", another).unwrap();
    assert_eq!(
        get(&alias("trust-anchor", "team/main")).unwrap(),
        second["trustAnchor"]["trustAnchorArn"]
    );
    // Deleted or emptied, too.
    fixture
        .ra("DeleteTrustAnchor", json!({ "trustAnchorId": alias("trust-anchor", "team/main") }))
        .unwrap();
    assert!(get(&alias("trust-anchor", "team/main")).is_err());
    let none = fixture.ra("UpdateTrustAnchor", with(&of, json!({ "aliasName": "" }))).unwrap();
    assert!(none["trustAnchor"].get("aliasName").is_none());
    assert!(get(&alias("trust-anchor", "x")).is_err());
}

#[test]
fn every_kind_of_resource_has_tags() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=leaf"));
    let subject = scene.session(&leaf).unwrap()["subjectArn"].clone();
    let crl = json!({
        "name": "c", "trustAnchorArn": scene.anchor, "crlData": b64(&scene.root.crl(&[], common::NOW)),
    });
    let crl = fixture.ra("ImportCrl", crl).unwrap()["crl"]["crlArn"].clone();
    for arn in [json!(scene.anchor), json!(scene.profile), crl, subject] {
        let of = json!({ "resourceArn": arn });
        let tag =
            |key: &str, value: &str| with(&of, json!({ "tags": [{ "key": key, "value": value }] }));
        let tags = || fixture.ra("ListTagsForResource", of.clone()).unwrap()["tags"].clone();
        assert_eq!(tags(), json!([]));
        fixture.ra("TagResource", tag("team", "a")).unwrap();
        fixture.ra("TagResource", tag("team", "b")).unwrap();
        fixture.ra("TagResource", tag("x", "")).unwrap();
        assert_eq!(tags(), json!([{ "key": "team", "value": "b" }, { "key": "x", "value": "" }]));
        let refused = fixture.ra("TagResource", tag("Team", "c")).unwrap_err();
        assert!(refused.message.contains("in case only"), "{}", refused.message);
        let many: Vec<_> =
            (0..49).map(|n| json!({ "key": format!("k{n}"), "value": "" })).collect();
        let refused = fixture.ra("TagResource", with(&of, json!({ "tags": many })));
        assert_eq!(code(refused), "TooManyTagsException");
        let only = policy(json!([{
            "Effect": "Allow", "Action": "*", "Resource": "*",
            "Condition": { "StringEquals": { "aws:ResourceTag/team": "b" } },
        }]));
        let reader = fixture.user(ACCOUNT, &format!("u{}", fixture.events().len()), &[only]);
        fixture.ra_as(&reader, "ListTagsForResource", of.clone()).unwrap();
        fixture.ra("UntagResource", with(&of, json!({ "tagKeys": ["team", "none"] }))).unwrap();
        assert_eq!(tags(), json!([{ "key": "x", "value": "" }]));
        let denied = fixture.ra_as(&reader, "ListTagsForResource", of.clone());
        assert_eq!(code(denied), "AccessDeniedException");
    }
    for arn in [format!("arn:aws:kms:{REGION}:{ACCOUNT}:key/{UNKNOWN}"), "x".to_owned()] {
        let of = json!({ "resourceArn": arn });
        assert_eq!(code(fixture.ra("ListTagsForResource", of)), "ValidationException");
    }
    let missing = scene.anchor.replace(id(&scene.anchor), UNKNOWN);
    let refused = fixture.ra("ListTagsForResource", json!({ "resourceArn": missing }));
    assert_eq!(code(refused), "ResourceNotFoundException");
}

#[test]
fn subject_remembers_its_certificates() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=leaf,O=Example"));
    let first =
        scene.session_with(&leaf, json!({ "instanceProperties": { "host": "a" } })).unwrap();
    let arn = text(&first["subjectArn"]).to_owned();
    fixture.advance(60);
    let other = scene.root.issue("ECC_NIST_P256", workload("CN=leaf,O=Example"));
    assert_eq!(scene.session(&other).unwrap()["subjectArn"], arn.as_str());
    let got =
        fixture.ra("GetSubject", json!({ "subjectId": id(&arn) })).unwrap()["subject"].clone();
    assert_eq!(
        (&got["subjectArn"], &got["x509Subject"]),
        (&json!(arn), &json!("CN=leaf,O=Example"))
    );
    assert_eq!(got["createdAt"], "2026-11-21T00:00:00Z");
    assert_eq!(got["lastSeenAt"], "2026-11-21T00:01:00Z");
    let credentials = got["credentials"].as_array().unwrap();
    assert_eq!(credentials.len(), 2);
    assert_eq!(credentials[0]["x509CertificateData"], other.pem());
    let serial = outlast_domain::rolesanywhere::decimal(other.certificate.serial());
    assert_eq!(credentials[0]["serialNumber"], serial);
    assert_eq!(
        (&credentials[0]["failed"], &credentials[0]["enabled"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(credentials[0]["issuer"], "CN=Root,O=Example");
    assert_eq!(got["instanceProperties"][0]["properties"], json!({ "host": "a" }));
    // A refusal of one that is trusted is remembered, too.
    scene.session_with(&leaf, json!({ "roleArn": format!("{}x", scene.role) })).unwrap_err();
    let got =
        fixture.ra("GetSubject", json!({ "subjectId": id(&arn) })).unwrap()["subject"].clone();
    assert_eq!(got["credentials"][0]["x509CertificateData"], leaf.pem());
    assert_eq!(got["credentials"][0]["failed"], true);
    for number in 0..12 {
        let more = scene.root.issue("ECC_NIST_P256", workload("CN=leaf,O=Example"));
        let body = json!({ "instanceProperties": { "host": number.to_string() } });
        scene.session_with(&more, body).unwrap();
    }
    let got =
        fixture.ra("GetSubject", json!({ "subjectId": id(&arn) })).unwrap()["subject"].clone();
    assert_eq!(got["credentials"].as_array().unwrap().len(), 10);
    assert_eq!(got["instanceProperties"].as_array().unwrap().len(), 10);
    let listed = fixture.ra("ListSubjects", json!({})).unwrap();
    assert_eq!(listed["subjects"].as_array().unwrap().len(), 1);
    assert_eq!(listed["subjects"][0]["subjectArn"], arn.as_str());
    let unknown = fixture.ra("GetSubject", json!({ "subjectId": UNKNOWN }));
    assert_eq!(code(unknown), "ResourceNotFoundException");
}

#[test]
fn every_operation_takes_its_permission() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=leaf"));
    let subject = text(&scene.session(&leaf).unwrap()["subjectArn"]).to_owned();
    let import = json!({
        "name": "c", "trustAnchorArn": scene.anchor, "crlData": b64(&scene.root.crl(&[], common::NOW)),
    });
    let crl = text(&fixture.ra("ImportCrl", import.clone()).unwrap()["crl"]["crlArn"]).to_owned();
    let (a, p, c, s) = (id(&scene.anchor), id(&scene.profile), id(&crl), id(&subject));
    let any = |kind: &str| format!("arn:aws:rolesanywhere:{REGION}:{ACCOUNT}:{kind}/*");
    let anchor_of = json!({ "trustAnchorId": a });
    let profile_of = json!({ "profileId": p });
    let crl_of = json!({ "crlId": c });
    let tags = json!({ "resourceArn": scene.anchor });
    let bodies: Vec<(&str, Value, String)> = vec![
        (
            "CreateTrustAnchor",
            json!({ "name": "a", "source": source(&scene.root.pem()) }),
            any("trust-anchor"),
        ),
        ("GetTrustAnchor", anchor_of.clone(), scene.anchor.clone()),
        ("UpdateTrustAnchor", anchor_of.clone(), scene.anchor.clone()),
        ("EnableTrustAnchor", anchor_of.clone(), scene.anchor.clone()),
        ("DisableTrustAnchor", anchor_of.clone(), scene.anchor.clone()),
        ("ListTrustAnchors", json!({}), any("trust-anchor")),
        (
            "PutNotificationSettings",
            with(&anchor_of, json!({ "notificationSettings": [] })),
            scene.anchor.clone(),
        ),
        (
            "ResetNotificationSettings",
            with(&anchor_of, json!({ "notificationSettingKeys": [] })),
            scene.anchor.clone(),
        ),
        ("CreateProfile", json!({ "name": "a", "roleArns": [] }), any("profile")),
        ("GetProfile", profile_of.clone(), scene.profile.clone()),
        ("UpdateProfile", profile_of.clone(), scene.profile.clone()),
        ("EnableProfile", profile_of.clone(), scene.profile.clone()),
        ("DisableProfile", profile_of.clone(), scene.profile.clone()),
        ("ListProfiles", json!({}), any("profile")),
        (
            "PutAttributeMapping",
            with(&profile_of, json!({ "certificateField": "x509SAN", "mappingRules": [] })),
            scene.profile.clone(),
        ),
        (
            "DeleteAttributeMapping",
            with(&profile_of, json!({ "certificateField": "x509SAN" })),
            scene.profile.clone(),
        ),
        ("ImportCrl", import, any("crl")),
        ("GetCrl", crl_of.clone(), crl.clone()),
        ("UpdateCrl", crl_of.clone(), crl.clone()),
        ("EnableCrl", crl_of.clone(), crl.clone()),
        ("DisableCrl", crl_of.clone(), crl.clone()),
        ("ListCrls", json!({}), any("crl")),
        ("GetSubject", json!({ "subjectId": s }), subject.clone()),
        ("ListSubjects", json!({}), any("subject")),
        ("TagResource", with(&tags, json!({ "tags": [] })), scene.anchor.clone()),
        ("UntagResource", with(&tags, json!({ "tagKeys": [] })), scene.anchor.clone()),
        ("ListTagsForResource", tags, scene.anchor.clone()),
        ("DeleteCrl", crl_of, crl.clone()),
        ("DeleteProfile", profile_of, scene.profile.clone()),
        ("DeleteTrustAnchor", anchor_of, scene.anchor.clone()),
    ];
    let operations = outlast_api::ops::ROLES_ANYWHERE.operations;
    assert_eq!(bodies.len(), operations.len());
    let before = fixture.store_without_uses();
    for (number, (operation, body, resource)) in bodies.iter().enumerate() {
        let action = format!("rolesanywhere:{operation}");
        let but = policy(json!([
            { "Effect": "Allow", "Action": "*", "Resource": "*" },
            { "Effect": "Deny", "Action": action, "Resource": resource },
        ]));
        let who = fixture.user(ACCOUNT, &format!("n{number}"), &[but]);
        let refused = fixture.ra_as(&who, operation, body.clone()).unwrap_err();
        assert_eq!(
            (refused.code.as_str(), refused.status),
            ("AccessDeniedException", 403),
            "{operation}"
        );
        assert!(refused.message.contains(&action), "{}", refused.message);
        assert!(refused.message.contains(resource.as_str()), "{}", refused.message);
    }
    assert_eq!(fixture.store_without_uses(), before, "a refusal changed something");
    for (number, (operation, body, resource)) in bodies.iter().enumerate() {
        let only = policy(json!([
            { "Effect": "Allow", "Action": format!("rolesanywhere:{operation}"), "Resource": resource },
        ]));
        let who = fixture.user(ACCOUNT, &format!("y{number}"), &[only]);
        fixture
            .ra_as(&who, operation, body.clone())
            .unwrap_or_else(|e| panic!("{operation}: {e:?}"));
    }
}
