//! Dual signatures among verifiers: OpenSSL 3.5, the system's OpenSSL (which may be too old for ML-DSA), BouncyCastle, Go's
//! pkcs7 and ours.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::authority::{Order, root, subordinate};
use crate::common::peers::{java, openssl, peer};
use crate::common::{self, Folder, Server, fail, outlast, run, stderr, stdout, succeed};
use outlast_pki::pem;
use serde_json::json;

/// Two keys with certificates of CAs of their own.
pub struct Dual {
    pub folder: Folder,
    server: Server,
    /// ECDSA first.
    keys: [String; 2],
    certificates: [PathBuf; 2],
    pub roots: PathBuf,
}

pub fn dual(classical: (&str, &str, &'static str)) -> Dual {
    let folder = Folder::new();
    let server = folder.serve();
    let endpoint = format!("https://localhost:{}", server.port);
    let mut roots = String::new();
    let mut made = Vec::new();
    common::runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        for (key_spec, key, signing) in [classical, ("ML_DSA_65", "ML_DSA_65", "ML_DSA_65")] {
            let top = root(&mut session, (key, signing), &format!("Root {key}"), None).await;
            let name = format!("Code {key}");
            let sub = subordinate(&mut session, &top, (key, signing), &name, None).await;
            roots.push_str(&top.certificate);
            roots.push('\n');
            type Create = outlast_api::ops::kms::create_key::CreateKey;
            let new = json!({ "KeySpec": key_spec, "KeyUsage": "SIGN_VERIFY" });
            let arn = session.call::<Create>(new).await.unwrap().unwrap().key_metadata.arn;
            let subject = format!("CN=Release {key}");
            let mut ask = folder.client(&["cert", "request", "--key", &arn, "--subject", &subject]);
            ask.args(["--endpoint-url", &endpoint]);
            let csr = tokio::task::block_in_place(|| succeed(&mut ask));
            let template = "CodeSigningCertificate";
            let order = Order { template, csr: csr.as_bytes(), passthrough: None, days: 30 };
            let issued = sub.issue(&mut session, order).await;
            let pem = format!("{}\n{}", issued.certificate.trim(), issued.chain);
            made.push((arn, folder.write(&format!("{key}.pem"), pem.as_bytes())));
        }
    });
    let roots = folder.write("roots.pem", roots.as_bytes());
    let [one, two] = <[_; 2]>::try_from(made).unwrap();
    Dual { folder, server, keys: [one.0, two.0], certificates: [one.1, two.1], roots }
}

impl Dual {
    pub fn sign(&self) -> Command {
        let mut command = self.folder.client(&["sign", "--revocation", "off"]);
        for (key, certificate) in self.keys.iter().zip(&self.certificates) {
            command.args(["--key", key, "--certificate"]).arg(certificate);
        }
        command.args(["--endpoint-url", &format!("https://localhost:{}", self.server.port)]);
        command
    }
}

/// The verifiers, each with whether it accepts a signature.
struct Verifiers<'a> {
    openssl: PathBuf,
    java: PathBuf,
    go: PathBuf,
    file: &'a Path,
    roots: &'a Path,
}

impl Verifiers<'_> {
    fn with_openssl(&self, mut command: Command, signature: &Path) -> bool {
        command.args(["cms", "-verify", "-binary", "-inform", "DER", "-in"]).arg(signature);
        command.arg("-content").arg(self.file).arg("-CAfile").arg(self.roots);
        // The purpose codesign is unknown before 3.2.
        command.args(["-purpose", "any", "-out", "/dev/null"]);
        run(&mut command).status.success()
    }

    /// OpenSSL 3.5, the system's, BouncyCastle, Go, ours.
    fn verdicts(&self, signature: &Path) -> [bool; 5] {
        let text = |path: &Path| path.display().to_string();
        let mut bouncy_castle = java(
            &self.java,
            "outlast.interop.Main",
            &["cms", "verify", "--root", &text(self.roots), &text(signature), &text(self.file)],
        );
        let mut go = Command::new(self.go.join("bin/tsp-check"));
        go.arg("cms").args([self.roots, self.file, signature]);
        let mut ours = outlast();
        ours.arg("verify").arg(self.file).arg("--signature").arg(signature);
        ours.arg("--trust").arg(self.roots);
        [
            self.with_openssl(openssl(&self.openssl, &[]), signature),
            self.with_openssl(Command::new("openssl"), signature),
            run(&mut bouncy_castle).status.success(),
            run(&mut go).status.success(),
            run(&mut ours).status.success(),
        ]
    }
}

/// The message after a change to its signers (by their digest algorithm's OID) or certificates.
pub fn changed(p7s: &[u8], change: impl FnOnce(&mut cms::signed_data::SignedData)) -> Vec<u8> {
    use der::{Decode, Encode};
    let mut outer = cms::content_info::ContentInfo::from_der(p7s).unwrap();
    let mut data: cms::signed_data::SignedData = outer.content.decode_as().unwrap();
    change(&mut data);
    outer.content = der::asn1::Any::encode_from(&data).unwrap();
    outer.to_der().unwrap()
}

const ML_DSA_65: &str = "2.16.840.1.101.3.4.3.18";

#[test]
fn verifiers_agree_on_dual_signatures_as_far_as_they_can() {
    let (Some(openssl), Some(java), Some(go)) = (peer("openssl"), peer("java"), peer("go127"))
    else {
        return;
    };
    let dual = dual(("ECC_NIST_P384", "EC_secp384r1", "SHA384WITHECDSA"));
    let file = dual.folder.write("release.bin", &vec![5; 100_000]);
    succeed(dual.sign().arg(&file).arg("--classical-copy"));
    let at = |name: &str| dual.folder.path(name);
    let p7s = std::fs::read(at("release.bin.p7s")).unwrap();
    let keep = |post_quantum: bool| {
        changed(&p7s, |data| {
            let rest: Vec<_> = data
                .signer_infos
                .0
                .iter()
                .filter(|one| {
                    (one.signature_algorithm.oid.to_string() == ML_DSA_65) == post_quantum
                })
                .cloned()
                .collect();
            assert_eq!(rest.len(), 1);
            data.signer_infos.0 = der::asn1::SetOfVec::try_from(rest).unwrap();
        })
    };
    let broken = |post_quantum: bool| {
        changed(&p7s, |data| {
            let mut all: Vec<_> = data.signer_infos.0.iter().cloned().collect();
            for one in &mut all {
                if (one.signature_algorithm.oid.to_string() == ML_DSA_65) == post_quantum {
                    let mut bytes = one.signature.as_bytes().to_vec();
                    *bytes.last_mut().unwrap() ^= 1;
                    one.signature = der::asn1::OctetString::new(bytes).unwrap();
                }
            }
            data.signer_infos.0 = der::asn1::SetOfVec::try_from(all).unwrap();
        })
    };
    let no_chain = changed(&p7s, |data| data.certificates = None);
    let copy = std::fs::read(at("release.bin.classical.p7s")).unwrap();
    let verifiers = Verifiers { openssl, java, go, file: &file, roots: &dual.roots };
    let is_old = succeed(Command::new("openssl").arg("version")).starts_with("OpenSSL 3.0");
    // Others do not know the attribute of RFC 5752 and accept what is left: only ours notices a missing signer.
    for (name, bytes, [new, old, bouncy_castle, go, ours]) in [
        ("intact", p7s.clone(), [true, false, true, true, true]),
        ("classical-copy", copy, [true, true, true, true, true]),
        ("ml-dsa-stripped", keep(false), [true, true, true, true, false]),
        ("classical-stripped", keep(true), [true, false, true, true, false]),
        ("ml-dsa-broken", broken(true), [false; 5]),
        ("classical-broken", broken(false), [false; 5]),
        ("chain-missing", no_chain, [false; 5]),
    ] {
        let path = at(&format!("{name}.p7s"));
        std::fs::write(&path, bytes).unwrap();
        let found = verifiers.verdicts(&path);
        println!("{name}: OpenSSL 3.5, system's OpenSSL, BouncyCastle, Go, ours: {found:?}");
        assert_eq!(found[0], new, "{name}");
        assert_eq!(found[2..], [bouncy_castle, go, ours], "{name}");
        assert!(!is_old || found[1] == old, "{name}: the system's OpenSSL said {}", found[1]);
    }
    for name in ["ml-dsa-stripped", "classical-stripped"] {
        let mut command = outlast();
        command.arg("verify").arg(&file).arg("--signature").arg(at(&format!("{name}.p7s")));
        let text = fail(command.arg("--trust").arg(&dual.roots), 3);
        assert!(text.contains("a signature is missing: the message was signed with"), "{text}");
    }
}

#[test]
fn two_keys_sign_one_message() {
    let dual = dual(("ECC_NIST_P256", "EC_prime256v1", "SHA256WITHECDSA"));
    let file = dual.folder.write("release.bin", b"release");
    let output = run(dual.sign().arg(&file).arg("--classical-copy"));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("release.bin.classical.p7s"), "{}", stdout(&output));
    let mut verify = outlast();
    let said = succeed(verify.arg("verify").arg(&file).arg("--trust").arg(&dual.roots));
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.contains("ML_DSA_65 by") && said.contains("SHA256WITHECDSA by"), "{said}");
    // P-256 signs SHA-256 only, which does not suit ML-DSA-65: two digests of one reading.
    let signature = std::fs::read(dual.folder.path("release.bin.p7s")).unwrap();
    let read = outlast_pki::cms::verify::SignedMessage::parse(&signature).unwrap();
    let mut names: Vec<_> = read.digests().unwrap().iter().map(|row| row.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["sha256", "sha512"]);
    // One of the two roots is not enough.
    let all = pem::read_certificates(&std::fs::read(&dual.roots).unwrap()).unwrap();
    let one = dual.folder.write("one.pem", pem::certificate(&all[1]).as_bytes());
    let mut verify = outlast();
    let text = fail(verify.arg("verify").arg(&file).arg("--trust").arg(&one), 3);
    assert!(text.contains("no path from"), "{text}");
    let text = fail(dual.sign().arg(&file).arg("--classical-copy"), 1);
    assert!(text.contains("nothing is signed"), "{text}");
    // A copy needs both kinds of keys, and each key once.
    let mut single = dual.folder.client(&["sign", "--revocation", "off", "--classical-copy"]);
    single.args(["--key", &dual.keys[1], "--certificate"]).arg(&dual.certificates[1]);
    single.args(["--endpoint-url", &format!("https://localhost:{}", dual.server.port)]);
    let other = dual.folder.write("other.bin", b"other");
    let text = fail(single.arg(&other), 2);
    assert!(text.contains("a classical copy is for dual signatures"), "{text}");
}
