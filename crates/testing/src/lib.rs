//! What the tests of every crate share: how long they wait, where peers and vectors are, and how they say that they were
//! skipped. Only tests depend on it.

#![allow(
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail, and says on stdout what CI collects"
)]

pub mod program;

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a test waits for what must come. No test says how fast something is: machines are slow, and other work runs on
/// them. A test that hangs ends all the same.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until `look` gives something; what was waited for is said if it never does.
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

/// The line by which `cargo xtask ci` knows that a test was skipped.
pub const SKIPPED: &str = "skipped: ";

/// Says that the running test is skipped, or a part of it, and why. The test is to return then.
pub fn skip(reason: impl Display) {
    let file = std::env::current_exe().ok();
    let file = file.as_deref().and_then(Path::file_stem).unwrap_or_default().to_string_lossy();
    // Cargo adds a hash to the name.
    let file = file.rsplit_once('-').map_or(&*file, |(name, _)| name);
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    // The test harness may have begun a line.
    // Where each file of tests is a module, the test's name says which it is in.
    let place = if file == "all" { String::new() } else { format!("{file} ") };
    // Past the harness, which keeps what is printed to itself unless the test fails.
    let line = format!("\n{SKIPPED}{package} {place}{test}: {reason}\n");
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}

/// Skips the running test for want of a peer, the name of whose script in `tests/interop/peers` is `peer`. Where `cargo xtask ci` has
/// installed it, that is a failure.
pub fn skip_for_want_of(peer: &str, what: impl Display) {
    let text = format!("{what} is missing; run cargo xtask peers --all");
    assert!(!is_required(peer), "{text}");
    skip(text);
}

/// Whether `OUTLAST_REQUIRE_PEERS`, names with commas between them, has this peer: a test must not be skipped for want of it.
pub fn is_required(peer: &str) -> bool {
    let required = std::env::var("OUTLAST_REQUIRE_PEERS").unwrap_or_default();
    required.split(',').any(|name| name == peer)
}

/// The folder of the checkout.
pub fn checkout() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The folder of a peer below `target/peers`, or where `OUTLAST_PEERS` says; none if it is not installed, and then the
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

/// The folder of these test vectors; none if they are nowhere, and then the running test is skipped.
///
/// What `cargo xtask peers` fetches or makes is required as any peer is. The others are nobody's to hand on: they are read
/// from where `OUTLAST_VECTORS` says, or from `../shared/vectors` beside the checkout.
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

/// What `tests/interop/peers/vectors.sh` brings.
const OURS: &[&str] = &["rfc9881", "rfc9882", "wycheproof"];
