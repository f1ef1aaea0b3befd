//! Bytes of handshakes' flights, and their packets and round trips.

use outlast_pki::whatif::flight;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::subject::{Authentication, Subject};
use crate::tls::{chain, stack};
use crate::trace::Side;

/// Bytes in a TCP segment on Ethernet with IPv4 and timestamps, as Linux sends it.
pub const MSS: u64 = 1448;
/// Bytes that may be sent before the first acknowledgement (RFC 6928).
pub const IW10: u64 = 10 * MSS;
/// Bytes that a QUIC server may send for one datagram of the client's (RFC 9000, section 8.1); a hybrid ClientHello
/// takes two.
pub const THREE_TIMES: u64 = 3 * 1200;

/// A handshake with a chain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Flights {
    /// The key exchange.
    pub key_exchange: String,
    /// The signature algorithm.
    pub authentication: String,
    /// Number of certificates that are sent.
    pub certificates: u8,
    /// Bytes of ClientHello, as records.
    pub client_hello: u64,
    /// Bytes of the server's flight.
    pub server: u64,
    /// Bytes of the client's second flight.
    pub client_finished: u64,
    /// The server's flight by arithmetic, from the sizes of the certificates, the signature and the share.
    pub arithmetic: u64,
    /// The same in QUIC datagrams.
    pub quic: u64,
    /// Further round trips over TCP, after the first.
    pub tcp_round_trips: u64,
    /// The same over QUIC.
    pub quic_round_trips: u64,
}

/// Measures one handshake.
pub fn measure(
    key_exchange: &str,
    authentication: &str,
    certificates: u8,
) -> Result<Flights, LabError> {
    let subject = Subject::new(key_exchange, authentication, certificates)?;
    let trace = stack("rustls")?.prepare(&subject)?.handshake()?;
    let sent = |side, place: usize| {
        let mut steps = trace.steps.iter().filter(|step| step.from == side);
        steps.nth(place).map_or(0, |step| u64::from(step.bytes))
    };
    let row = Authentication::by_name(authentication)?;
    let chain = chain::server(row, certificates)?;
    let arithmetic = flight::server(&flight::Shape {
        chain: &chain.certificates,
        signature: row.signature_len,
        share: subject.key_exchange.server_share_len,
        protocol: None,
        staple: None,
        request: None,
    });
    let (client_hello, server) = (sent(Side::Client, 0), sent(Side::Server, 0));
    // Without the record's header.
    let message = usize::try_from(client_hello).unwrap_or_default().saturating_sub(5);
    let quic = arithmetic.quic_bytes();
    let received = flight::quic_client_bytes(message);
    Ok(Flights {
        key_exchange: key_exchange.to_owned(),
        authentication: authentication.to_owned(),
        certificates,
        client_hello,
        server,
        client_finished: sent(Side::Client, 1),
        arithmetic: arithmetic.bytes() as u64,
        quic: quic as u64,
        tcp_round_trips: extra_round_trips(server),
        quic_round_trips: flight::extra_quic_round_trips(quic, received) as u64,
    })
}

/// Packets that so many bytes take.
pub fn packets(bytes: u64) -> u64 {
    bytes.div_ceil(MSS)
}

/// Further round trips: the window doubles with each.
fn extra_round_trips(bytes: u64) -> u64 {
    let (mut sent, mut window, mut rounds) = (IW10, IW10, 0);
    while sent < bytes {
        window *= 2;
        sent += window;
        rounds += 1;
    }
    rounds
}
