//! Private CAs and Certificate Manager, untyped.

use outlast_crypto::encrypted;
use outlast_crypto::{Secret, keys::KeySpec};
use outlast_pki::certificate::Certificate;
use outlast_pki::pem;
use serde_json::{Value, json};

use super::common::{Answer, Fixture, REGION, Refused, Who, b64, text, unb64};

fn call(
    fixture: &Fixture,
    who: &Who,
    (service, prefix): (&str, &str),
    operation: &str,
    body: &Value,
) -> Answer {
    let mut headers = http::HeaderMap::new();
    headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
    headers.insert("x-amz-target", format!("{prefix}.{operation}").parse().unwrap());
    let response = fixture.request(who, service, headers, body.to_string().as_bytes());
    let value: Value = serde_json::from_slice(&response.body).unwrap();
    if response.status == 200 {
        return Ok(value);
    }
    let member = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    Err(Refused { code: member("__type"), message: member("message"), status: response.status })
}

pub fn acm_as(fixture: &Fixture, who: &Who, operation: &str, body: &Value) -> Answer {
    call(fixture, who, ("acm", "CertificateManager"), operation, body)
}

pub fn acm(fixture: &Fixture, operation: &str, body: &Value) -> Answer {
    acm_as(fixture, &Who::admin(), operation, body)
}

pub fn pca(fixture: &Fixture, operation: &str, body: &Value) -> Answer {
    call(fixture, &Who::admin(), ("acm-pca", "ACMPrivateCA"), operation, body)
}

/// A root CA with this key and signing algorithm, and more members of the request; it ends in so many days.
#[track_caller]
pub fn root_ca(fixture: &Fixture, algorithms: (&str, &str), days: i64, more: Value) -> String {
    let body = json!({
        "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": algorithms.0, "SigningAlgorithm": algorithms.1,
            "Subject": { "CommonName": "Root", "Organization": "Outlast" },
        },
        "CertificateAuthorityType": "ROOT",
    });
    let made =
        pca(fixture, "CreateCertificateAuthority", &super::common::with(&body, more)).unwrap();
    let arn = text(&made["CertificateAuthorityArn"]).to_owned();
    certify(fixture, &arn, algorithms.1, days);
    arn
}

/// Gives a root CA a certificate that ends in so many days.
#[track_caller]
pub fn certify(fixture: &Fixture, arn: &str, algorithm: &str, days: i64) {
    let of = json!({ "CertificateAuthorityArn": arn });
    let csr = pca(fixture, "GetCertificateAuthorityCsr", &of).unwrap();
    let issued = pca(fixture, "IssueCertificate", &json!({
        "CertificateAuthorityArn": arn, "Csr": b64(text(&csr["Csr"]).as_bytes()), "SigningAlgorithm": algorithm,
        "TemplateArn": "arn:aws:acm-pca:::template/RootCACertificate/V1",
        "Validity": { "Type": "DAYS", "Value": days },
    }))
    .unwrap();
    let found = pca(
        fixture,
        "GetCertificate",
        &json!({
            "CertificateAuthorityArn": arn, "CertificateArn": issued["CertificateArn"],
        }),
    )
    .unwrap();
    pca(fixture, "ImportCertificateAuthorityCertificate", &json!({
        "CertificateAuthorityArn": arn, "Certificate": b64(text(&found["Certificate"]).as_bytes()),
    }))
    .unwrap();
}

pub const ECDSA: (&str, &str) = ("EC_prime256v1", "SHA256WITHECDSA");
pub const ML_DSA: (&str, &str) = ("ML_DSA_65", "ML_DSA_65");

/// A root CA with ECDSA for ten years.
#[track_caller]
pub fn ca(fixture: &Fixture) -> String {
    root_ca(fixture, ECDSA, 3650, json!({}))
}

/// Lets Certificate Manager renew from a CA.
#[track_caller]
pub fn permit(fixture: &Fixture, authority: &str) {
    pca(
        fixture,
        "CreatePermission",
        &json!({
            "CertificateAuthorityArn": authority, "Principal": "acm.amazonaws.com",
            "Actions": ["IssueCertificate", "GetCertificate", "ListPermissions"],
        }),
    )
    .unwrap();
}

/// Requests a certificate for `name` with an EC key: its ARN.
#[track_caller]
pub fn requested(fixture: &Fixture, authority: &str, name: &str, more: Value) -> String {
    let body = json!({
        "DomainName": name, "CertificateAuthorityArn": authority, "KeyAlgorithm": "EC_prime256v1",
    });
    let made = acm(fixture, "RequestCertificate", &super::common::with(&body, more)).unwrap();
    text(&made["CertificateArn"]).to_owned()
}

pub fn of(arn: &str) -> Value {
    json!({ "CertificateArn": arn })
}

#[track_caller]
pub fn described(fixture: &Fixture, arn: &str) -> Value {
    acm(fixture, "DescribeCertificate", &of(arn)).unwrap()["Certificate"].clone()
}

/// The certificate and its chain.
#[track_caller]
pub fn got(fixture: &Fixture, arn: &str) -> (Certificate, Vec<Certificate>) {
    let found = acm(fixture, "GetCertificate", &of(arn)).unwrap();
    let parse = |value: &Value| {
        let list = pem::read_certificates(text(value).as_bytes()).unwrap();
        list.iter().map(|der| Certificate::parse(der).unwrap()).collect::<Vec<_>>()
    };
    let chain = found.get("CertificateChain").map(parse).unwrap_or_default();
    (parse(&found["Certificate"]).remove(0), chain)
}

pub const PASSPHRASE: &[u8] = b"a passphrase";

/// The public key of the exported private key.
#[track_caller]
pub fn exported_key(answer: &Value, key_algorithm: &str) -> Vec<u8> {
    let pem = text(&answer["PrivateKey"]);
    assert!(pem.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"), "{pem}");
    let lines: String =
        pem.lines().filter(|line| !line.starts_with("-----")).collect::<Vec<_>>().concat();
    let der = unb64(&json!(lines));
    assert!(encrypted::scheme(&der).unwrap().contains("PBKDF2"));
    let key = encrypted::decrypt(&der, &Secret::new(PASSPHRASE.to_vec())).unwrap();
    let spec = KeySpec::by_pca_name(key_algorithm).unwrap();
    let imported = spec.import(key.expose()).unwrap();
    spec.load(&imported.stored).unwrap().public_key().unwrap().to_vec()
}

/// A request that imports what was issued for `arn`, with its key.
#[track_caller]
pub fn importable(fixture: &Fixture, arn: &str) -> Value {
    let export = json!({ "CertificateArn": arn, "Passphrase": b64(PASSPHRASE) });
    let found = acm(fixture, "ExportCertificate", &export).unwrap();
    let sealed: String =
        text(&found["PrivateKey"]).lines().filter(|line| !line.contains('-')).collect();
    let key =
        encrypted::decrypt(&unb64(&json!(sealed)), &Secret::new(PASSPHRASE.to_vec())).unwrap();
    let key =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", b64(key.expose()));
    json!({
        "Certificate": b64(text(&found["Certificate"]).as_bytes()), "PrivateKey": b64(key.as_bytes()),
        "CertificateChain": b64(text(&found["CertificateChain"]).as_bytes()),
    })
}

pub fn record_key(kind: &str, arn: &str) -> String {
    let id = arn.rsplit('/').next().unwrap();
    format!("acm/{kind}/{}/{REGION}/{id}", super::common::ACCOUNT)
}
