//! Whose turn it is in a handshake, as clocks and profilers see it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::time::thread_cpu;

/// Name of the thread while the server has its turn: see [`name_turns`].
pub(super) const SERVER_THREAD: &str = "lab-server";
const CLIENT_THREAD: &str = "lab-client";

static NAMED: AtomicBool = AtomicBool::new(false);

static UNTIMED: AtomicBool = AtomicBool::new(false);

/// From now on no times are taken: nobody looks at them, and below valgrind, which hides the vDSO, rustix looks for the clock in vain
/// and crashes.
pub(super) fn take_no_times() {
    UNTIMED.store(true, Ordering::Relaxed);
}

/// The CPU time of this thread so far.
pub(super) fn clock() -> Duration {
    if UNTIMED.load(Ordering::Relaxed) { Duration::ZERO } else { thread_cpu() }
}

/// From now on the thread is called `lab-server` while the server has its turn, so that a profile can be divided.
pub(super) fn name_turns() {
    NAMED.store(true, Ordering::Relaxed);
}

/// The server's turn begins or ends.
pub(super) fn server_turn(begins: bool) {
    if NAMED.load(Ordering::Relaxed) {
        let name = if begins { SERVER_THREAD } else { CLIENT_THREAD };
        if let Ok(name) = std::ffi::CString::new(name) {
            // The worst that may happen is a name that stays.
            let _ = rustix::thread::set_name(&name);
        }
    }
}

/// Callgrind writes what it has counted whenever this is called.
#[inline(never)]
pub(super) fn outlast_profile_mark() {
    std::hint::black_box(());
}
