//! ssh-audit against the door under each security policy with SSH: the policy file that `outlast policy ssh-audit` writes must be
//! passed, and what its own report says is in `docs/interop.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use outlast_api::ops::transfer::update_server::UpdateServer;
use outlast_negotiate::catalogue::POLICIES;
use outlast_testing::program;
use serde_json::{Value, json};

use crate::common::peers::{hold_table, peer};
use crate::common::{outlast, run, stderr, stdout, succeed};
use crate::sftp::World;

const BEGIN: &str = "<!-- begin: ssh-audit -->";
const END: &str = "<!-- end: ssh-audit -->";

/// A policy that must be all green.
const GREEN: &str = "sftp-strict-2026-11";

#[test]
fn ssh_audit_passes_every_policy() {
    let Some(python) = peer("python") else { return };
    // `cnsa2-2026-11` has host keys only that are not served.
    let policies: Vec<_> = POLICIES
        .iter()
        .filter(|row| row.has_ssh() && !row.ssh.for_connectors && row.name != "cnsa2-2026-11")
        .map(|row| row.name)
        .collect();
    let world = World::new(&PathBuf::from("/usr/bin"), policies[0], &[]);
    let port = world.server.sftp.unwrap().to_string();
    let audit = |more: &[&str]| {
        let mut command = program::command(python.join("bin/ssh-audit").to_str().unwrap());
        command.args(["--no-colors", "--skip-rate-test", "-p", &port]).args(more);
        run(command.arg("127.0.0.1"))
    };
    let mut table = String::from(
        "| policy | its policy file | ssh-audit's own report | what it marks |\n|---|---|---|---|\n",
    );
    for policy in policies {
        let change = json!({ "ServerId": world.id, "SecurityPolicyName": policy });
        world.call(async |session| {
            session.call::<UpdateServer>(change).await.unwrap().unwrap();
        });
        let file = succeed(outlast().args(["policy", "ssh-audit", policy]));
        let file = world.folder.write("audit.txt", file.as_bytes());
        // The new policy is served within a second.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let output = audit(&["-P", file.to_str().unwrap()]);
        let said = || format!("{policy}: {}{}", stdout(&output), stderr(&output));
        assert!(output.status.success() && stdout(&output).contains("Passed"), "{}", said());
        let report = audit(&["-j"]);
        let text = stdout(&report);
        let value: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{policy}: {error}: {text}{}", stderr(&report)));
        let marked = marked(&value);
        // 0, 2 and 3 are ssh-audit's exit codes of what is good, a warning and a failure.
        let verdict = match report.status.code() {
            Some(0) => "green",
            Some(2) => "warnings",
            Some(3) => "failures",
            other => panic!("{policy}: {other:?}: {}", said()),
        };
        assert_eq!(verdict == "green", marked.is_empty(), "{policy}: {text}");
        assert!(policy != GREEN || verdict == "green", "{policy}: {text}");
        let marked: Vec<_> = marked.into_iter().collect();
        let list = if marked.is_empty() { "nothing".to_owned() } else { marked.join(", ") };
        let _ = writeln!(table, "| `{policy}` | passed | {verdict} | {list} |");
    }
    hold_table(BEGIN, END, &table);
}

/// Algorithms that the report gives a warning or a failure.
fn marked(report: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for kind in ["kex", "key", "enc", "mac"] {
        for row in report[kind].as_array().into_iter().flatten() {
            let notes = &row["notes"];
            if notes["fail"].is_array() || notes["warn"].is_array() {
                found.insert(format!("`{}`", row["algorithm"].as_str().unwrap()));
            }
        }
    }
    found
}
