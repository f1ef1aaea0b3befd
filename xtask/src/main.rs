//! The project's own chores.
//!
//! `gen` writes the generated lists, `tidy` checks what the compiler does not, `deny` the dependencies against `deny.toml`,
//! `check` is what one runs while one works, `ci` everything that must hold (`--all-peers`: with every peer, as before a release), `peers`
//! installs the programs that the interop tests talk to (`--fresh`: with empty caches, as CI does), `fuzz` runs the fuzz targets, `bench`
//! prints the benchmark table.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line of the project's own"
)]

mod ci;
mod codegen;
mod deny;
mod fuzz;
mod invariants;
mod peers;
mod rooms;
mod suite;
mod surface;
mod tidy;
mod words;

use peers::Which;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo xtask gen | tidy | deny | check | ci [--all-peers] | peers [--all] [--fresh] | fuzz [--seconds N] [TARGET...] | bench [--quick]";

fn main() -> ExitCode {
    if let Some(outcome) = fuzz::compile() {
        return ended(outcome);
    }
    let mut arguments = std::env::args().skip(1);
    let root = root();
    let outcome = match arguments.next().as_deref() {
        Some("gen") => codegen::write(&root),
        Some("tidy") => tidy::check(&root).map(|count| println!("tidy: {count} checks")),
        Some("deny") => deny::check(&root).map(|advisories| println!("{advisories}")),
        Some("peers") => install(&root, &arguments.collect::<Vec<_>>()),
        Some("fuzz") => fuzz::Plan::parse(arguments).and_then(|plan| fuzz::run(&root, &plan)),
        Some("check") => ci::check(&root),
        Some("ci") => match arguments.next().as_deref() {
            None => ci::run(&root, Which::Main),
            Some("--all-peers") => ci::run(&root, Which::All),
            Some(_) => Err(USAGE.to_owned()),
        },
        Some("bench") => bench(&root, arguments.collect()),
        _ => Err(USAGE.to_owned()),
    };
    ended(outcome)
}

fn ended(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// From `[--all] [--fresh]`.
fn install(root: &Path, arguments: &[String]) -> Result<(), String> {
    let (mut which, mut fresh) = (Which::Main, false);
    for argument in arguments {
        match argument.as_str() {
            "--all" => which = Which::All,
            "--fresh" => fresh = true,
            _ => return Err(USAGE.to_owned()),
        }
    }
    if fresh { peers::install_afresh(root, which) } else { peers::install(root, which) }
}

fn bench(root: &Path, arguments: Vec<String>) -> Result<(), String> {
    peers::install_measured(root)?;
    ci::cargo(root, &["build", "--release", "--package", "outlast", "--package", "outlast-bench"])?;
    let status = Command::new(root.join("target/release/outlast-bench"))
        .current_dir(root)
        .args(arguments)
        .status()
        .map_err(|error| format!("outlast-bench: {error}"))?;
    if status.success() { Ok(()) } else { Err("the benchmark failed".into()) }
}

/// The workspace's folder.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
