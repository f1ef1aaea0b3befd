//! `outlast git` with stock git: commits, tags and what git says of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::path::PathBuf;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outlast_testing::skip_for_want_of;

use crate::common::peers::{openssl, peer};
use crate::common::{Folder, Server, fail, run, stderr, succeed};

/// A server with three signers, and a repository.
struct Scene {
    folder: Folder,
    server: Server,
}

impl Scene {
    /// `None` if git is missing.
    fn new() -> Option<Self> {
        if Command::new("git").arg("--version").output().is_err() {
            skip_for_want_of("git", "git");
            return None;
        }
        let folder = Folder::new();
        let server = folder.serve();
        let scene = Self { folder, server };
        std::fs::create_dir(scene.repository()).unwrap();
        succeed(&mut scene.git(&["init", "--quiet", "--initial-branch", "main"]));
        Some(scene)
    }

    fn repository(&self) -> PathBuf {
        self.folder.path("repository")
    }

    /// A command in the repository, with the profile and without the user's configuration of git.
    fn with_profile(&self, mut command: Command) -> Command {
        let client = self.folder.client(&[]);
        let set = client.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(set).current_dir(self.repository());
        command.env("AWS_ENDPOINT_URL", format!("https://localhost:{}", self.server.port));
        command.env("GIT_CONFIG_GLOBAL", self.folder.path("gitconfig"));
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
        for (name, value) in [("NAME", "Ada"), ("EMAIL", "ada@example.com")] {
            command.env(format!("GIT_AUTHOR_{name}"), value);
            command.env(format!("GIT_COMMITTER_{name}"), value);
        }
        command
    }

    fn git(&self, arguments: &[&str]) -> Command {
        let mut command = outlast_testing::program::command("git");
        command.args(arguments);
        self.with_profile(command)
    }

    fn outlast(&self, arguments: &[&str]) -> Command {
        let mut command = crate::common::outlast();
        command.args(arguments);
        self.with_profile(command)
    }

    /// A signer alias/NAME whose roots are in `NAME-root.pem`.
    fn signer(&self, name: &str, algorithm: &str) -> String {
        let setup = ["sign", "setup", "--name", name, "--algorithm", algorithm, "--create-ca"];
        succeed(self.outlast(&setup).current_dir(self.folder.temporary.path()));
        format!("../{name}-root.pem")
    }

    fn commit(&self, text: &str) -> String {
        let commit = ["commit", "--quiet", "--allow-empty", "-S", "-m", text];
        succeed(&mut self.git(&commit));
        succeed(&mut self.git(&["rev-parse", "HEAD"])).trim().to_owned()
    }

    /// Git's letter for a signature, its trust, and the signer's name.
    fn verdict(&self, commit: &str) -> String {
        let log = ["log", "-1", "--format=%G? %GT %GS", commit];
        succeed(&mut self.git(&log)).trim().to_owned()
    }

    fn verify_commit(&self, commit: &str, is_good: bool) -> String {
        let mut said = String::new();
        // The status lines, and the words.
        for how in [&["--raw"][..], &[]] {
            let output = run(&mut self.git(&[&["verify-commit"], how, &[commit]].concat()));
            assert_eq!(output.status.success(), is_good, "{}", stderr(&output));
            said += &stderr(&output);
        }
        said
    }
}

#[test]
fn git_signs_and_verifies_commits_and_tags() {
    let Some(scene) = Scene::new() else { return };
    let trust = scene.signer("release", "ml-dsa-65");
    // Without a key git names the committer.
    succeed(&mut scene.outlast(&["git", "setup", "--trust", &trust]));
    succeed(&mut scene.git(&["config", "gpg.format", "x509"]));
    let commit = ["commit", "--quiet", "--allow-empty", "-S", "-m", "none"];
    fail(&mut scene.git(&commit), 128);
    // Git before 2.41 does not show what the program says.
    let call = ["--status-fd=2", "-bsau", "Ada <ada@example.com>"];
    let text = fail(&mut scene.outlast(&call), 2);
    assert!(text.contains("git config user.signingKey alias/NAME"), "{text}");

    let said = succeed(&mut scene.outlast(&[
        "git",
        "setup",
        "--key",
        "alias/release",
        "--profile",
        "outlast",
    ]));
    for words in ["git config gpg.format x509", "git config user.signingKey alias/release"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let one = scene.commit("one");
    let object = succeed(&mut scene.git(&["cat-file", "commit", &one]));
    assert!(object.contains("gpgsig -----BEGIN SIGNED MESSAGE-----"), "{object}");
    assert_eq!(scene.verdict(&one), "G fully CN=release");
    let text = scene.verify_commit(&one, true);
    for words in ["[GNUPG:] GOODSIG ", "[GNUPG:] VALIDSIG ", "[GNUPG:] TRUST_FULLY"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let shown = succeed(&mut scene.git(&["log", "-1", "--show-signature"]));
    assert!(shown.contains("verified git:commit: ML_DSA_65 by \"CN=release\""), "{shown}");
    succeed(&mut scene.git(&["tag", "-s", "-m", "first", "v1.0"]));
    succeed(&mut scene.git(&["verify-tag", "v1.0"]));

    // A commit that was changed after signing, and one that has another one's signature.
    let forged = object.replace("\n\none", "\n\ntwo");
    assert_ne!(forged, object);
    std::fs::write(scene.repository().join("object"), &forged).unwrap();
    let hash = ["hash-object", "-t", "commit", "-w", "object"];
    let forged = succeed(&mut scene.git(&hash)).trim().to_owned();
    assert_eq!(scene.verdict(&forged), "B never CN=release");
    let text = scene.verify_commit(&forged, false);
    assert!(text.contains("[GNUPG:] BADSIG ") && !text.contains("GOODSIG"), "{text}");
    assert!(text.contains("its digest does not match"), "{text}");
    let tag = succeed(&mut scene.git(&["cat-file", "tag", "v1.0"])).replace("tag v1.0", "tag v9.0");
    std::fs::write(scene.repository().join("object"), tag).unwrap();
    let made = succeed(&mut scene.git(&["hash-object", "-t", "tag", "-w", "object"]));
    let text = fail(&mut scene.git(&["verify-tag", "-v", made.trim()]), 1);
    assert!(text.contains("its digest does not match"), "{text}");
    // A signature that is none.
    let broken = object.replace("\n MI", "\n AA");
    assert_ne!(broken, object);
    std::fs::write(scene.repository().join("object"), broken).unwrap();
    let broken = succeed(&mut scene.git(&hash)).trim().to_owned();
    assert!(scene.verdict(&broken).starts_with("E "), "{}", scene.verdict(&broken));

    // Unsigned.
    succeed(&mut scene.git(&[
        "commit",
        "--quiet",
        "--allow-empty",
        "--no-gpg-sign",
        "-m",
        "plain",
    ]));
    assert!(scene.verdict("HEAD").starts_with("N "), "{}", scene.verdict("HEAD"));
    scene.verify_commit("HEAD", false);

    // A signer below a root that is not trusted.
    let foreign = scene.signer("foreign", "ecdsa-p256");
    succeed(&mut scene.git(&["config", "user.signingKey", "alias/foreign"]));
    let two = scene.commit("two");
    assert_eq!(scene.verdict(&two), "E never");
    let text = scene.verify_commit(&two, false);
    assert!(text.contains("[GNUPG:] ERRSIG ") && text.contains("no path from"), "{text}");
    // A right signature of somebody who is not trusted is not called good.
    assert!(!text.contains("GOODSIG") && !text.contains("TRUST_FULLY"), "{text}");
    succeed(&mut scene.git(&["config", "outlast.trust", &foreign]));
    assert_eq!(scene.verdict(&two), "G fully CN=foreign");
    // Git's own rule: nothing is merged without a signature that is trusted.
    succeed(&mut scene.git(&["checkout", "--quiet", "-b", "side", &one]));
    succeed(&mut scene.git(&["commit", "--quiet", "--allow-empty", "--no-gpg-sign", "-m", "side"]));
    let merge = ["merge", "--verify-signatures", "--no-ff", "--no-gpg-sign", "-m", "merged", &two];
    succeed(&mut scene.git(&["config", "outlast.trust", &trust]));
    fail(&mut scene.git(&merge), 128);
    succeed(&mut scene.git(&["config", "outlast.trust", &foreign]));
    succeed(&mut scene.git(&merge));

    // OpenSSL reads the signature, too.
    let Some(place) = peer("openssl") else { return };
    let object = succeed(&mut scene.git(&["cat-file", "commit", &two]));
    let (before, after) = object.split_once("gpgsig ").unwrap();
    let (signature, rest) = after.split_once("-----END SIGNED MESSAGE-----\n").unwrap();
    // The signature ends with an empty line, which git keeps in the header.
    let rest = rest.strip_prefix(" \n").unwrap_or(rest);
    let base64: String = signature.lines().skip(1).map(str::trim).collect();
    let der = scene.folder.write("two.der", &STANDARD.decode(base64).unwrap());
    let signed = scene.folder.write("two.txt", format!("{before}{rest}").as_bytes());
    let mut verify = openssl(&place, &["cms", "-verify", "-binary", "-inform", "DER", "-in"]);
    verify.arg(&der).arg("-content").arg(&signed).arg("-CAfile");
    verify.arg(scene.repository().join(&foreign)).args(["-purpose", "codesign"]);
    succeed(verify.args(["-out", "/dev/null"]));
}

#[test]
fn a_policy_says_who_may_tag() {
    let Some(scene) = Scene::new() else { return };
    let release = scene.signer("release", "dual");
    scene.signer("developer", "ml-dsa-65");
    let roots = [&release, "../developer-root.pem"]
        .map(|name| std::fs::read_to_string(scene.repository().join(name)).unwrap());
    scene.folder.write("roots.pem", roots.concat().as_bytes());
    let policy = "[[rule]]\nname = \"tags\"\nfiles = \"git:tag/v*\"\ntrust = \"roots.pem\"\n\
         subject = \"CN=release\"\nalgorithms = { all_of = [\"classical\", \"ml-dsa-65 or better\"] }\n\
         [[rule]]\nname = \"commits\"\nfiles = \"git:commit\"\ntrust = \"roots.pem\"\n\
         algorithms = \"post-quantum\"\n";
    scene.folder.write("git.toml", policy.as_bytes());
    let mut setup = scene.outlast(&["git", "setup", "--key", "alias/developer", "--sign-all"]);
    succeed(setup.args(["--policy", "../git.toml"]));
    let commit = scene.commit("by a developer");
    assert_eq!(scene.verdict(&commit), "G fully CN=developer");
    succeed(&mut scene.git(&["tag", "-m", "by a developer", "v1.0"]));
    let text = fail(&mut scene.git(&["verify-tag", "v1.0"]), 1);
    assert!(text.contains("\"CN=developer\" does not count: its subject"), "{text}");
    let text = fail(&mut scene.git(&["verify-tag", "--raw", "v1.0"]), 1);
    assert!(text.contains("ERRSIG ") && !text.contains("GOODSIG"), "{text}");
    succeed(&mut scene.git(&["tag", "-u", "alias/release", "-m", "by the release", "v1.1"]));
    let output = run(&mut scene.git(&["verify-tag", "--raw", "v1.1"]));
    let text = stderr(&output);
    assert!(output.status.success() && text.matches("GOODSIG").count() == 1, "{text}");
    succeed(&mut scene.git(&["tag", "-u", "alias/release", "-m", "another name", "nightly"]));
    let text = fail(&mut scene.git(&["verify-tag", "nightly"]), 1);
    assert!(text.contains("no rule of git.toml is for this file"), "{text}");

    // A tag whose object calls itself as a rule for others' objects does.
    for name in ["v1/git:commit", "git:commit", "../git:commit"] {
        let object = format!(
            "object {commit}\ntype commit\ntag {name}\ntagger Ada <ada@example.com> 0 +0000\n\ntext\n"
        );
        let path = scene.folder.write("object", object.as_bytes());
        let mut sign = scene.outlast(&["--status-fd=2", "-bsau", "alias/developer"]);
        let signature = succeed(sign.stdin(std::fs::File::open(&path).unwrap()));
        scene.folder.write("object", format!("{object}{signature}").as_bytes());
        let mut hash = scene.git(&["hash-object", "-t", "tag", "--literally", "-w"]);
        let made = succeed(hash.arg(&path));
        let text = fail(&mut scene.git(&["verify-tag", made.trim()]), 1);
        assert!(text.contains("no rule of git.toml is for this file"), "{name}: {text}");
    }

    // Plumbing without git.
    let signature = scene.folder.write("signature", b"");
    let mut command = scene.outlast(&["git", "verify"]);
    let text = fail(command.arg(&signature).stdin(std::process::Stdio::null()), 1);
    assert!(text.contains("nobody is trusted") && text.contains("outlast git setup"), "{text}");
    let text = fail(&mut scene.outlast(&["git", "setup"]), 2);
    assert!(text.contains("there is nothing to configure"), "{text}");
    let elsewhere = scene.folder.temporary.path().to_path_buf();
    let mut command = scene.outlast(&["git", "setup", "--key", "alias/a"]);
    let text = fail(command.current_dir(elsewhere), 1);
    assert!(text.contains("--global"), "{text}");
}
