//! State of the machine: every result includes it, since a figure without it has no meaning.

use std::fs;

use serde::{Deserialize, Serialize};

/// Properties of the machine and the build at the time of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Milliseconds since 1970, UTC.
    pub at_ms: u64,
    /// Names and values: kernel, processor and its flags, cores, versions of libraries, congestion control, clock source, build.
    pub facts: Vec<(String, String)>,
    /// Share of time in per cent in which tasks waited for a processor, over the last 10 seconds
    /// (`/proc/pressure/cpu`).
    pub cpu_pressure: Option<f64>,
    /// Seconds that the hypervisor has taken since the start (`/proc/stat`, steal).
    pub steal_seconds: Option<f64>,
    /// Load average over one minute.
    pub load: Option<f64>,
}

/// Flags of a processor that select the code of cryptographic libraries.
const FLAGS: &[&str] = &[
    "adx",
    "aes",
    "asimd",
    "avx",
    "avx2",
    "avx512f",
    "avx512ifma",
    "bmi2",
    "gfni",
    "pclmulqdq",
    "sha3",
    "sha512",
    "sha_ni",
    "ssse3",
    "vaes",
    "vpclmulqdq",
];

/// Libraries whose versions matter, with their names in the lock file.
const LIBRARIES: &[&str] = &["aws-lc-rs", "aws-lc-sys", "quinn", "rustls", "s2n-quic", "s2n-tls"];

/// Kernel files that describe its behaviour.
const KERNEL_FILES: &[(&str, &str)] = &[
    ("congestion control", "/proc/sys/net/ipv4/tcp_congestion_control"),
    ("SACK", "/proc/sys/net/ipv4/tcp_sack"),
    ("RACK", "/proc/sys/net/ipv4/tcp_recovery"),
    ("early retransmit (TLP)", "/proc/sys/net/ipv4/tcp_early_retrans"),
    ("linear SYN timeouts", "/proc/sys/net/ipv4/tcp_syn_linear_timeouts"),
    ("metrics not saved", "/proc/sys/net/ipv4/tcp_no_metrics_save"),
    ("clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("frequency governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("hypervisor", "/sys/hypervisor/type"),
];

impl State {
    /// The present state, with all facts.
    pub fn now() -> Self {
        Self { facts: facts(), ..Self::pressure() }
    }

    /// The present state, without the facts that do not change.
    pub fn pressure() -> Self {
        Self {
            at_ms: at_ms(),
            facts: Vec::new(),
            cpu_pressure: read("/proc/pressure/cpu").and_then(|text| some_avg10(&text)),
            steal_seconds: read("/proc/stat").and_then(|text| steal_seconds(&text)),
            load: read("/proc/loadavg")
                .and_then(|text| text.split(' ').next().and_then(|first| first.parse().ok())),
        }
    }
}

/// Milliseconds since 1970, UTC.
pub fn at_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Whether this build is not optimised: then its CPU times have no meaning.
pub fn is_debug_build() -> bool {
    cfg!(debug_assertions)
}

fn facts() -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut say = |name: &str, value: String| facts.push((name.to_owned(), value));
    let system = rustix::system::uname();
    say(
        "kernel",
        format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy()),
    );
    say("architecture", system.machine().to_string_lossy().into_owned());
    if let Some(text) = read("/proc/cpuinfo") {
        let field = |name: &str| {
            text.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim().to_owned())
            })
        };
        for (name, key) in [("processor", "model name"), ("microcode", "microcode")] {
            if let Some(value) = field(key) {
                say(name, value);
            }
        }
        if let Some(flags) = field("flags").or_else(|| field("Features")) {
            let has: Vec<&str> = flags.split(' ').filter(|flag| FLAGS.contains(flag)).collect();
            say("processor flags", has.join(" "));
            if flags.split(' ').any(|flag| flag == "hypervisor") {
                say("virtual machine", "yes".to_owned());
            }
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    say("processors", cores.to_string());
    if let Some(text) = read("/proc/meminfo")
        && let Some(total) = text.lines().next().and_then(|line| line.split_whitespace().nth(1))
        && let Ok(kib) = total.parse::<u64>()
    {
        say("memory", format!("{} MiB", kib / 1024));
    }
    for (name, path) in KERNEL_FILES {
        if let Some(value) = read(path) {
            say(name, value.trim().to_owned());
        }
    }
    for (name, version) in libraries() {
        say(&name, version);
    }
    say(
        "build",
        if is_debug_build() { "debug: CPU times mean nothing" } else { "optimised" }.to_owned(),
    );
    facts
}

/// Versions of the measured libraries, from the lock file of this build.
fn libraries() -> Vec<(String, String)> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
    }
    let lock: Result<Lock, _> = toml::from_str(include_str!("../../Cargo.lock"));
    let packages = lock.map(|lock| lock.package).unwrap_or_default();
    packages
        .into_iter()
        .filter(|package| LIBRARIES.contains(&package.name.as_str()))
        .map(|package| (package.name, package.version))
        .collect()
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Reads a line such as `some avg10=1.53 avg60=0.87 avg300=0.60 total=1234`.
fn some_avg10(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split(' ').find_map(|part| part.strip_prefix("avg10="))?.parse().ok()
}

/// The eighth figure of the first line, in ticks of 10 ms (proc_stat(5): `steal`; USER_HZ is 100).
fn steal_seconds(text: &str) -> Option<f64> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: f64 = line.split_whitespace().nth(7)?.parse().ok()?;
    Some(ticks / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_and_steal_are_read() {
        let text = "some avg10=95.31 avg60=1.00 avg300=0.10 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(some_avg10(text), Some(95.31));
        assert_eq!(some_avg10("full avg10=1.0"), None);
        assert_eq!(steal_seconds("cpu  10 20 30 40 50 60 70 1234 0 0\ncpu0 1 2"), Some(12.34));
        assert_eq!(steal_seconds(""), None);
    }

    #[test]
    fn the_state_names_what_decides_figures() {
        let state = State::now();
        for name in ["kernel", "processors", "rustls", "aws-lc-rs", "s2n-quic", "build"] {
            assert!(
                state.facts.iter().any(|(fact, value)| fact == name && !value.is_empty()),
                "{name}"
            );
        }
    }
}
