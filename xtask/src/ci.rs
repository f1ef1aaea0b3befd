//! All checks that a change must pass.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::time::Instant;

use crate::fuzz::Plan;
use crate::peers::Which;
use crate::suite;

/// Checks to run while working: those that need no peer, no other build profile and no more than a few minutes.
pub fn check(root: &Path) -> Result<(), String> {
    look(root)?;
    step("clippy, warnings denied; tests are built");
    let programs = suite::build(root)?.0.without_long();
    step("tests");
    let counts = suite::run(root, programs, None)?;
    step("ended");
    counts.end(0)
}

/// Checks formatting and layout.
fn look(root: &Path) -> Result<(), String> {
    step("formatting");
    cargo(root, &["fmt", "--all", "--check"])?;
    step("tidy");
    let checks = crate::tidy::check(root)?;
    println!("{checks} checks");
    Ok(())
}

/// Runs all checks and tests and prints their counts. The last line is `N passed, N failed, N skipped`; above it are
/// the names of failed and skipped tests, and a list of checks that could not run.
pub fn run(root: &Path, which: Which) -> Result<(), String> {
    look(root)?;
    step("dependencies");
    let advisories = crate::deny::check(root)?;
    println!("{advisories}");
    // At the same time, because downloads take most of their time.
    let all: &[&str] = if which == Which::All { &["--all"] } else { &[] };
    let peers = Aside::begin(root, "peers", &[&["peers", "--fresh"], all].concat())?;
    step("clippy, warnings denied; tests are built");
    let (programs, fuzz_targets) = suite::build(root)?;
    let (programs, left) = match which {
        Which::Main => programs.of_first_tier(),
        Which::All => (programs, BTreeMap::new()),
    };
    step("peers");
    peers.end()?;
    step("tests");
    let mut counts = suite::run(root, programs, Some(which))?;
    counts.skipped.extend(left);
    step("fuzzing: the seeds");
    crate::fuzz::read_seeds(root, &fuzz_targets)?;
    step("quickstart");
    quickstart(root, &root.join("target/debug/outlast"))?;
    if which == Which::All {
        step("fuzzing, briefly");
        crate::fuzz::run(root, &fuzzed())?;
        step("documentation, warnings denied");
        let mut doc = cargo_once(root);
        doc.args(["doc", "--workspace", "--exclude", "outlast-fuzz", "--no-deps", "--locked"]);
        command(doc.env("RUSTDOCFLAGS", "--deny=warnings"))?;
        step("quickstart, release build");
        cargo(root, &["build", "--release", "--locked"])?;
        quickstart(root, &root.join("target/release/outlast"))?;
        step("the lab's accuracy, in short");
        selftest(root)?;
    }
    step("ended");
    println!("{advisories}");
    counts.end(2)
}

/// The lab's algorithms from the literature are tested with everything else, but the release build leaves them out.
pub const LEGACY: &str = "outlast-lab/legacy";

/// Checks what the lab promises about its own accuracy; all of it if the machine allows emulated links.
fn selftest(root: &Path) -> Result<(), String> {
    cargo(root, &["build", "--release", "--locked", "--package", "outlast-lab"])?;
    let mut selftest = Command::new(root.join("target/release/outlast-lab"));
    selftest.args(["selftest", "--short"]);
    if emulates() {
        selftest.arg("--require-all");
    } else {
        println!("not root, or no /dev/net/tun: the emulated link is not checked");
    }
    command(&mut selftest)
}

/// Whether this process is root and there are TUN devices.
fn emulates() -> bool {
    // Field 1 of the line is the effective user (proc_pid_status(5)): Uid: real, effective, ...
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1));
    user == Some("0") && Path::new("/dev/net/tun").exists()
}

/// Input from strangers before they are authenticated, and the ledger, which is read years later.
fn fuzzed() -> Plan {
    let targets = ["client_hello", "h3", "ledger", "proxy_protocol"];
    Plan { seconds: 20, targets: targets.map(str::to_owned).into(), only_own_crates: true }
}

/// Runs cargo in the workspace.
pub fn cargo(root: &Path, arguments: &[&str]) -> Result<(), String> {
    command(Command::new(env!("CARGO")).args(arguments).current_dir(root))
}

/// Runs cargo for builds that are used once: no incremental data, no line numbers in backtraces.
pub fn cargo_once(root: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo
}

/// A task that runs beside other steps; its output is printed when it has ended.
struct Aside {
    name: &'static str,
    child: Option<Child>,
    log: PathBuf,
}

impl Aside {
    fn begin(root: &Path, name: &'static str, arguments: &[&str]) -> Result<Self, String> {
        let log = root.join(format!("target/ci-{name}.log"));
        let failed = |error: std::io::Error| format!("{name}: {error}");
        let file = File::create(&log).map_err(failed)?;
        let errors = file.try_clone().map_err(failed)?;
        let this = std::env::current_exe().map_err(failed)?;
        let child = Command::new(this).args(arguments).stdout(file).stderr(errors).spawn();
        Ok(Self { name, child: Some(child.map_err(failed)?), log })
    }

    fn end(mut self) -> Result<(), String> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let status = child.wait().map_err(|error| format!("{}: {error}", self.name))?;
        print!("{}", String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()));
        if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", self.name)) }
    }
}

impl Drop for Aside {
    /// Another step has failed.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The quickstart check that the README promises.
fn quickstart(root: &Path, program: &Path) -> Result<(), String> {
    let out = root.join("target/ci-quickstart");
    let _ = std::fs::remove_dir_all(&out);
    let out = out.display().to_string();
    command(Command::new(program).args(["quickstart", "--out", &out]).current_dir(root))?;
    let output = Command::new(root.join("target/peers/openssl/bin/openssl"))
        .args(["cms", "-verify", "-binary", "-inform", "DER", "-purpose", "codesign"])
        .args(["-in", &format!("{out}/signature.p7s"), "-CAfile", &format!("{out}/root-ca.pem")])
        .arg("-content")
        .arg(program)
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

/// Prints the next step and the time so far.
fn step(name: &str) {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let seconds = BEGUN.get_or_init(Instant::now).elapsed().as_secs();
    println!("\n== {name} (after {} min {} s)", seconds / 60, seconds % 60);
}

/// Runs a command to its end.
pub fn command(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed: {status}")) }
}
