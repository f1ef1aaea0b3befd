//! Revocation from outside: `openssl verify`, `openssl ocsp` and `curl`, over real connections.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::peers::{openssl, peer};
use common::{Folder, Server, Session, fail, outlast, run, runtime, stderr, stdout, succeed};
use outlast_api::ops::acm_pca;
use outlast_testing::PATIENCE;
use outlast_testing::s3::S3;
use serde_json::{Value, json};

/// An authority made by API calls, and a folder.
struct Authority {
    arn: String,
    signing: &'static str,
    certificate: PathBuf,
}

fn b64(bytes: &[u8]) -> String {
    let value = serde_json::to_value(outlast_api::wire::Blob(bytes.to_vec())).unwrap();
    value.as_str().unwrap().to_owned()
}

async fn authority(
    session: &mut Session,
    folder: &Folder,
    (key, signing): (&'static str, &'static str),
    revocation: Value,
) -> Authority {
    use acm_pca::{
        create_certificate_authority as create, get_certificate_authority_csr as csr,
        import_certificate_authority_certificate as import,
    };
    let made = session
        .call::<create::CreateCertificateAuthority>(json!({
            "CertificateAuthorityConfiguration": {
                "KeyAlgorithm": key, "SigningAlgorithm": signing,
                "Subject": { "CommonName": format!("{key} root") },
            },
            "RevocationConfiguration": revocation,
            "CertificateAuthorityType": "ROOT",
        }))
        .await;
    let arn = made.unwrap().unwrap().certificate_authority_arn;
    let get = json!({ "CertificateAuthorityArn": arn });
    let request = session.call::<csr::GetCertificateAuthorityCsr>(get).await.unwrap().unwrap().csr;
    let pem = issue(session, &arn, signing, request.as_bytes(), "RootCACertificate", 3650).await;
    let import = json!({ "CertificateAuthorityArn": arn, "Certificate": b64(pem.as_bytes()) });
    session.call::<import::ImportCertificateAuthorityCertificate>(import).await.unwrap().unwrap();
    let certificate = folder.write(&format!("{key}.pem"), pem.as_bytes());
    Authority { arn, signing, certificate }
}

async fn issue(
    session: &mut Session,
    arn: &str,
    signing: &str,
    request: &[u8],
    template: &str,
    days: i64,
) -> String {
    let made = session
        .call::<acm_pca::issue_certificate::IssueCertificate>(json!({
            "CertificateAuthorityArn": arn, "Csr": b64(request), "SigningAlgorithm": signing,
            "TemplateArn": format!("arn:aws:acm-pca:::template/{template}/V1"),
            "Validity": { "Type": "DAYS", "Value": days },
        }))
        .await;
    let made = made.unwrap().unwrap().certificate_arn;
    let get = json!({ "CertificateAuthorityArn": arn, "CertificateArn": made });
    let found = session.call::<acm_pca::get_certificate::GetCertificate>(get).await;
    found.unwrap().unwrap().certificate
}

/// A certificate for a key made by OpenSSL: its file.
async fn leaf(
    session: &mut Session,
    folder: &Folder,
    openssl: &Path,
    ca: &Authority,
    name: &str,
) -> PathBuf {
    let (key, csr) = (folder.path("leaf.key"), folder.path("leaf.csr"));
    succeed(
        common::peers::openssl(openssl, &["req", "-new", "-newkey", "EC", "-nodes"])
            .args(["-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=leaf.example", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&csr),
    );
    let request = std::fs::read(&csr).unwrap();
    let pem = issue(session, &ca.arn, ca.signing, &request, "EndEntityCertificate", 90).await;
    folder.write(name, pem.as_bytes())
}

async fn revoke(session: &mut Session, ca: &Authority, certificate: &Path) {
    let pem = std::fs::read(certificate).unwrap();
    let parsed = outlast_pki::certificate::Certificate::parse_one(&pem).unwrap();
    let revoke = json!({
        "CertificateAuthorityArn": ca.arn, "RevocationReason": "KEY_COMPROMISE",
        "CertificateSerial": hex::encode(parsed.serial()),
    });
    session.call::<acm_pca::revoke_certificate::RevokeCertificate>(revoke).await.unwrap().unwrap();
}

/// Repeats a command until its output contains `wanted`.
#[track_caller]
fn soon(mut command: impl FnMut() -> Command, wanted: &str) -> Duration {
    let start = Instant::now();
    loop {
        let output = run(&mut command());
        let said = stdout(&output) + &stderr(&output);
        if said.contains(wanted) {
            return start.elapsed();
        }
        assert!(start.elapsed() < PATIENCE, "{said}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn openssl_refuses_a_revoked_certificate_within_seconds() {
    let Some(peer) = peer("openssl") else { return };
    let folder = Folder::new();
    let server = folder.serve();
    let base = format!("http://127.0.0.1:{}", server.revocation.unwrap());
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        for algorithms in [
            ("EC_prime256v1", "SHA256WITHECDSA"),
            ("RSA_2048", "SHA256WITHRSA"),
            ("ML_DSA_65", "ML_DSA_65"),
        ] {
            for crl_type in ["COMPLETE", "PARTITIONED"] {
                let revocation = json!({
                    "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 7, "CrlType": crl_type },
                    "OcspConfiguration": { "Enabled": true },
                });
                let ca = authority(&mut session, &folder, algorithms, revocation).await;
                let good = leaf(&mut session, &folder, &peer, &ca, "good.pem").await;
                let bad = leaf(&mut session, &folder, &peer, &ca, "bad.pem").await;
                // By the URLs in the certificates.
                let verify = |leaf: &Path| {
                    let mut command = openssl(&peer, &["verify", "-crl_check", "-crl_download"]);
                    command.args(["-extended_crl", "-CAfile"]).arg(&ca.certificate).arg(leaf);
                    command
                };
                let url = succeed(openssl(&peer, &["x509", "-noout", "-ocsp_uri", "-in"]).arg(&good));
                assert_eq!(url.trim(), format!("{base}/ocsp"));
                let ocsp = |leaf: &Path, nonce: &str| {
                    let mut command = openssl(&peer, &["ocsp", nonce, "-url", url.trim(), "-issuer"]);
                    command.arg(&ca.certificate).arg("-cert").arg(leaf).arg("-CAfile");
                    command.arg(&ca.certificate);
                    command
                };
                for leaf in [&good, &bad] {
                    soon(|| verify(leaf), ": OK");
                    for nonce in ["-nonce", "-no_nonce"] {
                        soon(|| ocsp(leaf, nonce), ": good");
                        let output = run(&mut ocsp(leaf, nonce));
                        assert!(stderr(&output).contains("Response verify OK"), "{}", stderr(&output));
                        assert!(!stderr(&output).contains("no nonce in response") || nonce == "-no_nonce");
                    }
                }
                revoke(&mut session, &ca, &bad).await;
                for nonce in ["-nonce", "-no_nonce"] {
                    let said = succeed(&mut ocsp(&bad, nonce));
                    assert!(said.contains(": revoked") && said.contains("Reason: keyCompromise"), "{said}");
                }
                let took = soon(|| verify(&bad), "certificate revoked");
                println!("{algorithms:?} {crl_type}: on the CRL after {took:?}");
                assert!(succeed(&mut verify(&good)).contains(": OK"));
                assert!(succeed(&mut ocsp(&good, "-no_nonce")).contains(": good"));
                if crl_type == "COMPLETE" {
                    check_all(&peer, &folder, &base, &ca, &good, &bad);
                }
            }
        }
    });
}

/// With a CRL that was fetched before, for the whole chain.
fn check_all(peer: &Path, folder: &Folder, base: &str, ca: &Authority, good: &Path, bad: &Path) {
    let (der, pem) = (folder.path("crl.der"), folder.path("crl.pem"));
    let url = format!("{base}/crl/{}.crl", ca.arn.rsplit('/').next().unwrap());
    succeed(Command::new("curl").args(["-sSf", "-o"]).arg(&der).arg(&url));
    lint("lint_crl", &["lint", "-t", "CRL", "-p", "PKIX"], &der);
    let convert = &["crl", "-inform", "DER", "-verify", "-CAfile"];
    succeed(openssl(peer, convert).arg(&ca.certificate).arg("-in").arg(&der).arg("-out").arg(&pem));
    let check = |leaf: &Path| {
        let mut command = openssl(peer, &["verify", "-x509_strict", "-crl_check_all", "-CAfile"]);
        command.arg(&ca.certificate).arg("-CRLfile").arg(&pem).arg(leaf);
        command
    };
    assert!(succeed(&mut check(good)).contains(": OK"));
    assert!(fail(&mut check(bad), 2).contains("certificate revoked"));
    // A GET with the request in the path, and the authority's certificate.
    let request = folder.path("request.der");
    let make = &["ocsp", "-no_nonce", "-issuer"];
    let certificate = &ca.certificate;
    succeed(
        openssl(peer, make).arg(certificate).arg("-cert").arg(good).arg("-reqout").arg(&request),
    );
    let encoded = b64(&std::fs::read(&request).unwrap());
    let response = folder.path("response.der");
    for path in [encoded.clone(), encoded.replace('/', "%2F").replace('+', "%2B")] {
        let get = format!("{base}/ocsp/{path}");
        let head =
            succeed(Command::new("curl").args(["-sSf", "-D", "-", "-o"]).arg(&response).arg(get));
        assert!(head.to_ascii_lowercase().contains("cache-control: max-age="), "{head}");
        lint("lint_ocsp_response", &["lint"], &response);
        let read = &["ocsp", "-respin"];
        let mut read = openssl(peer, read);
        read.arg(&response).arg("-issuer").arg(certificate).arg("-cert").arg(good).arg("-CAfile");
        assert!(succeed(read.arg(certificate)).contains(": good"));
    }
    let cer = format!("{base}/ca/{}.cer", ca.arn.rsplit('/').next().unwrap());
    succeed(Command::new("curl").args(["-sSf", "-o"]).arg(&der).arg(cer));
    let show = &["x509", "-inform", "DER", "-in"];
    assert_eq!(
        succeed(openssl(peer, show).arg(&der)).trim_end(),
        std::fs::read_to_string(certificate).unwrap()
    );
}

/// Checks that pkilint has no findings on a file, if it is installed.
fn lint(program: &str, arguments: &[&str], file: &Path) {
    let Some(pkilint) = peer("pkilint") else { return };
    let mut command = Command::new(pkilint.join("bin").join(program));
    let said = run(command.args(arguments).args(["-s", "NOTICE"]).arg(file));
    assert!(
        said.status.success() && stdout(&said).trim().is_empty(),
        "{}{}",
        stdout(&said),
        stderr(&said)
    );
}

#[test]
fn reports_and_crls_are_written_below_the_data_folder() {
    let folder = Folder::new();
    let server = folder.serve();
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let revocation = json!({
            "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 7, "S3BucketName": "lists" },
            "OcspConfiguration": { "Enabled": true },
        });
        let algorithms = ("EC_prime256v1", "SHA256WITHECDSA");
        let ca = authority(&mut session, &folder, algorithms, revocation).await;
        use acm_pca::{
            create_certificate_authority_audit_report as create,
            describe_certificate_authority_audit_report as describe,
        };
        let made = session
            .call::<create::CreateCertificateAuthorityAuditReport>(json!({
                "CertificateAuthorityArn": ca.arn, "S3BucketName": "reports",
                "AuditReportResponseFormat": "CSV",
            }))
            .await;
        let made = serde_json::to_value(made.unwrap().unwrap()).unwrap();
        let report = folder.data.join("buckets/reports").join(made["S3Key"].as_str().unwrap());
        let crl = format!("buckets/lists/crl/{}.crl", ca.arn.rsplit('/').next().unwrap());
        let crl = folder.data.join(crl);
        let start = Instant::now();
        while !(report.exists() && crl.exists()) {
            assert!(start.elapsed() < PATIENCE, "{} {}", report.display(), crl.display());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(std::fs::read_to_string(&report).unwrap().lines().count(), 2);
        let get = json!({
            "CertificateAuthorityArn": ca.arn, "AuditReportId": made["AuditReportId"],
        });
        loop {
            let found = session
                .call::<describe::DescribeCertificateAuthorityAuditReport>(get.clone())
                .await;
            let found = serde_json::to_value(found.unwrap().unwrap()).unwrap();
            if found["AuditReportStatus"] == "SUCCESS" {
                break;
            }
            assert!(start.elapsed() < PATIENCE, "{found}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let mut server = server;
    assert_eq!(server.terminate(), Some(0));
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
}

#[test]
fn crls_go_to_a_bucket_behind_s3() {
    let Some(moto) = S3::moto(0) else { return };
    let endpoint = moto.endpoint();
    let _ = moto.curl(&["-X", "PUT"], "/lists");
    let folder = Folder::new();
    let secret = folder.write("secret", b"testing\n");
    let settings = format!(
        "[buckets]\nendpoint = \"{endpoint}\"\naccess_key_id = \"testing\"\nsecret_access_key_file = {secret:?}\n"
    );
    let settings = folder.write("settings.toml", settings.as_bytes());
    let server = Server::start(&folder.data, &["--config", settings.to_str().unwrap()]);
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let revocation = json!({
            "CrlConfiguration": {
                "Enabled": true, "ExpirationInDays": 7, "S3BucketName": "lists",
                "CustomPath": "a+b/~c",
            },
        });
        let algorithms = ("EC_prime256v1", "SHA256WITHECDSA");
        let ca = authority(&mut session, &folder, algorithms, revocation).await;
        let object =
            format!("{endpoint}/lists/a%2Bb/~c/{}.crl", ca.arn.rsplit('/').next().unwrap());
        let der = folder.path("object.crl");
        let read = || {
            let mut command = Command::new("curl");
            command.args(["-sSf", "--user", "testing:testing", "--aws-sigv4"]);
            command.args(["aws:amz:us-east-1:s3", "-w", "%{http_code}", "-o"]);
            command.arg(&der).arg(&object);
            command
        };
        soon(read, "200");
        let crl = outlast_pki::crl::Crl::parse(&std::fs::read(&der).unwrap()).unwrap();
        let pem = std::fs::read(&ca.certificate).unwrap();
        assert!(crl.signed_by(&outlast_pki::certificate::Certificate::parse_one(&pem).unwrap()));
    });
}

#[test]
fn plain_http_is_where_it_was_asked_to_be_or_off() {
    let folder = Folder::new();
    {
        let server = Server::start(&folder.data, &["--revocation-listen", "off"]);
        assert_eq!(server.revocation, None);
    }
    let arguments =
        ["--revocation-listen", "127.0.0.1:0", "--revocation-url", "http://pki.example/x/"];
    let server = Server::start(&folder.data, &arguments);
    let port = server.revocation.unwrap();
    let base = format!("http://127.0.0.1:{port}");
    let status = |arguments: &[&str], path: &str| {
        let mut command = Command::new("curl");
        command.args(["-s", "-o", "/dev/null", "-w", "%{http_code}"]).args(arguments);
        succeed(command.arg(format!("{base}{path}")))
    };
    assert_eq!(status(&[], "/"), "404");
    assert_eq!(status(&["-X", "PUT"], "/"), "405");
    assert_eq!(status(&["--path-as-is"], "/crl/../../etc/passwd"), "404");
    let large = folder.write("large", &vec![0x30; 20_000]);
    assert_eq!(status(&["--data-binary", &format!("@{}", large.display())], "/ocsp"), "413");
    for wrong in [
        ["--revocation-listen", "nowhere"],
        ["--revocation-url", "https://pki.example"],
        ["--revocation-url", "http://"],
        ["--ocsp-validity", "1"],
        ["--service-url", "http://x"],
    ] {
        let other = Folder::new();
        let mut command = outlast();
        command.args(["server", "--listen", "127.0.0.1:0", "--data"]).arg(&other.data).args(wrong);
        fail(&mut command, 2);
    }
    let taken = format!("127.0.0.1:{port}");
    let other = Folder::new();
    let mut command = outlast();
    command.args(["server", "--listen", "127.0.0.1:0", "--revocation-listen", &taken, "--data"]);
    let said = fail(command.arg(&other.data), 1);
    assert!(said.contains("hint: choose another address with --revocation-listen"), "{said}");
}
