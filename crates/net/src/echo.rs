//! Sends back everything it receives: an endpoint for measuring handshakes and transport, without a backend.

use std::future::Future;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::door::Door;
use crate::limits;
use crate::quic::{Accepted, Listener};

/// ALPN name of the endpoint.
pub const PROTOCOL: &str = "echo";

/// Bytes of one read.
const PIECE: usize = 16 * 1024;

/// Serves TLS over TCP until `stop` is ready.
pub async fn over_tcp(door: Arc<Door>, listener: TcpListener, stop: impl Future<Output = ()>) {
    let slots = Arc::new(Semaphore::new(limits::MAX_CONNECTIONS));
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => return,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(limits::STOPPING).await;
            continue;
        };
        let Ok(slot) = slots.clone().try_acquire_owned() else { continue };
        let door = door.clone();
        tokio::spawn(async move {
            if let Err(error) = tcp(&door, stream).await {
                tracing::debug!(%peer, %error, "a connection ended with an error");
            }
            drop(slot);
        });
    }
}

async fn tcp(door: &Door, stream: TcpStream) -> io::Result<()> {
    let _ = stream.set_nodelay(true);
    let peer = stream.peer_addr().ok();
    let accepted = timeout(limits::HANDSHAKE, door.accept(stream, peer)).await;
    let mut accepted = accepted.map_err(|_| io::ErrorKind::TimedOut)??;
    let mut piece = vec![0; PIECE];
    loop {
        let reading = timeout(limits::REQUEST_HEAD, accepted.stream.read(&mut piece)).await;
        let read = reading.map_err(|_| io::ErrorKind::TimedOut)??;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return accepted.stream.shutdown().await;
        };
        let writing = async {
            accepted.stream.write_all(bytes).await?;
            accepted.stream.flush().await
        };
        timeout(limits::REQUEST_HEAD, writing).await.map_err(|_| io::ErrorKind::TimedOut)??;
    }
}

/// Serves QUIC until `stop` is ready, each bidirectional stream separately.
pub async fn over_quic(mut listener: Listener, stop: impl Future<Output = ()>) {
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => return,
        };
        let Some(accepted) = accepted else { return };
        tokio::spawn(quic(accepted));
    }
}

async fn quic(accepted: Accepted) {
    let Accepted { mut connection, watch, slot, .. } = accepted;
    // A silent connection is ended by its idle timeout and not closed for another one.
    let _use = slot.activity().begin();
    while let Ok(Some(mut stream)) = connection.accept_bidirectional_stream().await {
        tokio::spawn(async move {
            while let Ok(Some(bytes)) = stream.receive().await {
                if stream.send(bytes).await.is_err() {
                    return;
                }
            }
            let _ = stream.finish();
        });
    }
    drop((watch, slot));
}
