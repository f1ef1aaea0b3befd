//! Trusted time in `outlast sign` and `outlast verify`: timestamps, evidence records and their renewal, against an authority
//! of the test.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_pki::cms::verify::SignedMessage;
use outlast_pki::pem;
use serde_json::Value;

use crate::common::peers::{java, peer};
use crate::common::tsa::Tsa;
use crate::common::{Folder, fail, outlast, run, stderr, stdout, succeed};
use crate::sign_dual::{Dual, dual};

/// Signed files, and two authorities.
struct Scene {
    dual: Dual,
    /// ML-DSA-65.
    tsa: Tsa,
    /// ECDSA.
    classical: Tsa,
    trust: PathBuf,
    file: PathBuf,
}

fn scene() -> Scene {
    let dual = dual(("ECC_NIST_P256", "EC_prime256v1", "SHA256WITHECDSA"));
    let (tsa, classical) = (Tsa::new("ML_DSA_65", "PQ"), Tsa::new("ECC_NIST_P256", "EC"));
    let trust = dual.folder.write("tsa.pem", tsa.authority.root.pem().as_bytes());
    dual.folder.write("ec-tsa.pem", classical.authority.root.pem().as_bytes());
    let file = dual.folder.write("release.bin", b"release");
    Scene { dual, tsa, classical, trust, file }
}

impl Scene {
    fn folder(&self) -> &Folder {
        &self.dual.folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder().path(name)
    }

    fn sign(&self, urls: &[&str]) -> Command {
        let mut command = self.dual.sign();
        command.arg(&self.file);
        for url in urls {
            command.args(["--timestamp", url]);
        }
        command
    }

    fn verify(&self, file: &Path) -> Command {
        let mut command = outlast();
        command.arg("verify").arg(file).arg("--trust").arg(&self.dual.roots);
        command.arg("--timestamp-trust").arg(&self.trust);
        command
    }

    fn renew(&self, paths: &[&Path], url: &str) -> Command {
        let mut command = outlast();
        command.args(["sign", "renew"]).args(paths).args(["--timestamp", url]);
        command
    }

    fn tokens(&self, name: &str) -> Vec<usize> {
        let bytes = std::fs::read(self.path(name)).unwrap();
        let claims = SignedMessage::parse(&bytes).unwrap().claims();
        claims.iter().map(|claim| claim.tokens.len()).collect()
    }
}

fn json(command: &mut Command) -> Value {
    let output = run(command.args(["--output", "json"]));
    serde_json::from_str(&stdout(&output))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

#[test]
fn a_signature_has_the_time_of_an_authority() {
    let scene = scene();
    let (url, other) = (scene.tsa.url("/tsa"), scene.classical.url("/tsa"));
    let dry = succeed(scene.sign(&[&url]).arg("--dry-run"));
    assert!(dry.contains(&format!("would ask {url} for a timestamp of each signer")), "{dry}");
    assert_eq!(scene.tsa.requests(), 0);
    // Nothing is written unless each token is right.
    for (path, reason) in [
        ("/refuse", "timeNotAvailable: the clock is not right"),
        ("/garbage", "not a valid timestamp response"),
        ("/long", "longer than 524288 bytes"),
        ("/busy", "the server answered with status 503"),
        ("/nonce", "nonce is not the request's"),
        ("/other", "is for other data"),
        ("/old", "this machine's clock says"),
        ("/future", "this machine's clock says"),
        ("/code", "lacks timeStamping"),
    ] {
        let text = fail(scene.sign(&[&url, &scene.tsa.url(path)]).arg("--classical-copy"), 1);
        assert!(text.contains(reason) && text.contains("hint: "), "{path}: {text}");
        assert!(!scene.path("release.bin.p7s").exists(), "{path}");
        assert!(!scene.path("release.bin.classical.p7s").exists(), "{path}");
    }
    let text = fail(&mut scene.sign(&["ftp://localhost/"]), 2);
    assert!(text.contains("begins with http:// or https://"), "{text}");
    for url in ["http://user:tell-tale@localhost/tsa", "ftp://tell-tale@localhost"] {
        let text = fail(scene.sign(&[url]).arg("--dry-run"), 2);
        assert!(text.contains("has a user name") && !text.contains("tell-tale"), "{text}");
    }
    let text = fail(&mut scene.sign(&["http://127.0.0.1:1/tsa"]), 1);
    assert!(text.contains("no timestamp: ") && text.contains("hint: "), "{text}");

    let output = run(scene
        .sign(&[&url, &other])
        .arg("--classical-copy")
        .arg("--timestamp-trust")
        .arg(&scene.trust));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("by \"CN=PQ TSA\" (trusted)"), "{said}");
    assert!(said.contains("by \"CN=EC TSA\" (not trusted by --timestamp-trust)"), "{said}");
    assert!(stderr(&output).contains("will ignore its timestamp"), "{}", stderr(&output));
    assert_eq!(scene.tokens("release.bin.p7s"), [2, 2]);
    assert_eq!(scene.tokens("release.bin.classical.p7s"), [2]);
    let output = run(&mut scene.verify(&scene.file));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let lines = stdout(&output);
    assert_eq!(lines.matches("(by a timestamp)").count(), 2, "{lines}");
    assert!(
        stderr(&output).contains("by \"CN=EC TSA\" on the signature by"),
        "{}",
        stderr(&output)
    );
    let value = json(&mut scene.verify(&scene.file));
    let signer = &value[0]["signers"][0];
    assert_eq!(
        (&signer["time_source"], &signer["time_trusted"]),
        (&"timestamp".into(), &true.into())
    );
    let stamps = signer["timestamps"].as_array().unwrap();
    assert_eq!(stamps.len(), 2, "{value:#}");
    assert_eq!(stamps.iter().filter(|one| one["counts"] == true).count(), 1, "{value:#}");
    // The verifier's own time counts instead of all tokens.
    let value = json(scene.verify(&scene.file).args(["--at", "now"]));
    assert_eq!(value[0]["signers"][0]["time_source"], "verifier", "{value:#}");
    // Without a root for it, there is only the claim.
    let mut plain = outlast();
    plain.arg("verify").arg(&scene.file).arg("--trust").arg(&scene.dual.roots);
    assert!(succeed(&mut plain).contains("(as the signer claims)"));

    // A policy that wants timestamps from two authorities.
    let policy = |keys: &str| {
        let text = format!(
            "[timestamp]\ntrust = [\"tsa.pem\", \"ec-tsa.pem\"]\n{keys}\n\
             [[rule]]\nfiles = \"*\"\ntrust = \"roots.pem\"\ntimestamp = \"required\"\n"
        );
        let mut command = outlast();
        let path = scene.folder().write("time.toml", text.as_bytes());
        command.arg("verify").arg("--policy").arg(path);
        command
    };
    succeed(policy("least = 2").arg(&scene.file));
    let said = succeed(policy("least = 2").arg("--explain"));
    assert!(
        said.contains("timestamps are needed from 2 different authorities below a root in tsa.pem"),
        "{said}"
    );
    let text = fail(policy("policies = \"1.2.3\"").arg(&scene.file), 3);
    assert!(text.contains("no timestamp counts") && text.contains("1.3.6.1.4.1.99999.7"), "{text}");
    // Stripped: signed again without one.
    succeed(scene.sign(&[]).arg("--force"));
    let text = fail(policy("").arg(&scene.file), 3);
    assert!(text.contains("it has no timestamp, and the rule asks for one"), "{text}");
    // Added later, to a signature in PEM.
    let p7s = scene.path("release.bin.p7s");
    let der = std::fs::read(&p7s).unwrap();
    std::fs::write(&p7s, pem::cms(&der)).unwrap();
    let add = |urls: &[&str]| {
        let mut command = outlast();
        command.args(["sign", "timestamp"]).arg(&p7s);
        for url in urls {
            command.args(["--url", url]);
        }
        command
    };
    let said = succeed(add(&[&url]).arg("--dry-run"));
    assert!(said.contains("for 2 timestamps of"), "{said}");
    fail(&mut add(&[&scene.tsa.url("/nonce")]), 1);
    assert_eq!(std::fs::read(&p7s).unwrap(), pem::cms(&der).into_bytes());
    succeed(&mut add(&[&url]));
    succeed(&mut add(&[&other]));
    assert_eq!(scene.tokens("release.bin.p7s"), [2, 2]);
    succeed(policy("least = 2").arg(&scene.file));
    let value = json(policy("least = 2").arg(&scene.file));
    crate::sign_policy::conforms_to_schema(&value);
    assert_eq!(value[0]["signers"][0]["time_source"], "timestamp");
}

#[test]
fn evidence_is_renewed_for_many_files_at_once() {
    let scene = scene();
    let (url, other) = (scene.tsa.url("/tsa"), scene.classical.url("/tsa"));
    std::fs::write(scene.path("second.bin"), "second").unwrap();
    succeed(scene.sign(&[&other]).arg(scene.path("second.bin")).arg("--classical-copy"));
    let (file, p7s) = (scene.file.clone(), scene.path("release.bin.p7s"));
    let before = scene.tsa.requests();
    let tree = scene.path("");
    let said = succeed(&mut scene.renew(&[&tree], &url));
    assert_eq!(said.matches("renewed ").count(), 4, "{said}");
    assert!(said.contains("release.bin.ers: new, 1 timestamp in all"), "{said}");
    assert_eq!(scene.tsa.requests(), before + 1, "one timestamp for all");
    for name in ["release.bin.ers", "second.bin.ers", "release.bin.classical.ers"] {
        assert!(scene.path(name).exists(), "{name}");
    }
    let output = run(&mut scene.verify(&file));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(
        said.contains("(by an evidence record)") && said.contains("by 1 timestamp, the last of"),
        "{said}"
    );
    // Renewed by the other authority, then with another digest.
    let one = |arguments: &[&str]| {
        let mut command = scene.renew(&[&p7s], &url);
        command.args(arguments).arg("--timestamp-trust").arg(&scene.trust);
        command
    };
    let said = succeed(&mut one(&[]));
    assert!(said.contains("timestamp renewal, 2 timestamps in all"), "{said}");
    let said = succeed(&mut one(&["--digest", "sha384"]));
    assert!(said.contains("hash-tree renewal, 3 timestamps in all, holds until"), "{said}");
    let value = json(&mut scene.verify(&file));
    crate::sign_policy::conforms_to_schema(&value);
    assert_eq!(value[0]["evidence"]["timestamps"].as_array().unwrap().len(), 3, "{value:#}");
    assert_eq!(value[0]["signers"][0]["time_source"], "evidence record");
    // A file that was changed gets no new evidence.
    let kept = std::fs::read(scene.path("release.bin.ers")).unwrap();
    std::fs::write(&file, "changed").unwrap();
    for more in [&[][..], &["--digest", "sha256"]] {
        let text = fail(&mut one(more), 3);
        assert!(text.contains("not for this file and this signature"), "{text}");
    }
    assert_eq!(std::fs::read(scene.path("release.bin.ers")).unwrap(), kept);
    std::fs::write(&file, "release").unwrap();
    // What is due.
    let check = |days: &str| {
        let mut command = outlast();
        command.args(["sign", "renew", "--check", "--if-due", days]).arg(&tree);
        command
    };
    let said = succeed(&mut check("90"));
    assert_eq!(said.matches("not due ").count(), 4, "{said}");
    let output = run(&mut check("9000"));
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(stderr(&output).contains("4 of 4 signatures are due"), "{}", stderr(&output));
    let before = scene.tsa.requests();
    succeed(scene.renew(&[&tree], &url).args(["--if-due", "90"]));
    assert_eq!(scene.tsa.requests(), before);

    // A token would make the record worthless.
    let text = fail(outlast().args(["sign", "timestamp"]).arg(&p7s).args(["--url", &url]), 1);
    assert!(
        text.contains("covers the signature as it is") && text.contains("outlast sign renew"),
        "{text}"
    );
    // The record of another file proves nothing; if it is named, it is refused.
    let good = std::fs::read(scene.path("release.bin.ers")).unwrap();
    std::fs::copy(scene.path("second.bin.ers"), scene.path("release.bin.ers")).unwrap();
    let output = run(&mut scene.verify(&file));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("it proves nothing: the evidence record is not for this file")
    );
    assert!(stdout(&output).contains("(as the signer claims)"), "{}", stdout(&output));
    let text = fail(scene.verify(&file).arg("--evidence").arg(scene.path("second.bin.ers")), 3);
    assert!(text.contains("not for this file and this signature"), "{text}");
    let text = fail(&mut one(&[]), 3);
    assert!(text.contains("not for this file") && text.contains("would not repair it"), "{text}");
    std::fs::write(scene.path("release.bin.ers"), &good[..good.len() - 1]).unwrap();
    let output = run(&mut scene.verify(&file));
    assert!(stderr(&output).contains("not an evidence record"), "{}", stderr(&output));
    std::fs::write(scene.path("release.bin.ers"), &good).unwrap();

    // Old releases by a later date: the classical copy holds by its record of a post-quantum authority, and not without.
    let later = |signature: &str| {
        let mut command = outlast();
        command.arg("verify").arg(&file).arg("--signature").arg(scene.path(signature));
        command.args(["--policy", "builtin:nist-ir-8547", "--as-of", "2036-01-01"]);
        let trust = [scene.trust.clone(), scene.path("ec-tsa.pem")]
            .map(|path| std::fs::read(path).unwrap());
        let both = scene.folder().write("both.pem", &trust.concat());
        command.arg("--trust").arg(&scene.dual.roots).arg("--timestamp-trust").arg(both);
        command
    };
    let said = succeed(&mut later("release.bin.classical.p7s"));
    assert!(said.contains("(by a timestamp)") && said.contains("evidence "), "{said}");
    std::fs::rename(scene.path("release.bin.classical.ers"), scene.path("away.ers")).unwrap();
    let text = fail(&mut later("release.bin.classical.p7s"), 3);
    assert!(text.contains("ecdsa-p256 is not post-quantum"), "{text}");
    let said = succeed(later("release.bin.classical.p7s").arg("--dry-run"));
    assert!(said.contains("would refuse "), "{said}");
}

#[test]
fn bouncy_castle_reads_our_evidence_and_we_read_its() {
    let Some(peer) = peer("java") else { return };
    let scene = scene();
    let (url, other) = (scene.tsa.url("/tsa"), scene.classical.url("/tsa"));
    let files: Vec<_> = (0..4).map(|index| scene.path(&format!("{index}.bin"))).collect();
    for file in &files {
        std::fs::write(file, file.to_str().unwrap()).unwrap();
    }
    succeed(scene.sign(&[]).args(&files));
    let p7s = scene.path("0.bin.p7s");
    let mut records = Vec::new();
    let mut keep = |name: &str| {
        let path = scene.path(name);
        std::fs::copy(scene.path("0.bin.ers"), &path).unwrap();
        records.push(path);
    };
    succeed(&mut scene.renew(&[&p7s], &url));
    keep("alone");
    for file in &files {
        let _ = std::fs::remove_file(file.with_extension("bin.ers"));
    }
    succeed(&mut scene.renew(&[&scene.path("")], &other));
    keep("one-of-five");
    // Others have a tree of their own by now.
    std::fs::remove_file(scene.path("3.bin.ers")).unwrap();
    succeed(&mut scene.renew(&[&scene.path("3.bin.p7s")], &url));
    succeed(&mut scene.renew(&[&scene.path("")], &url));
    keep("renewed");
    succeed(&mut scene.renew(&[&p7s], &url));
    keep("renewed-twice");
    succeed(scene.renew(&[&scene.path("")], &url).args(["--digest", "sha256"]));
    keep("new-digest");
    succeed(&mut scene.renew(&[&p7s], &url));
    keep("new-digest-renewed");
    let text = |path: &Path| path.display().to_string();
    let (file, signature) = (text(&files[0]), text(&p7s));
    let mut arguments = vec!["ers", "verify", &file, &signature];
    let paths: Vec<_> = records.iter().map(|path| text(path)).collect();
    arguments.extend(paths.iter().map(String::as_str));
    // And the record of another file, which it must refuse.
    let wrong = text(&scene.path("1.bin.ers"));
    arguments.push(&wrong);
    let said = succeed(&mut java(&peer, "outlast.interop.Main", &arguments));
    let verdicts: Vec<_> = said.lines().collect();
    assert_eq!(&verdicts[..6], ["ok"; 6], "{said}");
    assert!(verdicts[6].starts_with("refused: "), "{said}");

    let theirs = scene.path("theirs");
    std::fs::create_dir(&theirs).unwrap();
    let folder = text(&theirs);
    succeed(&mut java(&peer, "outlast.interop.Main", &["ers", "make", &folder, &file, &signature]));
    for name in
        ["alone", "one-of-five", "renewed", "renewed-twice", "new-digest", "new-digest-renewed"]
    {
        let mut command = outlast();
        command.arg("verify").arg(&files[0]).arg("--trust").arg(&scene.dual.roots);
        command.arg("--timestamp-trust").arg(theirs.join("root.pem"));
        let record = theirs.join(format!("{name}.ers"));
        let said = succeed(command.arg("--evidence").arg(&record));
        assert!(said.contains("(by an evidence record)"), "{name}: {said}");
        let mut command = outlast();
        command.arg("verify").arg(&files[1]).arg("--trust").arg(&scene.dual.roots);
        command.arg("--timestamp-trust").arg(theirs.join("root.pem"));
        fail(command.arg("--evidence").arg(&record), 3);
    }
}

#[test]
fn a_server_stamps_what_its_keys_sign() {
    let scene = crate::tsa::Scene::new();
    let endpoint = format!("https://localhost:{}", scene.server.port);
    let here = |arguments: &[&str]| scene.folder.client_at(&scene.server, arguments);
    succeed(&mut here(&["sign", "setup", "--name", "release", "--create-ca"]));
    // Over TLS with the CA of the profile, and over plain HTTP.
    let (tls, plain) = (format!("{endpoint}/tsa"), format!("{}/tsa/classical", scene.plain));
    let mut sign = here(&["sign", "--key", "alias/release", "--revocation", "off"]);
    succeed(sign.args(["--timestamp", &tls, "--timestamp", &plain]).arg(&scene.file));
    let signature = scene.folder.path("file.p7s");
    let mut renew = outlast();
    renew.args(["sign", "renew"]).arg(&signature).args(["--timestamp", &tls, "--timestamp-ca"]);
    succeed(renew.arg(scene.folder.data.join("client/ca.pem")));
    for root in ["pq", "classical"] {
        let mut verify = outlast();
        verify.arg("verify").arg(&scene.file).arg("--trust").arg(scene.root("release"));
        let said = succeed(verify.arg("--timestamp-trust").arg(scene.root(root)));
        assert!(said.contains("(by a timestamp)"), "{root}: {said}");
        assert_eq!(said.contains("evidence "), root == "pq", "{said}");
    }
}
