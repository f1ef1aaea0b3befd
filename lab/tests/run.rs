//! Runs: measurements are stored, and an interrupted run continues where it stopped.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use outlast_lab::error::LabError;
use outlast_lab::experiment::Experiment;
use outlast_lab::run::folder::{Folder, read_json, write_json};
use outlast_lab::run::{Progress, Run, Settings, all};
use outlast_lab::state::State;

struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &'static str, _: Duration) {}
    fn measuring(&self, _: &str) {}
    fn done(&self, _: Duration, _: bool) {}
    fn say(&self, _: &str) {}
    fn end(&self, _: &'static str, _: &Result<(), LabError>) {}
}

fn settings() -> Settings {
    Settings {
        quick: true,
        seed: 1,
        plan: None,
        version: "1".to_owned(),
        executable: PathBuf::new(),
    }
}

const fn experiment(run: fn(&mut Run<'_>) -> Result<(), LabError>) -> Experiment {
    Experiment {
        name: "trial",
        title: "Trial",
        question: "?",
        source: "-",
        engines: &[],
        estimate: |_| Duration::from_secs(1),
        run,
    }
}

static NOTHING: Experiment = experiment(|_| Ok(()));

#[test]
fn points_are_measured_once() -> Result<(), LabError> {
    let folder = tempfile::tempdir().map_err(LabError::failed)?;
    let (settings, stop) = (settings(), AtomicBool::new(false));
    let measured = Cell::new(0);
    let ask = |key: &str| -> Result<Vec<u64>, LabError> {
        let mut run = Run::open(folder.path(), NOTHING.name, &settings, &Silent, &stop)?;
        run.point(key, Duration::ZERO, || {
            measured.set(measured.get() + 1);
            Ok(vec![1, 2, measured.get()])
        })
    };
    assert_eq!(ask("a")?, [1, 2, 1]);
    assert_eq!(ask("b")?, [1, 2, 2]);
    assert_eq!(ask("a")?, [1, 2, 1]);
    assert_eq!(measured.get(), 2);
    Ok(())
}

/// A kill or a full disk may cut the last line short at any byte: it is measured again, and nothing else is.
#[test]
fn a_line_cut_short_is_measured_again() -> Result<(), LabError> {
    let folder = tempfile::tempdir().map_err(LabError::failed)?;
    let (settings, stop) = (settings(), AtomicBool::new(false));
    let ask = |key: &str, value: u32| -> Result<u32, LabError> {
        let mut run = Run::open(folder.path(), NOTHING.name, &settings, &Silent, &stop)?;
        run.point(key, Duration::ZERO, || Ok(value))
    };
    ask("first", 1)?;
    let path = folder.path().join("trial/points.ndjson");
    let first = fs::read(&path).map_err(LabError::failed)?;
    ask("second", 2)?;
    let both = fs::read(&path).map_err(LabError::failed)?;
    for cut in first.len()..both.len() {
        fs::write(&path, &both[..cut]).map_err(LabError::failed)?;
        assert_eq!(ask("first", 7)?, 1, "cut at {cut}");
        assert_eq!(ask("second", 7)?, 7, "cut at {cut}");
        assert_eq!(ask("second", 8)?, 7, "cut at {cut}");
    }
    Ok(())
}

#[test]
fn other_damage_is_told_and_loses_nothing() -> Result<(), LabError> {
    let folder = tempfile::tempdir().map_err(LabError::failed)?;
    let (settings, stop) = (settings(), AtomicBool::new(false));
    let mut run = Run::open(folder.path(), NOTHING.name, &settings, &Silent, &stop)?;
    for key in ["a", "b", "c"] {
        run.point(key, Duration::ZERO, || Ok(1))?;
    }
    drop(run);
    let path = folder.path().join("trial/points.ndjson");
    let text = fs::read_to_string(&path).map_err(LabError::failed)?;
    let damaged = text.replacen("\"key\":\"b\"", "\"key\":\"b", 1);
    fs::write(&path, &damaged).map_err(LabError::failed)?;
    let error = Run::open(folder.path(), NOTHING.name, &settings, &Silent, &stop).err();
    assert!(error.is_some_and(|error| error.to_string().contains("line 2")));
    assert_eq!(fs::read_to_string(&path).map_err(LabError::failed)?, damaged);
    Ok(())
}

#[test]
fn ctrl_c_ends_between_points_and_keeps_them() -> Result<(), LabError> {
    static STOP: AtomicBool = AtomicBool::new(false);
    static MEASURED: AtomicU32 = AtomicU32::new(0);
    static TWO: Experiment = experiment(|run| {
        for key in ["one", "two"] {
            run.point(key, Duration::ZERO, || {
                MEASURED.fetch_add(1, Ordering::Relaxed);
                STOP.store(
                    key == "one" && MEASURED.load(Ordering::Relaxed) == 1,
                    Ordering::Relaxed,
                );
                Ok(())
            })?;
        }
        run.note("both");
        Ok(())
    });
    let folder = tempfile::tempdir().map_err(LabError::failed)?;
    let path = folder.path().join("results");
    let first = all::run(&path, &settings(), &[&TWO], &Silent, &STOP)?;
    assert!(first.interrupted && first.measured.is_empty());
    assert!(!path.join("trial/result.json").exists());
    STOP.store(false, Ordering::Relaxed);
    let second = all::run(&path, &settings(), &[&TWO], &Silent, &STOP)?;
    assert_eq!(second.measured, ["trial"]);
    assert_eq!(MEASURED.load(Ordering::Relaxed), 2);
    let told: Option<outlast_lab::result::Told> = read_json(&path.join("trial/result.json"))?;
    assert_eq!(told.ok_or_else(|| LabError::failed("no result"))?.findings.notes, ["both"]);
    Ok(())
}

#[test]
fn what_a_machine_lacks_does_not_stop_the_others() -> Result<(), LabError> {
    static LACKING: Experiment = Experiment {
        name: "lacking",
        ..experiment(|_| Err(LabError::unavailable("this", "that")))
    };
    static FAILING: Experiment =
        Experiment { name: "failing", ..experiment(|_| Err(LabError::failed("broken"))) };
    let folder = tempfile::tempdir().map_err(LabError::failed)?;
    let stop = AtomicBool::new(false);
    let path = folder.path().join("results");
    let outcomes = all::run(&path, &settings(), &[&LACKING, &FAILING, &NOTHING], &Silent, &stop)?;
    assert_eq!(outcomes.measured, ["trial"]);
    assert_eq!(outcomes.skipped.first().map(|(name, _)| *name), Some("lacking"));
    assert_eq!(outcomes.failed.first().map(|(name, _)| *name), Some("failing"));
    assert!(outcomes.report.is_some_and(|path| path.exists()));
    Ok(())
}

/// What was found before a failure is reported with the reason, and replaces the results of an earlier run.
#[test]
fn what_was_found_before_a_failure_is_told() -> Result<(), LabError> {
    static BROKEN: AtomicBool = AtomicBool::new(false);
    static PARTS: Experiment = experiment(|run| {
        run.point("first", Duration::ZERO, || Ok(1))?;
        run.summary("The first part costs 1 ms.");
        if BROKEN.load(Ordering::Relaxed) {
            let reason = "it ended <here>".to_owned();
            return Err(LabError::Peer { peer: "the other side".to_owned(), reason });
        }
        run.summary("The second part costs 2 ms.");
        Ok(())
    });
    let folder = tempfile::tempdir().map_err(LabError::failed)?;
    let path = folder.path().join("results");
    let stop = AtomicBool::new(false);
    let told = || -> Result<outlast_lab::result::Told, LabError> {
        read_json(&path.join("trial/result.json"))?.ok_or_else(|| LabError::failed("no result"))
    };
    let page = || fs::read_to_string(path.join("report.html")).map_err(LabError::failed);
    for broken in [false, true, false] {
        BROKEN.store(broken, Ordering::Relaxed);
        let outcomes = all::run(&path, &settings(), &[&PARTS], &Silent, &stop)?;
        assert_eq!(
            (outcomes.failed.len(), outcomes.measured.len()),
            (usize::from(broken), usize::from(!broken))
        );
        let told = told()?;
        let page = page()?;
        assert_eq!(told.failed.is_some(), broken);
        assert_eq!(page.contains("it ended &lt;here&gt;"), broken);
        assert_eq!(told.findings.summary.len(), if broken { 1 } else { 2 });
        assert!(page.contains("The first part") && page.contains("The second part") != broken);
    }
    Ok(())
}

/// Points from another machine are not used.
#[test]
fn a_folder_of_another_machine_is_refused() -> Result<(), LabError> {
    let folder = tempfile::tempdir().map_err(LabError::failed)?;
    let path = folder.path().join("results");
    drop(Folder::open(&path, &settings())?);
    let place = path.join("state.json");
    let mut state: State = read_json(&place)?.ok_or_else(|| LabError::failed("no state"))?;
    for (name, value) in &mut state.facts {
        if name == "kernel" {
            *value = "Linux 2.6.32".to_owned();
        }
    }
    write_json(&place, &state)?;
    let error = Folder::open(&path, &settings()).err().map(|error| error.to_string());
    assert!(error.is_some_and(|text| text.contains("another machine") && text.contains("2.6.32")));
    Ok(())
}

#[test]
fn a_folder_of_other_settings_or_of_strangers_is_refused() -> Result<(), LabError> {
    let folder = tempfile::tempdir().map_err(LabError::failed)?;
    let path = folder.path().join("results");
    drop(Folder::open(&path, &settings())?);
    drop(Folder::open(&path, &settings())?);
    let refused = |settings: &Settings, word: &str| {
        let error = Folder::open(&path, settings).err().map(|error| error.to_string());
        assert!(error.as_deref().is_some_and(|text| text.contains(word)), "{error:?}");
    };
    refused(&Settings { quick: false, ..settings() }, "--quick");
    refused(&Settings { seed: 2, ..settings() }, "seed 1");
    refused(&Settings { version: "2".to_owned(), ..settings() }, "version 1");
    let strange = folder.path().join("strange");
    fs::create_dir(&strange).map_err(LabError::failed)?;
    fs::write(strange.join("thesis.tex"), "").map_err(LabError::failed)?;
    let error = Folder::open(&strange, &settings()).err().map(|error| error.to_string());
    assert!(error.is_some_and(|text| text.contains("not empty")));
    assert!(strange.join("thesis.tex").exists());
    Ok(())
}

#[test]
fn two_runs_do_not_share_a_folder_and_fresh_loses_nothing() -> Result<(), LabError> {
    let folder = tempfile::tempdir().map_err(LabError::failed)?;
    let path = folder.path().join("results");
    let held = Folder::open(&path, &settings())?;
    let error = Folder::open(&path, &settings()).err().map(|error| error.to_string());
    assert!(error.is_some_and(|text| text.contains("another run")));
    assert!(Folder::set_aside(&path).is_err());
    drop(held);
    let aside = Folder::set_aside(&path)?.ok_or_else(|| LabError::failed("nothing moved"))?;
    assert!(aside.join("run.json").exists() && !path.exists());
    assert!(Folder::set_aside(&path)?.is_none());
    Ok(())
}

/// Results that are made again from points that are there say how long those took, and in which state of the machine.
#[test]
fn what_is_told_again_says_when_it_was_measured() -> Result<(), LabError> {
    const SLEEP: Duration = Duration::from_millis(50);
    static ASLEEP: Experiment = experiment(|run| {
        for _ in 0..2 {
            run.point("one", Duration::ZERO, || {
                std::thread::sleep(SLEEP);
                Ok(1)
            })?;
        }
        Ok(())
    });
    let folder = tempfile::tempdir().map_err(LabError::failed)?;
    let (path, stop) = (folder.path().join("results"), AtomicBool::new(false));
    let result = path.join("trial/result.json");
    let told = || -> Result<outlast_lab::result::Told, LabError> {
        read_json(&result)?.ok_or_else(|| LabError::failed("no result"))
    };
    all::run(&path, &settings(), &[&ASLEEP], &Silent, &stop)?;
    // As if the machine had been in another state.
    let mut first = told()?;
    first.state.cpu_pressure = Some(77.5);
    write_json(&result, &first)?;
    all::run(&path, &settings(), &[&ASLEEP], &Silent, &stop)?;
    let second = told()?;
    assert_eq!(second.state.cpu_pressure, Some(77.5));
    assert!(second.seconds >= SLEEP.as_secs_f64(), "{}", second.seconds);
    let points = fs::read_to_string(path.join("trial/points.ndjson")).map_err(LabError::failed)?;
    assert_eq!(points.lines().count(), 1, "one point is measured once");
    Ok(())
}
