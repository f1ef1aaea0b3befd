//! Runs the workspace's tests, several programs at a time, because many of them wait for servers, clients and clocks.
//! `cargo test` runs one program after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;

use crate::ci::{LEGACY, cargo_once};
use crate::peers::Which;

/// Start of the line by which a test reports that it was skipped; `outlast_testing::skip` writes it.
pub const SKIPPED: &str = "skipped: ";

/// Programs that run alone at the end, because they measure the timing of an emulated link.
const ALONE: &[&str] = &["outlast-lab live"];

/// Programs that run with all peers only: each takes minutes, and tests what measures rather than what serves.
const SECOND: &[&str] = &["outlast-lab live", "outlast-lab siege"];

/// Programs that take more than ten seconds, the longest first. CI starts them in this order because otherwise all
/// others would wait for them at the end; `check` leaves them out.
const LONGEST: &[&str] = &[
    "outlast-lab siege",
    "outlast pki_peers",
    "outlast-lab program",
    "outlast shared",
    "outlast book",
    "outlast-api members",
    "outlast backup",
    "outlast steady",
    "outlast audit",
    "outlast endpoints",
    "outlast-api spellings",
    "outlast-store postgres",
    "outlast-net plain",
    "outlast-lab sizes",
    "outlast crash",
    "outlast-store postgres_silent",
    "outlast revocation",
    "outlast certificates",
    "outlast acme_clients",
    "outlast-api kms_import",
    "outlast-lab handshakes",
    "outlast rotation",
    "outlast tsa",
    "outlast sign_time",
    "outlast tsa_revoked",
    "outlast sign_matrix",
    "outlast sign_dual",
    "outlast-ssh openssh",
    "outlast kms_sdks",
    "outlast secrets_sdks",
    "outlast crowd",
    "outlast sftp_peers",
    "outlast workflows",
    "outlast root_key",
    "outlast witnessed",
    "outlast-api kms_use",
    "outlast-api revocation_strangers",
    "outlast-lab cpu",
    "outlast-crypto vectors",
    "outlast-api kms_grants",
    "outlast cert",
    "outlast agent",
    "outlast credentials",
    "outlast witness",
    "outlast artifact_log",
    "outlast-net hostile",
    "outlast-net fetch",
    "outlast-api private_ca",
    "outlast-api kms_model",
    "outlast-pki cms",
    "outlast-pki hierarchies",
    "outlast mutual_tls",
];

/// A test program, or one module of it. Limits of a process, such as the one on open files, then concern only the
/// tests of one file, and a file that hangs or is killed takes no other with it.
#[derive(Clone)]
struct Program {
    /// Package, and target or module.
    name: String,
    package: String,
    /// Folder of the package, in which it runs.
    folder: PathBuf,
    executable: PathBuf,
    /// Names of its tests; empty means all.
    tests: Vec<String>,
}

/// Test target in which each file is a module.
const ALL: &str = "all";

/// Package whose programs are fuzz targets: they have no tests, and run until they are told to stop.
const FUZZ: &str = "outlast-fuzz";

/// Minutes after which a test program is killed and has failed: a program that hangs must not hide the results of the
/// others. The longest takes three minutes on two busy cores.
const MINUTES: u64 = 15;

/// Test programs of the workspace.
pub struct Programs(Vec<Program>);

impl Programs {
    /// Leaves out what runs with all peers only; returns the tests left out, as skipped.
    pub fn of_first_tier(mut self) -> (Self, BTreeMap<String, String>) {
        let left = self.0.extract_if(.., |program| SECOND.contains(&&*program.name));
        let named = |program: Program| {
            let Program { package, tests, .. } = program;
            tests.into_iter().map(move |test| format!("{package} {test}"))
        };
        let why = "takes minutes: only with --all-peers".to_owned();
        let skipped = left.flat_map(named).map(|test| (test, why.clone())).collect();
        (self, skipped)
    }

    /// Leaves out the longest programs and those that must run alone.
    pub fn without_long(mut self) -> Self {
        let is_long = |name: &str| LONGEST.contains(&name) || ALONE.contains(&name);
        let left = self.0.extract_if(.., |program| is_long(&program.name));
        let names: Vec<_> = left.map(|program| program.name).collect();
        println!(
            "left to `cargo xtask ci`, as each takes more than ten seconds: {}",
            names.join(", ")
        );
        self
    }
}

/// Builds everything including tests, with Clippy as the compiler, so that building is also checking and nothing is
/// compiled twice. Returns the test programs, and the fuzz targets by their names.
pub fn build(root: &Path) -> Result<(Programs, BTreeMap<String, PathBuf>), String> {
    let output = linted(root)
        .args(["test", "--workspace", "--all-targets"])
        .args(["--features", LEGACY, "--locked"])
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo test: {error}"))?;
    if !output.status.success() {
        return Err("the build failed, or clippy has findings".into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let (targets, programs): (Vec<_>, Vec<_>) =
        text.lines().filter_map(program).partition(|program| program.package == FUZZ);
    let named =
        |target: Program| Some((target.name.split_once(' ')?.1.to_owned(), target.executable));
    let targets: BTreeMap<_, _> = targets.into_iter().filter_map(named).collect();
    let mut found = Vec::new();
    for program in programs {
        found.extend(program.by_module()?);
    }
    // The last one is started first.
    found.sort_by_key(|program| {
        std::cmp::Reverse(
            LONGEST.iter().position(|name| *name == program.name).unwrap_or(LONGEST.len()),
        )
    });
    if found.is_empty() { Err("there are no tests".into()) } else { Ok((Programs(found), targets)) }
}

/// cargo with Clippy as the compiler of the workspace's own crates, as `cargo clippy` does it; warnings are errors.
fn linted(root: &Path) -> Command {
    let mut cargo = cargo_once(root);
    cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env(
        "CLIPPY_ARGS",
        ["--deny", "warnings"].map(|word| format!("{word}__CLIPPY_HACKERY__")).concat(),
    );
    cargo
}

/// Test program in a line of cargo's messages, if it has one.
fn program(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let executable = message["executable"].as_str().filter(|_| is_test)?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let id = message["package_id"].as_str()?;
    // path+file:///FOLDER#NAME@VERSION, or #VERSION if the folder is named like the package.
    let (path, rest) = id.rsplit_once('#')?;
    let package = match rest.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit_once('/')?.1,
    };
    Some(Program {
        name: format!("{package} {}", message["target"]["name"].as_str()?),
        package: package.to_owned(),
        folder,
        executable: executable.into(),
        tests: Vec::new(),
    })
}

/// Tests of each module, from the harness's list: `MODULE::NAME: test`.
fn modules(list: &str) -> BTreeMap<&str, Vec<String>> {
    let mut modules: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for test in list.lines().filter_map(|line| line.strip_suffix(": test")) {
        let module = test.split_once("::").map_or("", |(module, _)| module);
        modules.entry(module).or_default().push(test.to_owned());
    }
    modules
}

/// Runs the programs and the documentation examples. Each program's output is printed in one piece when it has ended.
/// Tests that need peers must find them; without peers all of them are skipped.
pub fn run(root: &Path, programs: Programs, peers: Option<Which>) -> Result<Counts, String> {
    let logs = root.join("target/ci-tests");
    let _ = std::fs::remove_dir_all(&logs);
    std::fs::create_dir_all(&logs).map_err(|error| format!("{}: {error}", logs.display()))?;
    let at_once = std::thread::available_parallelism().map_or(1, usize::from) + 1;
    let (alone, together): (Vec<_>, Vec<_>) =
        programs.0.into_iter().partition(|program| ALONE.contains(&&*program.name));
    let mut texts = run_each(together, at_once, &logs, peers)?;
    texts.extend(run_each(alone, 1, &logs, peers)?);
    texts.push(documentation(root)?);
    let mut counts = Counts::default();
    texts.iter().for_each(|text| counts.add(text));
    if counts.passed == 0 { Err("no test was run".into()) } else { Ok(counts) }
}

/// Runs programs, several at a time; returns their output.
fn run_each(
    programs: Vec<Program>,
    at_once: usize,
    logs: &Path,
    peers: Option<Which>,
) -> Result<Vec<String>, String> {
    // Takes programs from the end.
    let queue = Mutex::new(programs);
    let texts = Mutex::new(Vec::new());
    let worker = || -> Result<(), String> {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(program) = next else { return Ok(()) };
            let text = program.run(logs, peers)?;
            texts.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker died")?)
    })?;
    Ok(texts.into_inner().unwrap_or_else(PoisonError::into_inner))
}

impl Program {
    /// Splits programs into modules where each test file is one.
    fn by_module(self) -> Result<Vec<Self>, String> {
        if !self.name.ends_with(&format!(" {ALL}")) {
            return Ok(vec![self]);
        }
        let failed = |error: std::io::Error| format!("{}: {error}", self.name);
        let output = Command::new(&self.executable)
            .args(["--list", "--format", "terse"])
            .current_dir(&self.folder)
            .output()
            .map_err(failed)?;
        let list = String::from_utf8_lossy(&output.stdout).into_owned();
        let named = |(module, tests): (&str, _)| Self {
            name: format!("{} {module}", self.package),
            tests,
            ..self.clone()
        };
        Ok(modules(&list).into_iter().map(named).collect())
    }

    /// Runs the program and returns its output.
    fn run(&self, logs: &Path, peers: Option<Which>) -> Result<String, String> {
        let log = logs.join(format!("{}.log", self.name.replace(' ', "-")));
        let failed = |error: std::io::Error| format!("{}: {error}", self.name);
        let file = File::create(&log).map_err(failed)?;
        let errors = file.try_clone().map_err(failed)?;
        println!("begun: {}", self.name);
        let begun = Instant::now();
        // It kills what the program started, too.
        let mut command = Command::new("timeout");
        command.arg("--kill-after=10").arg(format!("{MINUTES}m")).arg(&self.executable);
        match peers {
            Some(which) => command.env("OUTLAST_REQUIRE_PEERS", which.names().join(",")),
            None => command.env("OUTLAST_PEERS", logs.join("none")),
        };
        let status = command
            .arg("--nocapture")
            .args(self.tests.first().map(|_| "--exact"))
            .args(&self.tests)
            .current_dir(&self.folder)
            // Variables that cargo sets and tests read at run time.
            .env("CARGO_PKG_NAME", &self.package)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .status()
            .map_err(failed)?;
        let mut text = String::from_utf8_lossy(&std::fs::read(&log).map_err(failed)?).into_owned();
        // A program that was killed prints no results: it counts as a failure under its own name.
        if !status.success() && !text.contains("\ntest result: FAILED") {
            let why = if begun.elapsed().as_secs() >= 60 * MINUTES {
                format!("killed after {MINUTES} minutes")
            } else {
                status.to_string()
            };
            text.push_str(&died(&self.name, &why));
        }
        let seconds = begun.elapsed().as_secs();
        // In one piece, although other threads print too.
        println!("\n---- {} ({seconds} s)\n{text}", self.name);
        Ok(text)
    }
}

/// Lines for a program that ended before it could report failures.
fn died(name: &str, status: &str) -> String {
    format!(
        "\nfailures:\n    {name}: {status}\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured\n"
    )
}

/// Runs the examples in the documentation.
fn documentation(root: &Path) -> Result<String, String> {
    let output = linted(root)
        // With the features of the test build: others would compile all crates again.
        .args(["test", "--workspace", "--doc", "--features", LEGACY])
        .args(["--locked", "--no-fail-fast"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo test --doc: {error}"))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() && !text.contains("\ntest result: FAILED") {
        text.push_str(&died("documentation", &output.status.to_string()));
    }
    println!("\n---- documentation\n{text}");
    Ok(text)
}

/// Results of the tests.
#[derive(Default)]
pub struct Counts {
    /// Without skipped tests.
    pub passed: usize,
    /// Failed tests.
    pub failed: usize,
    /// Names of failed tests.
    pub failed_names: BTreeSet<String>,
    /// What failed tests said of their failures: [`panics`].
    pub reasons: Vec<String>,
    /// Names of skipped tests, each with its reasons.
    pub skipped: BTreeMap<String, String>,
}

impl Counts {
    /// Prints the counts, with `more` further passed tests; an error if a test failed.
    pub fn end(&self, more: usize) -> Result<(), String> {
        for (name, reason) in &self.skipped {
            println!("{SKIPPED}{name}: {reason}");
        }
        // At the end, because a record of a long run may keep no more than that.
        for reason in &self.reasons {
            println!("{reason}");
        }
        for name in &self.failed_names {
            println!("failed: {name}");
        }
        let (passed, skipped) = (self.passed + more, self.skipped.len());
        println!("{passed} passed, {} failed, {skipped} skipped", self.failed);
        if self.failed > 0 { Err("some tests failed".into()) } else { Ok(()) }
    }

    /// Adds the results in another program's output.
    fn add(&mut self, text: &str) {
        let more = Self::read(text);
        self.passed += more.passed;
        self.failed += more.failed;
        self.failed_names.extend(more.failed_names);
        self.reasons.extend(more.reasons);
        self.skipped.extend(more.skipped);
    }

    /// Parses the output of the test harness. A skipped test ends like a passed one; the line that it writes tells
    /// them apart.
    fn read(text: &str) -> Self {
        let mut counts = Self::default();
        // Names in the list of failures, which follows the output of each test.
        let mut names: BTreeSet<&str> = BTreeSet::new();
        let mut is_list = false;
        for line in text.lines() {
            if let Some(result) = line.strip_prefix("test result: ") {
                counts.passed += number(result, "passed");
                counts.failed += number(result, "failed");
                counts
                    .failed_names
                    .extend(std::mem::take(&mut names).into_iter().map(str::to_owned));
                is_list = false;
            } else if line == "failures:" {
                names.clear();
                is_list = true;
            } else if let Some(name) = line.strip_prefix("    ").filter(|_| is_list) {
                names.insert(name.trim());
            } else if let Some((name, reason)) =
                line.strip_prefix(SKIPPED).and_then(|line| line.split_once(": "))
            {
                // A test may lack several things.
                let reasons = counts.skipped.entry(name.to_owned()).or_default();
                if !reasons.contains(reason) {
                    *reasons = if reasons.is_empty() {
                        reason.to_owned()
                    } else {
                        format!("{reasons}; {reason}")
                    };
                }
            }
        }
        counts.reasons = panics(text, &counts.failed_names);
        // A test that fails after a partial skip is not a skipped one.
        let failed: Vec<&str> = counts.failed_names.iter().map(String::as_str).collect();
        counts
            .skipped
            .retain(|name, _| !failed.iter().any(|test| name.ends_with(&format!(" {test}"))));
        counts.passed = counts.passed.saturating_sub(counts.skipped.len());
        // Tests marked as measurements never run here.
        for line in text.lines().filter_map(|line| line.strip_prefix("test ")) {
            if let Some((name, reason)) = line.split_once(" ... ignored, ") {
                counts.skipped.insert(name.to_owned(), reason.to_owned());
            }
        }
        counts
    }
}

/// Messages of the panics that failed tests ended by, each from its line `thread 'TEST' (ID) panicked at PLACE:` to the
/// stack, at most 30 lines. Panics that a test expects, and those of its threads without a name, are not among them.
fn panics(text: &str, failed: &BTreeSet<String>) -> Vec<String> {
    let mut panics = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((test, _)) = line.strip_prefix("thread '").and_then(|rest| rest.split_once("' "))
        else {
            continue;
        };
        if !line.contains(" panicked at ") || !failed.contains(test) {
            continue;
        }
        let mut panic = line.to_owned();
        for _ in 1..30 {
            let is_more = |line: &&str| {
                !["stack backtrace:", "note: run with", "test ", "thread '"]
                    .iter()
                    .any(|end| line.starts_with(end))
            };
            let Some(more) = lines.next_if(is_more) else { break };
            panic.push('\n');
            panic.push_str(more);
        }
        panics.push(panic);
    }
    panics
}

/// The number before ` NAME` in a line of results.
fn number(result: &str, name: &str) -> usize {
    let mut words = result.split([' ', ';', '.']).filter(|word| !word.is_empty());
    let mut before = "";
    loop {
        match words.next() {
            None => return 0,
            Some(word) if word == name => return before.parse().unwrap_or(0),
            Some(word) => before = word,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
running 4 tests
test one ... ok
test two ... 
skipped: outlast-pki vectors two: the vectors composite are not there
skipped: outlast-pki vectors two: curl is missing
ok
test long ... ignored, takes a minute
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s

running 2 tests
skipped: outlast-net plain three: too many open files

thread 'four' (17) panicked at tests/four.rs:1:2:
expected by a test that passes
stack backtrace:
   0: one

thread 'three' (18) panicked at tests/three.rs:3:4:
assertion failed: one
  left: 1
stack backtrace:
   0: one
failures:

---- three stdout ----
    indented, and no name

failures:
    three

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
";

    #[test]
    fn a_program_that_was_killed_has_failed() {
        let mut counts = Counts::default();
        counts.add(SAID);
        counts.add(&died("outlast-net plain", "signal: 9"));
        assert_eq!((counts.passed, counts.failed), (2, 2));
        let names: Vec<_> = counts.failed_names.into_iter().collect();
        assert_eq!(names, ["outlast-net plain: signal: 9", "three"]);
    }

    #[test]
    fn tests_are_told_apart_by_the_files_they_are_in() {
        let found = modules(
            "kms::one: test\nkms_use::two: test\nkms::inner::three: test\nbench: benchmark\n",
        );
        let expected =
            [("kms", vec!["kms::one", "kms::inner::three"]), ("kms_use", vec!["kms_use::two"])];
        assert!(
            found.iter().map(|(name, tests)| (*name, tests)).eq(expected
                .map(|(name, tests)| (
                    name,
                    tests.into_iter().map(str::to_owned).collect::<Vec<_>>()
                ))
                .iter()
                .map(|(name, tests)| (*name, tests)))
        );
    }

    #[test]
    fn programs_are_named_by_package_and_target() {
        let message = |id: &str, test: bool| {
            serde_json::json!({
                "reason": "compiler-artifact", "package_id": id, "manifest_path": "/w/crates/net/Cargo.toml",
                "target": { "name": "plain" }, "profile": { "test": test }, "executable": "/w/target/plain-1",
            })
            .to_string()
        };
        let found = program(&message("path+file:///w/crates/net#outlast-net@0.1.0", true)).unwrap();
        assert_eq!((&*found.name, &*found.package), ("outlast-net plain", "outlast-net"));
        assert_eq!(found.folder, Path::new("/w/crates/net"));
        let found = program(&message("path+file:///w/xtask#0.1.0", true)).unwrap();
        assert_eq!(found.package, "xtask");
        assert!(program(&message("path+file:///w/xtask#0.1.0", false)).is_none());
        assert!(program("   Compiling outlast-net").is_none());
    }

    #[test]
    fn what_is_skipped_has_not_passed() {
        let counts = Counts::read(SAID);
        assert_eq!((counts.passed, counts.failed), (2, 1));
        assert_eq!(counts.failed_names.into_iter().collect::<Vec<_>>(), ["three"]);
        let panic =
            "thread 'three' (18) panicked at tests/three.rs:3:4:\nassertion failed: one\n  left: 1";
        assert_eq!(counts.reasons, [panic]);
        let skipped: Vec<_> = counts.skipped.iter().map(|(name, why)| (&**name, &**why)).collect();
        let two = "the vectors composite are not there; curl is missing";
        let expected = [("long", "takes a minute"), ("outlast-pki vectors two", two)];
        assert_eq!(skipped, expected);
    }
}
