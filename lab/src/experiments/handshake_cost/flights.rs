//! The flights of a handshake compared with what TCP and QUIC may send at once.

use std::time::Duration;

use crate::error::LabError;
use crate::experiments::play::milliseconds;
use crate::link::{Link, Transfer};
use crate::model::{self, PROFILES};
use crate::trace::{Side, Trace};

/// Bytes of TLS in a TCP segment on Ethernet: 1500 minus 20 for IP, 20 for TCP and 12 for its timestamps.
pub(super) const MSS: u64 = 1448;
/// Bytes that TCP may send before the first acknowledgement: ten segments (RFC 6928, section 2).
pub(super) const FIRST_WINDOW: u64 = 10 * MSS;
/// A client's first QUIC datagrams have at least this size (RFC 9000, section 14.1).
pub(super) const INITIAL: u64 = 1200;
/// Room for handshake bytes in such a datagram: without header (1 + 4 + 1 + 8 + 1 + 8 + 1 + 2 + 2), CRYPTO frame (1 +
/// 1 + 2) and tag (16).
pub(super) const INITIAL_CRYPTO: u64 = 1152;
/// A server may send so many times the bytes it has received before the client's address is validated (RFC 9000,
/// section 8.1).
pub(super) const AMPLIFICATION: u64 = 3;
/// IP and TCP headers of a packet, with timestamps.
pub(super) const HEADERS: u64 = 52;

/// A handshake's flights.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flights {
    /// The measured trace.
    pub(super) trace: Trace,
    /// Bytes of the client's first flight.
    pub(super) client_hello: u64,
    /// Bytes of the server's flight with the certificates, or with what replaces them.
    pub(super) server_flight: u64,
    /// Bytes up to the client's Finished: client, server.
    pub(super) bytes: [u64; 2],
    /// Packets for them.
    pub(super) packets: [u64; 2],
    /// CPU in microseconds: client, server.
    pub(super) cpu_us: [f64; 2],
}

impl Flights {
    /// The flights of a trace.
    pub(super) fn of(trace: Trace) -> Result<Self, LabError> {
        let until = trace.steps.get(..=trace.client_done).unwrap_or(&trace.steps);
        let sent = |side: Side| {
            until.iter().filter(move |step| step.from == side).map(|step| u64::from(step.bytes))
        };
        let client_hello = sent(Side::Client).next();
        let server_flight = sent(Side::Server).next_back();
        let (Some(client_hello), Some(server_flight)) = (client_hello, server_flight) else {
            return Err(LabError::failed("a handshake without flights"));
        };
        let packets = [Side::Client, Side::Server]
            .map(|side| sent(side).map(|bytes| bytes.div_ceil(MSS)).sum());
        let cpu_us =
            [Side::Client, Side::Server].map(|side| milliseconds(trace.cpu_ns(side)) * 1e3);
        let bytes = [Side::Client, Side::Server].map(|side| trace.bytes(side));
        Ok(Self { client_hello, server_flight, bytes, packets, cpu_us, trace })
    }

    /// Datagrams of the client's first flight over QUIC.
    fn datagrams(&self) -> u64 {
        self.client_hello.div_ceil(INITIAL_CRYPTO).max(1)
    }

    /// Bytes that a QUIC server may send at first.
    pub(super) fn quic_limit(&self) -> u64 {
        AMPLIFICATION * INITIAL * self.datagrams()
    }

    /// IP bytes of a handshake in both directions: TLS, and headers of packets with data.
    pub(super) fn ip_bytes(&self) -> u64 {
        let packets: u64 = self.packets.iter().sum();
        self.bytes.iter().sum::<u64>() + packets * HEADERS
    }

    /// Time of the handshake over a link without loss, in milliseconds since the SYN, by the model.
    pub(super) fn over(&self, rtt: Duration) -> Option<f64> {
        let profile = PROFILES.first()?;
        let transfer = Transfer { request: 1, body: 1 };
        let outcome = model::connect(profile, &Link::new(rtt, 0.0), &self.trace, transfer, 0, 0);
        Some(milliseconds(outcome.handshake_ns))
    }

    /// The limits that it exceeds, in words.
    pub(super) fn passed(&self) -> Vec<String> {
        let mut passed = Vec::new();
        if self.client_hello > MSS {
            passed.push(format!("ClientHello over one MSS ({} > {MSS})", self.client_hello));
        }
        if self.server_flight > FIRST_WINDOW {
            passed.push(format!("server over IW10 ({} > {FIRST_WINDOW})", self.server_flight));
        }
        if self.server_flight > self.quic_limit() {
            passed.push(format!(
                "server over QUIC's 3x ({} > {})",
                self.server_flight,
                self.quic_limit()
            ));
        }
        passed
    }
}
