//! `quickstart`, `sign`, `verify` and `inspect` on real files.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::path::Path;

use common::pki::{New, certify, issue};
use common::{Folder, fail, outlast, run, stderr, stdout, succeed};

/// A quickstart folder with a profile that reaches a running server.
fn quickstart() -> (tempfile::TempDir, std::path::PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("release 1.tar");
    std::fs::write(&file, vec![42; 3_000_000]).unwrap();
    let out = temporary.path().join("out");
    succeed(outlast().arg("quickstart").arg(&file).arg("--out").arg(&out));
    (temporary, out)
}

fn client(out: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = outlast();
    command
        .args(arguments)
        .env("AWS_CONFIG_FILE", out.join("data/client/config"))
        .env("AWS_SHARED_CREDENTIALS_FILE", out.join("data/client/credentials"))
        .env("AWS_PROFILE", "outlast");
    command
}

#[test]
fn quickstart_runs_twice_and_uses_what_exists() {
    let (temporary, out) = quickstart();
    for name in ["signature.p7s", "root-ca.pem", "code-signing-cert.pem", "chain.pem"] {
        assert!(out.join(name).exists(), "{name}");
    }
    let root = std::fs::read(out.join("root-ca.pem")).unwrap();
    let leaf = std::fs::read(out.join("code-signing-cert.pem")).unwrap();
    let file = temporary.path().join("release 1.tar");
    let again = succeed(
        outlast().args(["quickstart", "--output", "json"]).arg(&file).arg("--out").arg(&out),
    );
    let value: serde_json::Value = serde_json::from_str(&again).unwrap();
    let steps: Vec<_> =
        value["steps"].as_array().unwrap().iter().map(|s| s["text"].as_str().unwrap()).collect();
    assert_eq!(steps.iter().filter(|text| text.starts_with("used ")).count(), 5, "{steps:#?}");
    assert_eq!(steps.iter().filter(|text| text.starts_with("refused ")).count(), 3);
    assert_eq!(value["connection"]["group"], "X25519MLKEM768");
    assert_eq!(value["connection"]["handshake"], "full");
    assert_eq!(value["classical_connection"]["group"], "x25519");
    let sent = value["handshake_bytes"]["sent"].as_u64().unwrap();
    let classical = value["classical_handshake_bytes"]["sent"].as_u64().unwrap();
    // The client's hybrid share is 1184 bytes longer and is sent along with the classical one.
    assert!((1184..1300).contains(&(sent - classical)), "{sent} against {classical}");
    assert_eq!(std::fs::read(out.join("root-ca.pem")).unwrap(), root);
    assert_eq!(std::fs::read(out.join("code-signing-cert.pem")).unwrap(), leaf);
    succeed(
        outlast()
            .arg("verify")
            .arg(&file)
            .arg("--signature")
            .arg(out.join("signature.p7s"))
            .arg("--trust")
            .arg(out.join("root-ca.pem")),
    );
    let missing = fail(outlast().args(["quickstart", "/no/such/file"]).current_dir(&temporary), 1);
    assert!(missing.contains("no such file"), "{missing}");
}

#[test]
fn unreadable_files_do_not_stop_signing_the_rest() {
    let (temporary, out) = quickstart();
    let server = common::Server::start(&out.join("data"), &[]);
    let files: Vec<_> = (0..6)
        .map(|n| {
            let path = temporary.path().join(format!("file-{n}"));
            std::fs::write(&path, vec![n; usize::from(n) * 700_000]).unwrap();
            path
        })
        .collect();
    let missing = temporary.path().join("missing");
    let mut command = client(&out, &["sign", "--key", "alias/outlast-quickstart"]);
    let output = run(command.args(&files[..3]).arg(&missing).args(&files[3..]));
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("missing: No such file"), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 of 7 files were not signed"));
    assert_eq!(stdout(&output).lines().count(), 6);
    assert!(!temporary.path().join("missing.p7s").exists());
    let trust = out.join("root-ca.pem");
    let verify = |extra: &[&str]| {
        let mut command = outlast();
        command.arg("verify").args(&files).arg("--trust").arg(&trust).args(extra);
        command
    };
    // The trust store may be a folder.
    let store = temporary.path().join("trust");
    std::fs::create_dir(&store).unwrap();
    std::fs::copy(&trust, store.join("root.pem")).unwrap();
    assert_eq!(succeed(&mut verify(&[])).lines().count(), 6);
    let json = succeed(&mut verify(&["--output", "json", "--at", "now"]));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(value.as_array().unwrap().iter().all(|one| one["verified"] == true));
    assert_eq!(value[0]["signers"][0]["digest"], "sha512");
    succeed(outlast().arg("verify").arg(&files[0]).arg("--trust").arg(&store));
    // One file changed, one unsigned: refused, with the higher exit code.
    std::fs::write(&files[1], "changed").unwrap();
    std::fs::remove_file(temporary.path().join("file-2.p7s")).unwrap();
    let text = fail(&mut verify(&[]), 3);
    assert!(text.contains("file-1: the file is not the one that was signed"), "{text}");
    assert!(text.contains("2 of 6 files were not verified"), "{text}");
    let text = fail(&mut verify(&["--at", "2020-01-01T00:00:00Z"]), 3);
    assert!(text.contains("is not valid before"), "{text}");
    assert!(fail(&mut verify(&["--at", "yesterday"]), 2).contains("'--at <AT>'"));

    for digest in ["shake256", "sha384"] {
        let mut command =
            client(&out, &["sign", "--key", "alias/outlast-quickstart", "--digest", digest]);
        command.arg("--force");
        succeed(command.arg(&files[0]).arg("--output-dir").arg(&store));
        let signature = store.join("file-0.p7s");
        assert!(succeed(outlast().arg("inspect").arg(&signature)).contains(digest));
        succeed(
            outlast()
                .arg("verify")
                .arg(&files[0])
                .arg("--signature")
                .arg(&signature)
                .arg("--trust")
                .arg(&trust),
        );
    }
    for (arguments, expected) in [
        (&["--key", "alias/nothing"][..], "is not found"),
        (&["--key", "alias/outlast-quickstart", "--digest", "sha256"], "does not suit"),
        (&["--key", "alias/outlast-quickstart", "--digest", "md5"], "not a digest"),
        (&["--key", "alias/outlast-quickstart", "--region", "eu-west-1"], "is not found"),
        (
            &["--key", "alias/outlast-quickstart", "--endpoint-url", "http://localhost"],
            "is not an endpoint",
        ),
        (
            &["--key", "alias/outlast-quickstart", "--endpoint-url", "https://localhost:1"],
            "hint: is the server running",
        ),
    ] {
        let mut command = client(&out, &["sign", "--force"]);
        let code = if arguments.contains(&"--digest") { 2 } else { 1 };
        let text = fail(command.args(arguments).arg(&files[0]), code);
        assert!(text.contains(expected), "{text}");
    }
    drop(server);
}

/// A device on which nothing can be written.
fn full() -> std::fs::File {
    std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap()
}

#[test]
fn lost_output_is_an_error_and_a_closed_pipe_is_not() {
    let (temporary, out) = quickstart();
    let signed = temporary.path().join("release 1.tar");
    let (signature, trust) = (out.join("signature.p7s"), out.join("root-ca.pem"));
    let [signed, signature, trust, chain, data] =
        [signed, signature, trust, out.join("chain.pem"), out.join("data")]
            .map(|path| path.display().to_string());
    let verify = ["verify", &signed, "--signature", &signature, "--trust", &trust];
    let verify_json = [&verify[..], &["--output", "json"]].concat();
    let commands: &[&[&str]] = &[
        &verify,
        &verify_json,
        &["inspect", &signature],
        &["cert", "verify", &chain, "--trust", &trust, "--output", "json"],
        &["cert", "convert", &chain, "--to", "pem"],
        &["settings", "--data", &data],
        &["man"],
        &["man", "--markdown"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
    ];
    for arguments in commands {
        let text = fail(outlast().args(*arguments).stdout(full()), 1);
        assert!(text.contains("stdout: No space left on device"), "{arguments:?}: {text}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = run(outlast().args(*arguments).stdout(writer));
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
    // A refusal stays one, with its own exit code.
    let arguments = ["verify", &chain, "--signature", &signature, "--trust", &trust];
    fail(outlast().args(arguments).args(["--output", "json"]).stdout(full()), 3);
}

#[test]
fn verify_says_what_it_did_not_do_and_what_is_wrong() {
    let (temporary, out) = quickstart();
    let signed = temporary.path().join("release 1.tar");
    let signature = temporary.path().join("release 1.tar.p7s");
    std::fs::copy(out.join("signature.p7s"), &signature).unwrap();
    let verify = |file: &Path, trust: &str| {
        let mut command = outlast();
        command.arg("verify").arg(file).arg("--trust").arg(out.join(trust));
        command
    };
    let text = succeed(&mut verify(&signed, "root-ca.pem"));
    assert!(text.contains("revocation not checked"), "{text}");
    let json = |command: &mut std::process::Command| -> serde_json::Value {
        serde_json::from_str(&stdout(&run(command.args(["--output", "json"])))).unwrap()
    };
    let value = json(&mut verify(&signed, "root-ca.pem"));
    assert_eq!(value[0]["outcome"], "verified");
    assert_eq!(value[0]["revocation"], "not checked");
    // The signature in place of the file, as with other tools.
    let text = fail(&mut verify(&signature, "root-ca.pem"), 1);
    assert!(text.contains("hint: name the signed file: outlast verify FILE --signature"), "{text}");
    let nothing = temporary.path().join("nofile");
    let text = fail(&mut verify(&nothing, "root-ca.pem"), 1);
    assert!(text.contains("nofile: No such file") && !text.contains(".p7s"), "{text}");
    let value = json(&mut verify(&nothing, "root-ca.pem"));
    assert_eq!(value[0]["outcome"], "failed");
    assert_eq!(value[0]["reason"], value[0]["error"]);
    // A leaf in place of the root is a mistake of the caller and says nothing about the signature.
    for command in [
        &mut verify(&signed, "code-signing-cert.pem"),
        outlast()
            .arg("cert")
            .arg("verify")
            .arg(out.join("code-signing-cert.pem"))
            .arg("--trust")
            .arg(out.join("code-signing-cert.pem"))
            .args(["--purpose", "code"]),
    ] {
        let text = fail(command, 1);
        assert!(
            text.contains("code-signing-cert.pem: it contains no certificate of a CA"),
            "{text}"
        );
        assert!(text.contains("hint: --trust"), "{text}");
    }
    let mut bytes = std::fs::read(&signature).unwrap();
    bytes.push(b'\n');
    std::fs::write(&signature, &bytes).unwrap();
    let text = fail(&mut verify(&signed, "root-ca.pem"), 3);
    assert!(text.contains("data follows the signature"), "{text}");
    assert_eq!(json(&mut verify(&signed, "root-ca.pem"))[0]["outcome"], "refused");
}

#[test]
fn sign_refuses_what_verifiers_would_refuse() {
    let (temporary, out) = quickstart();
    let _server = common::Server::start(&out.join("data"), &[]);
    let signed = temporary.path().join("release 1.tar");
    let sign = |files: &[&Path]| {
        let mut command = client(&out, &["sign", "--force", "--key", "alias/outlast-quickstart"]);
        command.args(files);
        command
    };
    // The CAs of the quickstart publish neither CRLs nor OCSP responses.
    let output = run(&mut sign(&[&signed]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).starts_with("warning: not known to be revoked or not: "));
    let output = run(sign(&[&signed]).args(["--revocation", "off"]));
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let text = fail(sign(&[&signed]).args(["--revocation", "required"]), 3);
    assert!(text.contains("nothing is signed: ") && text.contains("hint: "), "{text}");
    let folder = temporary.path().join("new/folder");
    succeed(sign(&[&signed]).arg("--output-dir").arg(&folder));
    assert!(folder.join("release 1.tar.p7s").exists());
    let text = fail(&mut sign(&[&temporary.path().join("nofile")]), 1);
    assert!(text.contains("nofile: No such file") && text.contains("hint: "), "{text}");
    let empty = temporary.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let text = fail(sign(&[&signed]).arg("--certificate").arg(&empty), 1);
    assert!(text.contains("empty.pem: not a valid certificate"), "{text}");
    assert!(fail(&mut sign(&[&signed, &signed]), 1).contains("given more than once"));
    // Without the CA's certificate.
    let mut command = sign(&[&signed]);
    let output = run(command.arg("--certificate").arg(out.join("code-signing-cert.pem")));
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("warning: no CA's certificate comes with"));
    let value: serde_json::Value =
        serde_json::from_str(&stdout(&run(
            sign(&[&signed, Path::new("/nofile")]).args(["--output", "json"])
        )))
        .unwrap();
    assert_eq!((&value[0]["outcome"], &value[1]["outcome"]), (&"signed".into(), &"failed".into()));
    assert_eq!(value[1]["reason"], value[1]["error"]);
    // Certificates that verifiers would refuse.
    let request = temporary.path().join("request.pem");
    succeed(
        client(&out, &["cert", "request", "--key", "alias/outlast-quickstart"])
            .args(["--subject", "CN=Server", "--out"])
            .arg(&request),
    );
    let request =
        outlast_pki::pem::read_certificate_request(&std::fs::read(&request).unwrap()).unwrap();
    let public_key = outlast_pki::describe::request(&request).unwrap().public_key;
    let now = outlast_net::server::system_clock().div_euclid(1000);
    let root = issue("ML_DSA_44", New::of("RootCACertificate", "Root", now), None);
    for (template, since, expected) in [
        ("CodeSigningCertificate", now - 86_400 * 365, "expired on"),
        ("CodeSigningCertificate", now + 86_400, "is not valid before"),
        ("EndEntityServerAuthCertificate", now, "is not for code signing"),
    ] {
        let new = New::of(template, "Somebody", since);
        let certificate = certify(public_key.clone(), new, &root);
        let pem = outlast_pki::pem::certificate(certificate.der()) + &root.pem();
        std::fs::write(&empty, pem).unwrap();
        let target = temporary.path().join("release 1.tar.p7s");
        std::fs::remove_file(&target).unwrap_or_default();
        let text = fail(sign(&[&signed]).arg("--certificate").arg(&empty), 3);
        assert!(text.contains("error: nothing is signed: ") && text.contains(expected), "{text}");
        assert!(text.contains("hint: ") && !target.exists(), "{text}");
    }
    // What is missing is said without the options that variables give.
    let text = fail(client(&out, &["sign"]).arg(&signed), 2);
    assert!(text.contains("Usage: outlast sign [OPTIONS] --key <KEY>"), "{text}");
}

#[test]
fn truncated_and_foreign_signatures_are_refused() {
    let (temporary, out) = quickstart();
    let file = temporary.path().join("release 1.tar");
    let signature = std::fs::read(out.join("signature.p7s")).unwrap();
    let bad = temporary.path().join("bad.p7s");
    let verify = || {
        let mut command = outlast();
        command.arg("verify").arg(&file).arg("--signature").arg(&bad);
        command.arg("--trust").arg(out.join("root-ca.pem"));
        command
    };
    for bytes in [&signature[..signature.len() / 2], b"", b"not a signature", &signature[1..]] {
        std::fs::write(&bad, bytes).unwrap();
        let text = fail(&mut verify(), 3);
        assert!(text.contains("not a CMS signature"), "{text}");
        let plain = match bytes.len() {
            0 => "it is empty",
            len if len < 100 => "it is neither DER, BER nor PEM",
            _ => "",
        };
        assert!(text.contains(plain), "{text}");
    }
    std::fs::copy(out.join("root-ca.pem"), &bad).unwrap();
    assert!(fail(&mut verify(), 3).contains("not a CMS signature"));
    std::fs::remove_file(&bad).unwrap();
    assert!(fail(&mut verify(), 1).contains("No such file"));
    let other = quickstart();
    let text = fail(
        outlast()
            .arg("verify")
            .arg(&file)
            .arg("--signature")
            .arg(out.join("signature.p7s"))
            .arg("--trust")
            .arg(other.1.join("root-ca.pem")),
        3,
    );
    assert!(text.contains("certificate chain is not valid") || text.contains("no path"), "{text}");
    let text = succeed(outlast().arg("inspect").arg(out.join("chain.pem")));
    assert!(text.contains("CA, path length 0") && text.contains("key: ML-DSA-65"), "{text}");
    assert!(fail(outlast().arg("inspect").arg(&file), 1).contains("release 1.tar"));
}

#[test]
fn a_key_without_certificate_needs_one() {
    let folder = Folder::new();
    let server = folder.serve();
    let runtime = common::runtime();
    let key = runtime.block_on(async {
        let mut session = server.session().await.unwrap();
        let new = serde_json::json!({ "KeySpec": "ML_DSA_44", "KeyUsage": "SIGN_VERIFY" });
        let made = session.call::<outlast_api::ops::kms::create_key::CreateKey>(new).await.unwrap();
        made.unwrap().key_metadata.arn
    });
    let file = folder.write("file", b"content");
    let text = fail(folder.client(&["sign", "--key", &key]).arg(&file), 1);
    assert!(text.contains("--certificate") && text.contains("outlast cert request"), "{text}");
    let request = folder.path("request.pem");
    let ask = || {
        let mut command = folder.client(&["cert", "request", "--key", &key]);
        command.args(["--subject", "CN=Release"]);
        command
    };
    succeed(ask().arg("--out").arg(&request));
    assert!(fail(ask().arg("--out").arg(&request), 1).contains("--force"));
    succeed(ask().arg("--force").arg("--out").arg(&request));
    assert!(fail(ask().stdout(full()), 1).contains("stdout: No space left on device"));
    let text = fail(&mut folder.client(&["cert", "request", "--key", &key, "--subject", "x"]), 2);
    assert!(text.contains("'x' is not a distinguished name"), "{text}");
    let stranger = quickstart();
    let text = fail(
        folder
            .client(&["sign", "--key", &key])
            .arg(&file)
            .arg("--certificate")
            .arg(stranger.1.join("code-signing-cert.pem")),
        1,
    );
    assert!(text.contains("is not for the key"), "{text}");
}
