//! Settings that are pinned in the namespaces, so that a measurement does not depend on the machine's own.

use std::fs;
use std::path::Path;

use crate::error::LabError;

/// Settings of a namespace: name below `/proc/sys/net`, value, and why.
static PINNED: &[(&str, &str)] = &[
    ("ipv4/tcp_congestion_control", CONGESTION),
    // Otherwise a loss affects the next connection.
    ("ipv4/tcp_no_metrics_save", "1"),
    ("ipv4/tcp_fastopen", "0"),
    ("ipv4/tcp_sack", "1"),
    ("ipv4/tcp_dsack", "1"),
    ("ipv4/tcp_timestamps", "1"),
    ("ipv4/tcp_window_scaling", "1"),
    ("ipv4/tcp_ecn", "0"),
    // RACK, and TLP.
    ("ipv4/tcp_recovery", "1"),
    ("ipv4/tcp_early_retrans", "3"),
    ("ipv4/tcp_syn_linear_timeouts", "4"),
    ("ipv4/tcp_rto_min_us", "200000"),
    ("ipv4/tcp_slow_start_after_idle", "1"),
    // A connection attempt lasts as long as its caller waits: at 20 % loss the default of six retries sometimes gives
    // up.
    ("ipv4/tcp_syn_retries", "20"),
    ("ipv4/tcp_synack_retries", "20"),
    ("ipv4/tcp_syncookies", "0"),
    ("ipv4/tcp_max_syn_backlog", "4096"),
    ("core/somaxconn", "4096"),
    // Thousands of connections in a minute from one address.
    ("ipv4/tcp_tw_reuse", "1"),
    ("ipv4/ip_local_port_range", "10000 59999"),
    ("ipv6/conf/all/disable_ipv6", "1"),
    ("ipv6/conf/default/disable_ipv6", "1"),
];

/// Settings that are only reported.
static TOLD: &[&str] = &[
    "ipv4/tcp_rmem",
    "ipv4/tcp_wmem",
    "ipv4/tcp_min_tso_segs",
    "ipv4/tcp_pingpong_thresh",
    "ipv4/tcp_autocorking",
];

/// The congestion control of nearly every published measurement.
const CONGESTION: &str = "cubic";
/// In the initial namespace: the congestion controls that others may choose.
pub(super) const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// The value for [`ALLOWED`] with which the namespaces may use the congestion control; `None` if it is allowed
/// already.
pub(super) fn to_allow() -> Option<(String, String)> {
    let allowed = fs::read_to_string(ALLOWED).ok()?.trim().to_owned();
    let there = allowed.split_whitespace().any(|name| name == CONGESTION);
    (!there).then(|| (format!("{allowed} {CONGESTION}"), allowed))
}

/// Whether the kernel has the congestion control; true if that is unknown.
pub(super) fn has_congestion() -> bool {
    fs::read_to_string(AVAILABLE)
        .map_or(true, |text| text.split_whitespace().any(|name| name == CONGESTION))
}

/// The congestion controls that the kernel has loaded.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Pins the settings of the namespace of this thread.
pub(super) fn pin() -> Result<(), LabError> {
    for (name, value) in PINNED {
        let path = Path::new("/proc/sys/net").join(name);
        // Older kernels lack some.
        if path.exists() {
            fs::write(&path, value).map_err(|error| LabError::file(&path, error))?;
        }
    }
    Ok(())
}

/// The settings of the namespace of this thread, by name.
pub(super) fn told() -> Vec<(String, String)> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let names = PINNED.iter().map(|(name, _)| *name).chain(TOLD.iter().copied());
    let rows = names.filter_map(|name| {
        let value = fs::read_to_string(Path::new("/proc/sys/net").join(name)).ok()?;
        let short = name.rsplit_once('/').map_or(name, |(_, last)| last);
        Some((short.to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" ")))
    });
    std::iter::once(("kernel".to_owned(), release)).chain(rows).collect()
}
