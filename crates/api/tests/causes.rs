//! Mistakes of callers and AWS's answers: operation, request, code, status, text, and the source of each.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::causes_support;
use crate::certificates;
use crate::common;

use crate::rolesanywhere_support::{Holder, anchor, workload};
use causes_support::{
    Cause, Text, acm, kms, private_ca, rolesanywhere, secretsmanager, sts, transfer,
};
use common::{ACCOUNT, Fixture, b64};
use serde_json::{Value, json};

/// Keys for the requests, by the placeholders in their bodies.
fn keys(fixture: &Fixture) -> Vec<(&'static str, String)> {
    let create = |body: Value| {
        let made = fixture.kms("CreateKey", body).unwrap();
        made["KeyMetadata"]["Arn"].as_str().unwrap().to_owned()
    };
    let disabled = create(json!({ "KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC" }));
    fixture.kms("DisableKey", json!({ "KeyId": disabled })).unwrap();
    let going = create(json!({}));
    fixture.kms("ScheduleKeyDeletion", json!({ "KeyId": going })).unwrap();
    let plain = create(json!({}));
    let other = create(json!({}));
    let sealed = fixture.kms("Encrypt", json!({ "KeyId": plain, "Plaintext": "YQ==" })).unwrap();
    vec![
        ("{disabled}", disabled),
        ("{going}", going),
        ("{plain}", plain),
        ("{other}", other),
        ("{sealed}", sealed["CiphertextBlob"].as_str().unwrap().to_owned()),
        ("{rsa}", create(json!({ "KeySpec": "RSA_2048", "KeyUsage": "ENCRYPT_DECRYPT" }))),
        ("{ec}", create(json!({ "KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY" }))),
        ("{mac}", create(json!({ "KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC" }))),
        ("{large}", b64(&[7; 191])),
        (
            "{many}",
            (0..51)
                .map(|n| format!(r#"{{"TagKey":"k{n}","TagValue":""}}"#))
                .collect::<Vec<_>>()
                .join(","),
        ),
        (
            "{missing}",
            format!("arn:aws:kms:eu-west-1:{ACCOUNT}:key/00000000-0000-0000-0000-000000000000"),
        ),
    ]
}

/// Members that AWS's model requires of an error.
fn required(service: &str, code: &str) -> Vec<String> {
    let service = service.replace('-', "_");
    let path = format!("{}/models/{service}.json", env!("CARGO_MANIFEST_DIR"));
    let model: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let required = model["shapes"][code]["required"].as_array();
    required.into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Sends the request of a cause and checks the answer.
fn holds(
    fixture: &Fixture,
    (service, prefix): (&str, &str),
    (operation, body, code, status, text, source): &Cause,
    filled: &dyn Fn(&str) -> String,
) {
    let (body, target) = (filled(body), format!("{prefix}.{operation}"));
    let response = fixture.send(&fixture.raw(service, &target, body.as_bytes()));
    let answer: Value = serde_json::from_slice(&response.body).unwrap();
    let got = (response.status, answer["__type"].as_str());
    assert_eq!(got, (*status, Some(*code)), "{operation} {body} ({source}): {answer}");
    for member in
        required(service, code).iter().filter(|name| !name.eq_ignore_ascii_case("message"))
    {
        let text = answer[member].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "{operation} {body}: {code} has no {member}: {answer}");
    }
    let said = answer.get("message").or(answer.get("Message"));
    let said = said.map(|message| message.as_str().unwrap());
    match text {
        Text::None => assert_eq!(said, None, "{operation} {body} ({source})"),
        Text::Aws(text) => assert_eq!(said.unwrap(), filled(text), "{operation} {body} ({source})"),
        Text::Ours(words) => {
            assert!(said.unwrap().contains(&filled(words)), "{operation} {body}: {answer}");
        }
    }
}

#[test]
fn kms_errors_match_aws() {
    let fixture = Fixture::new();
    let keys = keys(&fixture);
    let filled = |text: &str| {
        keys.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    for cause in kms::CAUSES {
        holds(&fixture, ("kms", "TrentService"), cause, &filled);
    }
    // A policy can be set on a key that is pending deletion; what AWS reserves is not authorized.
    let policy = json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow",
        "Principal": { "AWS": format!("arn:aws:iam::{ACCOUNT}:root") }, "Action": "kms:*", "Resource": "*" }] });
    fixture
        .kms("PutKeyPolicy", json!({ "KeyId": filled("{going}"), "Policy": policy.to_string() }))
        .unwrap();
    // A statement without Resource is stored and has no effect: it neither allows nor denies.
    let user = fixture.user(ACCOUNT, "reader", &[]);
    let may = |principal: &str, effect: &str| {
        let mut policy = policy.clone();
        let more =
            json!({ "Effect": effect, "Principal": { "AWS": principal }, "Action": "kms:*" });
        policy["Statement"].as_array_mut().unwrap().push(more);
        let body = json!({ "KeyId": filled("{plain}"), "Policy": policy.to_string() });
        fixture.kms("PutKeyPolicy", body).unwrap();
        let body = json!({ "KeyId": filled("{plain}"), "PolicyName": "default" });
        let stored = fixture.kms("GetKeyPolicy", body).unwrap();
        assert!(stored["Policy"].as_str().unwrap().contains(principal));
    };
    let encrypt = json!({ "KeyId": filled("{plain}"), "Plaintext": "YQ==" });
    may(&format!("arn:aws:iam::{ACCOUNT}:user/reader"), "Allow");
    assert_eq!(
        fixture.kms_as(&user, "Encrypt", encrypt.clone()).unwrap_err().code,
        "AccessDeniedException"
    );
    may("*", "Deny");
    fixture.kms("Encrypt", encrypt).unwrap();
    let alias = json!({ "AliasName": "alias/aws/x", "TargetKeyId": filled("{plain}") });
    assert_eq!(fixture.kms("CreateAlias", alias).unwrap_err().code, "NotAuthorizedException");
    println!("{} causes", kms::CAUSES.len());
}

/// A body in JSON as text.
fn body(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn private_ca_errors_match_aws() {
    let fixture = Fixture::new();
    let of = |arn: &str| json!({ "CertificateAuthorityArn": arn });
    let pca = |operation: &str, body: Value| certificates::pca(&fixture, operation, &body).unwrap();
    let create = || {
        let made = pca(
            "CreateCertificateAuthority",
            json!({
                "CertificateAuthorityType": "ROOT",
                "CertificateAuthorityConfiguration": {
                    "KeyAlgorithm": "EC_prime256v1", "SigningAlgorithm": "SHA256WITHECDSA",
                    "Subject": { "CommonName": "Root" },
                },
            }),
        );
        body(&made["CertificateAuthorityArn"])
    };
    let (active, pending, deleted) = (certificates::ca(&fixture), create(), create());
    pca("DeleteCertificateAuthority", of(&deleted));
    certificates::permit(&fixture, &active);
    let csr = b64(body(&pca("GetCertificateAuthorityCsr", of(&pending))["Csr"]).as_bytes());
    let issued = pca(
        "IssueCertificate",
        json!({
            "CertificateAuthorityArn": active, "Csr": csr, "SigningAlgorithm": "SHA256WITHECDSA",
            "Validity": { "Type": "DAYS", "Value": 1 },
        }),
    );
    let serial = issued["CertificateArn"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let revoke = json!({
        "CertificateAuthorityArn": active, "CertificateSerial": serial, "RevocationReason": "SUPERSEDED",
    });
    pca("RevokeCertificate", revoke);
    let own = pca("GetCertificateAuthorityCertificate", of(&active));
    let here = format!("arn:aws:acm-pca:eu-west-1:{ACCOUNT}:");
    let keys = [
        ("{active}", active),
        ("{pending}", pending),
        ("{deleted}", deleted),
        ("{csr}", csr),
        ("{revoked}", serial),
        ("{certificate}", b64(body(&own["Certificate"]).as_bytes())),
        ("{missing}", format!("{here}certificate-authority/00000000-0000-0000-0000-000000000000")),
        ("{here}", here),
    ];
    let filled = |text: &str| {
        keys.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    for cause in private_ca::CAUSES {
        holds(&fixture, ("acm-pca", "ACMPrivateCA"), cause, &filled);
    }
    println!("{} causes", private_ca::CAUSES.len());
}

#[test]
fn certificate_manager_errors_match_aws() {
    let fixture = Fixture::new();
    let authority = certificates::ca(&fixture);
    let arn = certificates::requested(&fixture, &authority, "a.example.com", json!({}));
    let got = certificates::acm(&fixture, "GetCertificate", &certificates::of(&arn)).unwrap();
    let two = format!("{}\n{}", body(&got["Certificate"]), body(&got["CertificateChain"]));
    let import = certificates::importable(&fixture, &arn);
    let imported = certificates::acm(&fixture, "ImportCertificate", &import).unwrap();
    let here = format!("arn:aws:acm:eu-west-1:{ACCOUNT}:");
    let tags: Vec<_> = (0..50).map(|n| json!({ "Key": format!("k{n}"), "Value": "" })).collect();
    let tags = json!({ "CertificateArn": imported["CertificateArn"], "Tags": tags });
    certificates::acm(&fixture, "AddTagsToCertificate", &tags).unwrap();
    let keys = [
        ("{imported}", body(&imported["CertificateArn"])),
        ("{two}", b64(two.as_bytes())),
        ("{key}", body(&import["PrivateKey"])),
        ("{passphrase}", b64(b"passphrase")),
        (
            "{missing-ca}",
            format!(
                "arn:aws:acm-pca:eu-west-1:{ACCOUNT}:certificate-authority/00000000-0000-0000-0000-000000000000"
            ),
        ),
        ("{missing}", format!("{here}certificate/00000000-0000-0000-0000-000000000000")),
        ("{here}", here),
    ];
    let filled = |text: &str| {
        keys.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    for cause in acm::CAUSES {
        holds(&fixture, ("acm", "CertificateManager"), cause, &filled);
    }
    println!("{} causes", acm::CAUSES.len());
}

#[test]
fn secrets_manager_errors_match_aws() {
    let fixture = Fixture::new();
    let current = "22222222222222222222222222222222";
    let plain = fixture.secret("plain", "one");
    let listed = fixture.secrets("ListSecretVersionIds", json!({ "SecretId": plain })).unwrap();
    let previous = body(&listed["Versions"][0]["VersionId"]);
    let put = json!({ "SecretId": plain, "SecretString": "two", "ClientRequestToken": current });
    fixture.secrets("PutSecretValue", put).unwrap();
    fixture.secrets("CreateSecret", json!({ "Name": "empty" })).unwrap();
    let replicated = fixture.secret("replicated", "x");
    let add =
        json!({ "SecretId": replicated, "AddReplicaRegions": [{ "Region": "eu-central-1" }] });
    fixture.secrets("ReplicateSecretToRegions", add).unwrap();
    let deleted = fixture.secret("deleted", "x");
    fixture.secrets("DeleteSecret", json!({ "SecretId": deleted })).unwrap();
    let mac = fixture.key(json!({ "KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC" }));
    let keys = [
        ("{plain}", plain),
        ("{current}", current.to_owned()),
        ("{previous}", previous),
        ("{mac}", mac),
    ];
    let filled = |text: &str| {
        keys.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    for cause in secretsmanager::CAUSES {
        holds(&fixture, ("secretsmanager", "secretsmanager"), cause, &filled);
    }
    println!("{} causes", secretsmanager::CAUSES.len());
}

#[test]
fn roles_anywhere_errors_match_aws() {
    let fixture = Fixture::new();
    let root = Holder::root("ECC_NIST_P256", "CN=Root");
    let leaf = root.issue("ECC_NIST_P256", workload("CN=alice"));
    let many: Vec<_> = (0..51).map(|n| format!(r#"{{"key":"k{n}","value":""}}"#)).collect();
    let keys = [
        ("{anchor}", anchor(&fixture, &root.pem())),
        ("{leaf}", leaf.pem().replace('\n', "\\n")),
        ("{many}", many.join(",")),
        ("{missing}", "00000000-0000-0000-0000-000000000000".to_owned()),
    ];
    let filled = |text: &str| {
        keys.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    for (operation, body, code, status, text, source) in rolesanywhere::CAUSES {
        let body = serde_json::from_str(&filled(body)).unwrap();
        let refused = fixture.ra(operation, body).unwrap_err();
        let got = (refused.code.as_str(), refused.status);
        assert_eq!(got, (*code, *status), "{operation} ({source}): {}", refused.message);
        match text {
            Text::Aws(text) => assert_eq!(refused.message, filled(text), "{operation} ({source})"),
            Text::Ours(words) => {
                assert!(refused.message.contains(&filled(words)), "{}", refused.message);
            }
            Text::None => panic!("Roles Anywhere always says something"),
        }
    }
    println!("{} causes", rolesanywhere::CAUSES.len());
}

#[test]
fn transfer_family_errors_match_aws() {
    let fixture = Fixture::new();
    let (server, role) =
        (fixture.server(json!({})), crate::transfer_support::role(&fixture, "users"));
    fixture.sftp_user(&server, "alice", &role, json!({}));
    let keys = [("{server}", server), ("{role}", role), ("{key}", crate::transfer_support::key(1))];
    let filled = |text: &str| {
        keys.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    for cause in transfer::CAUSES {
        holds(&fixture, ("transfer", "TransferService"), cause, &filled);
    }
    println!("{} causes", transfer::CAUSES.len());
}

#[test]
fn sts_errors_match_aws() {
    let fixture = Fixture::new();
    let trust = common::policy(json!({
        "Effect": "Allow", "Principal": { "AWS": format!("arn:aws:iam::{ACCOUNT}:root") },
        "Action": "sts:AssumeRole",
    }));
    let role = fixture.role(ACCOUNT, "role", &trust, &[]);
    let other = role.replace(":role/role", ":role/other");
    for (form, code, status, text, source) in sts::CAUSES {
        let filled = |text: &str| text.replace("{role}", &role).replace("{other}", &other);
        let form: Vec<_> = form.iter().map(|(name, value)| (*name, filled(value))).collect();
        let form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let response = fixture.sts_as(&common::Who::admin(), &form);
        let xml = String::from_utf8(response.body).unwrap();
        let got = (response.status, common::element(&xml, "Code"));
        assert_eq!(got, (*status, (*code).to_owned()), "{form:?} ({source}): {xml}");
        let said = common::element(&xml, "Message").replace("&apos;", "'").replace("&#39;", "'");
        match text {
            Text::Aws(text) => assert_eq!(said, filled(text), "{form:?} ({source})"),
            Text::Ours(words) => assert!(said.contains(&filled(words)), "{form:?}: {said}"),
            Text::None => panic!("STS always says something"),
        }
    }
    println!("{} causes", sts::CAUSES.len());
}
