//! The table of kernels: how each one's TCP behaves, where it differs.

use serde::{Deserialize, Serialize};

/// How a kernel's TCP behaves.
#[derive(Debug)]
pub struct Profile {
    /// Name on the command line and in plans, such as `linux-6.18`.
    pub name: &'static str,
    /// What it does.
    pub tcp: Tcp,
    /// Source of these values.
    pub source: &'static str,
}

/// What differs between kernels, and between set-ups of an emulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tcp {
    /// Clock ticks per second (`CONFIG_HZ`).
    pub hz: u32,
    /// First congestion window in packets (`TCP_INIT_CWND`, RFC 6928; `initcwnd` of a route).
    pub first_window: u32,
    /// SYNs that are retransmitted after one second each, before the interval doubles (`tcp_syn_linear_timeouts`).
    pub linear_syns: u32,
    /// Added to the timers of probes and reordering, in microseconds; 0 stands for two ticks (`TCP_TIMEOUT_MIN`).
    pub least_timeout_us: u64,
    /// Least time that RACK waits for packets out of order, in microseconds.
    pub reordering_floor_us: u64,
    /// Replies after which a connection counts as interactive, so that its acknowledgements are delayed
    /// (`TCP_PINGPONG_THRESH`).
    pub replies: u8,
    /// Whether a connection whose SYN was retransmitted spuriously still starts with a full window.
    pub undoes_syn: bool,
    /// Whether the emulation loses as a whole what TCP hands over in one piece. No network does that; `netem` does,
    /// unless packets are segmented before it.
    pub pieces: bool,
    /// Whether a client's first timeout comes from the round-trip time that its kernel saved of earlier connections to the
    /// same server, if that is longer (`TCP_METRIC_RTT`; not with `tcp_no_metrics_save`).
    #[serde(alias = "patient_client")]
    pub client_saves: bool,
    /// Packets that must be acknowledged selectively until a client takes those before them for lost without waiting
    /// (`tcp_reordering`): 3, or the reordering that its kernel has saved (`TCP_METRIC_REORDERING`).
    pub client_reordering: u32,
}

/// Today's kernel on a server, whose clients have nothing saved: the live engine, with which it is compared, sets
/// `tcp_no_metrics_save`.
const TODAY: Tcp = Tcp {
    hz: 250,
    first_window: 10,
    linear_syns: 4,
    least_timeout_us: 2_000,
    reordering_floor_us: 0,
    replies: 1,
    undoes_syn: true,
    pieces: false,
    client_saves: false,
    client_reordering: 3,
};

/// Linux 5.0 under netem.
const NETEM: Tcp =
    Tcp { linear_syns: 0, least_timeout_us: 0, undoes_syn: false, pieces: true, ..TODAY };

impl Default for Tcp {
    fn default() -> Self {
        TODAY
    }
}

/// All profiles; the first one is the default.
pub static PROFILES: &[Profile] = &[
    Profile {
        name: "linux-6.18",
        tcp: TODAY,
        source: "net/ipv4 of Linux 6.18: tcp_syn_linear_timeouts (since 6.5), TCP_TIMEOUT_MIN_US (since 6.7), \
                 tcp_pingpong_thresh; HZ=250 as most distributions of servers configure",
    },
    Profile {
        name: "linux-6.18-1000hz",
        tcp: Tcp { hz: 1000, ..TODAY },
        source: "as linux-6.18, with HZ=1000 as Fedora, Arch and Ubuntu since 24.10 configure",
    },
    Profile {
        name: "linux-5.4",
        tcp: Tcp { linear_syns: 0, least_timeout_us: 0, replies: 3, ..TODAY },
        source: "net/ipv4 of Linux 5.4 (Ubuntu 20.04, HZ=250): SYNs back off from the first, TCP_TIMEOUT_MIN is two ticks, \
                 TCP_PINGPONG_THRESH is 3 (since 5.1)",
    },
    Profile {
        name: "linux-4.15",
        tcp: Tcp {
            linear_syns: 0,
            least_timeout_us: 0,
            reordering_floor_us: 1_000,
            undoes_syn: false,
            ..TODAY
        },
        source: "net/ipv4 of Linux 4.15 (Ubuntu 18.04, HZ=250): as 5.4, RACK waits 1 ms at least, one reply makes a \
                 conversation",
    },
    Profile {
        name: "linux-5.0-netem",
        tcp: Tcp { client_saves: true, client_reordering: 7, ..NETEM },
        source: "net/ipv4 of Linux 5.0 (Ubuntu 18.04's later kernels, HZ=250) under netem as the study of 2019 set it up: since \
                 4.17 TCP hands over pieces of several packets whatever `ethtool -K gso off` says, and netem loses a piece whole; \
                 clients close right after the handshake; if the FIN's acknowledgement is the first to arrive, their kernel saves metrics, and \
                 the server's, which gets a reset for its tickets, saves none (tcp_metrics.c). That it is this kernel, that pieces are lost \
                 whole, that two repetitions of a SYN-ACK leave a window of one packet, that clients save metrics and that they had saved a reordering \
                 was concluded from the data of 2019 with loss",
    },
    Profile {
        name: "linux-5.0-netem-fresh",
        tcp: NETEM,
        source: "as linux-5.0-netem, with clients whose kernel has saved nothing. The study of 2022 names no kernel, and how its connections end is \
                 not known: that this profile stands for it is an assumption",
    },
];

impl Profile {
    /// The row with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        PROFILES.iter().find(|profile| profile.name == name)
    }
}
