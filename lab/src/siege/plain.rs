//! Reads answers of HTTP/1.1, over TLS or not.

use std::net::SocketAddr;

use tokio::io::{self, AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Makes a GET over plain HTTP on a new connection.
pub(super) async fn get(from: SocketAddr, path: &str) -> Result<Vec<u8>, String> {
    let mut stream = TcpStream::connect(from).await.map_err(|error| error.to_string())?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
    let answer = answer(&mut stream).await.map_err(|error| error.to_string())?;
    if answer.starts_with(b"HTTP/1.1 200 ") {
        return Ok(answer);
    }
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Err(format!("{path} was answered with {}", String::from_utf8_lossy(line)))
}

/// Reads an answer with a length, head and body.
pub(super) async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        if let Some(head) = head {
            let text = String::from_utf8_lossy(bytes.get(..head).unwrap_or_default()).into_owned();
            let len = header(&text, "content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
            if bytes.len() >= head + len {
                return Ok(bytes);
            }
        }
        let read = stream.read(&mut piece).await?;
        if read == 0 || bytes.len() > super::limits::MAX_ANSWER {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
}

/// A header of an answer.
pub(super) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}
