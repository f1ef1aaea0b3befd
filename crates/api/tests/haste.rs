//! A slow call is not started under a time limit, however the request is spelled, and the step names its signer.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::certificates;
use crate::common;

use common::authorities::{leaf_body, leaf_request};
use common::{Fixture, Who, policy, route_of};
use outlast_api::service::Step;
use outlast_crypto::pace;
use outlast_store::Store;
use serde_json::json;

const ADMIN: &str = "arn:aws:iam::123456789012:user/admin";

/// The signer's ARN if the call takes long; `None` if it was prepared.
fn in_haste(fixture: &Fixture, service: &str, target: &str, body: &str) -> Option<String> {
    let signed = fixture.raw(service, target, body.as_bytes());
    let (route, request) = (route_of(&signed), fixture.received(&signed));
    let before = fixture.store.scan("", "", 100_000).unwrap().len();
    let step = pace::quickly(|| fixture.service.prepare(route, &request));
    assert_eq!(fixture.store.scan("", "", 100_000).unwrap().len(), before);
    match step {
        Step::Commit(prepared) => {
            assert_eq!(prepared.response.status, 200, "{target}: {:?}", prepared.response.error);
            None
        }
        Step::TakesLong(signer) => {
            // Without a time limit it is carried out.
            match fixture.service.prepare(route, &request) {
                Step::Commit(prepared) => assert_eq!(prepared.response.status, 200, "{target}"),
                _ => panic!("{target} is not carried out"),
            }
            Some(signer)
        }
        Step::Respond(response) => {
            panic!("{target}: {}", String::from_utf8_lossy(&response.body))
        }
        Step::Again => panic!("{target}: a conflict"),
        Step::Ask(_) => panic!("{target} asks outside"),
    }
}

#[test]
fn slow_work_is_recognised_however_it_is_spelled() {
    let fixture = Fixture::new();
    let kms = |operation: &str, body: &str| {
        in_haste(&fixture, "kms", &format!("TrentService.{operation}"), body)
    };
    let admin = Some(ADMIN.to_owned());
    for body in [
        r#"{"KeySpec":"RSA_4096","KeyUsage":"SIGN_VERIFY"}"#,
        r#"{"KeySpec":"RSA\u005f2048","KeyUsage":"SIGN_VERIFY"}"#,
        r#"{"CustomerMasterKeySpec":"\u0052SA_3072","KeyUsage":"SIGN_VERIFY"}"#,
        r#"{"KeySpec":"SLH_DSA_SHA2_128S","KeyUsage":"SIGN_VERIFY"}"#,
    ] {
        assert_eq!(kms("CreateKey", body), admin, "{body}");
    }
    for body in
        ["{}", r#"{"KeySpec":"ML_DSA_65","KeyUsage":"SIGN_VERIFY","Description":"RSA_4096"}"#]
    {
        assert_eq!(kms("CreateKey", body), None, "{body}");
    }
    let key = fixture.key_of("SLH_DSA_SHA2_128S", "SIGN_VERIFY");
    for name in ["SLH_DSA_SHA2_128S", "\\u0053LH_DSA_SHA2_128S"] {
        let body = format!(
            r#"{{"KeyId":"{key}","Message":"eA==","MessageType":"RAW","SigningAlgorithm":"{name}"}}"#
        );
        assert_eq!(kms("Sign", &body), admin, "{body}");
    }
    let quick = fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY");
    let body = json!({ "KeyId": quick, "Message": "eA==", "SigningAlgorithm": "ECDSA_SHA_256" });
    assert_eq!(kms("Sign", &body.to_string()), None);
    let import = fixture.key(json!({ "Origin": "EXTERNAL" }));
    let body = json!({
        "KeyId": import, "WrappingAlgorithm": "RSAES_OAEP_SHA_256", "WrappingKeySpec": "RSA_2048",
    });
    assert_eq!(kms("GetParametersForImport", &body.to_string()), admin);
    let wrapping = fixture.key(json!({}));
    for (spec, long) in [("RSA_2048", true), ("ECC_NIST_P256", false)] {
        let body = json!({ "KeyId": wrapping, "KeyPairSpec": spec }).to_string();
        for operation in ["GenerateDataKeyPair", "GenerateDataKeyPairWithoutPlaintext"] {
            assert_eq!(kms(operation, &body).is_some(), long, "{operation} {spec}");
        }
    }
}

#[test]
fn what_a_ca_takes_is_told_by_its_key() {
    let fixture = Fixture::new();
    let slow = ("SLH_DSA_SHA2_128S", "SLH_DSA_SHA2_128S");
    let body = json!({
        "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": slow.0, "SigningAlgorithm": slow.1, "Subject": { "CommonName": "Root" },
        },
        "CertificateAuthorityType": "ROOT",
    });
    let pca = |operation: &str, body: &str| {
        in_haste(&fixture, "acm-pca", &format!("ACMPrivateCA.{operation}"), body)
    };
    let admin = Some(ADMIN.to_owned());
    assert_eq!(pca("CreateCertificateAuthority", &body.to_string()), admin);
    let (_, csr) = leaf_request("ECC_NIST_P256", "a");
    for (algorithms, long) in [(slow, true), (("EC_prime256v1", "SHA256WITHECDSA"), false)] {
        let arn = certificates::root_ca(&fixture, algorithms, 365, json!({}));
        let body = leaf_body(&arn, &csr, algorithms.1, "EndEntityCertificate");
        assert_eq!(pca("IssueCertificate", &body.to_string()).is_some(), long, "{arn}");
        for (key, makes_rsa) in [("RSA_2048", true), ("EC_prime256v1", false)] {
            let body = json!({
                "DomainName": "a.example", "CertificateAuthorityArn": arn, "KeyAlgorithm": key,
            });
            let target = "CertificateManager.RequestCertificate";
            let signer = in_haste(&fixture, "acm", target, &body.to_string());
            assert_eq!(signer.is_some(), long || makes_rsa, "{key}");
        }
    }
    let signer = in_haste(&fixture, "acm", "CertificateManager.ListCertificates", "{}");
    assert_eq!(signer, admin, "it looks through everything");
}

#[test]
fn sessions_count_for_their_role() {
    let mut fixture = Fixture::new();
    let trust = policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": common::ACCOUNT }, "Action": "sts:AssumeRole",
    }]));
    let role = fixture.role(common::ACCOUNT, "maker", &trust, &[common::allow(&["kms:*"])]);
    let session = fixture.session(&Who::admin(), &role, &[]);
    fixture.client.credentials.access_key_id = session.id;
    fixture.client.credentials.secret = outlast_crypto::Secret::new(session.secret);
    fixture.client.credentials.token =
        session.token.map(|token| outlast_crypto::Secret::new(token.into_bytes()));
    let body = r#"{"KeySpec":"RSA_2048","KeyUsage":"SIGN_VERIFY"}"#;
    assert_eq!(in_haste(&fixture, "kms", "TrentService.CreateKey", body), Some(role));

    fixture.client = common::client(common::ACCESS_KEY, common::REGION);
    fixture.client.credentials.secret = outlast_crypto::Secret::new(b"wrong".to_vec());
    let signed = fixture.raw("kms", "TrentService.CreateKey", body.as_bytes());
    let (route, request) = (route_of(&signed), fixture.received(&signed));
    match pace::quickly(|| fixture.service.prepare(route, &request)) {
        Step::Respond(response) => {
            assert_eq!(common::error_code(&response), "InvalidSignatureException");
        }
        _ => panic!("it was believed"),
    }
}
