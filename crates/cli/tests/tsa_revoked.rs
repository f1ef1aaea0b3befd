//! Time-stamping authorities that were revoked: what `outlast verify --fetch` learns from their CAs, and what it means for
//! their timestamps.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::path::Path;
use std::process::Command;

use outlast_crypto::digests::{Digest, sha256};
use outlast_crypto::signatures::Message;
use outlast_net::server::system_clock;
use outlast_pki::cms::sign::{Request, Unsigned};
use outlast_pki::extensions::crl_distribution_points;
use outlast_testing::until;
use serde_json::{Value, json};

use crate::common::pki::{New, Party, issue};
use crate::common::tsa::{Says, Tsa};
use crate::common::{fail, outlast, run, stderr, stdout, succeed};
use crate::sign_before::{Scene, scene};
use crate::sign_policy::conforms_to_schema;

const CLAIM: &str = "(as the signer claims)";
const STAMPED: &str = "(by a timestamp)";
const RECORDED: &str = "(by an evidence record)";

/// Codes of reasons (RFC 5280, section 5.3.1).
const UNSPECIFIED: u8 = 0;
const KEY_COMPROMISE: u8 = 1;
const SUPERSEDED: u8 = 4;

/// A signer whose CA answers, and three authorities, all of which are trusted.
struct World {
    signer: Scene,
    by_crl: Tsa,
    by_ocsp: Tsa,
    silent: Tsa,
}

fn now() -> i64 {
    system_clock().div_euclid(1000)
}

impl World {
    fn new() -> Self {
        let signer = scene();
        let by_crl = Tsa::revocable("ML_DSA_65", "PQ", Says::Crl);
        let by_ocsp = Tsa::revocable("ECC_NIST_P256", "EC", Says::Ocsp);
        let silent = Tsa::new("ECC_NIST_P256", "Silent");
        let roots = [&by_crl, &by_ocsp, &silent].map(|tsa| tsa.authority.root.pem());
        signer.folder.write("tsa.pem", roots.concat().as_bytes());
        let policy = "[timestamp]\ntrust = \"tsa.pem\"\n\
             [[rule]]\nfiles = \"*\"\ntrust = \"root.pem\"\ntimestamp = \"required\"\n";
        signer.folder.write("time.toml", policy.as_bytes());
        Self { signer, by_crl, by_ocsp, silent }
    }

    /// Signs a new file with a timestamp; returns a time that is not before it.
    fn sign(&self, name: &str, tsa: &Tsa) -> i64 {
        let file = self.signer.folder.write(name, name.as_bytes());
        let mut command = self.signer.sign();
        command.arg(file).args(["--revocation", "off", "--timestamp", &tsa.url("/tsa")]);
        succeed(&mut command);
        now()
    }

    fn command(&self, name: &str, more: &[&str]) -> Command {
        let mut command = outlast();
        command.current_dir(self.signer.folder.temporary.path());
        command.args(["verify", name]).args(more);
        command
    }

    fn verify(&self, name: &str, more: &[&str]) -> Command {
        let mut command = self.command(name, more);
        command.args(["--trust", "root.pem", "--timestamp-trust", "tsa.pem"]);
        command
    }

    /// By a policy that wants a timestamp.
    fn judged(&self, name: &str, more: &[&str]) -> Command {
        let mut command = self.command(name, more);
        command.args(["--policy", "time.toml"]);
        command
    }

    /// The results of a run, each with its rule, its level and its file.
    fn sarif(&self, command: &mut Command) -> Vec<String> {
        let path = self.signer.folder.path("report.sarif");
        run(command.arg("--sarif").arg(&path));
        let report: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let results = report["runs"][0]["results"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let one = |result: &Value| {
            let location = &result["locations"][0]["physicalLocation"]["artifactLocation"];
            let file = text(&location["uri"]);
            let name = Path::new(&file).file_name().unwrap().to_string_lossy().into_owned();
            format!("{} {} {name}", text(&result["ruleId"]), text(&result["level"]))
        };
        results.iter().map(one).collect()
    }
}

fn report(command: &mut Command) -> Value {
    let said = stdout(&run(command.args(["--output", "json"])));
    let value: Value =
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    conforms_to_schema(&value);
    value
}

/// Asserts that the command accepts the file with this source of its time; returns what it says on both streams.
#[track_caller]
fn accepts(command: &mut Command, source: &str) -> String {
    let output = run(command);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains(source), "{source}: {said}");
    said
}

#[test]
fn what_is_fetched_says_whether_an_authority_was_revoked() {
    let world = World::new();
    let required = ["--fetch", "--revocation", "required"];
    let fetch = ["--fetch"];
    for (name, tsa, subject, source) in [
        ("crl.bin", &world.by_crl, "CN=PQ TSA", "CRL http://"),
        ("ocsp.bin", &world.by_ocsp, "CN=EC TSA", "OCSP response http://"),
    ] {
        let signed = world.sign(name, tsa);
        let said = accepts(&mut world.verify(name, &[]), STAMPED);
        assert!(said.contains(&format!("by \"{subject}\"; revocation not checked")), "{said}");
        // The signer's CA may be busy for a moment.
        until("an answer of the signer's CA", || {
            run(&mut world.verify(name, &required)).status.success()
        });
        let said = accepts(&mut world.verify(name, &required), STAMPED);
        let line = said.lines().find(|line| line.starts_with("timestamp ")).unwrap();
        assert!(line.contains(&format!("by \"{subject}\"; not revoked as of ")), "{line}");
        assert!(line.contains(&format!("by the {source}127.0.0.1:")), "{line}");
        accepts(&mut world.judged(name, &required), STAMPED);
        let value = report(&mut world.verify(name, &fetch));
        let revocation = &value[0]["signers"][0]["timestamps"][0]["revocation"];
        assert_eq!(revocation["status"], "good", "{value:#}");
        assert_eq!(revocation["certificates"].as_array().unwrap().len(), 2, "{value:#}");

        // (reason, seconds after the timestamp, whether the timestamp still counts): RFC 3161, section 4.
        for (reason, after, counts) in [
            (SUPERSEDED, 2, true),
            (SUPERSEDED, -60, false),
            (KEY_COMPROMISE, 2, false),
            (KEY_COMPROMISE, -60, false),
            (UNSPECIFIED, 2, false),
        ] {
            tsa.revoke(signed + after, reason);
            let case = format!("{name}, {reason}, {after}");
            if counts {
                let said = accepts(&mut world.verify(name, &fetch), STAMPED);
                let later = format!("\"{subject}\" was revoked after that");
                assert!(said.contains(&later), "{case}: {said}");
                accepts(&mut world.judged(name, &required), STAMPED);
                let results = world.sarif(&mut world.judged(name, &fetch));
                assert_eq!(results, [format!("timestamp-revoked-later note {name}")], "{case}");
                continue;
            }
            // The timestamp is as if it were not there.
            let said = accepts(&mut world.verify(name, &fetch), CLAIM);
            assert!(said.contains("does not count: "), "{case}: {said}");
            assert!(said.contains("it was revoked at "), "{case}: {said}");
            let results = world.sarif(&mut world.verify(name, &fetch));
            assert_eq!(results, [format!("timestamp-revoked warning {name}")], "{case}");
            let text = fail(&mut world.judged(name, &fetch), 3);
            assert!(text.contains("no timestamp counts: "), "{case}: {text}");
            let results = world.sarif(&mut world.judged(name, &fetch));
            let expected = ["refused", "timestamp-missing", "timestamp-revoked"];
            assert_eq!(results, expected.map(|rule| format!("{rule} error {name}")), "{case}");
            let value = report(&mut world.judged(name, &fetch));
            let signer = &value[0]["signers"][0];
            assert_eq!(signer["timestamps"][0]["fault"], "revoked", "{value:#}");
            assert!(signer["lacks_timestamps"].is_string(), "{value:#}");
        }
        // Who asks nobody knows nothing.
        accepts(&mut world.judged(name, &[]), STAMPED);
        accepts(&mut world.judged(name, &["--fetch", "--revocation", "off"]), STAMPED);
    }

    // An authority about which nobody says anything.
    world.sign("silent.bin", &world.silent);
    let said = accepts(&mut world.judged("silent.bin", &fetch), STAMPED);
    assert!(said.contains("by \"CN=Silent TSA\"; revocation not checked"), "{said}");
    let said = accepts(&mut world.verify("silent.bin", &required), CLAIM);
    assert!(said.contains("its revocation status cannot be determined"), "{said}");
    fail(&mut world.judged("silent.bin", &required), 3);
    let results = world.sarif(&mut world.judged("silent.bin", &required));
    let expected = ["refused", "timestamp-missing", "timestamp-revocation-unknown"];
    assert_eq!(results, expected.map(|rule| format!("{rule} error silent.bin")));

    // Nobody is asked what the certificate of an authority names that is not trusted.
    let stranger = Tsa::revocable("ECC_NIST_P256", "Stranger", Says::Crl);
    world.sign("stranger.bin", &stranger);
    let before = stranger.requests();
    let said = accepts(&mut world.verify("stranger.bin", &fetch), CLAIM);
    assert!(said.contains("no path from"), "{said}");
    assert_eq!(stranger.requests(), before);
    let results = world.sarif(&mut world.verify("stranger.bin", &[]));
    assert_eq!(results, ["timestamp-untrusted warning stranger.bin"]);
}

#[test]
fn an_archive_timestamp_keeps_what_a_stolen_key_had_stamped_before() {
    let world = World::new();
    let stamped = world.sign("release.bin", &world.by_crl);
    let mut renew = outlast();
    renew.args(["sign", "renew"]).arg(world.signer.folder.path("release.bin.p7s"));
    succeed(renew.args(["--timestamp", &world.by_ocsp.url("/tsa")]));
    // The times of timestamps are rounded up to whole seconds, and may be later by their accuracy.
    let renewed = now();
    let fetch = ["--fetch"];
    let verify = || world.verify("release.bin", &fetch);
    // Stolen after the archive timestamp, which proves that the first one existed before.
    world.by_crl.revoke(renewed + 5, KEY_COMPROMISE);
    let said = accepts(&mut verify(), STAMPED);
    assert!(said.contains("\"CN=PQ TSA\" was revoked after that"), "{said}");
    assert!(said.contains("timestamp release.bin.ers: ") && said.contains("not revoked as of"));
    accepts(&mut world.judged("release.bin", &fetch), STAMPED);
    // Stolen before it.
    world.by_crl.revoke(stamped, KEY_COMPROMISE);
    let said = accepts(&mut verify(), RECORDED);
    assert!(said.contains("does not count: ") && said.contains("it was revoked at "), "{said}");
    accepts(&mut world.judged("release.bin", &fetch), RECORDED);
    // The archive's own authority: nothing is left that proves a time.
    world.by_ocsp.revoke(renewed + 5, KEY_COMPROMISE);
    let said = accepts(&mut verify(), CLAIM);
    assert!(said.contains("it proves nothing: timestamp 1 of 1 in it: "), "{said}");
    let results = world.sarif(&mut verify());
    let expected =
        ["timestamp-revoked warning release.bin", "timestamp-revoked warning release.bin.ers"];
    assert_eq!(results, expected);
    let value = report(&mut verify());
    assert_eq!(value[0]["evidence"]["fault"], "revoked", "{value:#}");
    fail(&mut world.judged("release.bin", &fetch), 3);
    fail(world.verify("release.bin", &fetch).args(["--evidence", "release.bin.ers"]), 3);
    // Superseded afterwards, both keep what they have stamped.
    world.by_crl.revoke(renewed + 5, SUPERSEDED);
    world.by_ocsp.revoke(renewed + 5, SUPERSEDED);
    accepts(&mut world.judged("release.bin", &fetch), STAMPED);
    let results = world.sarif(&mut verify());
    let expected = [
        "timestamp-revoked-later note release.bin",
        "timestamp-revoked-later note release.bin.ers",
    ];
    assert_eq!(results, expected);
}

/// A signer whose key the test has.
pub struct Forged {
    pub root: Party,
    pub leaf: Party,
    /// CA certificates that the message has, DER.
    pub chain: Vec<Vec<u8>>,
    /// The time that it claims.
    pub signing_time: i64,
}

impl Forged {
    /// A signer whose certificate names a CRL at this URL.
    pub fn new(url: &str) -> Self {
        let days = 3650;
        let root = New { days, ..New::of("RootCACertificate", "Own Root", now()) };
        let root = issue("ECC_NIST_P256", root, None);
        let leaf = New {
            authority: vec![crl_distribution_points(&[url]).unwrap()],
            ..New::of("CodeSigningCertificate", "Own", now())
        };
        let leaf = issue("ECC_NIST_P256", leaf, Some(&root));
        Self { root, leaf, chain: Vec::new(), signing_time: now() }
    }

    pub fn sign(&self, content: &[u8]) -> Vec<u8> {
        let algorithm = self.leaf.algorithm();
        let digest = Digest::by_name(algorithm.cms_digests[0]).unwrap();
        let unsigned = Unsigned::new(&[Request {
            message_digest: &digest.digest(content),
            digest,
            algorithm,
            signing_time: self.signing_time,
            signer: &self.leaf.certificate,
            chain: &self.chain,
        }])
        .unwrap();
        let message = Message::Raw(&unsigned.to_be_signed[0]);
        let made = self.leaf.key.sign(algorithm, message).unwrap();
        unsigned.assemble(&[made]).unwrap()
    }
}

#[test]
fn only_what_leads_to_a_trusted_root_says_what_is_fetched() {
    let folder = crate::common::Folder::new();
    // Any server that counts; its CRL is not one of the signer's CA.
    let server = Tsa::revocable("ECC_NIST_P256", "Other", Says::Crl);
    let forged = Forged::new(&server.url("/ca.crl"));
    folder.write("root.pem", forged.root.pem().as_bytes());
    folder.write("other.pem", server.authority.root.pem().as_bytes());
    folder.write("file", b"content");
    folder.write("file.p7s", &forged.sign(b"content"));
    let policy = "[[rule]]\nfiles = \"*\"\ntrust = \"root.pem\"\n";
    folder.write("good.toml", policy.as_bytes());
    folder.write("other.toml", policy.replace("root.pem", "other.pem").as_bytes());
    let verify = |more: &[&str]| {
        let mut command = outlast();
        command.current_dir(folder.temporary.path()).args(["verify", "file", "--fetch"]);
        run(command.args(more))
    };
    // Somebody else's certificate, and then a file that was not signed.
    for trust in [["--trust", "other.pem"], ["--policy", "other.toml"]] {
        assert_eq!(verify(&trust).status.code(), Some(3), "{}", trust[1]);
        assert_eq!(server.requests(), 0, "{}", trust[1]);
    }
    folder.write("file", b"changed");
    for trust in [["--trust", "root.pem"], ["--policy", "good.toml"]] {
        assert_eq!(verify(&trust).status.code(), Some(3), "{}", trust[1]);
        assert_eq!(server.requests(), 0, "{}", trust[1]);
    }
    // A CRL of another CA is not kept, so it says nothing and costs later files nothing.
    folder.write("file", b"content");
    for (requests, trust) in [(1, ["--trust", "root.pem"]), (2, ["--policy", "good.toml"])] {
        let output = verify(&trust);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("the CRL is not signed by the CA"), "{said}");
        assert!(said.contains("; revocation not checked"), "{said}");
        assert_eq!(server.requests(), requests, "{said}");
    }
}

/// RFC 6960, section 2.2: who does not know a certificate leaves the question to others.
#[test]
fn a_responder_that_does_not_know_leaves_the_question_to_the_crl() {
    let world = World::new();
    let unsure = Tsa::revocable("ECC_NIST_P256", "Unsure", Says::UnknownAndCrl);
    world.signer.folder.write("tsa.pem", unsure.authority.root.pem().as_bytes());
    let signed = world.sign("unsure.bin", &unsure);
    let said = accepts(&mut world.verify("unsure.bin", &["--fetch"]), STAMPED);
    assert!(said.contains("the responder does not know it"), "{said}");
    let line = said.lines().find(|line| line.starts_with("timestamp ")).unwrap();
    assert!(line.contains("not revoked as of ") && line.contains("by the CRL http://"), "{line}");
    unsure.revoke(signed - 60, KEY_COMPROMISE);
    let said = accepts(&mut world.verify("unsure.bin", &["--fetch"]), CLAIM);
    assert!(said.contains("it was revoked at "), "{said}");
}

/// The timestamp is put into the signature of an image, as any software may do.
#[test]
fn an_image_has_the_time_of_its_timestamp() {
    let world = World::new();
    let folder = &world.signer.folder;
    let layout = folder.path("app");
    crate::oci::image(&layout, "v1", b"layer");
    succeed(world.signer.sign().args(["--revocation", "off", "--oci"]).arg(&layout));
    let blob =
        |digest: &Value| layout.join("blobs").join(digest.as_str().unwrap().replace(':', "/"));
    let read =
        |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let write = |descriptor: &mut Value, bytes: &[u8]| {
        let digest = json!(format!("sha256:{}", hex::encode(sha256(bytes))));
        std::fs::write(blob(&digest), bytes).unwrap();
        descriptor["digest"] = digest;
        descriptor["size"] = json!(bytes.len());
    };
    let mut index = read(&layout.join("index.json"));
    let artifact = &mut index["manifests"][1];
    let mut manifest = read(&blob(&artifact["digest"]));
    let signature = folder.path("image.p7s");
    std::fs::copy(blob(&manifest["layers"][0]["digest"]), &signature).unwrap();
    let mut command = outlast();
    command.args(["sign", "timestamp"]).arg(&signature);
    succeed(command.args(["--url", &world.by_crl.url("/tsa")]));
    write(&mut manifest["layers"][0], &std::fs::read(&signature).unwrap());
    write(artifact, manifest.to_string().as_bytes());
    std::fs::write(layout.join("index.json"), index.to_string()).unwrap();
    let stamped = now();
    let verify = |more: &[&str]| {
        let mut command = outlast();
        command.current_dir(folder.temporary.path()).args(["verify", "--oci", "app"]).args(more);
        command.args(["--trust", "root.pem", "--timestamp-trust", "tsa.pem"]);
        command
    };
    let said = accepts(&mut verify(&[]), STAMPED);
    assert!(said.contains("by \"CN=PQ TSA\"; revocation not checked"), "{said}");
    assert_eq!(report(&mut verify(&[]))[0]["signers"][0]["time_source"], "timestamp");
    world.by_crl.revoke(stamped + 2, KEY_COMPROMISE);
    let said = accepts(&mut verify(&["--fetch"]), CLAIM);
    assert!(said.contains("does not count: ") && said.contains("it was revoked at "), "{said}");
}
