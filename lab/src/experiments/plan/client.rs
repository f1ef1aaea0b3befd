//! A connection to the user's server: TCP, TLS with one group, a request, and the times of each.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::subject::KeyExchange;

/// Timeout of a whole connection.
const DEADLINE: Duration = Duration::from_secs(30);
/// Longest part of an answer that is read, in bytes.
const MAX_ANSWER: u64 = 16 << 20;
/// Largest file of trusted CAs, in bytes.
const MAX_CA: u64 = 1 << 20;

/// A client with its request.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    /// Address to connect to.
    pub(super) address: SocketAddr,
    /// The certificate's name.
    pub(super) name: ServerName<'static>,
    /// The request, in plaintext.
    pub(super) request: Vec<u8>,
}

/// Results of one connection; times in nanoseconds from the start of TCP's connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shot {
    /// When TCP was connected.
    pub(super) connected_ns: u64,
    /// When TLS's handshake was complete and the Finished was sent.
    pub(super) handshake_ns: u64,
    /// When the first byte of the answer arrived.
    pub(super) first_byte_ns: u64,
    /// When the answer ended.
    pub(super) last_byte_ns: u64,
    /// Bytes of TLS up to the end of the handshake: sent, received.
    pub(super) handshake_bytes: [u64; 2],
    /// Bytes of the answer.
    pub(super) answer: u64,
    /// Whether a session was resumed.
    pub(super) resumed: bool,
    /// Whether the server asked for another share.
    pub(super) hello_retry: bool,
}

/// A configuration that offers one group only; sessions are kept only to resume them.
pub(super) fn config(
    group: &KeyExchange,
    roots: &RootCertStore,
    resume: bool,
) -> Result<Arc<ClientConfig>, LabError> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.kx_groups = vec![group.group];
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(LabError::failed)?
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if !resume {
        config.resumption = Resumption::disabled();
    }
    Ok(Arc::new(config))
}

/// The CAs in a PEM file.
pub(super) fn roots(path: &Path) -> Result<RootCertStore, LabError> {
    let length = std::fs::metadata(path).map_err(|error| LabError::file(path, error))?.len();
    let wrong =
        |what: String| LabError::Plan(format!("[endpoint] `ca_file`: {}: {what}", path.display()));
    if length > MAX_CA {
        return Err(wrong(format!("longer than {MAX_CA} bytes")));
    }
    let text = std::fs::read(path).map_err(|error| LabError::file(path, error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("there is no certificate in it".to_owned()));
    }
    Ok(roots)
}

/// A request for this path.
pub(super) fn request(path: &str, name: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {name}\r\nUser-Agent: outlast-lab\r\nConnection: close\r\n\r\n")
        .into_bytes()
}

/// Makes one connection.
pub(super) fn shoot(asker: &Asker, config: &Arc<ClientConfig>) -> Result<Shot, LabError> {
    let failed = |what: &str, error: &dyn std::fmt::Display| LabError::Peer {
        peer: format!("the endpoint {}", asker.address),
        reason: format!("{what}: {error}"),
    };
    let mut tls = ClientConnection::new(config.clone(), asker.name.clone())
        .map_err(|error| failed("TLS", &error))?;
    let begun = Instant::now();
    let since = || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut socket = TcpStream::connect_timeout(&asker.address, DEADLINE)
        .map_err(|error| failed("connect", &error))?;
    let connected_ns = since();
    let prepared = socket
        .set_nodelay(true)
        .and_then(|()| socket.set_read_timeout(Some(DEADLINE)))
        .and_then(|()| socket.set_write_timeout(Some(DEADLINE)));
    prepared.map_err(|error| failed("connect", &error))?;
    let mut bytes = [0_u64; 2];
    while tls.is_handshaking() || tls.wants_write() {
        while tls.wants_write() {
            let sent = tls.write_tls(&mut socket).map_err(|error| failed("handshake", &error))?;
            bytes[0] += sent as u64;
        }
        if !tls.is_handshaking() {
            break;
        }
        let received = tls.read_tls(&mut socket).map_err(|error| failed("handshake", &error))?;
        if received == 0 {
            return Err(failed("handshake", &"the connection was closed"));
        }
        bytes[1] += received as u64;
        tls.process_new_packets().map_err(|error| failed("handshake", &error))?;
        if begun.elapsed() > DEADLINE {
            return Err(failed("handshake", &"it takes too long"));
        }
    }
    let handshake_ns = since();
    tls.writer().write_all(&asker.request).map_err(|error| failed("request", &error))?;
    let mut first_byte_ns = None;
    let mut answer = 0_u64;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        while tls.wants_write() {
            tls.write_tls(&mut socket).map_err(|error| failed("request", &error))?;
        }
        let read = match tls.read_tls(&mut socket) {
            Ok(read) => read,
            // Many servers reset a connection that they have answered.
            Err(_) if answer > 0 => 0,
            Err(error) => return Err(failed("answer", &error)),
        };
        let state = tls.process_new_packets().map_err(|error| failed("answer", &error))?;
        let mut waiting = state.plaintext_bytes_to_read();
        while waiting > 0 {
            let Ok(taken @ 1..) = tls.reader().read(&mut buffer) else { break };
            answer += taken as u64;
            waiting = waiting.saturating_sub(taken);
            first_byte_ns.get_or_insert_with(since);
        }
        let closed = read == 0 || state.peer_has_closed();
        if closed || answer > MAX_ANSWER {
            break;
        }
        if begun.elapsed() > DEADLINE {
            return Err(failed("answer", &"it takes too long"));
        }
    }
    let last_byte_ns = since();
    let Some(first_byte_ns) = first_byte_ns else {
        return Err(failed("answer", &"the connection was closed without one"));
    };
    let kind = tls.handshake_kind();
    Ok(Shot {
        connected_ns,
        handshake_ns,
        first_byte_ns,
        last_byte_ns,
        handshake_bytes: bytes,
        answer,
        resumed: kind == Some(HandshakeKind::Resumed),
        hello_retry: kind == Some(HandshakeKind::FullWithHelloRetryRequest),
    })
}
