//! `outlast cert`: every kind of object, every form of key, every reason for a refusal.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::peers::{openssl, peer};
use common::pki::{New, Party, issue, new_key, request};
use common::{fail, outlast, run, stderr, stdout, succeed};
use outlast_crypto::keys::Form;
use outlast_net::server::system_clock;
use outlast_pki::crl::reason::Reason;
use outlast_pki::extensions::{authority_information_access, crl_distribution_points};
use outlast_pki::ocsp::Status;
use outlast_pki::{crl, pem};
use serde_json::Value;

fn now() -> i64 {
    system_clock().div_euclid(1000)
}

struct World {
    folder: tempfile::TempDir,
    root: Party,
    sub: Party,
    leaf: Party,
}

impl World {
    fn new() -> Self {
        Self::with(Vec::new())
    }

    /// The leaf has these extensions for looking up its revocation.
    fn with(authority: Vec<x509_cert::ext::Extension>) -> Self {
        let root = New { days: 3650, ..New::of("RootCACertificate", "Root", now()) };
        let root = issue("ML_DSA_87", root, None);
        let sub = New { days: 365, ..New::of("SubordinateCACertificate_PathLen0", "Sub", now()) };
        let sub = issue("ML_DSA_65", sub, Some(&root));
        let leaf = New {
            dns: &["server.example.com", "10.0.0.1"],
            authority,
            ..New::of("EndEntityServerAuthCertificate", "server.example.com", now())
        };
        let leaf = issue("ML_DSA_44", leaf, Some(&sub));
        let world = Self { folder: tempfile::tempdir().unwrap(), root, sub, leaf };
        world.write("root.pem", world.root.pem());
        world.write("sub.pem", world.sub.pem());
        world.write("leaf.pem", world.leaf.pem());
        world.write("chain.pem", world.leaf.pem() + &world.sub.pem());
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// `outlast cert ...` in the folder.
    fn cert(&self, arguments: &[&str]) -> Command {
        let mut command = outlast();
        command.arg("cert").args(arguments).current_dir(self.folder.path());
        command
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let text = succeed(self.cert(arguments).args(["--output", "json"]));
        serde_json::from_str(&text).unwrap()
    }

    fn verify(&self, arguments: &[&str]) -> Command {
        let mut command = self.cert(&["verify", "chain.pem", "--trust", "root.pem"]);
        command.args(arguments);
        command
    }
}

#[test]
fn inspect_shows_every_kind_of_object() {
    let world = World::new();
    let (spec, _, key) = new_key("ML_DSA_65");
    world.write("request.pem", request(spec, key.as_ref(), "asker", &["a.example.com"]));
    let crl = world.sub.crl(7, &[world.leaf.certificate.serial()], now());
    world.write("crl.pem", crl::pem(&crl));
    world.write("crl.der", &crl);
    let revoked = Status::Revoked { at: now() - 100, reason: Reason::by_code(1).unwrap() };
    world.write("ocsp.der", world.sub.ocsp(&world.leaf.certificate, revoked, now()));
    world.write("public.der", key.public_key().unwrap());

    let text = succeed(&mut world.cert(&["inspect", "leaf.pem"]));
    for expected in [
        "subject: CN=server.example.com",
        "issuer: CN=Sub",
        "state: valid",
        "days left: 29",
        "key: ML-DSA-44\nkey bytes: 1312\nkey post quantum: yes",
        "signature: ML-DSA-65\nsignature bytes: 3309\nsignature post quantum: yes",
        "  basic constraints: not a CA\n",
        "  key usage (critical): digitalSignature\n",
        "  extended key usage: serverAuth\n",
        "  subject alternative name: DNS:server.example.com, IP:10.0.0.1\n",
        "fingerprint sha256: ",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let value =
        world.json(&["inspect", "chain.pem", "crl.der", "ocsp.der", "request.pem", "public.der"]);
    let kinds: Vec<_> = value
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["found"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["certificate", "certificate", "CRL", "OCSP response", "certificate request", "public key"]
    );
    let fingerprint = hex::encode(outlast_crypto::digests::sha256(world.leaf.certificate.der()));
    assert_eq!(value[0]["found"]["fingerprint_sha256"], fingerprint.as_str());
    assert_eq!(value[2]["found"]["number"], "07");
    assert_eq!(value[2]["found"]["revoked"], 1);
    assert_eq!(value[2]["found"]["entries"][0]["serial"], value[0]["found"]["serial"]);
    assert_eq!(value[3]["found"]["answers"][0]["status"], "revoked");
    assert_eq!(value[3]["found"]["answers"][0]["reason"], "keyCompromise");
    assert_eq!(value[4]["found"]["valid"], true);
    assert_eq!(value[5]["found"]["key"], "ML-DSA-65");
    assert_eq!(succeed(&mut world.cert(&["inspect", "crl.pem"])).matches("serial: ").count(), 1);

    // A request with a wrong signature is shown, and called invalid.
    let mut der =
        outlast_pki::object::read(&std::fs::read(world.path("request.pem")).unwrap()).unwrap();
    let mut bytes = der.remove(0).der.expose().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    world.write("bad-request.der", bytes);
    assert_eq!(world.json(&["inspect", "bad-request.der"])[0]["found"]["valid"], false);
    // A file without an object fails; together with valid files the exit code says so.
    world.write("nothing", "nothing");
    assert!(fail(&mut world.cert(&["inspect", "nothing"]), 1).contains("neither PEM nor"));
    fail(&mut world.cert(&["inspect", "nothing", "leaf.pem"]), 4);
    assert!(fail(&mut world.cert(&["inspect", "missing.pem"]), 1).contains("missing.pem"));
}

#[test]
fn inspect_tells_who_takes_a_key_and_shows_nothing_of_it() {
    let world = World::new();
    let (spec, stored, key) = new_key("ML_DSA_65");
    let expected = [
        (Form::Seed, "seed", "Go 1.27", "AWS Roles Anywhere helper"),
        (Form::Both, "both", "AWS Roles Anywhere helper", "BoringSSL"),
        (Form::Expanded, "expanded", "OpenSSL 3.5", "Go 1.27"),
    ];
    for (form, name, yes, no) in expected {
        let der = spec.to_form(&stored, form).unwrap();
        world.write("key.der", der.expose());
        let value = world.json(&["inspect", "key.der"]);
        let found = &value[0]["found"];
        assert_eq!(
            (found["form"].as_str(), found["key"].as_str()),
            (Some(name), Some("ML-DSA-65"))
        );
        let takes = |software: &str| {
            let rows = found["taken_by"].as_array().unwrap();
            let row = rows.iter().find(|row| row["software"] == software).unwrap();
            assert!(!row["source"].as_str().unwrap().is_empty());
            row["takes"].as_str().unwrap().to_owned()
        };
        assert_eq!((takes(yes).as_str(), takes(no).as_str()), ("yes", "no"), "{found}");
        let public = hex::encode(outlast_crypto::digests::sha256(key.public_key().unwrap()));
        assert_eq!(found["public_key_sha256"], public.as_str());
        let text = succeed(&mut world.cert(&["inspect", "key.der"])) + &value.to_string();
        assert!(!text.contains(&hex::encode(&stored.expose()[..8])), "the seed is shown: {text}");
    }
    // Seed and expanded key of different keys.
    let (_, other, _) = new_key("ML_DSA_65");
    let mut mixed = spec.to_form(&stored, Form::Both).unwrap().expose().to_vec();
    let at = mixed.windows(32).position(|window| window == stored.expose()).unwrap();
    mixed[at..at + 32].copy_from_slice(other.expose());
    world.write("mixed.der", mixed);
    for command in
        [&["inspect", "mixed.der"][..], &["convert", "mixed.der", "--to", "seed", "--out", "x"]]
    {
        let text = fail(&mut world.cert(command), 1);
        assert!(text.contains("not the same key"), "{text}");
    }
    assert!(!world.path("x").exists());
}

#[test]
fn keys_are_converted_between_forms_and_never_lost() {
    let world = World::new();
    world.write("key.pem", world.leaf.key_pem());
    let convert = |arguments: &[&str]| {
        let mut command = world.cert(&["convert"]);
        command.args(arguments).env("OLD", "an old passphrase").env("NEW", "a new passphrase");
        command
    };
    let form = |name: &str| {
        world.json(&["inspect", name])[0]["found"]["form"].as_str().unwrap().to_owned()
    };
    for to in ["seed", "expanded", "both"] {
        let out = format!("{to}.pem");
        succeed(&mut convert(&["key.pem", "--to", to, "--out", &out]));
        assert_eq!(form(&out), to);
        let mode = std::fs::metadata(world.path(&out)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(world.json(&["inspect", "both.pem"])[0]["found"]["file_bytes"], 2560 + 32 + 34);
    for to in ["seed", "both"] {
        let text = fail(&mut convert(&["expanded.pem", "--to", to, "--out", "y"]), 1);
        assert!(text.contains("from which its seed cannot be computed"), "{text}");
        assert!(text.contains("hint: only --to expanded"), "{text}");
    }
    // The form with both returns the seed that it was made from.
    succeed(&mut convert(&["both.pem", "--to", "seed", "--out", "again.pem"]));
    let read = |name: &str| std::fs::read(world.path(name)).unwrap();
    assert_eq!(read("again.pem"), read("seed.pem"));
    // Nothing is overwritten without --force, and no unencrypted key goes to stdout.
    assert!(
        fail(&mut convert(&["key.pem", "--to", "seed", "--out", "seed.pem"]), 1)
            .contains("--force")
    );
    succeed(&mut convert(&["key.pem", "--to", "both", "--out", "again.pem", "--force"]));
    assert_eq!(form("again.pem"), "both");
    let text = fail(&mut convert(&["key.pem", "--to", "pem"]), 1);
    assert!(text.contains("not written to stdout"), "{text}");
    // Encrypted and back.
    let arguments =
        ["key.pem", "--to", "pem", "--new-passphrase", "env:NEW", "--out", "locked.pem"];
    succeed(&mut convert(&arguments));
    let text = succeed(&mut world.cert(&["inspect", "locked.pem"]));
    assert!(text.contains("encrypted private key") && text.contains("scrypt"), "{text}");
    assert!(
        fail(&mut convert(&["locked.pem", "--to", "seed", "--out", "z"]), 1)
            .contains("--passphrase")
    );
    let text = fail(
        &mut convert(&["locked.pem", "--to", "seed", "--out", "z", "--passphrase", "env:OLD"]),
        1,
    );
    assert!(text.contains("the passphrase is wrong"), "{text}");
    succeed(&mut convert(&["locked.pem", "--to", "seed", "--out", "z", "--passphrase", "env:NEW"]));
    assert_eq!(read("z"), read("seed.pem"));
    world.write("passphrase", "a new passphrase\n");
    let arguments =
        ["locked.pem", "--to", "der", "--passphrase", "file:passphrase", "--out", "key.der"];
    succeed(&mut convert(&arguments));
    assert_eq!(read("key.der"), world.leaf.pkcs8().expose());
    fail(&mut convert(&["locked.pem", "--to", "der", "--passphrase", "secret", "--out", "q"]), 2);
    // Other objects.
    assert_eq!(
        succeed(&mut convert(&["chain.pem", "--to", "pem"])),
        world.leaf.pem() + &world.sub.pem()
    );
    assert!(fail(&mut convert(&["chain.pem", "--to", "der"]), 1).contains("it contains 2 objects"));
    succeed(&mut convert(&["leaf.pem", "--to", "der", "--out", "leaf.der"]));
    assert_eq!(read("leaf.der"), world.leaf.der());
    assert_eq!(succeed(&mut convert(&["leaf.der", "--to", "pem"])), world.leaf.pem());
    assert!(
        fail(&mut convert(&["leaf.pem", "--to", "seed", "--out", "q"]), 1).contains("certificate")
    );
}

#[test]
fn openssl_reads_what_is_written_and_we_read_its_keys() {
    let Some(peer) = peer("openssl") else { return };
    let world = World::new();
    let ssl = |arguments: &[&str]| {
        let mut command = openssl(&peer, arguments);
        command.current_dir(world.folder.path());
        command
    };
    world.write("key.pem", world.leaf.key_pem());
    succeed(&mut ssl(&["pkey", "-in", "key.pem", "-pubout", "-out", "expected.pem"]));
    let expected = std::fs::read(world.path("expected.pem")).unwrap();
    for (to, more) in [
        ("seed", &[][..]),
        ("expanded", &[]),
        ("both", &[]),
        ("pem", &["--new-passphrase", "file:passphrase"]),
    ] {
        world.write("passphrase", "a long passphrase");
        let out = format!("{to}-written.pem");
        succeed(world.cert(&["convert", "key.pem", "--to", to, "--out", &out]).args(more));
        let arguments = ["pkey", "-in", &out, "-passin", "pass:a long passphrase", "-pubout"];
        assert_eq!(succeed(&mut ssl(&arguments)).as_bytes(), expected, "{to}");
    }
    let make: &[(&str, &[&str], &str, &str)] = &[
        (
            "ec",
            &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
            "EC P-384",
            "PKCS #8",
        ),
        (
            "rsa",
            &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
            "RSA 2048 bits",
            "PKCS #8",
        ),
        ("sec1", &["ecparam", "-name", "prime256v1", "-genkey"], "EC P-256", "SEC 1"),
        ("pkcs1", &["rsa", "-in", "rsa.pem", "-traditional"], "RSA 2048 bits", "PKCS #1"),
        ("mldsa", &["genpkey", "-algorithm", "ML-DSA-87"], "ML-DSA-87", "both"),
        ("mlkem", &["genpkey", "-algorithm", "ML-KEM-768"], "ML-KEM-768", "both"),
        ("slh", &["genpkey", "-algorithm", "SLH-DSA-SHA2-128s"], "SLH-DSA-SHA2-128s", "PKCS #8"),
        ("ed", &["genpkey", "-algorithm", "ED25519"], "Ed25519", "PKCS #8"),
    ];
    for (name, arguments, key, form) in make {
        let file = format!("{name}.pem");
        succeed(ssl(arguments).args(["-out", &file]));
        let value = world.json(&["inspect", &file]);
        let found = &value[0]["found"];
        assert_eq!((found["key"].as_str(), found["form"].as_str()), (Some(*key), Some(*form)));
        assert_eq!(found["taken_by"][0]["software"], "OpenSSL 3.5");
        assert_eq!(found["taken_by"][0]["takes"], "yes");
        succeed(&mut world.cert(&[
            "convert",
            &file,
            "--to",
            "der",
            "--out",
            &format!("{name}.der"),
        ]));
        let of = |file: &str, form: &str| {
            succeed(&mut ssl(&["pkey", "-in", file, "-inform", form, "-pubout"]))
        };
        assert_eq!(of(&format!("{name}.der"), "DER"), of(&file, "PEM"));
    }
    // Encrypted by OpenSSL: with PBKDF2, as it does today, and in older forms.
    succeed(&mut ssl(&[
        "pkey",
        "-in",
        "ec.pem",
        "-aes256",
        "-passout",
        "pass:abcdef",
        "-out",
        "pbes2.pem",
    ]));
    world.write("abc", "abcdef");
    let text = succeed(&mut world.cert(&["inspect", "pbes2.pem", "--passphrase", "file:abc"]));
    assert!(text.contains("EC P-384"), "{text}");
    let legacy = [
        "rsa",
        "-in",
        "rsa.pem",
        "-aes128",
        "-traditional",
        "-passout",
        "pass:abcdef",
        "-out",
        "legacy.pem",
    ];
    succeed(&mut ssl(&legacy));
    let text = succeed(&mut world.cert(&["inspect", "legacy.pem"]));
    assert!(text.contains("OpenSSL's older form"), "{text}");
    let text = fail(&mut world.cert(&["convert", "legacy.pem", "--to", "pem", "--out", "q"]), 1);
    assert!(text.contains("hint: OpenSSL's older encryption"), "{text}");
}

#[test]
fn verify_checks_path_purpose_name_time_and_revocation() {
    let world = World::new();
    let good = world.sub.crl(1, &[], now());
    world.write("good.crl", &good);
    world.write("root.crl", world.root.crl(1, &[], now()));
    world.write("bad.crl", world.sub.crl(2, &[world.leaf.certificate.serial()], now()));
    world.write("good.ocsp", world.sub.ocsp(&world.leaf.certificate, Status::Good, now()));
    let revoked = Status::Revoked { at: now() - 100, reason: Reason::by_code(1).unwrap() };
    world.write("bad.ocsp", world.sub.ocsp(&world.leaf.certificate, revoked, now()));

    let text = succeed(&mut world.verify(&[]));
    for expected in [
        "chain.pem: valid",
        "certificate: \"CN=server.example.com\"",
        "issued by: \"CN=Sub\"",
        "trusted root: \"CN=Root\"",
        "signed with ML-DSA-87",
        "revocation not checked",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    for arguments in [
        &["--purpose", "server", "--name", "server.example.com"][..],
        &["--name", "10.0.0.1"],
        &["--crl", "good.crl"],
        &["--ocsp", "good.ocsp"],
        &["--crl", "good.crl", "--crl", "root.crl", "--revocation", "required"],
        &["--ocsp", "good.ocsp", "--crl", "root.crl", "--revocation", "required"],
        &["--crl", "bad.crl", "--revocation", "off"],
    ] {
        let text = succeed(&mut world.verify(arguments));
        assert!(text.contains("valid"), "{text}");
    }
    for (arguments, reason) in [
        (&["--purpose", "client"][..], "does not allow id-kp-clientAuth"),
        (&["--name", "other.example.com"], "it is not for other.example.com"),
        (&["--name", "someone@example.com"], "it is not for someone@example.com"),
        (&["--at", "2001-01-01T00:00:00Z"], "not valid before"),
        (&["--at", "2100-01-01T00:00:00Z"], "expired"),
        (&["--crl", "bad.crl"], "it was revoked at"),
        (&["--ocsp", "bad.ocsp"], "keyCompromise"),
        (&["--revocation", "required"], "cannot be determined"),
        (&["--crl", "good.crl", "--revocation", "required"], "cannot be determined"),
    ] {
        let text = fail(&mut world.verify(arguments), 3);
        assert!(text.contains(reason), "{arguments:?}: {text}");
    }
    let text = fail(&mut world.cert(&["verify", "leaf.pem", "--trust", "root.pem"]), 3);
    assert!(
        text.contains("no path to a trusted root") && text.contains("hint: give the certificates"),
        "{text}"
    );
    succeed(&mut world.cert(&["verify", "leaf.pem", "--trust", "root.pem", "--chain", "sub.pem"]));
    let output = run(world.verify(&["--crl", "bad.crl"]).args(["--output", "json"]));
    assert_eq!(output.status.code(), Some(3));
    let value: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(value["valid"], false);
    assert!(value["reason"].as_str().unwrap().contains("revoked"), "{value}");
    assert!(stderr(&output).contains("error: "));
    fail(&mut world.verify(&["--at", "yesterday"]), 2);
    assert!(
        fail(&mut world.verify(&["--crl", "leaf.pem", "--crl", "nothing"]), 1).contains("nothing")
    );
}

/// Answers each request with what the closure makes of its body, until the test drops it.
fn serve(mut answer: impl FnMut(&str, &[u8]) -> Option<Vec<u8>> + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            let mut buffer = [0; 4096];
            let (path, body) = loop {
                let read = stream.read(&mut buffer).unwrap_or(0);
                bytes.extend_from_slice(&buffer[..read]);
                let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
                    continue;
                };
                let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.map_or(0, |text| text.trim().parse().unwrap());
                if bytes.len() >= end + 4 + length {
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    break (path, bytes[end + 4..].to_vec());
                }
            };
            let response = match answer(&path, &body) {
                Some(body) => {
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                    [head.into_bytes(), body].concat()
                }
                None => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(),
            };
            let _ = stream.write_all(&response);
        }
    });
    port
}

#[test]
fn verify_fetches_what_the_certificates_name() {
    use std::sync::{Arc, Mutex};
    type Answers = Arc<Mutex<Vec<(&'static str, Vec<u8>)>>>;
    let answers: Answers = Arc::default();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let port = serve({
        let (answers, seen) = (answers.clone(), seen.clone());
        move |path, body| {
            seen.lock().unwrap().push(format!("{path} {}", body.len()));
            let answers = answers.lock().unwrap();
            answers.iter().find(|(known, _)| *known == path).map(|(_, bytes)| bytes.clone())
        }
    });
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let world = World::with(vec![
        crl_distribution_points(&[&url("/sub.crl")]).unwrap(),
        authority_information_access(&[&url("/ocsp")], &[]).unwrap(),
    ]);
    world.write("root.crl", world.root.crl(1, &[], now()));
    let required = ["--fetch", "--revocation", "required", "--crl", "root.crl"];
    // No answer: reported, and refused because the status must be known.
    let text = fail(&mut world.verify(&required), 3);
    assert!(text.contains("status 404") && text.contains("cannot be determined"), "{text}");
    // By OCSP.
    let good = world.sub.ocsp(&world.leaf.certificate, Status::Good, now());
    *answers.lock().unwrap() = vec![("/ocsp", good)];
    seen.lock().unwrap().clear();
    succeed(&mut world.verify(&required));
    assert_eq!(seen.lock().unwrap().len(), 1, "{:?}", seen.lock().unwrap());
    assert!(seen.lock().unwrap()[0].starts_with("/ocsp "));
    // By CRL, with a responder that is of no use.
    let crl = world.sub.crl(1, &[world.leaf.certificate.serial()], now());
    *answers.lock().unwrap() = vec![("/ocsp", b"nonsense".to_vec()), ("/sub.crl", crl)];
    let text = fail(&mut world.verify(&required), 3);
    assert!(text.contains("warning: ") && text.contains("revoked"), "{text}");
    // Another issuer's response proves nothing.
    let stranger = issue("ML_DSA_44", New::of("RootCACertificate", "Sub", now()), None);
    *answers.lock().unwrap() =
        vec![("/ocsp", stranger.ocsp(&world.leaf.certificate, Status::Good, now()))];
    fail(&mut world.verify(&required), 3);
}

#[test]
fn verify_fetches_nothing_of_what_no_root_vouches_for() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = requests.clone();
    let port = serve(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        None
    });
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let world = World::with(vec![
        crl_distribution_points(&[&url("/sub.crl")]).unwrap(),
        authority_information_access(&[&url("/ocsp")], &[]).unwrap(),
    ]);
    // A root of the same name.
    let other = issue("ML_DSA_44", New::of("RootCACertificate", "Root", now()), None);
    world.write("other.pem", other.pem());
    let cases: [(&str, &[&str]); 4] = [
        ("other.pem", &[]),
        ("root.pem", &["--purpose", "client"]),
        ("root.pem", &["--name", "other.example.com"]),
        ("root.pem", &["--purpose", "code"]),
    ];
    for (trust, more) in cases {
        let mut command = world.cert(&["verify", "chain.pem", "--trust", trust]);
        let text = fail(command.args(["--fetch", "--revocation", "required"]).args(more), 3);
        assert!(!text.contains("revocation"), "{trust} {more:?}: {text}");
        assert_eq!(requests.load(Ordering::SeqCst), 0, "{trust} {more:?}: {text}");
    }
    fail(&mut world.verify(&["--fetch", "--revocation", "required"]), 3);
    assert!(requests.load(Ordering::SeqCst) > 0);
}

#[test]
fn code_signing_has_the_rules_of_outlast_verify() {
    let world = World::new();
    let leaf =
        |template, name| issue("ML_DSA_44", New::of(template, name, now()), Some(&world.sub));
    let chain = |party: &Party| party.pem() + &world.sub.pem();
    world.write("code.pem", chain(&leaf("CodeSigningCertificate", "Code")));
    // No key usage or extended key usage of its own is restricted to code signing.
    world.write("any.pem", chain(&leaf("EndEntityCertificate", "Any")));
    let verify = |file| {
        let mut command = world.cert(&["verify", file, "--trust", "root.pem"]);
        command.args(["--purpose", "code"]);
        command
    };
    succeed(&mut verify("code.pem"));
    let text = fail(&mut verify("any.pem"), 3);
    assert!(text.contains("the certificate is not for code signing"), "{text}");
    let output = run(verify("any.pem").args(["--output", "json"]));
    let value: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&value["valid"], output.status.code()), (&false.into(), Some(3)));
}

#[test]
fn lint_finds_what_breaks_a_rule() {
    let world = World::new();
    let text = succeed(&mut world.cert(&["lint", "chain.pem", "--severity", "error"]));
    assert_eq!(text.matches("no findings").count(), 2, "{text}");
    // No alternative name: a name that only the common name contains.
    let bare = issue(
        "ECC_NIST_P256",
        New::of("EndEntityCertificate", "only.example.com", now()),
        Some(&world.sub),
    );
    world.write("bare.pem", bare.pem());
    let output = run(world.cert(&["lint", "bare.pem"]).args(["--output", "json"]));
    let value: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let findings = value[0]["findings"].as_array().unwrap();
    println!("{value}");
    assert_eq!(output.status.code(), Some(i32::from(!findings.is_empty())));
    for found in findings {
        assert!(found["source"].as_str().unwrap().contains("RFC") || !found["rule"].is_null());
    }
    let rules = world.json(&["lint", "--rules"]);
    assert!(rules.as_array().unwrap().len() > 20, "{rules}");
    world.write("key.pem", world.leaf.key_pem());
    assert!(fail(&mut world.cert(&["lint", "key.pem"]), 1).contains("no certificate in it"));
}

#[test]
fn whatif_counts_a_file_and_named_algorithms_alike() {
    let world = World::new();
    world.write("whole.pem", world.leaf.pem() + &world.sub.pem() + &world.root.pem());
    let value = world.json(&["whatif", "whole.pem"]);
    assert_eq!(value["certificates"].as_array().unwrap().len(), 3);
    assert_eq!(value["certificates"][0]["bytes"], world.leaf.certificate.der().len());
    assert_eq!(value["certificates"][2]["sent"], false);
    let alone = &value["handshakes"][0];
    let size = |party: &Party| party.certificate.der().len();
    let bytes = usize::try_from(alone["server_bytes"].as_u64().unwrap()).unwrap();
    assert!(bytes > size(&world.leaf) + size(&world.sub) + 2420 + 1120);
    assert!(bytes < size(&world.leaf) + size(&world.sub) + 2420 + 1120 + 400);
    let text = succeed(&mut world.cert(&[
        "whatif",
        "--root",
        "ML_DSA_87",
        "--sub",
        "ML_DSA_87",
        "--sub",
        "ML_DSA_65",
        "--leaf",
        "ML_DSA_65",
    ]));
    for expected in
        ["CertificateVerify", "ECC_NIST_P256", "RSA_2048", "nginx", "mutual TLS", "RFC 6928"]
    {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let made = world.json(&["whatif", "--root", "ML_DSA_87", "--leaf", "ML_DSA_44"]);
    assert_eq!(made["certificates"].as_array().unwrap().len(), 2);
    assert_eq!(made["handshakes"][0]["extra_tcp_round_trips"], 0);
    let headers = made["headers"].as_array().unwrap();
    assert!(headers.iter().all(|row| row["bytes"].as_u64().unwrap() > 6000), "{headers:?}");
    assert!(
        fail(&mut world.cert(&["whatif", "--root", "ML_DSA_99", "--leaf", "ML_DSA_44"]), 2)
            .contains("choose one of")
    );
    fail(&mut world.cert(&["whatif"]), 2);
    assert!(Path::new(&world.path("whole.pem")).exists());
    assert!(pem::read_certificates(&std::fs::read(world.path("whole.pem")).unwrap()).is_ok());
}
