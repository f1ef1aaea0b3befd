//! The kernel's own emulator, measured for comparison where the kernel has it. It is not used: netem draws its losses
//! one after the other, so that no two runs have the same losses, and it does not report its lateness.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::clock::nanos;
use super::connects;
use super::namespace::Namespace;
use crate::error::LabError;

/// Times of TCP connects over netem at this round-trip time, in nanoseconds, the shortest first, after the same calibration.
pub(super) fn connect_times(
    rtt: Duration,
    count: usize,
    stop: &AtomicBool,
) -> Result<Vec<u64>, LabError> {
    // Both directions over loopback leave by the same device, each with the delay.
    let (place, ()) = Namespace::make(|| delay(rtt / 2))?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    let times = connects([&place, &place], address, count.min(300), stop)?;
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let error = Duration::from_nanos(median.saturating_sub(nanos(rtt)));
    place.within(|| delay(rtt.saturating_sub(error) / 2))??;
    connects([&place, &place], address, count, stop)
}

/// Sets the delay of the loopback device in this thread's namespace.
fn delay(delay: Duration) -> Result<(), LabError> {
    let delay = format!("{}us", delay.as_micros());
    let output = Command::new("tc")
        .args(["qdisc", "replace", "dev", "lo", "root", "netem", "limit", "10000", "delay", &delay])
        .output()
        .map_err(|error| {
            LabError::unavailable("netem", format!("the program tc of iproute2 ({error})"))
        })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::unavailable("netem", format!("the kernel module sch_netem ({said})")))
}
