//! The real peers: OpenSSL 3.5, BouncyCastle, boto3 and the AWS SDK for Java.
//!
//! `cargo xtask peers` installs them below `target/peers` (`OUTLAST_PEERS` names another place). Without them
//! the tests say that they were skipped; in `cargo xtask ci`, which installs them, that is a failure.
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

use common::peers::{checkout, java, openssl, peer};
use common::{Folder, Server, fail, outlast, run, stderr, stdout, succeed};
use outlast_api::ops::acm_pca;
use serde_json::json;

struct Signed {
    temporary: tempfile::TempDir,
    file: PathBuf,
    out: PathBuf,
    printed: serde_json::Value,
}

fn quickstart() -> Signed {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("release.bin");
    std::fs::write(&file, b"line 1\r\nline 2\n\x00\xff".repeat(10_000)).unwrap();
    let out = temporary.path().join("out");
    let text = succeed(
        outlast().args(["quickstart", "--output", "json"]).arg(&file).arg("--out").arg(&out),
    );
    let printed = serde_json::from_str(&text).unwrap();
    Signed { temporary, file, out, printed }
}

#[test]
fn openssl_verifies_what_the_quickstart_leaves() {
    let Some(peer) = peer("openssl") else { return };
    let signed = quickstart();
    let path = std::env::join_paths(
        std::iter::once(peer.join("bin"))
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    // The printed line, as a user would paste it.
    let line = signed.printed["openssl"].as_str().unwrap();
    let output = run(Command::new("sh").args(["-c", line]).env("PATH", path));
    assert!(stderr(&output).contains("CMS Verification successful"), "{}", stderr(&output));
    let at = |name: &str| signed.out.join(name).display().to_string();
    let verified = succeed(&mut openssl(
        &peer,
        &[
            "verify",
            "-x509_strict",
            "-purpose",
            "codesign",
            "-CAfile",
            &at("root-ca.pem"),
            "-untrusted",
            &at("chain.pem"),
            &at("code-signing-cert.pem"),
        ],
    ));
    assert!(verified.contains(": OK"), "{verified}");
    let signature = at("signature.p7s");
    let cms = |content: &str, root: &str, signature: &str| {
        run(&mut openssl(
            &peer,
            &[
                "cms",
                "-verify",
                "-binary",
                "-inform",
                "DER",
                "-in",
                signature,
                "-content",
                content,
                "-CAfile",
                root,
                "-purpose",
                "codesign",
                "-out",
                "/dev/null",
            ],
        ))
    };
    let file = signed.file.display().to_string();
    assert!(cms(&file, &at("root-ca.pem"), &signature).status.success());
    let changed = signed.temporary.path().join("changed");
    std::fs::write(&changed, "changed").unwrap();
    assert!(!cms(&changed.display().to_string(), &at("root-ca.pem"), &signature).status.success());
}

#[test]
fn openssl_accepts_everything_we_sign() {
    let Some(peer) = peer("openssl") else { return };
    let folder = Folder::new();
    let server = folder.serve();
    let runtime = common::runtime();
    runtime.block_on(async {
        let mut session = server.session().await.unwrap();
        for (key_spec, key, signing) in [
            ("ML_DSA_44", "ML_DSA_44", "ML_DSA_44"),
            ("ML_DSA_65", "ML_DSA_65", "ML_DSA_65"),
            ("ML_DSA_87", "ML_DSA_87", "ML_DSA_87"),
            ("ECC_NIST_P256", "EC_prime256v1", "SHA256WITHECDSA"),
            ("ECC_NIST_P384", "EC_secp384r1", "SHA384WITHECDSA"),
            ("ECC_NIST_P521", "EC_secp521r1", "SHA512WITHECDSA"),
            ("RSA_2048", "RSA_2048", "SHA256WITHRSA"),
        ] {
            let new = json!({
                "CertificateAuthorityConfiguration": {
                    "KeyAlgorithm": key, "SigningAlgorithm": signing,
                    "Subject": { "CommonName": format!("Root {key}"), "Country": "DE" },
                },
                "CertificateAuthorityType": "ROOT",
            });
            type Create = acm_pca::create_certificate_authority::CreateCertificateAuthority;
            let root = session.call::<Create>(new).await.unwrap().unwrap().certificate_authority_arn;
            type Csr = acm_pca::get_certificate_authority_csr::GetCertificateAuthorityCsr;
            let get = json!({ "CertificateAuthorityArn": root });
            let csr = session.call::<Csr>(get).await.unwrap().unwrap().csr;
            let request = folder.write("request.pem", csr.as_bytes());
            let output = run(&mut openssl(
                &peer,
                &["req", "-verify", "-noout", "-in", &request.display().to_string()],
            ));
            let text = stdout(&output) + &stderr(&output);
            assert!(text.contains("verify OK"), "{key}: {text}");

            // A root, a code-signing leaf for a KMS key, and a signature.
            let issue = |csr: &[u8], template: &str, years: i64| {
                json!({
                    "CertificateAuthorityArn": root, "SigningAlgorithm": signing,
                    "Csr": serde_json::to_value(outlast_api::wire::Blob(csr.to_vec())).unwrap(),
                    "TemplateArn": format!("arn:aws:acm-pca:::template/{template}/V1"),
                    "Validity": { "Value": years, "Type": "YEARS" },
                })
            };
            type Issue = acm_pca::issue_certificate::IssueCertificate;
            type Get = acm_pca::get_certificate::GetCertificate;
            let request = issue(csr.as_bytes(), "RootCACertificate", 10);
            let arn = session.call::<Issue>(request).await.unwrap().unwrap().certificate_arn;
            let get = json!({ "CertificateAuthorityArn": root, "CertificateArn": arn });
            let certificate = session.call::<Get>(get).await.unwrap().unwrap().certificate;
            let root_pem = folder.write("root.pem", certificate.as_bytes());
            type Import = acm_pca::import_certificate_authority_certificate::ImportCertificateAuthorityCertificate;
            let import = json!({
                "CertificateAuthorityArn": root,
                "Certificate":
                    serde_json::to_value(outlast_api::wire::Blob(certificate.into_bytes())).unwrap(),
            });
            session.call::<Import>(import).await.unwrap().unwrap();
            use outlast_api::ops::kms::{create_key, get_public_key, sign};
            let new = json!({ "KeySpec": key_spec, "KeyUsage": "SIGN_VERIFY" });
            let made = session.call::<create_key::CreateKey>(new).await.unwrap().unwrap();
            let key_arn = made.key_metadata.arn;
            let get = json!({ "KeyId": key_arn });
            let public =
                session.call::<get_public_key::GetPublicKey>(get).await.unwrap().unwrap();
            let subject = outlast_pki::name::common_name("Signer").unwrap();
            let unsigned =
                outlast_pki::csr::Unsigned::new(subject, &public.public_key.0, Vec::new()).unwrap();
            let row = outlast_crypto::signatures::SignatureAlgorithm::by_pca_name(signing).unwrap();
            let request = json!({
                "KeyId": key_arn, "SigningAlgorithm": row.kms_name,
                "Message":
                    serde_json::to_value(outlast_api::wire::Blob(unsigned.to_be_signed.clone())).unwrap(),
            });
            let signature = session.call::<sign::Sign>(request).await.unwrap().unwrap().signature.0;
            let csr = unsigned.assemble(row, &signature).unwrap();
            let request = issue(&csr, "CodeSigningCertificate", 1);
            let arn = session.call::<Issue>(request).await.unwrap().unwrap().certificate_arn;
            let get = json!({ "CertificateAuthorityArn": root, "CertificateArn": arn });
            let found = session.call::<Get>(get).await.unwrap().unwrap();
            let leaf = folder.write("leaf.pem", found.certificate.as_bytes());
            let text = |path: &Path| path.display().to_string();
            let verified = succeed(&mut openssl(
                &peer,
                &[
                    "verify", "-x509_strict", "-purpose", "codesign", "-CAfile", &text(&root_pem),
                    &text(&leaf),
                ],
            ));
            assert!(verified.contains(": OK"), "{key}: {verified}");
            let file = folder.write("file", b"some content\n");
            let port = server.port.to_string();
            let mut command = folder.client(&["sign", "--force", "--key", &key_arn, "--certificate"]);
            command.arg(&leaf).arg(&file);
            command.args(["--endpoint-url", &format!("https://localhost:{port}")]);
            tokio::task::block_in_place(|| succeed(&mut command));
            let output = run(&mut openssl(
                &peer,
                &[
                    "cms", "-verify", "-binary", "-inform", "DER", "-in",
                    &format!("{}.p7s", text(&file)), "-content", &text(&file), "-CAfile",
                    &text(&root_pem), "-purpose", "codesign", "-out", "/dev/null",
                ],
            ));
            assert!(output.status.success(), "{key}: {}", stderr(&output));
        }
    });
}

/// A code-signing PKI made by OpenSSL; returns root, leaf and key.
fn openssl_pki(peer: &Path, folder: &Path) -> (PathBuf, PathBuf, PathBuf) {
    let at = |name: &str| folder.join(name);
    let text = |name: &str| folder.join(name).display().to_string();
    std::fs::write(
        at("x.cnf"),
        "[req]\ndistinguished_name=dn\n[dn]\n[ca]\nbasicConstraints=critical,CA:TRUE\n\
         keyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n\
         [leaf]\nbasicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\n\
         extendedKeyUsage=critical,codeSigning\nsubjectKeyIdentifier=hash\n\
         authorityKeyIdentifier=keyid\n",
    )
    .unwrap();
    for name in ["ca.key", "leaf.key"] {
        succeed(&mut openssl(peer, &["genpkey", "-algorithm", "ML-DSA-65", "-out", &text(name)]));
    }
    succeed(&mut openssl(
        peer,
        &[
            "req",
            "-x509",
            "-new",
            "-config",
            &text("x.cnf"),
            "-extensions",
            "ca",
            "-key",
            &text("ca.key"),
            "-subj",
            "/CN=OpenSSL root",
            "-days",
            "100",
            "-out",
            &text("root.pem"),
        ],
    ));
    succeed(&mut openssl(
        peer,
        &[
            "req",
            "-x509",
            "-new",
            "-config",
            &text("x.cnf"),
            "-extensions",
            "leaf",
            "-key",
            &text("leaf.key"),
            "-subj",
            "/CN=OpenSSL signer",
            "-days",
            "10",
            "-CA",
            &text("root.pem"),
            "-CAkey",
            &text("ca.key"),
            "-out",
            &text("leaf.pem"),
        ],
    ));
    (at("root.pem"), at("leaf.pem"), at("leaf.key"))
}

#[test]
fn signatures_made_by_openssl_are_accepted() {
    let Some(peer) = peer("openssl") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let (root, leaf, key) = openssl_pki(&peer, folder);
    let file = folder.join("file");
    std::fs::write(&file, b"signed by somebody else\n").unwrap();
    let signature = folder.join("file.p7s");
    let sign = |extra: &[&str]| {
        let mut command = openssl(&peer, &["cms", "-sign", "-binary", "-signer"]);
        command
            .arg(&leaf)
            .arg("-inkey")
            .arg(&key)
            .arg("-in")
            .arg(&file)
            .arg("-out")
            .arg(&signature);
        succeed(command.args(extra));
    };
    let verify = || {
        let mut command = outlast();
        command.arg("verify").arg(&file).arg("--trust").arg(&root);
        command
    };
    for extra in [
        &["-outform", "DER", "-md", "sha512"][..],
        &["-outform", "PEM", "-md", "sha512"],
        &["-outform", "DER", "-md", "sha512", "-nodetach"],
        // Indefinite lengths.
        &["-outform", "DER", "-md", "sha512", "-nodetach", "-stream"],
        &["-outform", "DER", "-md", "sha384"],
        &["-outform", "DER", "-md", "sha3-512"],
        &["-outform", "DER", "-md", "sha512", "-keyid"],
    ] {
        sign(extra);
        let text = succeed(&mut verify());
        assert!(text.contains("OpenSSL signer"), "{extra:?} {text}");
        std::fs::write(&file, b"changed\n").unwrap();
        let text = fail(&mut verify(), 3);
        assert!(
            text.contains("not the one that was signed") || text.contains("is not the file"),
            "{text}"
        );
        std::fs::write(&file, b"signed by somebody else\n").unwrap();
    }
    sign(&["-outform", "DER", "-md", "sha512", "-nocerts"]);
    assert!(fail(&mut verify(), 3).contains("--certificates"));
    succeed(verify().arg("--certificates").arg(&leaf));
    // RFC 9882, section 3.3: SHA-256 is too short for ML-DSA-65.
    sign(&["-outform", "DER", "-md", "sha256"]);
    assert!(fail(&mut verify(), 3).contains("not suitable"));
}

#[test]
fn bouncycastle_and_outlast_accept_each_other() {
    let Some(peer) = peer("java") else { return };
    let signed = quickstart();
    let at = |name: &str| signed.out.join(name).display().to_string();
    let file = signed.file.display().to_string();
    let verified = succeed(&mut java(
        &peer,
        "outlast.interop.Main",
        &["cms", "verify", "--root", &at("root-ca.pem"), &at("signature.p7s"), &file],
    ));
    assert!(verified.contains("ok"), "{verified}");
    let theirs = signed.temporary.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    succeed(&mut java(
        &peer,
        "outlast.interop.Main",
        &["cms", "sign", "--out", &theirs.display().to_string(), &file],
    ));
    let ber = std::fs::read(theirs.join("signature.p7s")).unwrap();
    assert_eq!(ber[1], 0x80, "the message is not BER with an indefinite length");
    let verify = |root: &Path| {
        let mut command = outlast();
        command
            .arg("verify")
            .arg(&signed.file)
            .arg("--signature")
            .arg(theirs.join("signature.p7s"));
        command.arg("--trust").arg(root);
        command
    };
    succeed(&mut verify(&theirs.join("root.pem")));
    fail(&mut verify(&signed.out.join("root-ca.pem")), 3);
}

/// `openssl s_client`'s report on a handshake: negotiated group, and whether there was a HelloRetryRequest.
fn s_client(peer: &Path, server: &Server, ca: &Path, extra: &[&str]) -> (bool, String, bool) {
    let port = server.port.to_string();
    let mut command = openssl(peer, &["s_client", "-connect", &format!("127.0.0.1:{port}")]);
    command.args(["-servername", "localhost", "-verify_return_error", "-msg", "-CAfile"]).arg(ca);
    let output = run(command.args(extra).stdin(std::process::Stdio::null()));
    let text = stdout(&output) + &stderr(&output);
    let group = text
        .lines()
        .find_map(|line| {
            line.strip_prefix("Negotiated TLS1.3 group: ").or_else(|| {
                line.strip_prefix("Peer Temp Key: ").or(line.strip_prefix("Server Temp Key: "))
            })
        })
        .unwrap_or_default()
        .to_owned();
    let hellos =
        text.lines().filter(|line| line.starts_with("<<<") && line.ends_with("ServerHello"));
    (output.status.success(), group, hellos.count() > 1)
}

#[test]
fn openssl_is_upgraded_whatever_it_names_first() {
    let Some(peer) = peer("openssl") else { return };
    let folder = Folder::new();
    let server = folder.serve();
    let ca = folder.data.join("client/ca.pem");
    for (groups, expected, retry) in [
        ("X25519MLKEM768", "X25519MLKEM768", false),
        ("SecP256r1MLKEM768", "SecP256r1MLKEM768", false),
        ("SecP384r1MLKEM1024", "SecP384r1MLKEM1024", false),
        // Classical group first, and only a classical share.
        ("X25519:X25519MLKEM768", "X25519MLKEM768", true),
        ("P-256:SecP256r1MLKEM768", "SecP256r1MLKEM768", true),
        ("P-384:X25519:SecP384r1MLKEM1024", "SecP384r1MLKEM1024", true),
        ("*X25519:*X25519MLKEM768", "X25519MLKEM768", false),
        ("X25519", "X25519", false),
        ("P-256", "P-256", false),
        ("P-384", "P-384", false),
    ] {
        let (success, group, retried) =
            s_client(&peer, &server, &ca, &["-tls1_3", "-groups", groups]);
        assert!(success, "{groups}");
        let named = group.contains(expected)
            || group
                .contains(&expected.replace("P-256", "secp256r1").replace("P-384", "secp384r1"))
            || group.contains(&expected.replace("P-256", "prime256v1"));
        assert!(named, "{groups}: {group}");
        assert_eq!(retried, retry, "{groups}");
    }
    for old in [&["-tls1_2"][..], &["-tls1_2", "-groups", "X25519:P-256"]] {
        let (success, group, _) = s_client(&peer, &server, &ca, old);
        assert!(success && !group.contains("MLKEM"), "{old:?} {group}");
    }
    let (success, group, _) = s_client(&peer, &server, &ca, &["-groups", "X448"]);
    assert!(!success, "{group}");
    drop(server);
    let server = Server::start(&folder.data, &["--tls-cert", "ml-dsa-65"]);
    let (success, group, _) = s_client(&peer, &server, &ca, &["-tls1_3"]);
    assert!(success && group.contains("X25519MLKEM768"), "{group}");
}

#[test]
fn curl_speaks_http2_and_http1() {
    if run(Command::new("curl").arg("--version")).status.code().is_none() {
        outlast_testing::skip("there is no curl");
        return;
    }
    let folder = Folder::new();
    let server = folder.serve();
    for (flag, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let mut command = Command::new("curl");
        command.args(["-sS", flag, "-o", "/dev/null", "-w", "%{http_code} %{http_version}"]);
        command.arg("--cacert").arg(folder.data.join("client/ca.pem"));
        command.arg(format!("https://localhost:{}/healthz", server.port));
        assert_eq!(succeed(&mut command), format!("200 {version}"));
    }
}

/// The programs report each step and end with "N passed, 0 failed".
fn all_passed(text: &str) -> bool {
    text.lines().last().is_some_and(|line| line.ends_with(" passed, 0 failed"))
}

#[test]
fn boto3_works_with_the_profile_alone() {
    let Some(peer) = peer("python") else { return };
    let folder = Folder::new();
    let _server = folder.serve();
    let mut command = Command::new(peer.join("bin/python"));
    command.arg(checkout().join("tests/interop/python/aws_calls.py"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(&name);
        }
    }
    command
        .env("AWS_CONFIG_FILE", folder.data.join("client/config"))
        .env("AWS_SHARED_CREDENTIALS_FILE", folder.data.join("client/credentials"))
        .env("AWS_PROFILE", "outlast");
    let text = succeed(&mut command);
    assert!(all_passed(&text), "{text}");
    println!("boto3: {}", text.lines().last().unwrap_or_default());
}

#[test]
fn the_java_sdk_runs_awss_own_sample() {
    let Some(peer) = peer("java") else { return };
    let folder = Folder::new();
    let server = folder.serve();
    let mut command = Command::new(checkout().join("tests/interop/java/run-with-ca.sh"));
    let sdk = java(&peer, "outlast.interop.Main", &["aws-sdk"]);
    command.arg(folder.data.join("client/ca.pem")).arg(sdk.get_program()).args(sdk.get_args());
    command
        .env("AWS_ENDPOINT_URL", format!("https://localhost:{}", server.port))
        .env("AWS_ACCESS_KEY_ID", common::ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", common::SECRET)
        .env("AWS_REGION", "eu-central-1");
    let text = succeed(&mut command);
    assert!(all_passed(&text), "{text}");
    println!("AWS SDK for Java: {}", text.lines().last().unwrap_or_default());
    drop(server);
    // What was negotiated, from the service's own records.
    use outlast_store::Store;
    let store = outlast_store::sqlite::SqliteStore::open(&folder.data.join("store.db")).unwrap();
    let events = store.events(0, 10_000).unwrap();
    assert!(!events.is_empty());
    for event in events {
        let event: serde_json::Value = serde_json::from_slice(&event.body).unwrap();
        assert_eq!(event["tlsDetails"]["keyExchange"], "X25519MLKEM768");
        assert_eq!(event["tlsDetails"]["tlsVersion"], "TLSv1.3");
        assert_eq!(event["awsRegion"], "eu-central-1");
    }
}
