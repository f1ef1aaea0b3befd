//! `outlast inspect`: shows the contents of any certificate, request, CRL, OCSP response, key or CMS signature.
//! Verifies only a request's own signature and that a private key is valid; never shows key material.

use std::path::{Path, PathBuf};

use outlast_crypto::digests::Digest;
use outlast_crypto::{Secret, digests, encrypted};
use outlast_net::server::system_clock;
use outlast_pki::ObjectIdentifier;
use outlast_pki::certificate::Certificate;
use outlast_pki::cms::MAX_MESSAGE_LEN;
use outlast_pki::cms::verify::SignedMessage;
use outlast_pki::crl::Crl;
use outlast_pki::describe::{self, Described};
use outlast_pki::key_forms::{KEY_READERS, PrivateKey};
use outlast_pki::object::{Kind, Object};
use outlast_pki::ocsp::{OcspError, Response, Status};
use outlast_pki::time::rfc3339;
use serde_json::{Map, Value, json};

use crate::failure::{Failure, PARTIAL};
use crate::output::Output;
use crate::root_key::Source;
use crate::{described, files, objects};

const DAY: i64 = 86_400;
/// Entries of a CRL that are shown; the others are counted.
const MAX_ENTRIES: usize = 100;

/// Arguments of `inspect`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files in PEM, with one or several objects, or in DER; CMS signatures also in BER.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Source of the passphrase for encrypted keys: env:NAME, file:PATH, or "" to be asked.
    #[arg(long, value_parser = objects::source, value_name = "SOURCE")]
    passphrase: Option<Source>,
    /// Show every entry of a CRL.
    #[arg(long)]
    all: bool,
}

/// Prints the contents of each file.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let now = system_clock().div_euclid(1000);
    let limit = if arguments.all { usize::MAX } else { MAX_ENTRIES };
    let (mut list, mut text) = (Vec::new(), String::new());
    let (mut failures, mut good) = (Vec::new(), 0);
    for path in &arguments.files {
        let objects = match read(path) {
            Ok(objects) => objects,
            Err(failure) => {
                failures.push(failure);
                continue;
            }
        };
        for (index, object) in objects.into_iter().enumerate() {
            let kind = object.kind.name();
            let described = objects::opened(object, arguments.passphrase.as_ref())
                .and_then(|object| describe(&object, now, limit));
            match described {
                Ok(found) => {
                    good += 1;
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&format!("{}, object {}:\n", path.display(), index + 1));
                    text.push_str(&described::text(&found));
                    list.push(json!({ "file": files::json_path(path), "object": index + 1, "found": found }));
                }
                Err(failure) => {
                    let reason = failure.message();
                    let found = json!({ "type": kind, "refused": reason });
                    list.push(json!({ "file": files::json_path(path), "object": index + 1, "found": found }));
                    failures.push(Failure::file(path, &reason));
                }
            }
        }
    }
    if good > 0 || output == Output::Json {
        output.result(&text, &list);
    }
    match (failures.pop(), failures.len()) {
        (None, _) => Ok(()),
        (Some(last), 0) if good == 0 => Err(last),
        (Some(last), _) => {
            for failure in &failures {
                failure.report();
            }
            Err(if good > 0 { last.code(PARTIAL) } else { last })
        }
    }
}

/// The objects of a file. Some signers write BER, which is not DER, so such a file is only recognised as a whole.
fn read(path: &Path) -> Result<Vec<Object>, Failure> {
    let refused = match objects::read(path) {
        Ok(found) => return Ok(found),
        Err(failure) => failure,
    };
    let bytes = files::read(path, MAX_MESSAGE_LEN).map_err(|_| ());
    match bytes {
        Ok(bytes) if SignedMessage::parse(&bytes).is_ok() => {
            Ok(vec![Object { kind: Kind::Cms, der: Secret::new(bytes) }])
        }
        _ => Err(refused),
    }
}

fn describe(object: &Object, now: i64, limit: usize) -> Result<Value, Failure> {
    let der = object.der.expose();
    Ok(match object.kind {
        Kind::Certificate => certificate(&Certificate::parse(der)?, now)?,
        Kind::CertificateRequest => request(der)?,
        Kind::Crl => crl(&Crl::parse(der)?, now, limit),
        Kind::OcspResponse => ocsp(der, now)?,
        Kind::PublicKey => {
            let mut found = json!({ "type": "public key" });
            merge(&mut found, public_key(der)?);
            found["bytes_with_structure"] = der.len().into();
            found["fingerprint_sha256"] = hex::encode(digests::sha256(der)).into();
            found
        }
        Kind::PrivateKey | Kind::EcPrivateKey | Kind::RsaPrivateKey => private_key(object)?,
        Kind::EncryptedPrivateKey => json!({
            "type": "encrypted private key",
            "encryption": encrypted::scheme(der)
                .ok_or_else(|| Failure::new("not a valid encrypted private key"))?,
            "note": "give --passphrase to see what is inside",
        }),
        Kind::LegacyEncryptedKey => json!({
            "type": "encrypted private key",
            "encryption": "OpenSSL's older form, which derives the key with a single MD5",
            "note": "encrypt it again with: openssl pkey -in FILE -aes256",
        }),
        Kind::Cms => signed_message(
            &SignedMessage::parse(der).map_err(|error| Failure::new(error.to_string()))?,
            now,
        )?,
    })
}

fn merge(into: &mut Value, from: Map<String, Value>) {
    if let Value::Object(map) = into {
        map.extend(from);
    }
}

fn public_key(spki: &[u8]) -> Result<Map<String, Value>, Failure> {
    let key = describe::public_key(spki)?;
    let mut out = Map::new();
    out.insert("key".into(), key.name.into());
    out.insert("key_bytes".into(), key.bytes.into());
    out.insert("key_post_quantum".into(), key.post_quantum.into());
    Ok(out)
}

fn signature(oid: ObjectIdentifier, der: &[u8]) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("signature".into(), describe::algorithm_name(oid).into());
    out.insert("signature_bytes".into(), describe::signature_len(der).into());
    out.insert("signature_post_quantum".into(), describe::is_post_quantum(oid).into());
    out
}

fn extension(found: &Described) -> Value {
    json!({ "name": found.name, "critical": found.critical, "values": found.values })
}

fn certificate(certificate: &Certificate, now: i64) -> Result<Value, Failure> {
    let (begin, end) = (certificate.not_before(), certificate.not_after());
    let state = match now {
        now if now < begin => "not yet valid",
        now if now > end => "expired",
        _ => "valid",
    };
    let extensions: Vec<_> = certificate
        .extensions()
        .iter()
        .map(|found| extension(&describe::extension(found)))
        .collect();
    let spki = certificate.public_key()?;
    let mut found = json!({
        "type": "certificate",
        "subject": certificate.subject().to_string(),
        "issuer": certificate.issuer().to_string(),
        "self_signed": certificate.signed_by(certificate),
        "serial": hex::encode(certificate.serial()),
        "not_before": rfc3339(begin),
        "not_after": rfc3339(end),
        "state": state,
        "days_left": (end - now).div_euclid(DAY).max(0),
        "bytes": certificate.der().len(),
    });
    merge(&mut found, public_key(&spki)?);
    merge(&mut found, signature(certificate.signature_algorithm(), certificate.der()));
    found["extensions"] = extensions.into();
    found["fingerprint_sha256"] = hex::encode(digests::sha256(certificate.der())).into();
    found["public_key_sha256"] = hex::encode(digests::sha256(&spki)).into();
    Ok(found)
}

fn request(der: &[u8]) -> Result<Value, Failure> {
    let request = describe::request(der)?;
    let mut found = json!({
        "type": "certificate request",
        "subject": request.subject,
        "bytes": der.len(),
    });
    merge(&mut found, public_key(&request.public_key)?);
    merge(&mut found, signature(request.signature_algorithm, der));
    found["valid"] = request.refused.is_none().into();
    found["refused"] = request.refused.map(|error| error.to_string()).into();
    let extensions: Vec<_> =
        request.extensions.iter().map(|found| extension(&describe::extension(found))).collect();
    found["extensions"] = extensions.into();
    Ok(found)
}

fn crl(crl: &Crl, now: i64, limit: usize) -> Value {
    let state = match crl.next_update() {
        Some(end) if end < now => "expired",
        _ if crl.this_update() > now => "not yet valid",
        _ => "current",
    };
    let entries: Vec<_> = crl
        .entries()
        .take(limit)
        .map(|entry| {
            json!({
                "serial": hex::encode(&entry.serial),
                "revoked_at": rfc3339(entry.revoked_at),
                "reason": entry.reason.rfc_name,
            })
        })
        .collect();
    let mut found = json!({
        "type": "CRL",
        "issuer": crl.issuer().to_string(),
        "this_update": rfc3339(crl.this_update()),
        "next_update": crl.next_update().map(rfc3339),
        "state": state,
        "number": crl.number().map(hex::encode),
        "bytes": crl.der().len(),
        "unusable": crl.unusable(),
    });
    merge(&mut found, signature(crl.signature_algorithm(), crl.der()));
    let extensions: Vec<_> =
        crl.extensions().iter().map(|found| extension(&describe::extension(found))).collect();
    found["extensions"] = extensions.into();
    found["revoked"] = crl.len().into();
    found["entries_shown"] = (entries.len() < crl.len()).then_some(entries.len()).into();
    found["entries"] = entries.into();
    found
}

fn signed_message(message: &SignedMessage, now: i64) -> Result<Value, Failure> {
    let signers: Vec<_> = message
        .claims()
        .iter()
        .map(|claim| {
            json!({
                "signer": claim.certificate.as_ref().map(|found| found.subject().to_string()),
                "signature_algorithm": describe::algorithm_name(claim.signature),
                "signature_bytes": claim.signature_len,
                "digest": Digest::by_oid(claim.digest)
                    .map_or_else(|| claim.digest.to_string(), |row| row.name.to_owned()),
                "message_digest": claim.message_digest.as_ref().map(hex::encode),
                "signing_time": claim.signing_time.map(rfc3339),
            })
        })
        .collect();
    let certificates =
        message.certificates.iter().map(|der| certificate(&Certificate::parse(der)?, now));
    Ok(json!({
        "type": "CMS signature",
        "content": message.content().map_or("detached", |_| "attached"),
        "signers": signers,
        "crls": message.embedded.crls.len(),
        "ocsp_responses": message.embedded.ocsp.len(),
        "certificates": certificates.collect::<Result<Vec<_>, Failure>>()?,
    }))
}

fn ocsp(der: &[u8], now: i64) -> Result<Value, Failure> {
    let response = match Response::parse(der) {
        Ok(response) => response,
        Err(OcspError::Failure(failure)) => {
            return Ok(json!({
                "type": "OCSP response",
                "bytes": der.len(),
                "status": format!("{failure:?}"),
            }));
        }
        Err(error) => return Err(Failure::new(error.to_string())),
    };
    let answers: Vec<_> = response
        .responses
        .iter()
        .map(|single| {
            let (status, at, reason) = match single.status {
                Status::Good => ("good", None, None),
                Status::Unknown => ("unknown", None, None),
                Status::Revoked { at, reason } => {
                    ("revoked", Some(rfc3339(at)), Some(reason.rfc_name))
                }
            };
            json!({
                "serial": hex::encode(single.id.serial()),
                "status": status,
                "revoked_at": at,
                "reason": reason,
                "this_update": rfc3339(single.this_update),
                "next_update": single.next_update.map(rfc3339),
                "state": match single.next_update {
                    Some(end) if end < now => "expired",
                    _ => "current",
                },
            })
        })
        .collect();
    let certificates: Vec<_> =
        response.certificates.iter().map(|found| found.subject().to_string()).collect();
    Ok(json!({
        "type": "OCSP response",
        "bytes": der.len(),
        "status": "successful",
        "produced_at": rfc3339(response.produced_at),
        "nonce": response.nonce.as_ref().map(hex::encode),
        "certificates": certificates,
        "answers": answers,
    }))
}

fn private_key(object: &Object) -> Result<Value, Failure> {
    let key = PrivateKey::read(object).map_err(|error| Failure::new(error.to_string()))?;
    let mut found = json!({ "type": "private key" });
    merge(&mut found, public_key(&key.public_key)?);
    found["form"] = key.form_name().into();
    found["file_bytes"] = object.der.len().into();
    found["public_key_sha256"] = hex::encode(digests::sha256(&key.public_key)).into();
    let readers: Vec<_> = KEY_READERS
        .iter()
        .map(|row| {
            json!({ "software": row.name, "takes": row.takes(&key).name(), "source": row.source })
        })
        .collect();
    found["taken_by"] = readers.into();
    Ok(found)
}
