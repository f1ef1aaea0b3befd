//! Every kind of signature that `outlast sign setup` can make, among verifiers: OpenSSL 3.5, the system's OpenSSL,
//! BouncyCastle, Go's pkcs7 and ours.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::peers::{java, openssl, peer};
use crate::common::{Folder, outlast, run, succeed};
use crate::sign_dual::changed;

/// A kind, and who accepts its signatures: OpenSSL 3.5, OpenSSL 3.0, BouncyCastle, Go. We do.
const KINDS: &[(&str, [bool; 4])] = &[
    ("ml-dsa-65", [true, false, true, true]),
    // RFC 9814
    ("slh-dsa-sha2-128s", [true, false, true, false]),
    // draft-ietf-lamps-cms-composite-sigs
    ("composite", [false, false, true, false]),
    ("ecdsa-p384", [true, true, true, true]),
    ("rsa-3072", [true, true, true, true]),
];

const FILE: &[u8] = b"release";

/// What is done to a message that must be refused by everybody.
fn damaged(p7s: &[u8]) -> [(&'static str, Vec<u8>); 3] {
    let broken = changed(p7s, |data| {
        let mut one = data.signer_infos.0.as_slice()[0].clone();
        let mut bytes = one.signature.as_bytes().to_vec();
        // Within the part of ML-DSA, if there are two.
        bytes[10] ^= 1;
        one.signature = der::asn1::OctetString::new(bytes).unwrap();
        data.signer_infos.0 = der::asn1::SetOfVec::try_from(vec![one]).unwrap();
    });
    let end = changed(p7s, |data| {
        let mut one = data.signer_infos.0.as_slice()[0].clone();
        let mut bytes = one.signature.as_bytes().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        one.signature = der::asn1::OctetString::new(bytes).unwrap();
        data.signer_infos.0 = der::asn1::SetOfVec::try_from(vec![one]).unwrap();
    });
    let no_chain = changed(p7s, |data| data.certificates = None);
    [("broken-near-its-start", broken), ("broken-at-its-end", end), ("chain-missing", no_chain)]
}

struct Verifiers {
    openssl: PathBuf,
    java: PathBuf,
    go: PathBuf,
    roots: PathBuf,
}

/// The verdict of an OpenSSL.
fn openssl_says(mut command: Command, roots: &Path, file: &Path, signature: &Path) -> bool {
    command.args(["cms", "-verify", "-binary", "-inform", "DER", "-in"]).arg(signature);
    command.arg("-content").arg(file).arg("-CAfile").arg(roots);
    // The purpose codesign is unknown before 3.2.
    command.args(["-purpose", "any", "-out", "/dev/null"]);
    run(&mut command).status.success()
}

impl Verifiers {
    /// Verdicts of BouncyCastle, by one process.
    fn bouncy_castle_says(&self, file: &Path, signatures: &[PathBuf]) -> Vec<bool> {
        let text = |path: &Path| path.display().to_string();
        let mut words = vec!["cms".into(), "judge".into(), "--root".into(), text(&self.roots)];
        words.push(text(file));
        words.extend(signatures.iter().map(|path| text(path)));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = succeed(&mut java(&self.java, "outlast.interop.Main", &words));
        let verdicts: Vec<_> = said
            .lines()
            .filter(|line| *line != "ok")
            .map(|line| line.starts_with("accepted"))
            .collect();
        assert_eq!(verdicts.len(), signatures.len(), "{said}");
        verdicts
    }

    /// OpenSSL 3.5, the system's, Go, ours.
    fn others_say(&self, file: &Path, signature: &Path) -> [bool; 4] {
        let mut go = Command::new(self.go.join("bin/tsp-check"));
        go.arg("cms").args([&self.roots, file, signature]);
        let mut ours = outlast();
        ours.arg("verify").arg(file).arg("--signature").arg(signature);
        ours.arg("--trust").arg(&self.roots);
        [
            openssl_says(openssl(&self.openssl, &[]), &self.roots, file, signature),
            openssl_says(Command::new("openssl"), &self.roots, file, signature),
            run(&mut go).status.success(),
            run(&mut ours).status.success(),
        ]
    }
}

#[test]
fn verifiers_say_of_each_kind_what_the_table_says() {
    let (Some(openssl), Some(java), Some(go)) = (peer("openssl"), peer("java"), peer("go127"))
    else {
        return;
    };
    let folder = Folder::new();
    let server = folder.serve();
    let at = |name: &str| folder.path(name);
    let (mut roots, mut signed) = (String::new(), Vec::new());
    for (kind, _) in KINDS {
        let setup = ["sign", "setup", "--name", kind, "--algorithm", kind, "--create-ca"];
        let ca = format!("{kind}-root.pem");
        succeed(&mut folder.client_at(&server, &setup));
        roots.push_str(&std::fs::read_to_string(at(&ca)).unwrap());
        let name = format!("{kind}.bin");
        folder.write(&name, FILE);
        let key = format!("alias/{kind}");
        succeed(&mut folder.client_at(&server, &["sign", &name, "--key", &key]));
        signed.push(std::fs::read(at(&format!("{name}.p7s"))).unwrap());
    }
    let roots = folder.write("roots.pem", roots.as_bytes());
    let verifiers = Verifiers { openssl, java, go, roots };
    let (file, other) = (folder.write("file", FILE), folder.write("other", b"other"));
    let is_old = succeed(Command::new("openssl").arg("version")).starts_with("OpenSSL 3.0");
    let mut all = Vec::new();
    for ((kind, accepted), p7s) in KINDS.iter().zip(&signed) {
        all.push((*kind, "intact", folder.write(&format!("{kind}.intact"), p7s), *accepted));
        for (damage, bytes) in damaged(p7s) {
            all.push((
                *kind,
                damage,
                folder.write(&format!("{kind}.{damage}"), &bytes),
                [false; 4],
            ));
        }
    }
    let paths: Vec<_> = all.iter().map(|(_, _, path, _)| path.clone()).collect();
    let by_bouncy_castle = verifiers.bouncy_castle_says(&file, &paths);
    assert!(verifiers.bouncy_castle_says(&other, &paths).iter().all(|verdict| !verdict));
    let mut wrong = Vec::new();
    for ((kind, state, path, expected), by_bouncy_castle) in all.iter().zip(by_bouncy_castle) {
        let [new, old, go, ours] = verifiers.others_say(&file, path);
        println!(
            "{kind}, {state}: OpenSSL 3.5 {new}, the system's {old}, BouncyCastle {by_bouncy_castle}, Go {go}, ours {ours}"
        );
        let old = if is_old { old } else { expected[1] };
        if ours != (*state == "intact") || [new, old, by_bouncy_castle, go] != *expected {
            wrong.push(format!("{kind}, {state}"));
        }
        if verifiers.others_say(&other, path) != [false; 4] {
            wrong.push(format!("{kind}, {state}, other file"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The same for OpenSSL 4.0, which comes from a suite of Debian that changes daily, and is no peer of every run.
#[test]
fn openssl_4_says_of_each_kind_what_the_table_says() {
    let Some(place) = peer("openssl4") else { return };
    let version = succeed(&mut openssl(&place, &["version"]));
    assert!(version.starts_with("OpenSSL 4."), "{version}");
    let folder = Folder::new();
    let server = folder.serve();
    let (file, other) = (folder.write("file", FILE), folder.write("other", b"other"));
    for (kind, accepted) in [
        ("ml-dsa-65", true),
        ("slh-dsa-sha2-128s", true),
        ("composite", false),
        ("dual", true),
        ("ecdsa-p384", true),
        ("rsa-3072", true),
    ] {
        let setup = ["sign", "setup", "--name", kind, "--algorithm", kind, "--create-ca"];
        succeed(&mut folder.client_at(&server, &setup));
        let (key, out) = (format!("alias/{kind}"), format!("{kind}.p7s"));
        let sign = ["sign", "file", "--key", &key, "--signature", &out];
        let copy: &[&str] = if kind == "dual" { &["--classical-copy"] } else { &[] };
        succeed(folder.client_at(&server, &sign).args(copy));
        let roots = folder.path(&format!("{kind}-root.pem"));
        let says = |file: &Path, signature: &Path| {
            openssl_says(openssl(&place, &[]), &roots, file, signature)
        };
        let intact = folder.path(&out);
        assert_eq!(says(&file, &intact), accepted, "{kind}");
        assert!(!says(&other, &intact), "{kind}, other file");
        if kind == "dual" {
            let copy = folder.path("dual.classical.p7s");
            assert!(says(&file, &copy) && !says(&other, &copy));
            // It does not know RFC 5752, either.
            for index in 0..2 {
                let rest = changed(&std::fs::read(&intact).unwrap(), |data| {
                    let one = data.signer_infos.0.as_slice()[index].clone();
                    data.signer_infos.0 = der::asn1::SetOfVec::try_from(vec![one]).unwrap();
                });
                assert!(says(&file, &folder.write("rest.p7s", &rest)), "signer {index}");
            }
        }
        for (damage, bytes) in damaged(&std::fs::read(&intact).unwrap()) {
            let path = folder.write(&format!("{kind}.{damage}"), &bytes);
            assert!(!says(&file, &path), "{kind}, {damage}");
        }
    }
}
