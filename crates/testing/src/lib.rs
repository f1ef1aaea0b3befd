//! Shared by the tests of every crate: how long they wait, where peers and vectors are, and how they report that they
//! were skipped. Only tests depend on it.

#![allow(
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail, and says on stdout what CI collects"
)]

pub mod attack_page;
pub mod ports;
pub mod program;
pub mod s3;
pub mod sshd;

pub use ports::free_port;

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a test waits for something that must happen. No test measures speed: machines are slow, and other work
/// runs on them. But a test that hangs must end.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Pause between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until `look` returns something; if it never does, the panic names `what`.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "it never came to this: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Waits until a condition holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    eventually(what, || holds().then_some(()));
}

/// Start of the line by which `cargo xtask ci` knows that a test was skipped.
pub const SKIPPED: &str = "skipped: ";

/// Reports that the running test, or part of it, is skipped, and why. The test must return afterwards.
pub fn skip(reason: impl Display) {
    let file = std::env::current_exe().ok();
    let file = file.as_deref().and_then(Path::file_stem).unwrap_or_default().to_string_lossy();
    // Cargo adds a hash to the name.
    let file = file.rsplit_once('-').map_or(&*file, |(name, _)| name);
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    // The test harness may have begun a line. Where each test file is a module, the test's name contains it.
    let place = if file == "all" { String::new() } else { format!("{file} ") };
    // Bypasses the harness, which captures output unless the test fails.
    let line = format!("\n{SKIPPED}{package} {place}{test}: {reason}\n");
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}

/// Skips the running test because a peer is missing; `peer` is the name of its script in `tests/interop/peers`. If
/// `cargo xtask ci` installed it, that is a failure.
pub fn skip_for_want_of(peer: &str, what: impl Display) {
    let text = format!("{what} is missing; run cargo xtask peers --all");
    assert!(!is_required(peer), "{text}");
    skip(text);
}

/// Whether `OUTLAST_REQUIRE_PEERS` (names separated by commas) contains this peer: a test must not be skipped for
/// lack of it.
pub fn is_required(peer: &str) -> bool {
    let required = std::env::var("OUTLAST_REQUIRE_PEERS").unwrap_or_default();
    required.split(',').any(|name| name == peer)
}

/// Folder of the checkout.
pub fn checkout() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Folder of a peer below `target/peers` or in `OUTLAST_PEERS`; `None` if it is not installed, in which case the
/// running test is skipped.
pub fn peer(name: &str) -> Option<PathBuf> {
    let folder = peers().join(name);
    if folder.join(".stamp").exists() {
        return Some(folder);
    }
    skip_for_want_of(name, format_args!("the peer {name}"));
    None
}

fn peers() -> PathBuf {
    let other = std::env::var_os("OUTLAST_PEERS").map(PathBuf::from);
    other.unwrap_or_else(|| checkout().join("target/peers"))
}

/// Folder of these test vectors; `None` if they are missing, in which case the running test is skipped.
///
/// Vectors that `cargo xtask peers` fetches or makes are required like any peer. The others may not be redistributed:
/// they are read from `OUTLAST_VECTORS`, or from `../shared/vectors` next to the checkout.
pub fn vectors(name: &str) -> Option<PathBuf> {
    let theirs = std::env::var_os("OUTLAST_VECTORS").map(PathBuf::from);
    let theirs = theirs.unwrap_or_else(|| checkout().join("../shared/vectors")).join(name);
    if theirs.is_dir() {
        return Some(theirs);
    }
    if OURS.contains(&name) {
        return peer("vectors").map(|folder| folder.join(name));
    }
    skip(format_args!("the vectors {name} are not there (OUTLAST_VECTORS)"));
    None
}

/// Vectors that `tests/interop/peers/vectors.sh` fetches.
const OURS: &[&str] = &["rfc9881", "rfc9882", "wycheproof"];
