//! Verifies a request for a session as Roles Anywhere does, by code that shares nothing with what signs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::request::Parts;
use outlast_crypto::digests::sha256;
use outlast_crypto::signatures::{Family, Message, SIGNATURES};
use outlast_pki::certificate::Certificate;

/// What the signature covers.
#[derive(Debug)]
#[allow(dead_code, reason = "each test reads its own part")]
pub struct Verified {
    pub algorithm: String,
    /// Serial number in decimal.
    pub serial: String,
    pub scope: String,
    /// Names of the signed headers.
    pub signed: String,
}

/// Verifies the signature with the certificate in the request.
pub fn verify(head: &Parts, body: &[u8]) -> Result<Verified, String> {
    let header = |name: &str| head.headers[name].to_str().unwrap();
    let certificate = Certificate::parse(&STANDARD.decode(header("x-amz-x509")).unwrap()).unwrap();
    let (algorithm, rest) = header("authorization").split_once(' ').unwrap();
    let field = |name: &str| {
        let mut parts = rest.split([',', ' ']);
        parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('=')).unwrap().to_owned()
    };
    let credential = field("Credential");
    let (serial, scope) = credential.split_once('/').unwrap();
    let signed = field("SignedHeaders");
    let mut query: Vec<&str> = head.uri.query().unwrap_or_default().split('&').collect();
    query.sort_unstable();
    let mut lines = vec![head.method.to_string(), head.uri.path().to_owned(), query.join("&")];
    lines.extend(signed.split(';').map(|name| format!("{name}:{}", header(name).trim())));
    lines.extend([String::new(), signed.clone(), hex::encode(sha256(body))]);
    let digest = hex::encode(sha256(lines.join("\n").as_bytes()));
    let string = format!("{algorithm}\n{}\n{scope}\n{digest}", header("x-amz-date"));
    let signature = hex::decode(field("Signature")).unwrap();
    let digest = sha256(string.as_bytes());
    // ML-DSA signs the string, the others its SHA-256.
    let (message, kms_name) = match algorithm {
        "AWS4-X509-RSA-SHA256" => (Message::Digest(&digest), "RSASSA_PKCS1_V1_5_SHA_256"),
        "AWS4-X509-ECDSA-SHA256" => (Message::Digest(&digest), "ECDSA_SHA_256"),
        "AWS4-X509-MLDSA" => (Message::Raw(string.as_bytes()), "ML_DSA_SHAKE_256"),
        other => return Err(format!("{other} is not an algorithm")),
    };
    let public_key = certificate.public_key().unwrap();
    let oid = certificate.public_key_algorithm();
    let fits = SIGNATURES.iter().any(|row| {
        row.kms_name == kms_name
            && (row.family != Family::MlDsa || row.oid == Some(oid))
            && row.verify(&public_key, message, &signature).is_ok()
    });
    let (algorithm, serial, scope) = (algorithm.to_owned(), serial.to_owned(), scope.to_owned());
    fits.then_some(Verified { algorithm, serial, scope, signed })
        .ok_or("the signature is wrong".into())
}
