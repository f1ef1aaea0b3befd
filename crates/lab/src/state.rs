//! The machine's state: every result carries it, since a figure without it means nothing.

use serde::{Deserialize, Serialize};

/// What was true of the machine and the build when something was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Milliseconds since 1970, UTC.
    pub at_ms: u64,
    /// Names and values: kernel, processor and its flags, cores, versions of libraries, congestion control, clock source, build.
    pub facts: Vec<(String, String)>,
    /// Share of time in per cent that tasks waited for a processor, over the last 10 seconds (`/proc/pressure/cpu`).
    pub cpu_pressure: Option<f64>,
    /// Time in seconds that the hypervisor took since start (`/proc/stat`, steal).
    pub steal_seconds: Option<f64>,
    /// Load average over one minute.
    pub load: Option<f64>,
}

impl State {
    /// Now.
    pub fn now() -> Self {
        Self { at_ms: at_ms(), ..Self::default() }
    }
}

/// Milliseconds since 1970, UTC.
pub fn at_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
