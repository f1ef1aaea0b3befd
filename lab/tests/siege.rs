//! `outlast siege` in its short form: the good client has no failure and the server's memory is flat under every
//! pattern. The duration of calls is not judged here, since it depends on the machine.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{executable, lab};
use outlast_harness::agent::Programs;
use outlast_harness::server::Folder;
use outlast_testing::program::{fail, run, stderr, stdout, succeed};
use serde_json::Value;

/// Patterns against one door each, so that they are spread over the machine's cores and each test names its failures.
fn besieged(door: &str) {
    let listed = succeed(lab().args(["siege", "--list", "--output", "json"]));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let mut command = lab();
    command.args(["siege", "--short", "--output", "json"]);
    let mut names = Vec::new();
    for row in listed.as_array().unwrap().iter().filter(|row| row["door"] == door) {
        let name = row["pattern"].as_str().unwrap();
        command.args(["--only", name]);
        names.push(name);
    }
    assert!(!names.is_empty(), "no pattern is against {door}");
    let output = run(&mut command);
    let found: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let rows = found["patterns"].as_array().unwrap();
    for (row, name) in rows.iter().zip(&names) {
        println!(
            "{name}: ratio {}, {} failures, memory {}, {}",
            row["ratio"], row["failures"], row["memory"], row["volume"]
        );
        assert_eq!(row["pattern"], *name);
        // It was a siege, and the good client has called in both kinds of windows.
        let begun = |what: &str| row["volume"][what].as_u64().unwrap();
        assert!(
            begun("connections") > 0 && begun("refused") < begun("connections").max(1),
            "{row}"
        );
        for way in row["good"].as_array().unwrap() {
            for window in ["quiet", "attacked"] {
                assert!(way[window]["calls"].as_u64().unwrap() > 0, "{name}: {way}");
            }
        }
    }
    assert_eq!(rows.len(), names.len());
    for row in rows {
        assert_eq!(row["missed"], Value::Array(Vec::new()), "{}", row["pattern"]);
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// A data folder with an administrator.
fn folder() -> Folder {
    Folder::new(&Programs::beside(&executable()), &std::env::temp_dir()).unwrap()
}

#[test]
fn https() {
    besieged("HTTPS");
}

#[test]
fn plain_http() {
    besieged("plain HTTP");
}

#[test]
fn quic() {
    besieged("QUIC");
}

#[test]
fn proxy() {
    besieged("proxy");
}

#[test]
fn only_loopback_is_attacked() {
    let folder = folder();
    for target in ["192.0.2.1:8443", "0.0.0.0:8443", "[2001:db8::1]:8443"] {
        let mut command = lab();
        command.args(["siege", "--target", target, "--data"]).arg(folder.data());
        let text = fail(&mut command, 2);
        assert!(text.contains("not a loopback address"), "{text}");
    }
    let mut command = lab();
    command.args(["siege", "--target", "127.0.0.1:8443", "--plain", "192.0.2.1:80", "--data"]);
    let text = fail(command.arg(folder.data()), 2);
    assert!(text.contains("192.0.2.1:80 is not a loopback address"), "{text}");
}

#[test]
fn server_that_runs_is_besieged_with_its_own_administrator() {
    let folder = folder();
    let server = folder.serve().unwrap();
    let mut command = lab();
    command.args(["siege", "--short", "--only", "unsigned", "--only", "expensive-policy"]);
    command.args(["--rounds", "3", "--output", "json"]);
    command.args(["--target", &server.address.to_string()]);
    command.args(["--plain", &format!("127.0.0.1:{}", server.revocation)]);
    command.args(["--pid", &server.child.id().to_string(), "--data"]);
    let output = run(command.arg(folder.data()));
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    // Patterns that need a user of their own are left out, and the output says so.
    assert!(stderr(&output).contains("expensive-policy is left out"), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(found["patterns"].as_array().unwrap().len(), 1, "{found}");
    let memory = &found["patterns"][0]["memory"];
    assert!(memory["before_kib"].as_u64().unwrap() > 0, "{found}");
    assert_eq!(memory["after_kib"].as_array().unwrap().len(), 3, "{found}");
}

#[test]
fn unknown_pattern_is_wrong_usage() {
    let text = fail(lab().args(["siege", "--only", "nothing"]), 2);
    assert!(text.contains("no pattern is named nothing") && text.contains("--list"), "{text}");
}

/// docs/siege.md has a row for each pattern, written from the table.
#[test]
fn document_lists_every_pattern() {
    let listed = succeed(lab().args(["siege", "--list", "--output", "json"]));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let mut rows = String::new();
    for row in listed.as_array().unwrap() {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let (pattern, door, what, by) =
            (text("pattern"), text("door"), text("what"), text("stopped_by"));
        rows.push_str(&format!(
            "| `{pattern}` | {door} | {} | {what} | {by} |\n",
            row["connections"]
        ));
    }
    let place = outlast_testing::checkout().join("docs/siege.md");
    let found = std::fs::read_to_string(&place).unwrap();
    let mark = "|---|---|---|---|---|\n";
    let head = found.split_inclusive(mark).next().unwrap();
    let text = format!("{head}{rows}");
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        std::fs::write(&place, &text).unwrap();
    }
    assert!(found == text, "docs/siege.md is stale: run the test with OUTLAST_BLESS=1");
}
