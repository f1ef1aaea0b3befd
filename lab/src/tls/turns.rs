//! Whose turn it is in a handshake, for clocks and profilers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::time::thread_cpu;

/// Name of the thread during the server's turn: see [`name_turns`].
pub(super) const SERVER_THREAD: &str = "lab-server";
const CLIENT_THREAD: &str = "lab-client";

static NAMED: AtomicBool = AtomicBool::new(false);

static UNTIMED: AtomicBool = AtomicBool::new(false);

/// Turns the recording of times off: nobody reads them, and under valgrind, which hides the vDSO, rustix does not
/// find the clock and crashes.
pub(super) fn take_no_times() {
    UNTIMED.store(true, Ordering::Relaxed);
}

/// The CPU time of this thread.
pub(super) fn clock() -> Duration {
    if UNTIMED.load(Ordering::Relaxed) { Duration::ZERO } else { thread_cpu() }
}

/// From now on the thread is called `lab-server` during the server's turn, so that a profile can be split.
pub(super) fn name_turns() {
    NAMED.store(true, Ordering::Relaxed);
}

/// The server's turn begins or ends.
pub(super) fn server_turn(begins: bool) {
    if NAMED.load(Ordering::Relaxed) {
        let name = if begins { SERVER_THREAD } else { CLIENT_THREAD };
        if let Ok(name) = std::ffi::CString::new(name) {
            // At worst a name stays.
            let _ = rustix::thread::set_name(&name);
        }
    }
}

/// Callgrind writes its counts whenever this function is called.
#[inline(never)]
pub(super) fn outlast_profile_mark() {
    std::hint::black_box(());
}
