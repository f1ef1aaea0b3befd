//! The part of PostgreSQL's protocol before TLS ("Message Flow": "SSL Session Encryption", "GSSAPI Session
//! Encryption").

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::pieces::Wide;
use crate::limits;

/// ALPN name for direct TLS, since PostgreSQL 17.
pub const ALPN: &str = "postgresql";

/// Length and code of the packets that request encryption.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const GSS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 48];
/// First byte of a TLS record with a ClientHello (RFC 8446, section 5.1).
const TLS_HANDSHAKE: u8 = 22;

/// How a client begins TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// It asked for TLS, and the answer was yes.
    Asked,
    /// Directly; then it must use ALPN, or the connection may have been meant for another protocol.
    Direct,
}

/// Reads a client's messages before TLS and answers them.
pub(crate) async fn begin<S>(stream: &mut Wide<S>) -> io::Result<Start>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    for _ in 0..=limits::MAX_POSTGRES_REQUESTS {
        while stream.ahead().len() < SSL_REQUEST.len() {
            if stream.ahead().first() == Some(&TLS_HANDSHAKE) {
                return Ok(Start::Direct);
            }
            stream.more().await?;
        }
        if stream.ahead().first() == Some(&TLS_HANDSHAKE) {
            return Ok(Start::Direct);
        }
        let gss = stream.ahead().starts_with(&GSS_REQUEST);
        if !gss && !stream.ahead().starts_with(&SSL_REQUEST) {
            // Not inside TLS, where the client needs an error that it can show to its user.
            stream.write_all(&refusal("the connection must be encrypted: sslmode=require")).await?;
            return Err(invalid("a PostgreSQL client did not ask for TLS"));
        }
        stream.skip(SSL_REQUEST.len());
        // CVE-2021-23214: bytes that somebody injected before TLS must not count as received over TLS.
        if !stream.ahead().is_empty() {
            return Err(invalid("a PostgreSQL client sent more than its request before TLS"));
        }
        stream.write_all(if gss { b"N" } else { b"S" }).await?;
        if !gss {
            return Ok(Start::Asked);
        }
    }
    Err(invalid("a PostgreSQL client asks for encryption again and again"))
}

/// The same without encryption: a client that asks for it gets a no, and continues without or leaves.
pub(crate) async fn begin_plain<S>(stream: &mut Wide<S>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    for _ in 0..=limits::MAX_POSTGRES_REQUESTS {
        while stream.ahead().len() < SSL_REQUEST.len() {
            stream.more().await?;
        }
        if ![SSL_REQUEST, GSS_REQUEST].iter().any(|request| stream.ahead().starts_with(request)) {
            return Ok(());
        }
        stream.skip(SSL_REQUEST.len());
        stream.write_all(b"N").await?;
    }
    Err(invalid("a PostgreSQL client asks for encryption again and again"))
}

/// Asks a backend for TLS.
pub(crate) async fn ask_for_tls<S>(stream: &mut S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(&SSL_REQUEST).await?;
    // Exactly one byte: plaintext after it (CVE-2021-23222) is then parsed as TLS and rejected.
    match stream.read_u8().await? {
        b'S' => Ok(()),
        b'N' => Err(invalid("the PostgreSQL server does not support TLS")),
        _ => Err(invalid("the server does not answer as PostgreSQL does")),
    }
}

/// An ErrorResponse: FATAL, 28000 (invalid authorization specification).
pub(crate) fn refusal(message: &str) -> Vec<u8> {
    error_response("28000", message)
}

/// An ErrorResponse: FATAL, 08006 (connection failure).
pub(crate) fn unavailable(message: &str) -> Vec<u8> {
    error_response("08006", message)
}

fn error_response(code: &str, message: &str) -> Vec<u8> {
    let mut fields = Vec::new();
    for (kind, text) in [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', code), (b'M', message)] {
        fields.push(kind);
        fields.extend(text.as_bytes());
        fields.push(0);
    }
    fields.push(0);
    let mut out = vec![b'E'];
    out.extend(u32::try_from(fields.len() + 4).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(fields);
    out
}

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answer(bytes: &[u8]) -> (io::Result<Start>, Vec<u8>) {
        let (mut client, server) = tokio::io::duplex(1024);
        client.write_all(bytes).await.unwrap();
        client.shutdown().await.unwrap();
        let mut server = Wide::new(server);
        let outcome = begin(&mut server).await;
        drop(server);
        let mut said = Vec::new();
        client.read_to_end(&mut said).await.unwrap();
        (outcome, said)
    }

    #[tokio::test]
    async fn what_comes_before_tls() {
        let start_up = [0, 0, 0, 9, 0, 3, 0, 0, 0];
        let twice = [GSS_REQUEST, GSS_REQUEST, GSS_REQUEST, GSS_REQUEST];
        let (outcome, said) = answer(&SSL_REQUEST).await;
        assert_eq!((outcome.unwrap(), said.as_slice()), (Start::Asked, &b"S"[..]));
        assert_eq!(answer(&[22, 3, 1, 2, 0, 1, 0, 1, 252]).await.0.unwrap(), Start::Direct);
        assert_eq!(answer(&[22]).await.0.unwrap(), Start::Direct);
        let (outcome, said) = answer(&start_up).await;
        assert!(outcome.is_err() && said.starts_with(b"E"));
        // Nothing may follow the request in the same packet.
        for extra in [&[22, 3, 1][..], &start_up, &SSL_REQUEST] {
            let (outcome, said) = answer(&[&SSL_REQUEST, extra].concat()).await;
            assert!(outcome.is_err() && said.is_empty(), "{extra:?}: {outcome:?}");
        }
        assert!(answer(&twice.concat()).await.0.is_err());
        // An incomplete request is waited for.
        let error = answer(&SSL_REQUEST[..7]).await.0.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    /// A refusal of GSSAPI, after which the client can still ask for TLS.
    #[tokio::test]
    async fn tls_after_gssapi() {
        let (mut client, server) = tokio::io::duplex(1024);
        let server = tokio::spawn(async move { begin(&mut Wide::new(server)).await });
        for (request, expected) in [(GSS_REQUEST, b'N'), (SSL_REQUEST, b'S')] {
            client.write_all(&request).await.unwrap();
            assert_eq!(client.read_u8().await.unwrap(), expected);
        }
        assert_eq!(server.await.unwrap().unwrap(), Start::Asked);
    }

    #[tokio::test]
    async fn where_there_is_no_tls() {
        let (mut client, server) = tokio::io::duplex(1024);
        let server = tokio::spawn(async move {
            let mut server = Wide::new(server);
            begin_plain(&mut server).await.map(|()| server.ahead().to_vec())
        });
        client.write_all(&SSL_REQUEST).await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'N');
        let start_up = [0, 0, 0, 9, 0, 3, 0, 0, 0];
        client.write_all(&start_up).await.unwrap();
        assert_eq!(server.await.unwrap().unwrap(), start_up);
    }

    #[tokio::test]
    async fn a_server_is_asked() {
        for (answer, well) in [(b'S', true), (b'N', false), (b'E', false), (0, false)] {
            let (mut client, mut server) = tokio::io::duplex(64);
            server.write_all(&[answer]).await.unwrap();
            assert_eq!(ask_for_tls(&mut client).await.is_ok(), well, "{answer}");
            let mut request = [0; 8];
            server.read_exact(&mut request).await.unwrap();
            assert_eq!(request, SSL_REQUEST);
        }
    }
}
