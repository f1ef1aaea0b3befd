//! Comparisons of two results folders.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use std::path::{Path, PathBuf};

use common::folder;
use outlast_lab::compare::baseline::{self, Baseline};
use outlast_lab::compare::{Comparison, Judgement, Moved, compare, text, write_page};
use outlast_lab::result::{Control, Findings, Table, Told, Value, Verdict};
use outlast_lab::run::folder::repetition;

fn two(name: &str, change: impl FnOnce(&mut Vec<Told>)) -> (PathBuf, PathBuf) {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&root);
    let (a, b) = (root.join("a"), root.join("b"));
    folder::write(&a, &folder::results(0.0));
    let mut results = folder::results(0.0);
    change(&mut results);
    folder::write(&b, &results);
    (a, b)
}

fn set(folder: &Path, file: &str, from: &str, to: &str) {
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn the_same_is_the_same() {
    let (a, _) = two("lab-compare-same", |_| ());
    let same = compare(&a, &a, None).unwrap();
    assert!(same.same_machine && same.differences.is_empty() && same.changes.is_empty());
    assert!(same.verdicts.is_empty() && same.only_a.is_empty() && same.only_b.is_empty());
    assert!(same.words.is_empty());
    // 72 rows of four figures (the ends of intervals and the figures that identify rows do not count), four of two.
    assert_eq!(same.compared, 72 * 4 + 4 * 2);
    assert!(text(&same, 30).contains("0 differ"));
}

/// Columns and claims that occur twice under one name are matched in order.
#[test]
fn equal_names_are_matched_in_their_order() {
    let change = |results: &mut Vec<Told>| {
        let findings = &mut results[0].findings;
        let table = &mut findings.tables[0];
        table.columns.push(table.columns[4].clone());
        for row in &mut table.rows {
            row.push(Value::Number(1234.5));
        }
        let mut again = findings.findings[0].clone();
        again.verdict = match again.verdict {
            Verdict::Differs => Verdict::Holds,
            _ => Verdict::Differs,
        };
        findings.findings.push(again);
    };
    let (_, b) = two("lab-compare-equal-names", change);
    let same = compare(&b, &b, None).unwrap();
    assert!(same.changes.is_empty() && same.verdicts.is_empty() && same.words.is_empty());
    assert!(same.only_a.is_empty() && same.only_b.is_empty());
}

#[test]
fn what_differs_is_told_the_biggest_first() {
    let (a, b) = two("lab-compare", |results| {
        let rows = &mut results[0].findings.tables[0].rows;
        // Twice as slow with its interval; a little slower within it; a row that is missing; a column without an
        // interval.
        for cell in [5, 6, 7] {
            let Value::Number(number) = &mut rows[0][cell] else { panic!() };
            *number *= 2.0;
        }
        let Value::Number(number) = &mut rows[1][5] else { panic!() };
        *number *= 1.0001;
        let Value::Number(number) = &mut rows[2][4] else { panic!() };
        *number *= 1.9;
        rows.pop();
        let bytes = &mut results[1].findings.tables[0].rows;
        bytes[1][3] = "no".into();
        results[0].findings.findings[0].verdict = Verdict::Differs;
        results[0].findings.findings[0].measured = "5 %".into();
        results.pop();
    });
    set(&b, "run.json", "\"seed\":42", "\"seed\":43");
    set(&b, "state.json", "Linux 6.12.8", "Linux 6.17.1");
    set(&b, "state.json", "0.23.46", "0.23.47");

    let told = compare(&a, &b, None).unwrap();
    assert!(!told.same_machine);
    let different: Vec<&str> = told.differences.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(different, ["kernel", "seed", "rustls"]);
    let [first, second, third] = told.changes.as_slice() else { panic!("{:?}", told.changes) };
    // One pass of each run says nothing of what happens between runs, whatever intervals say.
    assert_eq!((first.judgement, first.column.as_str()), (Judgement::Unknown, "p99 (ms)"));
    assert_eq!((first.percent, first.by.as_str()), (Some(100.0), "too few passes"));
    assert_eq!(first.row, "X25519 + ECDSA P-256, RTT 1 ms, loss 0 %");
    assert_eq!((second.judgement, second.column.as_str()), (Judgement::Unknown, "p95 (ms)"));
    assert_eq!(second.by, "a tail without an interval");
    assert_eq!((third.judgement, third.column.as_str()), (Judgement::Unknown, "p99 (ms)"));
    assert_eq!(told.words.len(), 1);
    assert_eq!((told.words[0].a.as_str(), told.words[0].b.as_str()), ("yes", "no"));
    assert_eq!(told.verdicts.len(), 1);
    assert_eq!(told.verdicts[0].b, (Verdict::Differs, "5 %".to_owned()));
    assert_eq!(told.only_a.len(), 2, "{:?}", told.only_a);
    assert!(told.only_a.contains(&"idle".to_owned()));
    assert!(told.only_b.is_empty());
    // A control that does not hold is reported for both.
    assert_eq!(told.controls.len(), 2);

    let text = text(&told, 30);
    assert!(text.contains("not the same machine"), "{text}");
    assert!(text.contains("+100 %") && text.contains("2 that differ (too few passes)"), "{text}");
    let json = serde_json::to_value(&told).unwrap();
    assert_eq!(json["changes"][0]["judgement"], "unknown");

    let page = a.with_file_name("compare.html");
    write_page(&told, &a, &b, &page).unwrap();
    let page = std::fs::read_to_string(page).unwrap().replace("&#x2f;", "/");
    for part in [
        "Not the same machine",
        "Linux 6.17.1",
        "+100 %",
        "Verdicts that turned",
        "too few passes",
        "id=\"charts\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<div class=\"chart one\">").count(), 20);
}

/// Rows that only figures tell apart, cells with intervals in them, columns and tables that only one run has.
#[test]
fn odd_tables_are_compared_as_far_as_they_go() {
    let table = |name: &str, columns: &[&str], rows: Vec<Vec<Value>>| Table {
        name: name.into(),
        title: name.into(),
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        rows,
        note: String::new(),
    };
    let told = |tables: Vec<Table>| Told {
        experiment: "odd".into(),
        findings: Findings {
            tables,
            controls: vec![Control { what: "x".into(), ratio: 1.0, low: f64::NAN, high: 1.01 }],
            ..Findings::default()
        },
        ..folder::results(0.0).remove(0)
    };
    let root = tempfile::tempdir().unwrap();
    let (a, b) = (root.path().join("a"), root.path().join("b"));
    let first = vec![
        table(
            "grid",
            &["RTT", "loss", "ms"],
            vec![
                vec![1.0.into(), 0.0.into(), 5.0.into()],
                vec![1.0.into(), 1.0.into(), 6.0.into()],
            ],
        ),
        table(
            "cells",
            &["what", "ratio"],
            vec![vec!["hybrid".into(), "1.188 [1.187, 1.189]".into()]],
        ),
        table("ragged", &["what", "ms"], vec![vec!["short".into()], vec![]]),
        table("empty", &[], Vec::new()),
        table(
            "zero",
            &["what", "ms"],
            vec![vec!["a".into(), 0.0.into()], vec!["a".into(), f64::NAN.into()]],
        ),
        table("gone", &["what"], Vec::new()),
    ];
    let second = vec![
        table(
            "grid",
            &["loss", "RTT", "ms", "more"],
            vec![
                vec![1.0.into(), 1.0.into(), 6.0.into(), 0.0.into()],
                vec![0.0.into(), 1.0.into(), 5.5.into(), 0.0.into()],
            ],
        ),
        table(
            "cells",
            &["what", "ratio"],
            vec![vec!["hybrid".into(), "1.300 [1.290, 1.310]".into()]],
        ),
        table("ragged", &["what", "ms"], vec![vec!["short".into(), 3.0.into()]]),
        table("empty", &[], Vec::new()),
        table(
            "zero",
            &["what", "ms"],
            vec![vec!["a".into(), 4.0.into()], vec!["a".into(), 5.0.into()]],
        ),
    ];
    folder::write(&a, &[told(first)]);
    folder::write(&b, &[told(second)]);
    let comparison = compare(&a, &b, None).unwrap();
    let change = |table: &str| {
        comparison.changes.iter().filter(|one| one.table == table).collect::<Vec<_>>()
    };
    let [grid] = change("grid")[..] else { panic!("{comparison:?}") };
    assert_eq!((grid.a, grid.b, grid.row.as_str()), (5.0, 5.5, "loss 0"));
    assert_eq!(grid.judgement, Judgement::Unknown);
    let [cells] = change("cells")[..] else { panic!("{comparison:?}") };
    assert_eq!((cells.a, cells.b), (1.188, 1.3));
    assert!(
        change("zero")
            .iter()
            .all(|one| one.judgement == Judgement::Unknown && one.percent.is_none())
    );
    assert!(comparison.only_a.iter().any(|what| what == "odd: table gone"));
    assert!(comparison.only_b.iter().any(|what| what == "odd: column more of grid"));
    assert!(!text(&comparison, 1).is_empty());
    assert!(compare(&a, &root.path().join("none"), None).is_err());
}

/// A table with a figure that varies, one that does not, and a number of samples.
fn write_pass(run: &Path, pass: u32, rows: &[(&str, f64, f64)]) {
    let told = Told {
        experiment: "passes".into(),
        findings: Findings {
            tables: vec![Table {
                name: "one".into(),
                title: "one".into(),
                columns: ["what", "time (ms)", "p99 (ms)", "size (bytes)", "samples"]
                    .map(str::to_owned)
                    .to_vec(),
                rows: rows
                    .iter()
                    .map(|(name, time, size)| {
                        let samples = Value::from(f64::from(pass));
                        vec![
                            (*name).into(),
                            (*time).into(),
                            (2.0 * time).into(),
                            (*size).into(),
                            samples,
                        ]
                    })
                    .collect(),
                note: String::new(),
            }],
            ..Findings::default()
        },
        ..folder::results(0.0).remove(0)
    };
    let place = repetition(run, pass);
    std::fs::create_dir_all(&place).unwrap();
    folder::write(&place, &[told]);
}

const NOISE: [f64; 5] = [0.0, 0.4, -0.3, 0.2, -0.1];

/// Runs of several passes are judged by the spread of these; numbers of samples are not compared, and tails not judged.
#[test]
fn passes_say_what_a_difference_means() {
    let root = tempfile::tempdir().unwrap();
    let run = |name: &str| root.path().join(name);
    for (pass, noise) in (1..).zip(NOISE) {
        write_pass(&run("a"), pass, &[("hybrid", 100.0 + noise, 1216.0)]);
        write_pass(&run("same"), pass, &[("hybrid", 100.2 - noise, 1216.0)]);
        write_pass(&run("slower"), pass, &[("hybrid", 110.0 + noise, 1217.0)]);
    }
    let (a, same, slower) = (run("a"), run("same"), run("slower"));
    let equal = compare(&a, &same, None).unwrap();
    assert_eq!((equal.repetitions, equal.compared, equal.tested), ([5, 5], 3, 1));
    let of = |comparison: &Comparison, column: &str| {
        let found = comparison.changes.iter().find(|change| change.column == column);
        found.map(|change| change.judgement)
    };
    assert_eq!(of(&equal, "time (ms)"), Some(Judgement::Within));
    assert_eq!(of(&equal, "size (bytes)"), None);
    let changed = compare(&a, &slower, None).unwrap();
    assert_eq!(of(&changed, "time (ms)"), Some(Judgement::Outside));
    assert_eq!(of(&changed, "size (bytes)"), Some(Judgement::Outside));
    assert_eq!(of(&changed, "p99 (ms)"), Some(Judgement::Unknown));
    let told = text(&changed, 9);
    assert!(told.contains("judged by 5 and 5 passes, 1 of the figures"), "{told}");
    assert!(told.contains("not judged: 1 that differ (a tail without an interval)"), "{told}");
    // Four passes are too few; sizes need none.
    std::fs::rename(repetition(&slower, 5), root.path().join("gone")).unwrap();
    let fewer = compare(&a, &slower, None).unwrap();
    assert_eq!(fewer.repetitions, [5, 4]);
    assert_eq!(of(&fewer, "time (ms)"), Some(Judgement::Unknown));
    assert_eq!(of(&fewer, "size (bytes)"), Some(Judgement::Outside));
    assert!(text(&fewer, 9).contains("(too few passes)"));
}

/// A baseline knows what runs differ by: with it a single pass is judged, a change of everything, too.
#[test]
fn a_baseline_tells_a_busy_machine_from_a_change() {
    let root = tempfile::tempdir().unwrap();
    let rows = ["a", "b", "c", "d", "e", "f", "g"];
    let write = |name: &str, pass: u32, whole: f64, changed: f64| {
        let noise = f64::from(pass) * 0.001;
        let all: Vec<(&str, f64, f64)> = rows
            .iter()
            .enumerate()
            .map(|(n, row)| {
                let own = if n == 2 { changed } else { 1.0 };
                let wobble = [noise, -noise, 0.0][n % 3];
                (*row, 100.0 * whole * own * (1.0 + wobble), 1216.0)
            })
            .collect();
        write_pass(&root.path().join(name), pass, &all);
    };
    // Equal runs are up to 3 % apart as wholes.
    for (name, whole) in [("one", 1.0), ("two", 1.03), ("three", 0.99), ("four", 1.02)] {
        for pass in 1..=3 {
            write(name, pass, whole, 1.0);
        }
    }
    write("busy", 1, 1.04, 1.0);
    write("changed", 1, 1.0, 1.2);
    write("slower", 1, 1.5, 1.0);
    let place = |name: &str| root.path().join(name);
    let runs = ["one", "two", "three", "four"].map(place);
    let folders: Vec<&Path> = runs.iter().map(PathBuf::as_path).collect();
    let baseline = Baseline::learn(&folders).unwrap();
    assert_eq!(baseline.passes, [3; 4]);
    let file = root.path().join("baseline.json");
    baseline.write(&file).unwrap();
    assert_eq!(Baseline::read(&file).unwrap().passes, baseline.passes);
    let outside = |comparison: &Comparison| -> Vec<String> {
        let changes = comparison.changes.iter().filter(|one| one.judgement == Judgement::Outside);
        changes.map(|change| change.row.clone()).collect()
    };
    let busy = compare(&runs[0], &place("busy"), Some(&baseline)).unwrap();
    assert!(outside(&busy).is_empty(), "{:?}", busy.changes);
    let whole = |comparison: &Comparison| {
        let of = |one: &&Moved| one.column.ends_with("time (ms)");
        comparison.columns.iter().find(of).map(|one| one.judgement)
    };
    assert_eq!(whole(&busy), Some(Judgement::Within));
    assert!(text(&busy, 9).contains("a baseline of 4 runs"), "{}", text(&busy, 9));
    let changed = compare(&runs[0], &place("changed"), Some(&baseline)).unwrap();
    assert_eq!(outside(&changed), ["c"]);
    let slower = compare(&runs[0], &place("slower"), Some(&baseline)).unwrap();
    assert!(outside(&slower).is_empty(), "{:?}", slower.changes);
    assert_eq!(whole(&slower), Some(Judgement::Outside));
    // It is kept with the results of a run, and used from there; that of another machine is not.
    baseline.write(&runs[0].join(baseline::FILE)).unwrap();
    let kept = compare(&runs[0], &place("changed"), None).unwrap();
    assert_eq!((outside(&kept), &kept.grounds), (vec!["c".to_owned()], &changed.grounds));
    let mut other = baseline.clone();
    other.facts[0].1 = "another processor".into();
    let ungrounded = compare(&runs[0], &place("changed"), Some(&other)).unwrap();
    assert!(ungrounded.grounds.starts_with("without a baseline"), "{}", ungrounded.grounds);
    assert!(Baseline::learn(&folders[..2]).unwrap_err().to_string().contains("3 to 100"));
    set(&runs[3], "run.json", "\"seed\":42", "\"seed\":43");
    let error = Baseline::learn(&folders).unwrap_err().to_string();
    assert!(error.contains("other settings"), "{error}");
}
