//! Names of the files that `outlast sign` and `outlast verify` are given: what is not UTF-8, what a folder leaves out, and
//! what two signatures would overwrite.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{fail, outlast, run, stderr, stdout, succeed};
use crate::sign_before::{Scene, scene};

fn signature(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".p7s");
    PathBuf::from(name)
}

fn verify(scene: &Scene, tree: &Path) -> Command {
    let mut command = outlast();
    command.arg("verify").arg("--recursive").arg(tree).arg("--trust").arg(&scene.root);
    command
}

#[test]
fn a_name_that_is_not_utf_8_fails_alone() {
    const REASON: &str = "its name is not UTF-8";
    let scene = scene();
    let tree = scene.folder.path("tree");
    std::fs::create_dir(&tree).unwrap();
    let (bad, good) = (tree.join(OsStr::from_bytes(b"bad\xff")), tree.join("good"));
    for path in [&bad, &good] {
        std::fs::write(path, b"the same").unwrap();
    }
    let mut sign = scene.sign();
    sign.arg("--recursive").arg(&tree).args(["--output", "json"]);
    for dry in [true, false] {
        let output = match dry {
            true => run(scene.sign().arg("--dry-run").arg("--recursive").arg(&tree)),
            false => run(&mut sign),
        };
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        assert!(stderr(&output).contains(REASON), "{}", stderr(&output));
        if !dry {
            let list: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(
                (&list[0]["outcome"], &list[1]["outcome"]),
                (&"failed".into(), &"signed".into())
            );
            assert!(list[0]["reason"].as_str().unwrap().contains(REASON), "{list:#}");
        }
    }
    assert!(!signature(&bad).exists() && signature(&good).exists());
    // The right signature of the right content.
    std::fs::copy(signature(&good), signature(&bad)).unwrap();
    let output = run(verify(&scene, &tree).args(["--output", "json"]));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(list[0]["file"].as_str().unwrap().ends_with("bad\u{fffd}"), "{list:#}");
    assert_eq!(list[0]["outcome"], "refused");
    assert!(list[0]["reason"].as_str().unwrap().contains(REASON), "{list:#}");
    assert_eq!(list[1]["outcome"], "verified");
    let output = run(&mut verify(&scene, &tree));
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("verified"), "{}", stdout(&output));
    // Nobody is asked for a timestamp.
    for words in [["timestamp", "--url"], ["renew", "--timestamp"]] {
        let mut command = scene.folder.client(&["sign", words[0], words[1], "http://127.0.0.1:9"]);
        let output = run(command.arg(signature(&bad)).args(["--output", "json"]));
        assert!(!output.status.success(), "{words:?}");
        assert!(stderr(&output).contains(REASON), "{words:?}: {}", stderr(&output));
    }
    let shown = succeed(outlast().arg("inspect").arg(signature(&bad)).args(["--output", "json"]));
    assert!(shown.contains("bad\u{fffd}.p7s"), "{shown}");
}

#[test]
fn a_folder_leaves_nothing_out_unsaid() {
    let scene = scene();
    let tree = scene.folder.path("tree");
    let elsewhere = scene.folder.path("elsewhere");
    for folder in [&tree, &elsewhere] {
        std::fs::create_dir(folder).unwrap();
    }
    std::fs::write(elsewhere.join("unsigned"), b"unsigned").unwrap();
    symlink(&elsewhere, tree.join("linked")).unwrap();
    symlink(scene.folder.path("nowhere"), tree.join("dangling")).unwrap();
    std::fs::write(tree.join("app"), b"app").unwrap();
    // A proof of app, which nobody reads; files that are called like evidence and proofs.
    std::fs::write(tree.join("app.tlog-proof"), b"proof").unwrap();
    for name in ["tool.ers", "tool.tlog-proof", "old.classical.ers"] {
        std::fs::write(tree.join(name), name).unwrap();
    }
    succeed(scene.sign().arg(tree.join("app")));
    let warned = |text: &str| {
        text.contains("linked: a link to a folder is not followed")
            && text.contains("dangling: it is no file")
    };
    let output = run(&mut verify(&scene, &tree));
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(warned(&text), "{text}");
    for name in ["tool.ers", "tool.tlog-proof", "old.classical.ers"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    std::fs::remove_file(signature(&tree.join("app"))).unwrap();
    let output = run(scene.sign().arg("--recursive").arg(&tree));
    assert!(output.status.success() && warned(&stderr(&output)), "{}", stderr(&output));
    assert_eq!(stdout(&output).lines().count(), 4, "{}", stdout(&output));
    let output = run(&mut verify(&scene, &tree));
    assert!(output.status.success() && warned(&stderr(&output)), "{}", stderr(&output));
    // Many are counted.
    for number in 0..20 {
        symlink(&elsewhere, tree.join(format!("link-{number}"))).unwrap();
    }
    let text = stderr(&run(&mut verify(&scene, &tree)));
    assert_eq!(text.matches("warning: ").count(), 11, "{text}");
    assert!(text.contains("12 more were left out"), "{text}");
}

#[test]
fn no_signature_overwrites_another_one_of_its_command() {
    let scene = scene();
    let sign = |words: &[&str], code: i32, reason: &str| {
        let mut command = scene.folder.here(scene.sign());
        let text = fail(command.args(words), code);
        assert!(text.contains(reason), "{words:?}: {text}");
    };
    for name in ["a", "a.classical"] {
        scene.folder.write(name, name.as_bytes());
    }
    for folder in ["one", "two"] {
        std::fs::create_dir(scene.folder.path(folder)).unwrap();
        scene.folder.write(&format!("{folder}/x"), folder.as_bytes());
    }
    let both = "would both write it";
    sign(&["--classical-copy", "a", "a.classical"], 1, both);
    sign(&["--classical-copy", "--force", "a.classical", "a"], 1, both);
    sign(&["--output-dir", "out", "one/x", "two/x"], 1, both);
    sign(&["--log", "--output-dir", "out", "one/x", "./two/x"], 1, both);
    sign(&["a", "./a"], 1, both);
    sign(&["a", "a"], 1, "the file is given more than once");
    for name in ["a.p7s", "a.classical.p7s", "out"] {
        assert!(!scene.folder.path(name).exists(), "{name}");
    }
    succeed(scene.folder.here(scene.sign()).args(["a", "a.classical"]));
    // Nor a file that is to be signed, by whatever name.
    let input = "it is to be signed";
    scene.folder.write("a.tlog-proof", b"a file");
    sign(&["--force", "a", "a.p7s"], 1, input);
    sign(&["--force", "./a.p7s", "a"], 1, input);
    sign(&["--force", "one/../a.p7s", "a"], 1, input);
    let whole = scene.folder.path("a.p7s").display().to_string();
    sign(&["--force", "a", &whole], 1, input);
    sign(&["--force", "a", "--signature", "./a"], 1, input);
    scene.folder.write("a.jws", b"a file");
    sign(&["--format", "jws", "--force", "a", "one/../a.jws"], 1, input);
    sign(&["--force", "--log", "a", "a.tlog-proof"], 1, input);
    assert_eq!(std::fs::read(scene.folder.path("a")).unwrap(), b"a");
    for name in ["a.tlog-proof", "a.jws"] {
        assert_eq!(std::fs::read(scene.folder.path(name)).unwrap(), b"a file");
    }
    // A name that would print as two lines.
    scene.folder.write("x\nverified y", b"x");
    sign(&["x\nverified y"], 1, "its name has control characters");
    let mut verify = scene.folder.here(outlast());
    verify.args(["verify", "x\nverified y", "--trust"]).arg(&scene.root);
    let said = fail(&mut verify, 3);
    assert!(!said.contains("\nverified y"), "{said}");
}
