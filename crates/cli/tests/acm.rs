//! Certificate Manager with AWS's Python SDK, and its exports with OpenSSL: `tests/interop/python/acm_steps.py`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::process::Command;
use std::time::{Duration, Instant};

use common::authority;
use common::dns::Dns;
use common::peers::{checkout, peer};
use common::{Folder, Server, outlast, run, stderr, stdout, succeed};
use outlast_api::ops::acm::{describe_certificate, get_certificate, request_certificate};
use outlast_api::ops::acm_pca::create_permission;
use outlast_testing::PATIENCE;
use serde_json::json;

#[test]
fn certificates_from_request_to_revocation() {
    let (Some(python), Some(openssl)) = (peer("python"), peer("openssl")) else { return };
    let folder = Folder::new();
    let mut server = folder.serve();
    let mut program = Command::new(python.join("bin/python"));
    program.arg(checkout().join("tests/interop/python/acm_steps.py"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            program.env_remove(&name);
        }
    }
    program
        .env("AWS_CONFIG_FILE", folder.data.join("client/config"))
        .env("AWS_SHARED_CREDENTIALS_FILE", folder.data.join("client/credentials"))
        .env("AWS_PROFILE", "outlast")
        .env("OPENSSL", openssl.join("bin/openssl"));
    let output = run(&mut program);
    let text = stdout(&output);
    let failed: Vec<_> = text.lines().filter(|line| line.starts_with("FAILED")).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(output.status.success(), "{text}{}", stderr(&output));
    let last = text.lines().last().unwrap_or_default();
    assert!(last.ends_with(" steps passed, 0 failed"), "{text}");
    println!("{last}");
    assert_eq!(server.terminate(), Some(0));
    // Every certificate has its key, and the two match.
    let said = succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
    println!("{said}");
}

#[test]
fn request_without_ca_is_issued_when_dns_has_its_record() {
    type Describe = describe_certificate::DescribeCertificate;
    let folder = Folder::new();
    let dns = Dns::start(folder.path("dns"));
    let at = dns.address.to_string();
    let options = ["--acme-dns", at.as_str()];
    let mut server = Server::start(&folder.data, &options);
    let authority = common::runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let algorithms = ("EC_prime256v1", "SHA256WITHECDSA");
        let root = authority::root(&mut session, algorithms, "Root", None).await;
        let permit = json!({
            "CertificateAuthorityArn": root.arn, "Principal": "acm.amazonaws.com",
            "Actions": ["IssueCertificate", "GetCertificate", "ListPermissions"],
        });
        session.call::<create_permission::CreatePermission>(permit).await.unwrap().unwrap();
        root
    });
    assert_eq!(server.terminate(), Some(0));
    let settings = format!(
        "[acm.default_authority.123456789012]\nus-east-1 = '{}'\n\
         [acm.approved_domains]\n123456789012 = ['corp.example']\n",
        authority.arn
    );
    std::fs::write(folder.data.join("outlast.toml"), settings).unwrap();
    let mut server = Server::start(&folder.data, &options);
    common::runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let request = json!({
            "DomainName": "www.example.com",
            "SubjectAlternativeNames": ["*.www.example.com", "a.corp.example"],
            "ValidationMethod": "DNS", "KeyAlgorithm": "EC_prime256v1",
        });
        type Request = request_certificate::RequestCertificate;
        let arn = session.call::<Request>(request).await.unwrap().unwrap().certificate_arn;
        let of = json!({ "CertificateArn": arn });
        let found = session.call::<Describe>(of.clone()).await.unwrap().unwrap().certificate;
        assert_eq!(
            (found.status.as_str(), found.kind.as_str()),
            ("PENDING_VALIDATION", "AMAZON_ISSUED")
        );
        let record = found.domain_validation_options.unwrap().remove(0).resource_record.unwrap();
        // Another value proves nothing.
        let name = record.name.trim_end_matches('.');
        dns.set("CNAME", name, "_other.acm-validations.aws.");
        dns.wait_until_asked(name, dns.asked(name));
        let found = session.call::<Describe>(of.clone()).await.unwrap().unwrap().certificate;
        assert_eq!(found.status, "PENDING_VALIDATION");
        let asked = dns.asked(name);
        dns.set("CNAME", name, &record.value);
        let begin = Instant::now();
        loop {
            let found = session.call::<Describe>(of.clone()).await.unwrap().unwrap().certificate;
            if found.status == "ISSUED" {
                break;
            }
            assert_eq!(found.status, "PENDING_VALIDATION");
            assert!(begin.elapsed() < PATIENCE, "{found:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert!(dns.asked(name) > asked, "it was issued without another look-up");
        type Get = get_certificate::GetCertificate;
        let got = session.call::<Get>(of).await.unwrap().unwrap();
        assert_eq!(got.certificate_chain.unwrap().trim(), authority.certificate.trim());
    });
    assert_eq!(server.terminate(), Some(0));
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
}
