//! `outlast lab report` and `outlast lab compare`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use std::path::{Path, PathBuf};

use common::lab;
use outlast_testing::program::{fail, succeed};
use serde_json::{Value, json};

/// A results folder like a run's.
fn results(root: &Path, name: &str, median_ms: f64, kernel: &str) -> PathBuf {
    let folder = root.join(name);
    std::fs::create_dir_all(folder.join("sizes")).unwrap();
    let write =
        |file: &str, value: Value| std::fs::write(folder.join(file), value.to_string()).unwrap();
    let state = json!({
        "at_ms": 1_795_275_420_000_u64, "facts": [["kernel", kernel]],
        "cpu_pressure": 3.5, "steal_seconds": null, "load": 0.7
    });
    write(
        "run.json",
        json!({ "begun_ms": 1, "settings": { "quick": true, "seed": 7, "plan": null, "version": "0.1.0" } }),
    );
    write("state.json", state.clone());
    write(
        "sizes/result.json",
        json!({
            "experiment": "sizes", "title": "Sizes", "question": "How large?", "source": "FIPS 203",
            "state": state, "seconds": 2.5, "skipped": null,
            "findings": {
                "summary": ["ML-KEM-768 has a public key of 1,184 bytes."],
                "findings": [], "notes": [], "pictures": [],
                "controls": [{ "what": "itself", "ratio": 1.0, "low": 0.99, "high": 1.01 }],
                "charts": [{
                    "name": "keys", "title": "Public keys", "caption": "", "rules": [],
                    "x": { "label": "algorithm", "log": false }, "y": { "label": "bytes", "log": true },
                    "marks": {
                        "kind": "bars", "categories": ["ML-KEM-512", "ML-KEM-768"],
                        "parts": [["public key", [800.0, 1184.0]]], "grouped": false
                    }
                }],
                "tables": [{
                    "name": "times", "title": "Times", "columns": ["name", "median (ms)"],
                    "rows": [["ML-KEM-768", median_ms], ["X25519", 1.0]], "note": ""
                }]
            }
        }),
    );
    folder
}

#[test]
fn report_makes_the_page_and_says_where() {
    let root = tempfile::tempdir().unwrap();
    let folder = results(root.path(), "out", 2.0, "Linux 6.12.8");
    let said = succeed(lab().args(["report"]).arg(&folder));
    assert_eq!(said.trim(), folder.join("report.html").display().to_string());
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("Public keys") && page.contains("1,184 bytes"));
    for file in ["keys.svg", "keys.png", "times.csv"] {
        assert!(folder.join("sizes").join(file).is_file(), "{file}");
    }
    let said = succeed(lab().args(["--output", "json", "report"]).arg(&folder));
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["page"], folder.join("report.html").to_str().unwrap());
}

#[test]
fn compare_says_what_differs() {
    let root = tempfile::tempdir().unwrap();
    let a = results(root.path(), "a", 2.0, "Linux 6.12.8");
    let b = results(root.path(), "b", 3.0, "Linux 6.17.1");
    let page = root.path().join("compare.html");
    let said = succeed(lab().args(["compare"]).args([&a, &b]).arg("--html").arg(&page));
    assert!(said.contains("not the same machine") && said.contains("+50 %"), "{said}");
    assert!(said.contains("too few passes") && said.contains("ML-KEM-768"), "{said}");
    assert!(std::fs::read_to_string(page).unwrap().contains("Two runs compared"));
    let said = succeed(lab().args(["--output", "json", "compare"]).args([&a, &b]));
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["same_machine"], false);
    assert_eq!(said["changes"][0]["percent"], 50.0);
    let said = succeed(lab().args(["compare"]).args([&a, &a]));
    assert!(said.contains("2 figures compared, 0 differ"), "{said}");
}

#[test]
fn folders_that_are_no_results_are_told() {
    let root = tempfile::tempdir().unwrap();
    let good = results(root.path(), "good", 2.0, "Linux");
    let missing = root.path().join("missing");
    let empty = root.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let foreign = root.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("run.json"), "not json").unwrap();
    let file = good.join("run.json");
    for (folder, reason) in [
        (&missing, "no such folder"),
        (&empty, "has no run.json"),
        (&foreign, "does not belong to a results folder"),
    ] {
        for command in [vec!["report"], vec!["compare", good.to_str().unwrap()]] {
            let said = fail(lab().args(&command).arg(folder), 1);
            assert!(said.starts_with("error: ") && said.contains(reason), "{said}");
            assert!(said.contains("hint: name the folder that"), "{said}");
        }
    }
    let said = fail(lab().arg("compare").args([&good, &file]), 1);
    assert!(said.contains("not an archive of the lab") && said.contains("lab archive"), "{said}");
    let said = fail(lab().arg("report").arg(&file), 2);
    assert!(said.contains("--out DIR says where its report goes"), "{said}");
    let full = fail(lab().args(["compare"]).args([&good, &good]).args(["--html", "/dev/full"]), 1);
    assert!(
        full.contains("error: /dev/full: No space left") && full.contains("make room"),
        "{full}"
    );
}

/// One file has all that report and compare need, with hashes; raw samples are left out unless they are wanted.
#[test]
fn archives_are_read_like_folders() {
    let root = tempfile::tempdir().unwrap();
    let a = results(root.path(), "a", 2.0, "Linux 6.12.8");
    std::fs::write(a.join("sizes/points.ndjson"), "{}\n").unwrap();
    let again = results(&a, "repetition-2", 2.1, "Linux 6.12.8");
    assert!(again.join("run.json").is_file());
    let file = root.path().join("a.json");
    let pack = |more: &[&str]| {
        let mut command = lab();
        command.args(["--output", "json", "archive"]).arg(&a).arg("--out").arg(&file).args(more);
        serde_json::from_str::<Value>(&succeed(&mut command)).unwrap()
    };
    let told = pack(&["--raw"]);
    assert_eq!((told["files"].as_u64(), told["left_out"].as_array().unwrap().len()), (Some(7), 0));
    let told = pack(&[]);
    assert_eq!(told["files"], 6);
    assert_eq!(told["left_out"][0]["path"], "sizes/points.ndjson");
    assert_eq!(told["sha256"].as_str().unwrap().len(), 64);
    let archive: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&archive["seed"], &archive["passes"]), (&json!(7), &json!(2)));
    assert_eq!(archive["machine"][0], json!(["kernel", "Linux 6.12.8"]));
    // As on another machine, where the folder is not.
    let moved = root.path().join("moved");
    std::fs::rename(&a, &moved).unwrap();
    let out = root.path().join("out");
    let page = succeed(lab().arg("report").arg(&file).arg("--out").arg(&out));
    assert_eq!(page.trim(), out.join("report.html").display().to_string());
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("1,184 bytes"));
    let said = succeed(lab().arg("compare").args([&file, &moved]));
    assert!(
        said.contains("2 figures compared, 0 differ") && said.contains("by 2 and 2 passes"),
        "{said}"
    );
    assert!(said.contains(&file.display().to_string()), "{said}");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("1,184", "1,185")).unwrap();
    let said = fail(lab().arg("compare").args([&file, &moved]), 1);
    assert!(said.contains("does not have the hash"), "{said}");
    let other = fail(lab().arg("report").arg(&moved).arg("--out").arg(&out), 2);
    assert!(other.contains("--out is for archives"), "{other}");
}

/// A researcher's data are scored; mistakes in them name file, line and column.
#[test]
fn own_data_are_scored() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("ours.csv");
    let head =
        "name,rtt_ms,loss_percent,handshakes,client_hello_bytes,server_flight_bytes,p50_ms,p95_ms";
    std::fs::write(
        &file,
        format!("{head}\nours,30,0,5000,300,900,61,62\nours,30,1,5000,300,900,61,400\n"),
    )
    .unwrap();
    let score = |more: &[&str]| {
        let mut command = lab();
        command
            .args(["--output", "json", "validate", "--count", "500", "--data"])
            .arg(&file)
            .args(more);
        command
    };
    let out = root.path().join("scores.csv");
    let said = succeed(score(&[]).arg("--out").arg(&out));
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["sets"][0]["profile"], "linux-6.18");
    let points = said["sets"][0]["points"].as_array().unwrap();
    assert_eq!((points.len(), &points[0]["line"]), (1, &json!(3)));
    assert_eq!(points[0]["figures"][0]["what"], "p50");
    assert_eq!(points[0]["figures"][0]["distance"], 0.0);
    assert!(points[0]["figures"][1]["distance"].as_f64().unwrap() > 0.5, "{points:?}");
    assert!(std::fs::read_to_string(out).unwrap().starts_with("set,handshake,RTT (ms)"));
    let said = succeed(lab().args(["validate", "--count", "500", "--data"]).arg(&file));
    assert!(said.contains("of 1 points agree"), "{said}");
    let said = fail(&mut score(&["--profile", "linux-7"]), 2);
    assert!(
        said.contains("no kernel profile is named linux-7") && said.contains("linux-6.18"),
        "{said}"
    );
    std::fs::write(&file, format!("{head}\nours,30,five,5000,300,900,61,62\n")).unwrap();
    let said = fail(&mut score(&[]), 2);
    assert!(
        said.contains("ours.csv: line 2, column loss_percent: \"five\" is not a number"),
        "{said}"
    );
    assert!(said.contains("hint: docs/lab.md"), "{said}");
}
