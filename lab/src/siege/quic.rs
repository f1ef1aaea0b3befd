//! Attacks over QUIC, and the good client's calls over it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint, TransportConfig, VarInt};
use tokio::io;
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};

use super::attack::Attack;
use super::field::{attackers_address, client_config};
use super::limits::MAX_ANSWER;
use crate::error::LabError;
use crate::server::NAME;

/// How long the first packets of a handshake are forwarded before the next begins.
const FIRST_PACKETS: Duration = Duration::from_millis(50);
/// Keep-alive interval of an idle connection.
const ALIVE: Duration = Duration::from_secs(5);
/// Streams without a request on a connection.
const SILENT_STREAMS: usize = 32;
/// Longest datagram, in bytes.
const DATAGRAM: usize = 65_535;

/// First packets of handshakes whose answers nobody reads. A library writes them to a socket of ours, which forwards
/// them from another one, so that nothing is acknowledged and nothing is closed.
pub(super) async fn initials(attack: Arc<Attack>) -> io::Result<()> {
    let target = attack.field.access.address;
    let any = SocketAddr::new(attackers_address(target), 0);
    let (black_hole, out) = (UdpSocket::bind(any).await?, UdpSocket::bind(any).await?);
    out.connect(target).await?;
    let endpoint = endpoint(&attack, any)?;
    let connecting = endpoint.connect(black_hole.local_addr()?, NAME).map_err(io::Error::other)?;
    let passing = async {
        let mut datagram = vec![0; DATAGRAM];
        loop {
            let len = black_hole.recv(&mut datagram).await?;
            let bytes = datagram.get(..len).unwrap_or_default();
            // A port that nobody listens at returns an error.
            if out.send(bytes).await.is_err() {
                attack.was_refused();
            }
            attack.sent(0, len);
        }
    };
    attack.opened();
    let passed: Result<io::Result<()>, _> = timeout(FIRST_PACKETS, passing).await;
    // The CONNECTION_CLOSE goes nowhere.
    drop(connecting);
    passed.unwrap_or(Ok(()))
}

/// Connections that stay open and ask nothing.
pub(super) async fn idle(attack: Arc<Attack>) -> io::Result<()> {
    let (_endpoint, connection) = connection(&attack).await?;
    Err(io::Error::other(connection.closed().await))
}

/// Connections with streams without a request.
pub(super) async fn silent_streams(attack: Arc<Attack>) -> io::Result<()> {
    let (_endpoint, connection) = connection(&attack).await?;
    let mut open = Vec::new();
    for _ in 0..SILENT_STREAMS {
        let stream = timeout(ALIVE, connection.open_bi()).await;
        let (mut send, receive) = match stream {
            Ok(stream) => stream.map_err(io::Error::other)?,
            // No more streams are allowed.
            Err(_) => break,
        };
        // The first byte of a HEADERS frame: the server does not see a stream before its first byte.
        send.write_all(&[1]).await.map_err(io::Error::other)?;
        attack.sent(1, 1);
        open.push((send, receive));
    }
    Err(io::Error::other(connection.closed().await))
}

async fn connection(attack: &Attack) -> io::Result<(Endpoint, Connection)> {
    let target = attack.field.access.address;
    let endpoint = endpoint(attack, SocketAddr::new(attackers_address(target), 0))?;
    let connected = endpoint.connect(target, NAME).map_err(io::Error::other)?.await;
    match connected {
        Ok(connection) => {
            attack.opened();
            Ok((endpoint, connection))
        }
        Err(error) => {
            attack.was_refused();
            sleep(FIRST_PACKETS).await;
            Err(io::Error::other(error))
        }
    }
}

fn endpoint(attack: &Attack, from: SocketAddr) -> io::Result<Endpoint> {
    let roots = attack.field.access.roots().map_err(io::Error::other)?;
    let config = config(&roots).map_err(io::Error::other)?;
    let mut endpoint = Endpoint::client(from)?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// An HTTP/3 client.
pub(super) fn config(roots: &[Vec<u8>]) -> Result<ClientConfig, LabError> {
    let tls = client_config(roots, &[b"h3"])?;
    let tls = QuicClientConfig::try_from(tls).map_err(LabError::failed)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    let mut transport = TransportConfig::default();
    transport.keep_alive_interval(Some(ALIVE));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// `GET /healthz` over HTTP/3 on a new connection, without knowing anything of the server: its head in fields of the
/// static table (RFC 9204, appendix A), and the end of the stream.
pub(super) async fn get_health(endpoint: &Endpoint, server: SocketAddr) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let connecting = endpoint.connect(server, NAME).map_err(|error| text(&error))?;
    let connection = connecting.await.map_err(|error| text(&error))?;
    // The control stream with empty settings (RFC 9114, section 6.2.1).
    let mut control = connection.open_uni().await.map_err(|error| text(&error))?;
    control.write_all(&[0, 4, 0]).await.map_err(|error| text(&error))?;
    let (mut send, mut receive) = connection.open_bi().await.map_err(|error| text(&error))?;
    let mut fields = vec![0, 0, 0xc0 | 17, 0xc0 | 23, 0x50, 9];
    fields.extend_from_slice(b"localhost");
    fields.extend_from_slice(&[0x51, 8]);
    fields.extend_from_slice(b"/healthz");
    let len = u8::try_from(fields.len()).unwrap_or_default();
    let frame = [&[1, len], fields.as_slice()].concat();
    send.write_all(&frame).await.map_err(|error| text(&error))?;
    send.finish().map_err(|error| text(&error))?;
    let answer = receive.read_to_end(MAX_ANSWER).await.map_err(|error| text(&error))?;
    connection.close(VarInt::from_u32(0x100), b"");
    if is_ok(&answer) {
        return Ok(());
    }
    Err(format!("the answer over HTTP/3 is not 200: {}", hex::encode(answer)))
}

/// Whether an answer begins with a HEADERS frame that begins with `:status: 200`: row 25 of the static table, after
/// the two bytes that say that no dynamic table is used.
fn is_ok(answer: &[u8]) -> bool {
    let Some(([1, len], _)) = answer.split_first_chunk::<2>() else { return false };
    // The two highest bits of a length give its number of bytes (RFC 9000, section 16).
    let begin = 1 + (1 << (len >> 6));
    answer.get(begin..begin + 3) == Some(&[0, 0, 0xc0 | 25])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_found_behind_a_length_of_any_form() {
        for (answer, ok) in [
            ("0103 0000d9", true),
            ("014048 0000d9f5", true),
            ("0180000048 0000d9f5", true),
            ("0103 0000db", false),
            ("0003 0000d9", false),
            ("0103 00", false),
            ("01", false),
            ("", false),
        ] {
            assert_eq!(is_ok(&hex::decode(answer.replace(' ', "")).unwrap()), ok, "{answer}");
        }
    }
}
