//! `outlast cert request --san`: alternative names in a request and in the certificate, as OpenSSL reads them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::path::Path;
use std::process::Command;

use outlast_api::ops::kms::create_key::CreateKey;
use outlast_pki::certificate::Certificate;
use outlast_pki::csr::CertificateRequest;
use outlast_pki::pem;
use serde_json::{Value, json};

use crate::common::authority::{Order, root};
use crate::common::peers::{openssl, peer};
use crate::common::{Folder, Server, fail, runtime, succeed};

/// Names as they are given, and as they are shown.
const NAMES: [(&str, &str); 7] = [
    ("dns:release.example.com", "DNS:release.example.com"),
    ("DNS:*.example.com", "DNS:*.example.com"),
    ("email:release@example.com", "email:release@example.com"),
    ("uri:spiffe://example.com/release", "URI:spiffe://example.com/release"),
    ("URI:urn:example:1", "URI:urn:example:1"),
    ("ip:192.0.2.7", "IP Address:192.0.2.7"),
    ("IP:2001:db8::7", "IP Address:2001:db8::7"),
];

fn key(server: &Server, spec: &str) -> String {
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let new = json!({ "KeySpec": spec, "KeyUsage": "SIGN_VERIFY" });
        session.call::<CreateKey>(new).await.unwrap().unwrap().key_metadata.arn
    })
}

fn request(folder: &Folder, server: &Server, key: &str, names: &[String]) -> Command {
    let ask = ["cert", "request", "--key", key, "--subject", "CN=Release"];
    let mut command = folder.client_at(server, &ask);
    for name in names {
        command.args(["--san", name]);
    }
    command
}

/// What OpenSSL says about a request or a certificate; it shows IPv6 addresses in full and in upper case.
fn shown(peer: &Path, arguments: &[&str], file: &Path) -> String {
    let mut command = openssl(peer, arguments);
    succeed(command.args(["-noout", "-text", "-in"]).arg(file))
}

fn has_all_names(text: &str) {
    for (_, name) in NAMES {
        let name = name.replace("2001:db8::7", "2001:DB8:0:0:0:0:0:7");
        assert!(text.contains(&name), "{name}: {text}");
    }
}

#[test]
fn names_of_a_request_are_in_the_certificate() {
    let folder = Folder::new();
    let server = folder.serve();
    let given: Vec<_> = NAMES.iter().map(|(given, _)| (*given).to_owned()).collect();
    let peer = peer("openssl");
    for (spec, algorithms) in [
        ("ML_DSA_65", ("ML_DSA_65", "ML_DSA_65")),
        ("ECC_NIST_P256", ("EC_prime256v1", "SHA256WITHECDSA")),
    ] {
        let key = key(&server, spec);
        let path = folder.path(&format!("{spec}.csr"));
        let mut ask = request(&folder, &server, &key, &given);
        let said = succeed(ask.arg("--out").arg(&path).args(["--output", "json"]));
        let said: Value = serde_json::from_str(&said).unwrap();
        let names: Vec<_> = NAMES.iter().map(|(_, shown)| *shown).collect();
        assert_eq!(said["alternative_names"], json!(names));
        if let Some(peer) = &peer {
            has_all_names(&shown(peer, &["req", "-verify"], &path));
        }
        let csr = std::fs::read(&path).unwrap();
        // AWS's templates take the names from the request, those of CAs, too.
        for template in
            ["EndEntityCertificate", "CodeSigningCertificate", "SubordinateCACertificate_PathLen0"]
        {
            let issued = runtime().block_on(async {
                let mut session = server.session().await.unwrap();
                let root = root(&mut session, algorithms, "Root", None).await;
                let order = Order { template, csr: &csr, passthrough: None, days: 30 };
                root.issue(&mut session, order).await.certificate
            });
            let der = pem::read_certificates(issued.as_bytes()).unwrap().remove(0);
            let found = Certificate::parse(&der).unwrap().general_names();
            let found: Vec<_> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, names, "{template}");
            if let Some(peer) = &peer {
                let path = folder.write("issued.pem", issued.as_bytes());
                has_all_names(&shown(peer, &["x509"], &path));
            }
        }
    }
}

/// KMS signs messages of up to 4,096 bytes; these are longer.
#[test]
fn a_request_may_have_many_names() {
    let folder = Folder::new();
    let server = folder.serve();
    let names: Vec<_> = (0..200).map(|number| format!("dns:host-{number}.example.com")).collect();
    for spec in ["ML_DSA_87", "ECC_NIST_P384", "RSA_2048"] {
        let key = key(&server, spec);
        let text = succeed(&mut request(&folder, &server, &key, &names));
        assert!(pem::read_certificate_request(text.as_bytes()).unwrap().len() > 4096, "{spec}");
        let request = CertificateRequest::parse_and_verify(text.as_bytes()).unwrap();
        assert_eq!(request.extensions.len(), 1, "{spec}");
        assert!(!request.extensions[0].critical);
    }
    let key = key(&server, "ECC_NIST_EDWARDS25519");
    let text = fail(&mut request(&folder, &server, &key, &names), 1);
    assert!(text.contains("signs at most 4096 bytes"), "{text}");
    succeed(&mut request(&folder, &server, &key, &names[..50]));
}

#[test]
fn what_is_no_name_is_refused_before_anything_is_signed() {
    let folder = Folder::new();
    for (name, reason) in [
        ("example.com", "it begins with dns:, email:, uri: or ip:"),
        ("", "it begins with dns:"),
        ("upn:a@example.com", "it begins with dns:"),
        ("dns:", "does not have 1 to 253 characters"),
        ("dns:-a.example.com", "begins or ends with a hyphen"),
        ("dns:a b", "neither a letter, a digit nor a hyphen"),
        ("email:release", "has no @"),
        ("uri:release", "has no scheme"),
        ("ip:300.0.0.1", "is not an IPv4 or IPv6 address"),
        ("ip:192.0.2.0/24", "is not an IPv4 or IPv6 address"),
    ] {
        let ask = ["cert", "request", "--key", "alias/x", "--subject", "CN=a", "--san", name];
        let text = fail(&mut folder.client(&ask), 2);
        assert!(text.contains(reason), "{name}: {text}");
    }
}
