//! Processes with keys or secrets in memory: nobody else reads it, except root.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// From now on, no debugger of the same user can attach, and no core dump is written. Programs that this process starts write
/// none either, but can be debugged.
pub(crate) fn refuse() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}
