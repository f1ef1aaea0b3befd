//! The page of a results folder: everything is in it, nothing comes from elsewhere, no text becomes markup.
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
use outlast_lab::error::LabError;
use outlast_lab::report;

fn lab_folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    folder::write(&path, &folder::results(0.0));
    path
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_page_has_everything() {
    let folder = lab_folder("lab-report");
    let path = report::write(&folder).unwrap();
    assert_eq!(path, folder.join("report.html"));
    // The template engine escapes slashes like this.
    let page = read(&path).replace("&#x2f;", "/");
    for part in [
        "<html lang=\"en\">",
        "What it comes to",
        "Published and measured",
        "2026-11-21",
        "quick run",
        "version 0.1.0",
        "seed 42",
        "CPU pressure 9.3 %",
        "AMD EPYC",
        "id=\"tls-matrix\"",
        "After: S. Paquin",
        "holds in part",
        "undecided",
        "TLP, RFC 8985",
        "2 of 3",
        "does not hold",
        "1.0120 [1.0040, 1.0210], resolution ±2.10 %",
        "1 cannot fail and is not counted",
        "cannot fail, not counted",
        "Show all 72 rows",
        "tls-matrix/medians.csv",
        "tls-matrix/points.ndjson",
        "congestion control",
        "9.3 % before, 14.8 % after",
        "Not measured: the live engine is not available",
        "<script type=\"application/json\" id=\"data-tls-matrix\">",
        "75.07 M",
        "<a href=\"https://eprint.iacr.org/2019/1447\"",
        "src=\"data:image/svg+xml;base64,",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // Each chart for wide screens and for phones.
    assert_eq!(page.matches("<div class=\"chart wide\"><svg").count(), 10);
    assert_eq!(page.matches("<div class=\"chart narrow\"><svg").count(), 10);
    // The order of the table of experiments, not of names.
    let place =
        |name: &str| page.find(&format!("<section class=\"experiment\" id=\"{name}\"")).unwrap();
    assert!(place("tls-matrix") < place("handshake-cost") && place("pool") < place("idle"));
    for file in [
        "tls-matrix/medians.csv",
        "tls-matrix/fans-log.svg",
        "pool/lines-pool.png",
        "handshake-cost/bytes.csv",
    ] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    assert!(
        read(&folder.join("handshake-cost/bytes.csv"))
            .ends_with("\"<script>alert(1)</script> & \"\"quoted\"\", x\",,75069418,no\r\n")
    );
    // Made again from its own files, it is the same.
    report::write(&folder).unwrap();
    assert_eq!(read(&path).replace("&#x2f;", "/"), page);
}

#[test]
fn a_paper_names_the_command_with_its_settings() {
    let folder = lab_folder("lab-report-again");
    for pass in ["repetition-2", "repetition-3"] {
        std::fs::create_dir(folder.join(pass)).unwrap();
        std::fs::copy(folder.join("run.json"), folder.join(pass).join("run.json")).unwrap();
    }
    let into = tempfile::tempdir().unwrap();
    let paper = report::write_paper(&folder, "paper", into.path()).unwrap();
    let text = read(&paper.page);
    for part in [
        "Again: `outlast lab run pool --quick --seed 42 --repeat 3`, by the program below.",
        "Version 0.1.0, built with `cargo build",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_page_asks_for_nothing_and_text_stays_text() {
    let folder = lab_folder("lab-report-text");
    let page = read(&report::write(&folder).unwrap());
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;"), "the table's cell");
    for data in page.split("<script type=\"application/json\"").skip(1) {
        let data = data.split_once('>').unwrap().1.split("</script>").next().unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert!(data["tables"].is_array() && data["charts"].is_array());
    }
    // Links are for people; nothing is loaded.
    for loading in
        ["<link rel=\"stylesheet", "<script src", "url(http", "@import", "<iframe", "src=\"http"]
    {
        assert!(!page.contains(loading), "{loading}");
    }
    // Every reference within the page has exactly one target.
    for target in page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert_eq!(page.matches(&format!(" id=\"{target}\"")).count(), 1, "#{target}");
    }
    for tag in ["section", "div", "table", "figure", "ul", "li", "main", "svg", "p", "td", "a"] {
        let open =
            page.matches(&format!("<{tag} ")).count() + page.matches(&format!("<{tag}>")).count();
        assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn other_versions_and_broken_files_are_told() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("out");
    folder::write(&path, &folder::results(0.0)[..1]);
    std::fs::create_dir(path.join("newer")).unwrap();
    std::fs::write(path.join("newer/result.json"), "{\"experiment\": \"newer\", \"shape\": 7}")
        .unwrap();
    std::fs::write(
        path.join("run.json"),
        "{\"settings\": {\"version\": \"9.9\", \"surprise\": [1]}}",
    )
    .unwrap();
    std::fs::remove_file(path.join("state.json")).unwrap();
    let page = read(&report::write(&path).unwrap());
    assert!(!page.contains("without optimisation"));
    assert!(page.contains("<b>newer</b>: missing field"), "what cannot be read is named");
    assert!(page.contains("version 9.9") && page.contains("id=\"tls-matrix\""));

    std::fs::write(path.join("run.json"), "[1, 2]").unwrap();
    assert!(matches!(report::write(&path), Err(LabError::File { .. })));
    assert!(matches!(report::write(&root.path().join("none")), Err(LabError::File { .. })));
}

#[test]
fn names_from_files_stay_in_their_folder() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("out");
    let mut results = folder::results(0.0);
    results.truncate(1);
    results[0].findings.tables[0].name = "../../outside".into();
    results[0].findings.charts.truncate(1);
    results[0].findings.charts[0].name = "/tmp/outside".into();
    results[0].findings.pictures = vec![("../../../etc/passwd".into(), "no".into())];
    folder::write(&path, &results);
    let text = read(&path.join("tls-matrix/result.json"))
        .replace("\"experiment\":\"tls-matrix\"", "\"experiment\":\"../..\"");
    std::fs::write(path.join("tls-matrix/result.json"), text).unwrap();
    report::write(&path).unwrap();
    assert!(path.join("tls-matrix/------outside.csv").is_file());
    assert!(path.join("tls-matrix/-tmp-outside.svg").is_file());
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
}

/// Where a folder cannot be written to, the old page stays.
#[test]
fn a_page_that_cannot_be_written_leaves_the_old_one() {
    let root = tempfile::tempdir().unwrap();
    folder::write(root.path(), &folder::results(0.0)[3..]);
    std::fs::create_dir(root.path().join("report.html")).unwrap();
    std::fs::write(root.path().join("report.html/old"), "old").unwrap();
    assert!(
        matches!(report::write(root.path()), Err(LabError::File { path, .. }) if path.ends_with("report.html"))
    );
    assert_eq!(read(&root.path().join("report.html/old")), "old");
}

/// The papers in `docs/results` are what their archives say; `OUTLAST_BLESS=1` writes them.
#[test]
fn published_papers_come_from_their_archives() {
    let folder = outlast_testing::checkout().join("docs/results");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let archives: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    assert!(!archives.is_empty());
    for archive in archives {
        let name = archive.file_stem().unwrap().to_str().unwrap();
        let temporary = tempfile::tempdir().unwrap();
        let results = temporary.path().join("results");
        outlast_lab::archive::unpack(&archive, &results).unwrap();
        let written = if std::env::var_os("OUTLAST_BLESS").is_some() {
            folder.clone()
        } else {
            temporary.path().to_path_buf()
        };
        let paper = report::write_paper(&results, name, &written).unwrap();
        for file in paper.charts.iter().chain([&paper.page]) {
            let committed = folder.join(file.file_name().unwrap());
            assert!(
                std::fs::read(file).unwrap() == std::fs::read(&committed).unwrap_or_default(),
                "{} is stale: run the test with OUTLAST_BLESS=1",
                committed.display()
            );
        }
    }
}
