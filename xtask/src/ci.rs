//! Everything that must hold before a change lands.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use crate::fuzz::Plan;

/// Runs all checks and tests and prints their counts. The last line is `N passed, N failed, N skipped`; above it are the
/// names of those that failed or were skipped, and what was not checked.
pub fn run(root: &Path) -> Result<(), String> {
    step("formatting");
    cargo(root, &["fmt", "--all", "--check"])?;
    step("tidy");
    let checks = crate::tidy::check(root)?;
    println!("{checks} checks");
    step("dependencies");
    let advisories = crate::deny::check(root)?;
    println!("{advisories}");
    step("clippy, warnings denied");
    command(
        cargo_once(root)
            .args(["clippy", "--workspace", "--all-targets", "--features", LEGACY, "--locked"])
            .args(["--", "--deny", "warnings"]),
    )?;
    step("peers");
    crate::peers::install_afresh(root)?;
    step("tests");
    let counts = tests(root)?;
    step("fuzzing, briefly");
    crate::fuzz::run(root, &fuzzed())?;
    step("quickstart, release build");
    let out = root.join("target/ci-quickstart");
    let _ = std::fs::remove_dir_all(&out);
    let out = out.display().to_string();
    cargo(root, &["run", "--release", "--locked", "--", "quickstart", "--out", &out])?;
    verify_quickstart(root, &out)?;
    step("the lab's accuracy, in short");
    selftest(root)?;
    println!();
    for name in &counts.failed_names {
        println!("failed: {name}");
    }
    for (name, reason) in &counts.skipped {
        println!("{SKIPPED}{name}: {reason}");
    }
    println!("{advisories}");
    let (passed, skipped) = (counts.passed + 2, counts.skipped.len());
    println!("{passed} passed, {} failed, {skipped} skipped", counts.failed);
    if counts.failed > 0 { Err("some tests failed".into()) } else { Ok(()) }
}

/// How a test says that it was skipped; `outlast_testing::skip` writes the line.
const SKIPPED: &str = "skipped: ";

/// The lab's algorithms of the literature are tested with all else; the release build is without them.
const LEGACY: &str = "outlast/lab-legacy";

/// Checks what the lab promises of its own accuracy: all of it where the machine lets us emulate links.
fn selftest(root: &Path) -> Result<(), String> {
    let mut selftest = Command::new(root.join("target/release/outlast"));
    selftest.args(["lab", "selftest", "--short"]);
    if emulates() {
        selftest.arg("--require-all");
    } else {
        println!("not root, or no /dev/net/tun: the emulated link is not checked");
    }
    command(&mut selftest)
}

/// Whether this is root and there are TUN devices.
fn emulates() -> bool {
    // Field 1 of the line is the effective user (proc_pid_status(5)): Uid: real, effective, ...
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1));
    user == Some("0") && Path::new("/dev/net/tun").exists()
}

/// What strangers send before anybody knows who they are, and the ledger that is read years later. What was found once in
/// any target is read again.
fn fuzzed() -> Plan {
    let targets = ["client_hello", "h3", "ledger", "proxy_protocol"];
    Plan { seconds: 20, targets: targets.map(str::to_owned).into(), others_read_seeds: true }
}

/// Runs cargo in the workspace.
pub fn cargo(root: &Path, arguments: &[&str]) -> Result<(), String> {
    command(Command::new(env!("CARGO")).args(arguments).current_dir(root))
}

/// cargo for what is built once and thrown away: nothing that only helps the next build, no line numbers in backtraces.
fn cargo_once(root: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo
}

/// What the tests said.
#[derive(Default)]
struct Counts {
    /// Without those that were skipped.
    passed: usize,
    failed: usize,
    failed_names: BTreeSet<String>,
    /// Each with its reasons.
    skipped: BTreeMap<String, String>,
}

impl Counts {
    /// Reads what the test harness wrote. A test that is skipped ends like one that passes: the line that it writes tells.
    fn read(text: &str) -> Self {
        let mut counts = Self::default();
        // Those that end in the list of failures, which follows the output of each.
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
                // One test may lack several things.
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
        // A test that fails after all is no skipped one.
        let failed: Vec<&str> = counts.failed_names.iter().map(String::as_str).collect();
        counts
            .skipped
            .retain(|name, _| !failed.iter().any(|test| name.ends_with(&format!(" {test}"))));
        counts.passed = counts.passed.saturating_sub(counts.skipped.len());
        // Those that are measurements never run here.
        for line in text.lines().filter_map(|line| line.strip_prefix("test ")) {
            if let Some((name, reason)) = line.split_once(" ... ignored, ") {
                counts.skipped.insert(name.to_owned(), reason.to_owned());
            }
        }
        counts
    }
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

fn tests(root: &Path) -> Result<Counts, String> {
    let mut child = cargo_once(root)
        .args(["test", "--workspace", "--features", LEGACY, "--locked", "--no-fail-fast"])
        .args(["--", "--nocapture"])
        .env("OUTLAST_REQUIRE_PEERS", "1")
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cargo test: {error}"))?;
    let mut text = String::new();
    if let Some(stdout) = child.stdout.take() {
        // As it comes: the tests take long.
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.map_err(|error| error.to_string())?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            text.push_str(&line);
            text.push('\n');
        }
    }
    let status = child.wait().map_err(|error| format!("cargo test: {error}"))?;
    let counts = Counts::read(&text);
    if !status.success() && counts.failed == 0 {
        return Err("the tests could not be run".into());
    }
    if counts.passed == 0 {
        return Err("no test was run".into());
    }
    Ok(counts)
}

/// The independent check that the README promises.
fn verify_quickstart(root: &Path, out: &str) -> Result<(), String> {
    let output = Command::new(root.join("target/peers/openssl/bin/openssl"))
        .args(["cms", "-verify", "-binary", "-inform", "DER", "-purpose", "codesign"])
        .args(["-in", &format!("{out}/signature.p7s"), "-CAfile", &format!("{out}/root-ca.pem")])
        .arg("-content")
        .arg(root.join("target/release/outlast"))
        .args(["-out", "/dev/null"])
        .output()
        .map_err(|error| format!("openssl: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    print!("openssl: {text}");
    if text.contains("CMS Verification successful") {
        Ok(())
    } else {
        Err("openssl did not verify the quickstart's signature".into())
    }
}

/// Says what comes, and how long all took until now.
fn step(name: &str) {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let seconds = BEGUN.get_or_init(Instant::now).elapsed().as_secs();
    println!("\n== {name} (after {} min {} s)", seconds / 60, seconds % 60);
}

/// Runs it to its end.
pub fn command(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed: {status}")) }
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
failures:

---- three stdout ----
    indented, and no name

failures:
    three

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
";

    #[test]
    fn what_is_skipped_has_not_passed() {
        let counts = Counts::read(SAID);
        assert_eq!((counts.passed, counts.failed), (2, 1));
        assert_eq!(counts.failed_names.into_iter().collect::<Vec<_>>(), ["three"]);
        let skipped: Vec<_> = counts.skipped.iter().map(|(name, why)| (&**name, &**why)).collect();
        let two = "the vectors composite are not there; curl is missing";
        let expected = [("long", "takes a minute"), ("outlast-pki vectors two", two)];
        assert_eq!(skipped, expected);
    }
}
