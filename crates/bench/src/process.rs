//! The server as a process: start-up and memory; and folders for the other cases.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use outlast_harness::agent::Programs;
use outlast_harness::server::{Folder, status_kib};
use outlast_net::policy::Policy;
use serde_json::json;

use crate::Figure;
use crate::statistics::quantile;

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let folder = folder()?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let rounds = if quick { 3 } else { 11 };
    let mut starts = Vec::new();
    let mut memory = Vec::new();
    for _ in 0..rounds {
        let begun = Instant::now();
        let server = folder.serve()?;
        runtime.block_on(async {
            let mut session = server.session(&Policy::default()).await?;
            session.call::<outlast_api::ops::kms::list_keys::ListKeys>(json!({})).await
        })?;
        starts.push(begun.elapsed());
        std::thread::sleep(Duration::from_millis(500));
        memory.push(status_kib(server.child.id(), "VmRSS")?);
    }
    memory.sort_unstable();
    let start = quantile(&mut starts, 0.5);
    let resident = memory[memory.len() / 2] / 1024;
    Ok(vec![
        Figure {
            name: "server start to first answered API call, existing store",
            value: format!("{} ms", start.as_millis()),
            limit: "< 300 ms",
            met: start < Duration::from_millis(300),
            note: format!("median of {rounds} starts; exec, TLS handshake and ListKeys included"),
        },
        Figure {
            name: "resident memory, idle",
            value: format!("{resident} MiB"),
            limit: "< 40 MiB",
            met: resident < 40,
            note: "VmRSS after the first call".into(),
        },
    ])
}

/// The release binary next to this one.
pub(crate) fn outlast_binary() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let binary = here.with_file_name("outlast");
    if binary.exists() {
        return Ok(binary);
    }
    Err(format!("{} is missing: use cargo xtask bench", binary.display()))
}

/// This program, which contains the agent that starts other processes.
pub(crate) fn this_program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| error.to_string())
}

/// The `outlast` command without the user's own configuration.
pub(crate) fn outlast() -> Result<Command, String> {
    Ok(outlast_harness::server::outlast(&outlast_binary()?))
}

/// A data folder in a temporary folder.
pub(crate) fn folder() -> Result<Folder, String> {
    folder_of(&outlast_binary()?)
}

/// A data folder for another build's program.
pub(crate) fn folder_of(program: &Path) -> Result<Folder, String> {
    // Next to this program, so that it is on a real disk: /tmp may be memory.
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let programs = Programs { service: program.to_path_buf(), agent: here.clone() };
    Ok(Folder::new(&programs, here.parent().unwrap_or(Path::new(".")))?)
}
