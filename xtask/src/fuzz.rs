//! Fuzzing with the stable compiler: libFuzzer's counters are an LLVM pass, which stable Rust includes.
//!
//! AddressSanitizer needs a nightly compiler, so this does without it: the workspace forbids `unsafe`, so fuzzing
//! looks for panics, overflows, endless loops and excessive memory. `cargo +nightly fuzz run TARGET` adds it if
//! cargo-fuzz is installed.
//!
//! Run by hand, everything is optimised and instrumented, including dependencies. CI with all peers reuses the
//! dependencies that it built for its tests and instruments only the workspace's own crates: this takes a tenth of the
//! time, but finds paths through dependencies more slowly. CI without them only reads the seeds, with the targets that
//! were built with the tests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Flags that cargo-fuzz passes, without the sanitizer.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];

/// Default number of seconds per target.
const SECONDS: u64 = 60;

/// A fuzzing run.
pub struct Plan {
    /// Seconds per target.
    pub seconds: u64,
    /// Names of targets; empty means all.
    pub targets: Vec<String>,
    /// Whether to reuse the tests' dependencies, which are not instrumented.
    pub only_own_crates: bool,
}

impl Plan {
    /// Parses `[--seconds N] [TARGET...]`.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan = Self { seconds: SECONDS, targets: Vec::new(), only_own_crates: false };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--seconds" => {
                    let number = arguments.next().and_then(|text| text.parse().ok());
                    plan.seconds =
                        number.filter(|number| *number > 0).ok_or("--seconds needs a number")?;
                }
                other if other.starts_with('-') => {
                    return Err(format!("the option {other} is unknown"));
                }
                _ => plan.targets.push(argument),
            }
        }
        Ok(plan)
    }
}

/// Reads the seeds of every target once, with the programs that the build of the tests made.
pub fn read_seeds(root: &Path, programs: &BTreeMap<String, PathBuf>) -> Result<(), String> {
    let mut failed = Vec::new();
    for name in targets(root)? {
        if !root.join("fuzz/seeds").join(&name).is_dir() {
            continue;
        }
        let program = programs.get(&name).ok_or("it was not built".to_owned());
        match program.and_then(|program| fuzz(root, program, &name, None, Counters::NotNeeded)) {
            Ok(runs) => println!("fuzz {name}: {runs} seeds read"),
            Err(message) => {
                println!("fuzz {name}: {message}");
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("seeds failed: {}", failed.join(", "))) }
}

/// Builds the targets and runs each for the given time. A run starts from what earlier runs found and from
/// `fuzz/seeds`; new inputs and failures are written below `target/fuzz`.
pub fn run(root: &Path, plan: &Plan) -> Result<(), String> {
    let known = targets(root)?;
    if let Some(unknown) = plan.targets.iter().find(|name| !known.contains(name)) {
        return Err(format!("there is no target {unknown}; there are {}", known.join(", ")));
    }
    let chosen = if plan.targets.is_empty() { &known } else { &plan.targets };
    let programs =
        if plan.only_own_crates { build_own(root, chosen)? } else { build(root, chosen)? };
    let mut failed = Vec::new();
    for name in chosen {
        let program = programs.join(name);
        let runs = fuzz(root, &program, name, Some(plan.seconds), Counters::Needed);
        let outcome = runs.map(|runs| format!("{runs} runs in {} s, nothing found", plan.seconds));
        match outcome {
            Ok(found) => println!("fuzz {name}: {found}"),
            Err(message) => {
                println!("fuzz {name}: {message}");
                failed.push(name.as_str());
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("fuzzing failed: {}", failed.join(", "))) }
}

/// Names of all targets.
fn targets(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/fuzz_targets");
    let read = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Builds targets; returns the folder of the programs.
fn build(root: &Path, names: &[String]) -> Result<PathBuf, String> {
    let triple = host()?;
    let place = root.join("target/fuzz");
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["build", "--locked", "--package", "outlast-fuzz", "--profile", "fuzz"])
        .args(["--target", &triple])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", &place)
        // Does not apply to build scripts, because a target is named.
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    built(command, names)?;
    Ok(place.join(triple).join("fuzz"))
}

/// Builds targets with the tests' dependencies.
fn build_own(root: &Path, names: &[String]) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("xtask: {error}"))?;
    let mut command = crate::ci::cargo_once(root);
    command
        // Builds the whole workspace, so that the dependencies have the same features.
        .args(["build", "--locked", "--workspace", "--features", crate::ci::LEGACY])
        .env("RUSTC_WORKSPACE_WRAPPER", this)
        .env(INSTRUMENT, "1");
    built(command, names)?;
    Ok(root.join("target/debug"))
}

fn built(mut command: Command, names: &[String]) -> Result<(), String> {
    for name in names {
        command.args(["--bin", name]);
    }
    let status = command.status().map_err(|error| format!("cargo build: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err("the fuzz targets could not be built (is there a C++ compiler?)".into())
}

/// Set when cargo runs this program as the compiler of the workspace's own crates.
const INSTRUMENT: &str = "OUTLAST_XTASK_INSTRUMENT";

/// Compiles with counters if cargo started this program as the compiler. The first argument is the real compiler.
pub fn compile() -> Option<Result<(), String>> {
    std::env::var_os(INSTRUMENT)?;
    let mut arguments = std::env::args_os().skip(1);
    let compiler = arguments.next()?;
    Some(crate::ci::command(Command::new(compiler).args(arguments).args(FLAGS)))
}

fn host() -> Result<String, String> {
    let output =
        Command::new("rustc").arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not report its target".into())
}

/// Whether a target must have counters of coverage, without which it only tries the given inputs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counters {
    Needed,
    NotNeeded,
}

/// Runs one target for the given time, or once over its seeds; returns the number of executions.
fn fuzz(
    root: &Path,
    program: &Path,
    name: &str,
    seconds: Option<u64>,
    counters: Counters,
) -> Result<u64, String> {
    let folder = |kind: &str| {
        let path = root.join("target/fuzz").join(kind).join(name);
        std::fs::create_dir_all(&path).map(|()| path).map_err(|error| error.to_string())
    };
    let artifacts = folder("artifacts")?;
    let mut command = Command::new(program);
    command.arg(format!("-artifact_prefix={}/", artifacts.display())).args([
        "-print_final_stats=1",
        "-timeout=120",
        "-rss_limit_mb=2048",
    ]);
    match seconds {
        Some(seconds) => {
            command.arg(format!("-max_total_time={seconds}")).arg(folder("corpus")?);
        }
        None => drop(command.arg("-runs=0")),
    }
    let seeds = root.join("fuzz/seeds").join(name);
    if seeds.is_dir() {
        command.arg(seeds);
    }
    let mut child = command
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot be started: {error}"))?;
    let mut outcome = Outcome { counters: counters == Counters::NotNeeded, ..Outcome::default() };
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line.map_err(|error| error.to_string())?;
            outcome.read(&String::from_utf8_lossy(&line));
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    outcome.judge(status.success())
}

/// Result of a target.
#[derive(Default)]
struct Outcome {
    counters: bool,
    runs: u64,
    artifact: Option<String>,
    /// Last lines of its output.
    tail: std::collections::VecDeque<String>,
}

impl Outcome {
    fn read(&mut self, line: &str) {
        self.counters |= line.contains("inline 8-bit counters");
        if let Some(number) = line.strip_prefix("stat::number_of_executed_units:") {
            self.runs = number.trim().parse().unwrap_or(0);
        }
        if let Some((_, path)) = line.split_once("Test unit written to ") {
            self.artifact = Some(path.to_owned());
        }
        self.tail.push_back(line.to_owned());
        if self.tail.len() > 60 {
            self.tail.pop_front();
        }
    }

    /// Without counters a target only tries the given inputs, and without executions it tries nothing.
    fn judge(self, success: bool) -> Result<u64, String> {
        if !success {
            let tail = Vec::from(self.tail).join("\n");
            let again = self.artifact.map_or_else(String::new, |path| {
                format!("\nto reproduce it, run the program on this file: {path}")
            });
            return Err(format!("something was found\n{tail}{again}"));
        }
        if !self.counters {
            return Err("it has no counters of coverage: this compiler cannot instrument it".into());
        }
        if self.runs == 0 {
            return Err("it ran nothing".into());
        }
        Ok(self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(lines: &[&str], success: bool) -> Result<u64, String> {
        let mut outcome = Outcome::default();
        lines.iter().for_each(|line| outcome.read(line));
        outcome.judge(success)
    }

    #[test]
    fn a_run_counts_only_if_it_was_one() {
        let loaded = "INFO: Loaded 1 modules   (12 inline 8-bit counters): 12 [0x1, 0x2),";
        let done = "stat::number_of_executed_units: 4711";
        assert_eq!(judge(&[loaded, done], true), Ok(4711));
        assert!(judge(&[done], true).is_err());
        assert!(judge(&[loaded], true).is_err());
        let found = "artifact_prefix='./'; Test unit written to ./crash-1";
        assert!(judge(&[loaded, done, found], false).unwrap_err().contains("./crash-1"));
    }

    #[test]
    fn arguments() {
        let plan = |text: &str| Plan::parse(text.split_whitespace().map(str::to_owned));
        let parsed =
            plan("--seconds 5 crl ocsp").ok().map(|plan| (plan.seconds, plan.targets.len()));
        assert_eq!(parsed, Some((5, 2)));
        assert_eq!(plan("").ok().map(|plan| plan.seconds), Some(SECONDS));
        for wrong in ["--seconds", "--seconds 0", "--seconds x", "--other"] {
            assert!(plan(wrong).is_err(), "{wrong}");
        }
    }
}
