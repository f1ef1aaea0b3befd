//! The project's own chores: `gen`, `tidy`, `ci`, `peers`, `bench`.

mod codegen;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    let outcome = match argument.as_deref() {
        Some("gen") => codegen::write(&root()),
        _ => Err("usage: cargo xtask gen|tidy|ci".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's folder.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
