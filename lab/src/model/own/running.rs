//! The running kernel as a profile, by what it says of itself: its version, its settings and its clock.

use std::fs;

use rustix::time::{ClockId, clock_getres};

use super::{Kernel, Tcp};
use crate::error::LabError;

/// First versions with a behaviour, from the kernel's sources.
const PINGPONG_THREE: (u32, u32) = (5, 1);
const PINGPONG_ONE_AGAIN: (u32, u32) = (6, 4);
const UNDOES_SYN: (u32, u32) = (5, 2);
const NO_REORDERING_FLOOR: (u32, u32) = (4, 18);
const TIMEOUT_MIN_US: (u32, u32) = (6, 7);

/// What a kernel says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    release: String,
    /// Resolution of its coarse clock, which is a tick.
    tick_ns: u64,
    linear_syns: Option<u32>,
    pingpong: Option<u8>,
}

/// The running kernel under this name.
pub fn running(name: &str) -> Result<Kernel, LabError> {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    let setting = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok();
    let told = Told {
        release: rustix::system::uname().release().to_string_lossy().into_owned(),
        tick_ns: u64::try_from(tick.tv_nsec).unwrap_or_default(),
        linear_syns: setting("tcp_syn_linear_timeouts").and_then(|text| text.trim().parse().ok()),
        pingpong: setting("tcp_pingpong_thresh").and_then(|text| text.trim().parse().ok()),
    };
    told.kernel(name)
}

impl Told {
    fn kernel(&self, name: &str) -> Result<Kernel, LabError> {
        let what = "the running kernel's profile";
        let version = version(&self.release).ok_or_else(|| {
            LabError::unavailable(what, format!("its release is {}", self.release))
        })?;
        let hz = match self.tick_ns {
            0 => return Err(LabError::unavailable(what, "its coarse clock has no resolution")),
            tick => {
                u32::try_from((1_000_000_000 + tick / 2) / tick).unwrap_or(250).clamp(100, 1000)
            }
        };
        let replies = self.pingpong.unwrap_or(match version {
            version if version < PINGPONG_THREE => 1,
            version if version < PINGPONG_ONE_AGAIN => 3,
            _ => 1,
        });
        Ok(Kernel {
            name: name.to_owned(),
            tcp: Tcp {
                hz,
                linear_syns: self.linear_syns.unwrap_or(0).min(20),
                least_timeout_us: if version >= TIMEOUT_MIN_US { 2_000 } else { 0 },
                reordering_floor_us: if version >= NO_REORDERING_FLOOR { 0 } else { 1_000 },
                replies: replies.clamp(1, 16),
                undoes_syn: version >= UNDOES_SYN,
                ..Tcp::default()
            },
            source: format!(
                "Linux {} as it says of itself: version, tcp_syn_linear_timeouts, tcp_pingpong_thresh, resolution of CLOCK_MONOTONIC_COARSE",
                self.release
            ),
        })
    }
}

/// Major and minor number of a release such as `6.18.0-rc1+`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|one: char| !one.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PROFILES;

    fn told(release: &str, tick_ns: u64, linear: Option<u32>, pingpong: Option<u8>) -> Kernel {
        Told { release: release.to_owned(), tick_ns, linear_syns: linear, pingpong }
            .kernel("here")
            .unwrap()
    }

    /// Kernels that are in the table come out as there.
    #[test]
    fn known_kernels_are_recognised() {
        let made = [
            ("linux-6.18", told("6.18.5-amd64", 4_000_000, Some(4), Some(1))),
            ("linux-6.18-1000hz", told("6.18.0", 1_000_000, Some(4), None)),
            ("linux-5.4", told("5.4.0-150-generic", 4_000_000, None, None)),
            ("linux-4.15", told("4.15.0", 4_000_000, None, None)),
        ];
        for (name, made) in made {
            let row = PROFILES.iter().find(|row| row.name == name).unwrap();
            let same = Kernel { source: made.source.clone(), ..Kernel::like("here", row) };
            assert_eq!(made, same, "{name}");
        }
        let odd = Told { release: "custom".into(), tick_ns: 1, linear_syns: None, pingpong: None };
        assert!(odd.kernel("x").unwrap_err().to_string().contains("custom"));
    }

    #[test]
    fn the_running_kernel_has_a_profile() {
        let here = running("here").unwrap();
        assert!(
            (100..=1000).contains(&here.tcp.hz) && here.source.starts_with("Linux "),
            "{here:?}"
        );
    }
}
