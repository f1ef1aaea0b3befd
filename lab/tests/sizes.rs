//! The experiment `sizes`: sizes agree with the published ones, whatever is compiled in.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use outlast_lab::error::LabError;
use outlast_lab::experiments::sizes::EXPERIMENT;
use outlast_lab::result::{Findings, Marks, Table, Value, Verdict};
use outlast_lab::run::{Progress, Run, Settings};

struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &'static str, _: Duration) {}
    fn measuring(&self, _: &str) {}
    fn done(&self, _: Duration, _: bool) {}
    fn say(&self, _: &str) {}
    fn end(&self, _: &'static str, _: &Result<(), LabError>) {}
}

fn findings() -> Findings {
    #[cfg(feature = "legacy")]
    {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let usual = here.join("../../target/peers/pqmagic/lib");
        let place = std::env::var_os("OUTLAST_PQMAGIC").map_or(usual, PathBuf::from);
        outlast_lab::legacy::pqmagic::look_in(vec![place]);
    }
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        quick: true,
        seed: 7,
        plan: None,
        version: "test".to_owned(),
        executable: PathBuf::new(),
    };
    let stop = AtomicBool::new(false);
    assert!((EXPERIMENT.estimate)(&settings) > Duration::from_secs(1));
    let mut run = Run::open(folder.path(), EXPERIMENT.name, &settings, &Silent, &stop).unwrap();
    (EXPERIMENT.run)(&mut run).unwrap();
    run.into_findings()
}

fn table<'a>(findings: &'a Findings, name: &str) -> &'a Table {
    findings.tables.iter().find(|table| table.name == name).unwrap()
}

fn text(value: &Value) -> &str {
    match value {
        Value::Text(text) => text,
        Value::Number(_) => "",
    }
}

fn bytes(table: &Table, row: &str, column: &str) -> f64 {
    let place = table.columns.iter().position(|name| name == column).unwrap();
    let found = table.rows.iter().find(|cells| text(&cells[0]) == row).unwrap();
    match found[place] {
        Value::Number(number) => number,
        Value::Text(_) => panic!("{row} has no {column}"),
    }
}

#[test]
fn what_is_counted_is_what_is_published() {
    let findings = findings();
    for table in &findings.tables {
        for row in &table.rows {
            assert_eq!(row.len(), table.columns.len(), "{}", table.name);
            for (column, cell) in table.columns.iter().zip(row) {
                let disagrees = column.contains("agrees") && text(cell).starts_with("no");
                assert!(!disagrees, "{}: {row:?}", table.name);
            }
        }
    }
    let agreements = findings.findings.iter().filter(|finding| finding.claim.contains("bytes of"));
    let agreements =
        agreements.chain(findings.findings.iter().filter(|f| f.claim.contains("sizes of")));
    let mut count = 0;
    for finding in agreements {
        assert_eq!(finding.verdict, Verdict::Holds, "{}: {}", finding.source, finding.measured);
        count += 1;
    }
    assert_eq!(count, if cfg!(feature = "legacy") { 5 } else { 4 });

    let groups = table(&findings, "key-exchanges");
    assert_eq!(bytes(groups, "X25519MLKEM768", "more than x25519 (bytes)"), 2272.0);
    assert_eq!(bytes(groups, "x25519", "more than x25519 (bytes)"), 0.0);
    let signatures = table(&findings, "signatures");
    assert_eq!(bytes(signatures, "ML-DSA-65", "signature at most (bytes)"), 3309.0);
    let leaf = bytes(signatures, "SLH-DSA-SHA2-128S", "leaf (bytes)");
    assert!(leaf > 7856.0 + 32.0 && leaf < 7856.0 + 32.0 + 900.0, "{leaf}");
    // The competition's algorithms that cannot run here are in the table, and marked.
    let mulan = signatures.rows.iter().find(|row| text(&row[0]) == "mulan").unwrap();
    assert_eq!(text(&mulan[1]), "from the literature");
    let kyber = table(&findings, "mechanisms")
        .rows
        .iter()
        .find(|row| text(&row[0]) == "kyber512_r2")
        .unwrap();
    assert_eq!(text(&kyber[1]) == "from the literature", !cfg!(feature = "legacy"));

    for chart in &findings.charts {
        let Marks::Bars { categories, parts, .. } = &chart.marks else { panic!("{}", chart.name) };
        assert!(categories.len() > 3, "{}", chart.name);
        for (part, values) in parts {
            assert_eq!(values.len(), categories.len(), "{}: {part}", chart.name);
            let positive = values.iter().all(|value| *value > 0.0 || !chart.y.log);
            assert!(positive, "{}: {part} on a logarithmic axis", chart.name);
        }
    }
    for name in ["primitives-key-exchange", "primitives-signatures"] {
        let primitives = table(&findings, name);
        for row in &primitives.rows {
            let positive = |cell: &Value| matches!(cell, Value::Number(number) if *number > 0.0);
            assert!(row[1..].iter().all(positive), "{row:?}");
        }
    }
    assert_eq!(findings.controls.len(), 1);
}
