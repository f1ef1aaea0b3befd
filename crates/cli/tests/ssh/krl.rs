//! Revocation lists, which OpenSSH reads and writes, too.

use serde_json::{Value, json};

use super::{Scene, contains};
use crate::common::{outlast, run, stderr, stdout};

/// ssh-keygen reads lists that are made here, and the other way round.
#[test]
fn revocation_lists_are_those_of_ssh_keygen() {
    let Some(scene) = Scene::new() else { return };
    for name in ["ca", "other", "user", "plain"] {
        scene.key(name, "ed25519");
    }
    let krl = |arguments: &[&str]| {
        let mut command = outlast();
        command.args(["ssh", "krl"]).args(arguments);
        run(scene.folder.here(command).arg("--output").arg("json"))
    };
    let certify = |name: &str, authority: &str, serial: &str, id: &str| {
        std::fs::copy(scene.folder.path("user.pub"), scene.folder.path(&format!("{name}.pub")))
            .unwrap();
        let public = format!("{name}.pub");
        scene.keygen(&["-q", "-s", authority, "-I", id, "-n", "alice", "-z", serial, &public]);
    };
    for (name, authority, serial, id) in [
        ("a", "ca", "1", "a"),
        ("b", "ca", "7", "b"),
        ("c", "ca", "8", "leaver"),
        ("d", "other", "7", "b"),
        ("e", "other", "100", "everywhere"),
        ("f", "ca", "18446744073709551615", "f"),
        ("g", "ca", "0", "g"),
    ] {
        certify(name, authority, serial, id);
    }
    let all: Vec<String> = "abcdefg".chars().map(|name| format!("{name}-cert.pub")).collect();
    let files: Vec<&str> = all.iter().map(String::as_str).chain(["plain.pub", "ca.pub"]).collect();
    // What both say of each file; the programs must agree.
    let verdicts = |list: &str| {
        let mut test = vec!["-f", list, "--test"];
        test.extend(&files);
        let output = krl(&test);
        let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let ours: Vec<bool> =
            told.as_array().unwrap().iter().map(|one| one["revoked"] == true).collect();
        assert_eq!(output.status.code(), Some(if ours.contains(&true) { 5 } else { 0 }));
        for (file, revoked) in files.iter().zip(&ours) {
            let theirs = run(scene.tool("10.6", "ssh-keygen").args(["-Q", "-f", list, file]));
            assert_eq!(!theirs.status.success(), *revoked, "{file}: {}", stdout(&theirs));
        }
        ours
    };
    let made = krl(&[
        "-f",
        "list",
        "--create",
        "--ca",
        "ca.pub",
        "--serial",
        "7",
        "--serial",
        "1000-2000",
        "--comment",
        "ours",
    ]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert_eq!(verdicts("list"), [false, true, false, false, false, false, false, false, false]);
    assert!(
        krl(&[
            "-f",
            "list",
            "--ca",
            "ca.pub",
            "--key-id",
            "leaver",
            "--revoke",
            "plain.pub",
            "--revoke",
            "f-cert.pub"
        ])
        .status
        .success()
    );
    assert!(
        krl(&["-f", "list", "--ca", "any", "--key-id", "everywhere", "--revoke", "g-cert.pub"])
            .status
            .success()
    );
    assert_eq!(verdicts("list"), [false, true, true, false, true, true, true, true, false]);
    let shown: Value = serde_json::from_str(&stdout(&krl(&["-f", "list"]))).unwrap();
    assert_eq!((&shown["version"], &shown["comment"]), (&json!(3), &json!("ours")));
    assert_eq!(
        (&shown["serialRanges"], &shown["keyIds"], &shown["keys"]),
        (&json!(3), &json!(3), &json!(1))
    );
    contains(
        &scene.keygen(&["-Q", "-l", "-f", "list"]),
        &["# Comment: ours", "serial: 1000-2000", "id: leaver"],
    );
    assert!(krl(&["-f", "list", "--revoke", "ca.pub"]).status.success());
    let ours = verdicts("list");
    assert!(ours[0] && !ours[3], "all certificates of the authority are revoked: {ours:?}");
    // Its lists, with bitmaps and fingerprints; it adds to its own, and we do.
    scene
        .folder
        .write("specification", b"serial: 5-70\nserial: 72\nserial: 74\nserial: 76\nserial: 78\n");
    scene.keygen(&["-q", "-k", "-f", "theirs", "-s", "other.pub", "specification"]);
    assert_eq!(verdicts("theirs"), [false, false, false, true, false, false, false, false, false]);
    let ca = std::fs::read_to_string(scene.folder.path("ca.pub")).unwrap();
    scene.folder.write("hashes", format!("sha256: {ca}sha1: {ca}").as_bytes());
    scene.keygen(&["-q", "-k", "-u", "-f", "theirs", "hashes"]);
    assert!(verdicts("theirs")[8]);
    assert!(krl(&["-f", "theirs", "--ca", "ca.pub", "--serial", "1"]).status.success());
    assert!(verdicts("theirs")[0]);
    // Nothing is replaced, made or believed unasked.
    assert_eq!(krl(&["-f", "list", "--create"]).status.code(), Some(1));
    assert_eq!(krl(&["-f", "none"]).status.code(), Some(2));
    assert_eq!(krl(&["-f", "list", "--serial", "0", "--ca", "any"]).status.code(), Some(2));
    assert_eq!(krl(&["-f", "list", "--serial", "1"]).status.code(), Some(2));
    scene.folder.write("broken", &std::fs::read(scene.folder.path("list")).unwrap()[..60]);
    assert_eq!(krl(&["-f", "broken", "--test", "plain.pub"]).status.code(), Some(1));
}
