//! Everything that must hold before a change lands.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::fuzz::Plan;

/// Runs all checks and tests and prints their counts. The last line is `N passed, N failed`.
pub fn run(root: &Path) -> Result<(), String> {
    step("formatting");
    cargo(root, &["fmt", "--all", "--check"])?;
    step("tidy");
    let checks = crate::tidy::check(root)?;
    println!("{checks} checks");
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
    println!("\n{} passed, {} failed", counts.passed + 2, counts.failed);
    if counts.failed > 0 { Err("some tests failed".into()) } else { Ok(()) }
}

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

/// What strangers send before anybody knows who they are, and the ledger that is read years later.
fn fuzzed() -> Plan {
    let targets = ["client_hello", "ledger", "proxy_protocol"];
    Plan { seconds: 20, targets: targets.map(str::to_owned).into() }
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

struct Counts {
    passed: u64,
    failed: u64,
}

fn tests(root: &Path) -> Result<Counts, String> {
    let output = cargo_once(root)
        .args(["test", "--workspace", "--features", LEGACY, "--locked", "--no-fail-fast"])
        .args(["--", "--nocapture"])
        .env("OUTLAST_REQUIRE_PEERS", "1")
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo test: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    let mut counts = Counts { passed: 0, failed: 0 };
    for line in text.lines().filter_map(|line| line.strip_prefix("test result: ")) {
        let number = |name: &str| {
            line.split("; ")
                .find_map(|part| {
                    part.trim_start_matches("ok. ")
                        .trim_start_matches("FAILED. ")
                        .strip_suffix(name)
                })
                .and_then(|number| number.trim().parse::<u64>().ok())
                .unwrap_or(0)
        };
        counts.passed += number(" passed");
        counts.failed += number(" failed");
    }
    if !output.status.success() && counts.failed == 0 {
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

fn step(name: &str) {
    println!("\n== {name}");
}

/// Runs it to its end.
pub fn command(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed: {status}")) }
}
