//! `outlast inspect`: shows what is in a certificate, a certificate request or a CMS signature.

use std::fmt::Write as _;
use std::path::PathBuf;

use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::SignatureAlgorithm;
use outlast_pki::certificate::Certificate;
use outlast_pki::cms::MAX_MESSAGE_LEN;
use outlast_pki::cms::verify::SignedMessage;
use outlast_pki::csr::CertificateRequest;
use outlast_pki::pem;
use outlast_pki::time::rfc3339;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Arguments of `inspect`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// PEM or DER file.
    file: PathBuf,
}

/// Prints what was found. Nothing of it is verified, but a request's own signature.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let bytes = files::read(&arguments.file, MAX_MESSAGE_LEN)?;
    let found = inspect(&bytes).ok_or_else(|| {
        Failure::file(
            &arguments.file,
            &"this is no certificate, certificate request or CMS signature",
        )
    })?;
    let mut text = String::new();
    print(&found, 0, &mut text);
    output.result(&text, &found);
    Ok(())
}

fn inspect(bytes: &[u8]) -> Option<Value> {
    if let Ok(message) = SignedMessage::parse(bytes) {
        return Some(message_json(&message, bytes.len()));
    }
    if let Ok(certificates) = pem::read_certificates(bytes) {
        let list: Vec<_> = certificates
            .iter()
            .filter_map(|der| Certificate::parse(der).ok())
            .map(|certificate| certificate_json(&certificate))
            .collect();
        return Some(json!({ "type": "certificates", "certificates": list }));
    }
    match CertificateRequest::parse_and_verify(bytes) {
        Ok(request) => Some(json!({
            "type": "certificate request",
            "subject": request.subject.to_string(),
            "public key bytes": request.public_key.len(),
            "extensions": request.extensions.iter().map(|e| e.extn_id.to_string()).collect::<Vec<_>>(),
            "signature": "valid",
        })),
        Err(outlast_pki::PkiError::RequestSignature) => {
            Some(json!({ "type": "certificate request", "signature": "NOT VALID" }))
        }
        Err(_) => None,
    }
}

fn message_json(message: &SignedMessage, len: usize) -> Value {
    let signers: Vec<_> = message
        .claims()
        .iter()
        .map(|claim| {
            json!({
                "signer": claim.certificate.as_ref().map(|found| found.subject().to_string()),
                "signature algorithm": signature_name(claim.signature),
                "signature bytes": claim.signature_len,
                "digest": Digest::by_oid(claim.digest)
                    .map_or_else(|| claim.digest.to_string(), |row| row.name.to_owned()),
                "message digest": claim.message_digest.as_ref().map(hex::encode),
                "signing time": claim.signing_time.map(rfc3339),
            })
        })
        .collect();
    let certificates: Vec<_> = message
        .certificates
        .iter()
        .filter_map(|der| Certificate::parse(der).ok())
        .map(|certificate| certificate_json(&certificate))
        .collect();
    json!({
        "type": "CMS signature",
        "bytes": len,
        "content": message.content().map_or("detached", |_| "attached"),
        "signers": signers,
        "certificates": certificates,
    })
}

fn certificate_json(certificate: &Certificate) -> Value {
    let constraints = certificate.basic_constraints();
    json!({
        "subject": certificate.subject().to_string(),
        "issuer": certificate.issuer().to_string(),
        "serial": hex::encode(certificate.serial()),
        "not before": rfc3339(certificate.not_before()),
        "not after": rfc3339(certificate.not_after()),
        "public key algorithm": signature_name(certificate.public_key_algorithm()),
        "signature algorithm": signature_name(certificate.signature_algorithm()),
        "bytes": certificate.der().len(),
        "CA": constraints.as_ref().is_some_and(|found| found.ca),
        "path length": constraints.and_then(|found| found.path_len_constraint),
        "key usage": certificate.key_usage().map(|(critical, usage)| {
            let names: Vec<_> = usage.0.into_iter().map(|flag| format!("{flag:?}")).collect();
            format!("{}{}", names.join(", "), if critical { " (critical)" } else { "" })
        }),
        "extended key usage": certificate.extended_key_usage().map(|(critical, list)| {
            let names: Vec<_> = list.iter().map(|oid| purpose(*oid)).collect();
            format!("{}{}", names.join(", "), if critical { " (critical)" } else { "" })
        }),
        "subject key identifier": certificate.subject_key_identifier().map(hex::encode),
        "alternative names": certificate.subject_alternative_names(),
    })
}

fn signature_name(oid: outlast_pki::ObjectIdentifier) -> String {
    match SignatureAlgorithm::by_oid(oid) {
        Some(row) => format!("{row:?}"),
        None => match outlast_pki::oid_name(oid) {
            Some(name) => name.to_owned(),
            None => oid.to_string(),
        },
    }
}

fn purpose(oid: outlast_pki::ObjectIdentifier) -> String {
    outlast_pki::oid_name(oid).map_or_else(|| oid.to_string(), str::to_owned)
}

/// Indented lines; nothing for what is absent.
fn print(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let Value::Object(members) = value else { return };
    for (name, member) in members {
        match member {
            Value::Null => {}
            Value::Array(items) if items.iter().all(Value::is_object) => {
                for (index, item) in items.iter().enumerate() {
                    let _ = writeln!(out, "{indent}{name} {}:", index + 1);
                    print(item, depth + 1, out);
                }
            }
            Value::Array(items) => {
                let texts: Vec<_> = items.iter().map(plain).collect();
                let _ = writeln!(out, "{indent}{name}: {}", texts.join(", "));
            }
            other => {
                let _ = writeln!(out, "{indent}{name}: {}", plain(other));
            }
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
