//! Requests for sessions of Roles Anywhere, verified as the service would, by code that shares nothing with what signs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outlast_agent::session::{SessionError, Wanted, answer, request};
use outlast_agent::signer::{Identity, SignError};
use outlast_crypto::keys::KeySpec;
use outlast_pki::certificate::Certificate;
use outlast_pki::key_forms::PrivateKey;

use crate::authority::{Authority, START, plan};
use crate::verify::verify;

const HOST: &str = "rolesanywhere.eu-central-1.amazonaws.com";
const REGION: &str = "eu-central-1";

fn wanted() -> Wanted {
    Wanted {
        trust_anchor_arn: "arn:aws:rolesanywhere:eu-central-1:123456789012:trust-anchor/t".into(),
        profile_arn: "arn:aws:rolesanywhere:eu-central-1:123456789012:profile/p".into(),
        role_arn: "arn:aws:iam::123456789012:role/a+b".into(),
        duration_seconds: Some(900),
        role_session_name: None,
    }
}

/// A root, a CA below it, and a machine's certificate with its private key.
fn machine(spec: &'static str) -> (Authority, Authority, Certificate, PrivateKey) {
    let root = plan("ECC_NIST_P256", "Root").ca(None).issue(None);
    let sub = plan("ECC_NIST_P256", "Sub").ca(Some(0)).serial(2).issue(Some(&root));
    let row = KeySpec::by_name(spec).unwrap();
    let stored = row.generate().unwrap();
    let key = PrivateKey::parse(row.to_pkcs8(&stored).unwrap().expose()).unwrap();
    let leaf =
        plan("ECC_NIST_P256", "machine").public_key(&key.public_key).serial(0x1234_5678_9abc);
    let certificate = leaf.issue(Some(&sub)).certificate;
    (root, sub, certificate, key)
}

#[test]
fn every_kind_of_key_signs_a_request_that_verifies() {
    for (spec, algorithm) in [
        ("RSA_2048", "AWS4-X509-RSA-SHA256"),
        ("ECC_NIST_P256", "AWS4-X509-ECDSA-SHA256"),
        ("ECC_NIST_P384", "AWS4-X509-ECDSA-SHA256"),
        ("ECC_NIST_P521", "AWS4-X509-ECDSA-SHA256"),
        ("ML_DSA_44", "AWS4-X509-MLDSA"),
        ("ML_DSA_65", "AWS4-X509-MLDSA"),
        ("ML_DSA_87", "AWS4-X509-MLDSA"),
    ] {
        let (root, sub, certificate, key) = machine(spec);
        let chain = [certificate.der().to_vec(), sub.der(), root.der()];
        let identity = Identity::of_key(&chain, &key).unwrap();
        let request = request(&wanted(), &identity, HOST, REGION, START).unwrap();
        assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/sessions"));
        assert!(
            request
                .uri()
                .query()
                .unwrap()
                .contains("roleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fa%2Bb")
        );
        assert_eq!(request.body(), br#"{"durationSeconds":900}"#);
        let sent = STANDARD.decode(&request.headers()["x-amz-x509"]).unwrap();
        assert_eq!(sent, certificate.der());
        // The root is the service's to know.
        assert_eq!(STANDARD.decode(&request.headers()["x-amz-x509-chain"]).unwrap(), sub.der());
        let (head, body) = request.into_parts();
        let verified = verify(&head, &body).unwrap();
        assert_eq!(verified.algorithm, algorithm, "{spec}");
        let number = certificate.serial().iter().fold(0, |sum, byte| sum * 256 + u128::from(*byte));
        assert_eq!(verified.serial, number.to_string());
        assert_eq!(verified.scope, "20261101/eu-central-1/rolesanywhere/aws4_request");
        assert_eq!(verified.signed, "content-type;host;x-amz-date;x-amz-x509;x-amz-x509-chain");
        let mut other = head;
        other.headers.insert("x-amz-date", "20261101T000001Z".parse().unwrap());
        assert!(verify(&other, &body).is_err());
    }
}

#[test]
fn a_session_may_have_a_name_and_no_length() {
    let (_, _, certificate, key) = machine("ECC_NIST_P256");
    let identity = Identity::of_key(&[certificate.der().to_vec()], &key).unwrap();
    let wanted =
        Wanted { duration_seconds: None, role_session_name: Some("web".into()), ..wanted() };
    let request = request(&wanted, &identity, HOST, REGION, START).unwrap();
    assert_eq!(request.body(), br#"{"roleSessionName":"web"}"#);
    assert!(!request.headers().contains_key("x-amz-x509-chain"));
}

#[test]
fn certificates_and_keys_that_do_not_fit_are_refused() {
    let (_, _, certificate, _) = machine("ECC_NIST_P256");
    let other = machine("ECC_NIST_P256").3;
    let pair = Identity::of_key(&[certificate.der().to_vec()], &other);
    assert_eq!(pair.err(), Some(SignError::Pair));
    let edwards = machine("ECC_NIST_EDWARDS25519").3;
    let kind = Identity::of_key(&[certificate.der().to_vec()], &edwards).err();
    assert!(matches!(kind, Some(SignError::Kind(_))), "{kind:?}");
    assert!(Identity::of_key(&[], &other).is_err());
    assert!(Identity::of_key(&[b"x".to_vec()], &other).is_err());
    let sub = machine("ECC_NIST_P256").1.der();
    let mut long = vec![certificate.der().to_vec()];
    long.extend(std::iter::repeat_n(sub, 6));
    let (_, _, _, key) = machine("ECC_NIST_P256");
    assert_eq!(Identity::of_key(&long, &key).err(), Some(SignError::Chain));
}

#[test]
fn answers_are_sessions_refusals_or_absences() {
    let body = br#"{"credentialSet":[{"assumedRoleUser":{"arn":"a","assumedRoleId":"i"},
        "credentials":{"accessKeyId":"ASIA1","secretAccessKey":"s","sessionToken":"t",
        "expiration":"2026-11-01T01:00:00Z"},"packedPolicySize":1,"roleArn":"r"}],"subjectArn":"x"}"#;
    let session = answer(201, None, body).ok().unwrap();
    assert_eq!((session.access_key_id.as_str(), session.expiration), ("ASIA1", START + 3600));
    assert_eq!((session.secret.expose(), session.token.expose()), (&b"s"[..], &b"t"[..]));
    let refused = answer(403, Some("AccessDeniedException:http://x"), br#"{"message":"no"}"#).err();
    let Some(SessionError::Refused { status, code, message }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((status, code.as_str(), message.as_str()), (403, "AccessDeniedException", "no"));
    assert_eq!(answer(503, None, b"").err(), Some(SessionError::Away(503)));
    assert_eq!(answer(404, None, b"<html>").err(), Some(SessionError::Away(404)));
    for wrong in [&b"{}"[..], b"{\"credentialSet\":[]}", b"secret"] {
        let error = answer(201, None, wrong).err().unwrap();
        assert!(matches!(error, SessionError::Unreadable(_)), "{error}");
        assert!(!error.to_string().contains("secret"));
    }
}
