//! `outlast lab`: what it lists and refuses; and runs that continue after Ctrl-C, kill -9 and a full disk.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::lab;
use outlast_lab::experiment::EXPERIMENTS;
use outlast_testing::program::{fail, run, stderr, stdout, succeed};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn called(arguments: &[&str]) -> Command {
    let mut command = lab();
    command.args(arguments);
    command
}

/// Lines of an experiment's points.
fn points(results: &Path, experiment: &str) -> Vec<String> {
    let text = fs::read_to_string(results.join(experiment).join("points.ndjson"));
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Starts a run and waits until it has some points.
fn begin(results: &Path, experiment: &str, count: usize) -> Child {
    let mut child = called(&["run", experiment, "--quick", "--out"])
        .arg(results)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while points(results, experiment).len() < count {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it had {count} points");
        assert!(begun.elapsed() < Duration::from_secs(180), "no points came");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(succeed(&mut called(&["completions", shell])).contains("selftest"), "{shell}");
    }
}

#[test]
fn experiments_are_listed() {
    let text = succeed(&mut called(&["list"]));
    let json = succeed(lab().args(["--output", "json", "list"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json.as_array().unwrap();
    assert_eq!(rows.len(), EXPERIMENTS.len());
    for (row, experiment) in rows.iter().zip(EXPERIMENTS) {
        assert!(text.contains(experiment.name));
        assert_eq!(row["name"], experiment.name);
        for field in ["title", "question", "source"] {
            assert!(!row[field].as_str().unwrap().is_empty(), "{} has no {field}", experiment.name);
        }
        assert!(row["quick_seconds"].as_u64().unwrap() > 0, "{}", experiment.name);
        assert!(row["seconds"].as_u64() >= row["quick_seconds"].as_u64(), "{}", experiment.name);
    }
    let quick: u64 = rows.iter().map(|row| row["quick_seconds"].as_u64().unwrap()).sum();
    assert!(quick < 600, "all of it with --quick is to take less than 10 minutes, not {quick} s");
}

#[test]
fn unknown_names_and_missing_files_are_refused() {
    let error = fail(&mut called(&["run", "tls-matrx"]), 2);
    assert!(error.contains("no experiment is named tls-matrx") && error.contains("tls-matrix"));
    fail(&mut called(&["run"]), 2);
    fail(&mut called(&["run", "--plan", "/nonexistent/plan.toml"]), 2);
    fail(&mut called(&["selftest", "--only", "no such check"]), 2);
    fail(&mut called(&["agent", "nobody", "{}"]), 1);
}

/// All files of an experiment without sockets; a second run measures nothing again.
#[test]
fn a_run_leaves_points_tables_pictures_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let measure = || {
        let mut command = lab();
        command.args(["--output", "json", "run", "sizes", "--quick", "--out"]).arg(&results);
        serde_json::from_str::<Value>(&succeed(&mut command)).unwrap()
    };
    let told = measure();
    assert_eq!(told["measured"], serde_json::json!(["sizes"]));
    let page = fs::read_to_string(told["report"].as_str().unwrap()).unwrap();
    assert!(page.contains("<html") && page.contains("<svg"));
    let before = points(&results, "sizes");
    assert!(!before.is_empty());
    for line in &before {
        let point: Value = serde_json::from_str(line).unwrap();
        assert!(point["key"].is_string() && point["at_ms"].is_u64(), "{line}");
    }
    let ends = |ending: &str| {
        fs::read_dir(results.join("sizes"))
            .unwrap()
            .filter(|entry| {
                entry.as_ref().unwrap().path().extension().is_some_and(|is| is == ending)
            })
            .count()
    };
    assert!(ends("csv") > 0 && ends("svg") > 0 && ends("svg") == ends("png"));
    measure();
    assert_eq!(points(&results, "sizes"), before);
    // Another seed means another run.
    let error = fail(called(&["run", "sizes", "--quick", "--seed", "2", "--out"]).arg(&results), 1);
    assert!(error.contains("seed 1") && error.contains("--fresh"), "{error}");
    succeed(called(&["run", "sizes", "--quick", "--seed", "2", "--fresh", "--out"]).arg(&results));
    assert!(folder.path().join("results.1/run.json").exists());
    assert_eq!(run(called(&["report"]).arg(&results)).status.code(), Some(0));
}

#[test]
fn ctrl_c_and_kill_lose_no_point() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let count = points(&results, "tls-matrix").len();
        let child = begin(&results, "tls-matrix", count + 1);
        let kept = points(&results, "tls-matrix");
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), code, "{}", stderr(&output));
        let now = points(&results, "tls-matrix");
        assert!(now.starts_with(&kept));
        if signal == Signal::INT {
            assert!(stderr(&output).contains("kept"), "{}", stderr(&output));
        }
    }
}

/// A file system of 200 KiB in a mount namespace of its own.
#[test]
fn a_full_disk_is_told_and_what_was_measured_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        mount -t tmpfs -o size=200k lab "$1" || exit 77
        "$2" run sizes --quick --out "$1/results"; code=$?
        echo "points: $(wc -l < "$1/results/sizes/points.ndjson")"
        exit $code
    "#;
    let output = run(Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .args([folder.path().to_str().unwrap(), env!("CARGO_BIN_EXE_outlast-lab")]));
    if !rustix::process::geteuid().is_root() || output.status.code() == Some(77) {
        eprintln!("not tried: mounting a file system needs root");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{} {}", stdout(&output), stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("No space left") && said.contains("hint: "), "{said}");
}

/// Passes are measured one after the other, each by a process of its own, into folders of one run. A plan of traces alone
/// needs no measurement, and a baseline is kept with the results.
#[test]
fn passes_go_into_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.toml");
    let text = "title = \"Ours\"\nrtt_ms = [30]\nloss = [0, 0.01]\ncount = 100\n\
                [[trace]]\nname = \"a\"\nclient_hello = 300\nserver_flight = 900\ncpu_us_quantiles = [[0.5, 300], [0.9, 900]]";
    fs::write(&plan, text).unwrap();
    let measure = |name: &str, more: &[&str]| {
        let results = folder.path().join(name);
        let mut command =
            called(&["--output", "json", "run", "--quick", "--repeat", "3", "--plan"]);
        command.arg(&plan).arg("--out").arg(&results).args(more);
        let output = run(&mut command);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains("pass 3 of 3"), "{}", stderr(&output));
        let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(told["measured"], serde_json::json!(["plan"]), "told once");
        results
    };
    let runs = ["one", "two", "three"].map(|name| measure(name, &[]));
    for pass in ["", "repetition-2", "repetition-3"] {
        assert!(runs[0].join(pass).join("plan/result.json").is_file(), "{pass}");
        assert!(runs[0].join(pass).join("report.html").is_file(), "{pass}");
    }
    let baseline = folder.path().join("baseline.json");
    succeed(called(&["baseline"]).args(&runs).arg("--out").arg(&baseline));
    let with = measure("with", &["--baseline", baseline.to_str().unwrap()]);
    assert!(with.join("baseline.json").is_file());
    let said = succeed(called(&["compare"]).args([&runs[0], &with]));
    assert!(said.contains("3 and 3 passes") && said.contains("a baseline of 3 runs"), "{said}");
    assert!(said.contains(", 0 differ"), "the model repeats itself: {said}");
    let error = fail(called(&["baseline"]).args(&runs[..2]), 1);
    assert!(
        error.contains("3 to 100 equal runs") && error.contains("hint: make equal runs"),
        "{error}"
    );
}

/// The running kernel is printed as a part of a plan, under a name that is free.
#[test]
fn the_running_kernel_is_described() {
    let text = succeed(&mut called(&["calibrate", "--name", "here"]));
    assert!(text.contains("[[kernel]]") && text.contains("name = \"here\""), "{text}");
    let json = succeed(lab().args(["--output", "json", "calibrate"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["name"], "this-machine");
    let error = fail(&mut called(&["calibrate", "--name", "linux-5.4"]), 2);
    assert!(error.contains("a profile of the table"), "{error}");
}
