//! Attacks over HTTP/1.1: over TLS, over plain HTTP and through a proxy.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{self, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::attack::Attack;
use super::plain::answer;
use super::tcp::drip;

/// How long an attacker waits for an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Requests that are sent together without waiting for answers.
const PIPELINED: usize = 64;
/// Pause between two such groups.
const PIPELINE_PAUSE: Duration = Duration::from_millis(100);
/// Headers of a flood: with names and values almost the 64 KiB that a head may have.
const HEADERS: usize = 900;
/// Length of the body for an unknown operation, in bytes.
const UNKNOWN_BODY: usize = 50_000;

/// A header, one byte each second.
pub(super) async fn slow_head(attack: Arc<Attack>) -> io::Result<()> {
    let stream = attack.tls().await?;
    attack.sent(1, 0);
    drip(stream, b"POST / HTTP/1.1\r\nHost: localhost\r\n", b"x-slow: yes\r\n").await
}

/// A head that announces a body, and a byte of the body each second.
pub(super) async fn slow_body(attack: Arc<Attack>) -> io::Result<()> {
    let stream = attack.tls().await?;
    attack.sent(1, 0);
    drip(stream, kms_head("TrentService.Encrypt", 60_000).as_bytes(), b" ").await
}

/// The same against plain HTTP for CRLs and OCSP, with a head that never ends.
pub(super) async fn plain_slow_head(attack: Arc<Attack>) -> io::Result<()> {
    let stream = attack.tcp(attack.field.plain).await?;
    attack.sent(1, 0);
    drip(stream, b"GET /ocsp HTTP/1.1\r\nHost: localhost\r\n", b"x-slow: yes\r\n").await
}

/// Many concurrent requests whose answers are not read.
pub(super) async fn pipeline(attack: Arc<Attack>) -> io::Result<()> {
    let stream = attack.tls().await?;
    let together = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(PIPELINED);
    let (mut read, mut write) = io::split(stream);
    let writing = async {
        loop {
            write.write_all(together.as_bytes()).await?;
            write.flush().await?;
            attack.sent(PIPELINED as u64, together.len());
            sleep(PIPELINE_PAUSE).await;
        }
    };
    // Reads a few bytes a second, so that the other side sees a reader that is alive.
    let reading = async {
        let mut few = [0; 64];
        loop {
            if read.read(&mut few).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            sleep(PIPELINE_PAUSE).await;
        }
    };
    tokio::select! { outcome = writing => outcome, outcome = reading => outcome }
}

/// Heads of the largest allowed size.
pub(super) async fn header_flood(attack: Arc<Attack>) -> io::Result<()> {
    let mut head = String::from("GET /healthz HTTP/1.1\r\nHost: localhost\r\n");
    for number in 0..HEADERS {
        head.push_str(&format!("x-flood-{number}: {}\r\n", "f".repeat(40)));
    }
    head.push_str("\r\n");
    again(&attack, Duration::from_millis(100), |_| Ok(head.clone().into_bytes())).await
}

/// Operations that do not exist, with bodies.
pub(super) async fn unknown_operations(attack: Arc<Attack>) -> io::Result<()> {
    let mut request = kms_head("TrentService.Siege", UNKNOWN_BODY).into_bytes();
    request.resize(request.len() + UNKNOWN_BODY, b' ');
    again(&attack, Duration::from_millis(200), |_| Ok(request.clone())).await
}

/// The head of an unsigned KMS call.
pub(super) fn kms_head(target: &str, body: usize) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.1\r\nX-Amz-Target: {target}\r\n\
         Content-Length: {body}\r\n\r\n"
    )
}

/// Sends requests over TLS on one connection, with a pause after each answer, as long as the server answers.
pub(super) async fn again(
    attack: &Attack,
    pause: Duration,
    request: impl Fn(u64) -> io::Result<Vec<u8>>,
) -> io::Result<()> {
    again_on(attack, attack.tls().await?, pause, request).await
}

/// The same on an open connection.
pub(super) async fn again_on(
    attack: &Attack,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    pause: Duration,
    request: impl Fn(u64) -> io::Result<Vec<u8>>,
) -> io::Result<()> {
    for number in 0.. {
        exchange(attack, &mut stream, &request(number)?).await?;
        sleep(pause).await;
    }
    Ok(())
}

/// Sends a request and returns the answer.
pub(super) async fn exchange(
    attack: &Attack,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    request: &[u8],
) -> io::Result<Vec<u8>> {
    attack.sent(1, request.len());
    timeout(ANSWER, async {
        stream.write_all(request).await?;
        stream.flush().await?;
        answer(stream).await
    })
    .await
    .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
