//! `outlast attest` and `outlast verify --attestation`: envelopes, policies, attacks, and another implementation.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::path::PathBuf;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outlast_testing::checkout;
use serde_json::{Value, json};

use crate::common::peers::{openssl, peer};
use crate::common::{Folder, Server, fail, outlast, run, stderr, succeed};
use crate::sign_policy::check_schema;

/// A server, whose signers have certificates below the roots in `roots.pem`, and a file.
struct Scene {
    folder: Folder,
    server: Server,
}

const BUILDER: &str = "https://ci.example/runner";
const SOURCE: &str = "git+https://git.example/app";

impl Scene {
    fn new(signers: &[(&str, &str)]) -> Self {
        let folder = Folder::new();
        let server = folder.serve();
        let scene = Self { folder, server };
        let mut roots = String::new();
        for (name, algorithm) in signers {
            let setup = ["sign", "setup", "--name", name, "--algorithm", algorithm, "--create-ca"];
            succeed(&mut scene.client(&setup));
            roots += &std::fs::read_to_string(scene.path(&format!("{name}-root.pem"))).unwrap();
        }
        scene.folder.write("roots.pem", roots.as_bytes());
        scene.folder.write("app.bin", b"the program");
        scene.folder.write("other.bin", b"another program");
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    fn client(&self, arguments: &[&str]) -> Command {
        self.folder.client_at(&self.server, arguments)
    }

    fn attest(&self, key: &str, out: &str) -> Command {
        let mut command =
            self.client(&["attest", "--subject", "app.bin", "--key", key, "--out", out]);
        command.args(["--type", "slsa-provenance", "--build-type", "https://b.example/make"]);
        command.args(["--builder", BUILDER, "--source", SOURCE, "--parameter", "target=linux"]);
        command
    }

    fn verify(&self, attestation: &str) -> Command {
        let mut command = outlast();
        command.args(["verify", "--subject", "app.bin", "--attestation", attestation]);
        self.folder.here(command)
    }

    fn trusted(&self, attestation: &str) -> Command {
        let mut command = self.verify(attestation);
        command.args(["--trust", "roots.pem"]);
        command
    }

    fn judged(&self, attestation: &str, rules: &str) -> Command {
        self.folder.write("policy.toml", rules.as_bytes());
        let mut command = self.verify(attestation);
        command.args(["--policy", "policy.toml"]);
        command
    }

    fn read(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }
}

fn rule(more: &str) -> String {
    format!(
        "[[rule]]\nname = \"builds\"\nfiles = \"*.bin\"\ntrust = \"roots.pem\"\n\
         predicate_type = \"slsa-provenance\"\n{more}\n"
    )
}

#[test]
fn attestations_are_refused_for_what_is_wrong_with_them() {
    let scene = Scene::new(&[("release", "ml-dsa-65"), ("ci", "ecdsa-p256")]);
    let said = succeed(&mut scene.attest("alias/release", "app.intoto.jsonl"));
    assert!(said.contains("attested app.bin (https://slsa.dev/provenance/v1)"), "{said}");
    let said = succeed(&mut scene.trusted("app.intoto.jsonl"));
    for words in [
        "verified app.bin: ML_DSA_65 by \"CN=release\"",
        "builder https://ci.example/runner, source git+https://git.example/app",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let good = scene.read("app.intoto.jsonl");
    let payload = STANDARD.decode(good["payload"].as_str().unwrap()).unwrap();
    let text = String::from_utf8(payload).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["predicate"]["buildDefinition"]["externalParameters"]["target"], "linux");
    succeed(&mut scene.attest("alias/ci", "ci.jsonl"));
    let other = scene.read("ci.jsonl")["signatures"][0].clone();

    let with = |change: &dyn Fn(&mut Value)| {
        let mut value = good.clone();
        change(&mut value);
        value.to_string()
    };
    let encoded = STANDARD.encode(text.replace("target\":\"linux", "target\":\"other"));
    assert_ne!(good["payload"], encoded.as_str());
    for (name, bytes, reason) in [
        (
            "payload",
            with(&|one| one["payload"] = json!(encoded)),
            "the payload or its type was changed",
        ),
        (
            "type",
            with(&|one| one["payloadType"] = json!("text/plain")),
            "the payload or its type was changed",
        ),
        ("empty", with(&|one| one["signatures"] = json!([])), "has 0 signatures"),
        ("signature", with(&|one| one["signatures"][0]["sig"] = json!("AAAA")), "is not valid"),
        (
            "certificate",
            with(&|one| one["signatures"][0]["cert"] = other["cert"].clone()),
            "is not valid",
        ),
        (
            "unknown",
            with(&|one| one["signatures"][0]["cert"] = json!("")),
            "no certificate is known",
        ),
        ("twice", good.to_string().replacen('{', "{\"payloadType\":\"x\",", 1), "occurs twice"),
        ("two", format!("{good}\n{good}"), "trailing characters"),
        ("none", "{}".to_owned(), "payloadType is not a text"),
    ] {
        let file = format!("{name}.jsonl");
        scene.folder.write(&file, bytes.as_bytes());
        let text = fail(&mut scene.trusted(&file), 3);
        assert!(text.contains(reason), "{name}: {text}");
    }
    let mut command = outlast();
    command.args(["verify", "--subject", "other.bin", "--attestation", "app.intoto.jsonl"]);
    let text = fail(scene.folder.here(command).args(["--trust", "roots.pem"]), 3);
    assert!(text.contains("none of its 1 subjects has its digest"), "{text}");
    let mut foreign = scene.verify("app.intoto.jsonl");
    let text = fail(foreign.args(["--trust", "ci-root.pem"]), 3);
    assert!(text.contains("no path from"), "{text}");
    // A payload that is signed, and is no Statement: the certificate's key must not stand for it.
    let text = fail(&mut scene.attest("alias/release", "app.intoto.jsonl"), 1);
    assert!(text.contains("app.intoto.jsonl"), "{text}");

    // An unknown signature beside a good one counts for nothing, and stands in nobody's way.
    let more = with(&|one| {
        one["signatures"].as_array_mut().unwrap().push(json!({ "keyid": "00", "sig": "AAAA" }));
    });
    scene.folder.write("more.jsonl", more.as_bytes());
    let output = run(&mut scene.trusted("more.jsonl"));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 of its signatures are by keys that are not known"));
    let both = rule("algorithms = { all_of = [\"classical\", \"ml-dsa-65 or better\"] }");
    let text = fail(&mut scene.judged("more.jsonl", &both), 3);
    assert!(text.contains("lacks a signer with classical"), "{text}");
    check_schema(&mut scene.judged("more.jsonl", &both));
    // Without the certificate in the envelope, the verifier's own.
    let pem = good["signatures"][0]["cert"].as_str().unwrap();
    scene.folder.write("signer.pem", pem.as_bytes());
    succeed(scene.trusted("unknown.jsonl").args(["--certificates", "signer.pem"]));

    // Mistakes.
    let mut command = scene.client(&["attest", "--subject", "app.bin", "--key", "alias/ci"]);
    let text = fail(command.args(["--type", "spdx", "--out", "x"]), 2);
    assert!(text.contains("the predicate is missing"), "{text}");
    let text = fail(command.args(["--builder", BUILDER, "--build-type", "urn:x"]), 2);
    assert!(text.contains("only provenance has a builder"), "{text}");
    let mut command = scene.client(&["attest", "--subject", "app.bin", "--key", "alias/ci"]);
    let text = fail(command.args(["--type", "provenance"]), 2);
    assert!(text.contains("neither slsa-provenance, spdx, cyclonedx nor a URI"), "{text}");
}

#[test]
fn a_policy_says_who_may_attest_what() {
    let scene = Scene::new(&[("both", "dual")]);
    succeed(&mut scene.attest("alias/both", "app.intoto.jsonl"));
    assert_eq!(scene.read("app.intoto.jsonl")["signatures"].as_array().unwrap().len(), 2);
    let all = "algorithms = { all_of = [\"classical\", \"ml-dsa-65 or better\"] }\n\
         builder = \"https://ci.example/*\"\nsource = \"git+https://git.example/app*\"\n\
         build_type = \"https://b.example/make\"";
    let said = succeed(&mut scene.judged("app.intoto.jsonl", &rule(all)));
    assert_eq!(said.lines().filter(|line| line.starts_with("verified ")).count(), 2, "{said}");
    check_schema(&mut scene.judged("app.intoto.jsonl", &rule(all)));
    let stripped = {
        let mut value = scene.read("app.intoto.jsonl");
        value["signatures"].as_array_mut().unwrap().truncate(1);
        value.to_string()
    };
    scene.folder.write("stripped.jsonl", stripped.as_bytes());
    let text = fail(&mut scene.judged("stripped.jsonl", &rule(all)), 3);
    assert!(text.contains("lacks a signer with classical"), "{text}");
    for (more, reason) in [
        (
            "builder = \"https://ci.example\"",
            "its builder \"https://ci.example/runner\" is none of",
        ),
        (
            "source = \"git+https://git.example/other\"",
            "its source \"git+https://git.example/app\"",
        ),
        ("build_type = \"urn:*\"", "its build type \"https://b.example/make\""),
        ("subject = \"CN=other\"", "its subject is none of the rule's"),
        ("eku = \"document-signing\"", "does not count"),
    ] {
        let text = fail(&mut scene.judged("app.intoto.jsonl", &rule(more)), 3);
        assert!(text.contains(reason) && text.contains("hint: "), "{more}: {text}");
    }
    let signatures = rule("").replace("predicate_type = \"slsa-provenance\"\n", "");
    let text = fail(&mut scene.judged("app.intoto.jsonl", &signatures), 3);
    assert!(text.contains("no rule of policy.toml is for attestations of type"), "{text}");
    let boms = rule("").replace("slsa-provenance", "cyclonedx");
    let text = fail(
        &mut scene.judged(
            "app.intoto.jsonl",
            &format!("{boms}{}", rule("").replace("builds", "x").replace("*.bin", "*.exe")),
        ),
        3,
    );
    assert!(text.contains("no rule of policy.toml is for attestations of type"), "{text}");
    // Rules for attestations say nothing about signatures.
    succeed(&mut scene.client(&["sign", "app.bin", "--key", "alias/both"]));
    let mut command = outlast();
    command.args(["verify", "app.bin", "--policy", "policy.toml"]);
    let text = fail(&mut scene.folder.here(command), 3);
    assert!(text.contains("no rule of policy.toml is for this file"), "{text}");
    // A bill of materials, longer than KMS signs in one piece, and built-in policies.
    let components: Vec<_> = (0..500).map(|n| json!({ "name": format!("part-{n}") })).collect();
    let bom = json!({ "bomFormat": "CycloneDX", "components": components });
    scene.folder.write("bom.json", bom.to_string().as_bytes());
    let attest = ["attest", "--subject", "app.bin", "--key", "alias/both", "--type", "cyclonedx"];
    succeed(scene.client(&attest).args(["--predicate", "bom.json", "--out", "bom.jsonl"]));
    succeed(&mut scene.judged("bom.jsonl", &format!("{boms}{}", rule("").replace("builds", "x"))));
    let mut command = scene.verify("bom.jsonl");
    command.args(["--policy", "builtin:nist-ir-8547", "--as-of", "2036-01-01"]);
    let said = succeed(command.args(["--trust", "roots.pem"]));
    assert!(said.contains("ignored app.bin: ") && said.contains("ML_DSA_65 by"), "{said}");
}

#[test]
fn securesystemslib_and_we_agree() {
    let (Some(python), Some(place)) = (peer("python"), peer("openssl")) else { return };
    let scene = Scene::new(&[("ci", "ecdsa-p256")]);
    succeed(&mut scene.attest("alias/ci", "app.intoto.jsonl"));
    let signer = |arguments: &[&str]| {
        let mut command =
            outlast_testing::program::command(python.join("bin/python").to_str().unwrap());
        command.arg(checkout().join("tests/interop/python/dsse.py")).args(arguments);
        scene.folder.here(command)
    };
    let tool = |arguments: &[&str]| succeed(&mut scene.folder.here(openssl(&place, arguments)));
    let pem = scene.read("app.intoto.jsonl")["signatures"][0]["cert"].as_str().unwrap().to_owned();
    scene.folder.write("ci.pem", pem.as_bytes());
    let public = tool(&["x509", "-in", "ci.pem", "-pubkey", "-noout"]);
    scene.folder.write("ci.pub", public.as_bytes());
    succeed(&mut signer(&["verify", "app.intoto.jsonl", "ci.pub"]));
    let mut value = scene.read("app.intoto.jsonl");
    value["payloadType"] = json!("text/plain");
    scene.folder.write("changed.jsonl", value.to_string().as_bytes());
    fail(&mut signer(&["verify", "changed.jsonl", "ci.pub"]), 1);

    // The other way: keys and certificates that we did not make, one of them not for code signing.
    let payload = scene.read("app.intoto.jsonl")["payload"].as_str().unwrap().to_owned();
    scene.folder.write("statement.json", &STANDARD.decode(payload).unwrap());
    let new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"];
    let make = |more: &[&str]| tool(&[&["req"], &new_key[..], more].concat());
    make(&["-x509", "-subj", "/CN=Root", "-keyout", "root.key", "-out", "root.pem", "-days", "30"]);
    for (name, purpose) in [("theirs", "codeSigning"), ("mail", "emailProtection")] {
        let (key, csr, out) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        make(&["-subj", &format!("/CN={name}"), "-keyout", &key, "-out", &csr]);
        let extensions = format!(
            "keyUsage=critical,digitalSignature\nextendedKeyUsage={purpose}\nbasicConstraints=critical,CA:FALSE\n\
             subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
        );
        scene.folder.write("extensions", extensions.as_bytes());
        tool(&[
            "x509",
            "-req",
            "-in",
            &csr,
            "-CA",
            "root.pem",
            "-CAkey",
            "root.key",
            "-days",
            "9",
            "-extfile",
            "extensions",
            "-out",
            &out,
        ]);
        let envelope = format!("{name}.jsonl");
        succeed(&mut signer(&[
            "sign",
            "application/vnd.in-toto+json",
            "statement.json",
            &key,
            &envelope,
        ]));
        let mut verify = scene.verify(&envelope);
        verify.args(["--trust", "root.pem", "--certificates", &out]);
        if name == "theirs" {
            let said = succeed(&mut verify);
            assert!(said.contains("by \"CN=theirs\""), "{said}");
        } else {
            let text = fail(&mut verify, 3);
            assert!(text.contains("not for code signing"), "{text}");
        }
    }
    // Another payload type by a good key is no attestation.
    succeed(&mut signer(&["sign", "text/plain", "statement.json", "theirs.key", "text.jsonl"]));
    let mut verify = scene.verify("text.jsonl");
    let text = fail(verify.args(["--trust", "root.pem", "--certificates", "theirs.pem"]), 3);
    assert!(text.contains("the payload is text/plain, not an in-toto Statement"), "{text}");
}
