//! The project's own chores.
//!
//! `gen` writes the generated lists, `tidy` checks what the compiler does not, `deny` the dependencies against `deny.toml`,
//! `peers` installs the programs that the interop tests talk to (`--fresh`: with empty caches, as CI does), `fuzz` runs the
//! fuzz targets, `ci` runs everything that must hold, `bench` prints the benchmark table.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line of the project's own"
)]

mod ci;
mod codegen;
mod deny;
mod fuzz;
mod peers;
mod rooms;
mod suite;
mod surface;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo xtask gen | tidy | deny | peers [--fresh] | fuzz [--seconds N] [TARGET...] | ci | bench [--quick]";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let root = root();
    let outcome = match arguments.next().as_deref() {
        Some("gen") => codegen::write(&root),
        Some("tidy") => tidy::check(&root).map(|count| println!("tidy: {count} checks")),
        Some("deny") => deny::check(&root).map(|advisories| println!("{advisories}")),
        Some("peers") => match arguments.next().as_deref() {
            None => peers::install(&root),
            Some("--fresh") => peers::install_afresh(&root),
            Some(_) => Err(USAGE.to_owned()),
        },
        Some("fuzz") => fuzz::Plan::parse(arguments).and_then(|plan| fuzz::run(&root, &plan)),
        Some("ci") => ci::run(&root),
        Some("bench") => bench(&root, arguments.collect()),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
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
