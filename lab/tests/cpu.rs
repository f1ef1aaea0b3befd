//! The lab's CPU engine, through helper processes of the program itself.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast_lab::error::LabError;
use outlast_lab::run::Settings;
use outlast_lab::subject::Subject;
use outlast_lab::tls::rounds::{self, Part};
use outlast_lab::tls::rustls::Rustls;
use outlast_lab::tls::{STACKS, profile};

fn settings() -> Settings {
    // The libraries from `cargo xtask peers` are found from the checkout's folder.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::env::set_current_dir(root).unwrap();
    Settings {
        quick: true,
        seed: 1,
        plan: None,
        version: "test".into(),
        executable: crate::common::executable(),
    }
}

fn pair() -> [Subject; 3] {
    ["X25519MLKEM768", "x25519", "x25519"]
        .map(|group| Subject::new(group, "ECDSA P-256", 1).unwrap())
}

#[test]
fn every_implementation_is_measured_in_processes() {
    let (settings, stop) = (settings(), AtomicBool::new(false));
    for stack in STACKS {
        let offer = match rounds::ask(&settings, *stack, &pair()) {
            Ok(offer) => offer,
            Err(LabError::Unavailable { .. }) if stack.name() == "OpenSSL" => continue,
            Err(error) => panic!("{}: {error}", stack.name()),
        };
        assert_eq!(offer.supported, [true; 3]);
        let measured = rounds::measure(&settings, stack.name(), &pair(), 2, 10, &stop).unwrap();
        assert_eq!((measured.samples.len(), measured.samples[1].len()), (2, 10));
        assert!(measured.typical(0, Part::Server) > 10.0);
        let trace = rounds::typical_trace(&settings, *stack, &pair()[0], 5, &stop).unwrap();
        assert!(trace.steps.len() >= 3);
    }
}

#[test]
fn a_stop_and_a_wrong_name_end_it() {
    let settings = settings();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(700));
            stop.store(true, Ordering::Relaxed);
        });
        let outcome = rounds::measure(&settings, "rustls", &pair(), 5, 1_000_000, &stop);
        assert!(matches!(outcome, Err(LabError::Interrupted)), "{outcome:?}");
    });
    let stop = AtomicBool::new(false);
    let error = rounds::measure(&settings, "wolfSSL", &pair(), 1, 1, &stop).unwrap_err();
    assert!(error.to_string().contains("wolfSSL"), "{error}");
    let gone = Settings { executable: "/nowhere/outlast".into(), ..settings };
    let error = rounds::measure(&gone, "rustls", &pair(), 1, 1, &stop).unwrap_err();
    assert!(error.to_string().contains("/nowhere/outlast"), "{error}");
    // A helper that dies says why.
    let mut agent = Command::new(crate::common::executable());
    let output = agent.args(["agent", "cpu", "{}"]).stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success() && !output.stderr.is_empty());
}

#[test]
fn profilers_see_handshakes_where_they_are_there() {
    let (settings, stop) = (settings(), AtomicBool::new(false));
    let [hybrid, classical, _] = pair();
    match profile::instructions(&settings, &Rustls, &[hybrid, classical], 5, &stop) {
        Ok(counts) => {
            let ratio = counts[0] / counts[1];
            assert!((1.02..1.6).contains(&ratio), "{counts:?}");
        }
        Err(LabError::Unavailable { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let ticks = profile::ticks(&settings, &classical, &stop).unwrap();
    assert!((5e8..1e10).contains(&ticks.hertz), "{ticks:?}");
    match profile::sample(&settings, &Rustls, &hybrid, 300, &stop) {
        Ok(folded) => assert!(folded.nanos() > 20_000 && folded.0.starts_with("server")),
        Err(LabError::Unavailable { needs, .. }) => assert!(needs.contains("perf"), "{needs}"),
        Err(error) => panic!("{error}"),
    }
}

/// The whole experiment; to be run by hand.
#[test]
#[ignore = "takes a minute"]
fn the_experiment_runs() {
    use outlast_lab::experiment::Experiment;
    struct Quiet;
    impl outlast_lab::run::Progress for Quiet {
        fn begin(&self, _: &'static str, _: Duration) {}
        fn measuring(&self, key: &str) {
            eprintln!("{key}");
        }
        fn done(&self, cost: Duration, _: bool) {
            eprintln!("  was to take {cost:?}");
        }
        fn say(&self, _: &str) {}
        fn end(&self, _: &'static str, _: &Result<(), LabError>) {}
    }
    let (settings, stop) = (settings(), AtomicBool::new(false));
    let experiment = Experiment::by_name("cpu").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = std::env::var_os("OUTLAST_TEST_RESULTS")
        .map_or(folder.path().into(), std::path::PathBuf::from);
    let begun = Instant::now();
    let mut run =
        outlast_lab::run::Run::open(&folder, experiment.name, &settings, &Quiet, &stop).unwrap();
    (experiment.run)(&mut run).unwrap();
    let estimate = (experiment.estimate)(&settings);
    let findings = run.into_findings();
    assert!(findings.tables.iter().all(|table| {
        table.rows.iter().all(|row| row.len() == table.columns.len()) && !table.rows.is_empty()
    }));
    assert!(findings.charts.len() >= 4 && findings.controls.len() >= 2);
    let text = serde_json::to_string_pretty(&findings).unwrap();
    std::fs::write(folder.join("cpu/result.json"), text).unwrap();
    eprintln!("{:?}, was to take {estimate:?}", begun.elapsed());
}
