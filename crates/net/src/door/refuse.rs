//! How refused clients are told.

use outlast_negotiate::offer::OfferError;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::limits;

/// Response to clients that speak plain HTTP.
const PLAIN_HTTP: &[u8] =
    b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n\
    This is HTTPS: use https:// in the address.\n";

/// Answers bytes that are not a ClientHello.
pub(super) async fn answer(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), error: OfferError) {
    match error.alert() {
        Some(alert) => refuse(stream, alert).await,
        None if error == OfferError::Http => tell(stream, PLAIN_HTTP).await,
        // RFC 8446, section 6: nothing follows an alert.
        None => {}
    }
}

/// Sends a fatal alert, unencrypted because there are no keys yet, and waits for the client to read it.
pub(super) async fn refuse(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), alert: u8) {
    tell(stream, &[21, 3, 3, 0, 2, 2, alert]).await;
}

async fn tell(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), bytes: &[u8]) {
    let telling = async {
        if stream.write_all(bytes).await.is_ok() {
            farewell(stream).await;
        }
    };
    let _ = timeout(limits::LAST_WORDS, telling).await;
}

/// Ends a connection so that the client can read the alert. Bytes that the client has sent in the meantime are read,
/// because otherwise the system would reset the connection and the alert would be lost. A TLS 1.3 client sends its
/// first request together with its certificate.
pub(super) async fn farewell(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let _ = stream.shutdown().await;
    let mut buffer = [0; 4096];
    let mut left = limits::MAX_HEAD;
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        left = left.saturating_sub(read);
        if left == 0 {
            return;
        }
    }
}
