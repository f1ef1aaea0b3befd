//! The peers below `target/peers`, or where `OUTLAST_PEERS` says.

use std::path::{Path, PathBuf};
use std::process::Command;

pub fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A peer's folder, if it is installed.
pub fn peer(name: &str) -> Option<PathBuf> {
    let all = std::env::var_os("OUTLAST_PEERS")
        .map_or_else(|| checkout().join("target/peers"), PathBuf::from);
    let folder = all.join(name);
    if folder.join(".stamp").exists() {
        return Some(folder);
    }
    assert!(std::env::var_os("OUTLAST_REQUIRE_PEERS").is_none(), "{} is missing", folder.display());
    eprintln!("skipped: {name} is not installed; run cargo xtask peers");
    None
}

pub fn openssl(peer: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(peer.join("bin/openssl"));
    command.args(arguments);
    command
}

pub fn java(peer: &Path, class: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("java");
    command.arg("-cp").arg(format!("{0}/classes:{0}/lib/*", peer.display()));
    command.arg(class).args(arguments);
    command
}
