//! Engine 3: real stacks in network namespaces over an emulated link.

use std::net::SocketAddr;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::link::{Link, Outcome, Transfer};
use crate::run::Settings;
use crate::subject::Subject;
use crate::trace::Side;

/// What the emulation did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// How it emulates: `tun` or `netem`.
    pub emulator: String,
    /// Whether its thread has real-time priority.
    pub real_time: bool,
    /// Median of TCP connect times less the asked round-trip time, before calibration, in microseconds.
    pub uncalibrated_us: f64,
    /// The same after calibration.
    pub calibrated_us: f64,
    /// Packets that went each way: client to server, server to client.
    pub packets: [u64; 2],
    /// Packets that were lost on purpose, each way.
    pub lost: [u64; 2],
    /// Lateness in microseconds: upper edges of the histogram's bins.
    pub late_edges_us: Vec<f64>,
    /// Packets in each bin; one more for those beyond.
    pub late_counts: Vec<u64>,
    /// Congestion control and what else was pinned.
    pub kernel: Vec<(String, String)>,
}

/// An emulated link with a namespace at each end. Taken down when dropped, and by the next start after a kill.
pub struct Live;

/// Whether this machine can; the error says what it needs.
pub fn available() -> Result<(), LabError> {
    Err(LabError::unavailable("the live engine", "network namespaces"))
}

impl Live {
    /// Makes namespaces and link, and calibrates.
    pub fn open(settings: &Settings, link: &Link, seed: u64) -> Result<Self, LabError> {
        let _ = (settings, link, seed);
        available().map(|()| Self)
    }

    /// Connections one after the other, flows from `first` on: the same seed and flow lose the same packets.
    pub fn connections(
        &mut self,
        stack: &str,
        subject: &Subject,
        transfer: Transfer,
        first: u64,
        count: u64,
    ) -> Result<Vec<Outcome>, LabError> {
        let _ = (stack, subject, transfer, first, count);
        available().map(|()| Vec::new())
    }

    /// The command, to be run at this end of the link.
    pub fn at(&self, side: Side, command: Command) -> Command {
        let _ = side;
        command
    }

    /// Where a server at the server's end listens on this port.
    pub fn server_address(&self, port: u16) -> SocketAddr {
        ([10, 0, 0, 1], port).into()
    }

    /// What the emulation did so far.
    pub fn proof(&self) -> Result<Proof, LabError> {
        Err(LabError::failed("no proof"))
    }
}
