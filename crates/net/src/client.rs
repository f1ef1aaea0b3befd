//! A TLS client connection that reports what was negotiated and how many bytes that took.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use outlast_crypto::Secret;
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::policy::Policy;
use crate::{Negotiated, limits};

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// TLS cannot verify the endpoint's name.
    #[error("{0} is not a host name or address")]
    Name(String),
    /// The client's own certificate or key is unusable.
    #[error("the client certificate or its key cannot be used: {0}")]
    Identity(String),
    /// A certificate in the trust list is unusable.
    #[error("a certificate to trust cannot be used: {0}")]
    Trust(String),
    /// The connection or the handshake failed.
    #[error("cannot connect to {endpoint}: {error}")]
    Connect {
        /// Host and port.
        endpoint: String,
        /// Reason.
        error: io::Error,
    },
    /// The connection broke.
    #[error("the connection failed: {0}")]
    Http(String),
    /// The response is too long or did not arrive.
    #[error("the answer is longer than {max} bytes or took longer than {seconds} seconds", max = limits::MAX_ANSWER, seconds = limits::ANSWER.as_secs())]
    Answer,
}

/// Bytes on the wire of a handshake, TCP payload only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct HandshakeBytes {
    /// From the client.
    pub sent: u64,
    /// From the server.
    pub received: u64,
}

/// How long it took to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectTimes {
    /// TCP, with the look-up of the name.
    pub tcp: Duration,
    /// The TLS handshake.
    pub tls: Duration,
}

/// A kept connection, which sends one request at a time.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Ends with the connection.
    task: JoinHandle<()>,
    /// Why it broke.
    error: LastError,
    /// Negotiated parameters.
    pub negotiated: Negotiated,
    /// Bytes of the handshake.
    pub handshake: HandshakeBytes,
    /// Time to connect.
    pub times: ConnectTimes,
}

/// How to connect: offered groups and trusted roots. Serves any number of connections.
#[derive(Clone)]
pub struct Connector {
    config: Arc<ClientConfig>,
}

/// Length in bytes of the ClientHello that a client with these groups sends to a host, with its record header.
pub fn client_hello_len(policy: &Policy, host: &str) -> Result<usize, ClientError> {
    let name =
        ServerName::try_from(host.to_owned()).map_err(|_| ClientError::Name(host.to_owned()))?;
    let config = ClientConfig::builder_with_provider(policy.provider())
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| ClientError::Trust(error.to_string()))?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let mut hello = Vec::new();
    rustls::ClientConnection::new(Arc::new(config), name)
        .map_err(|error| ClientError::Trust(error.to_string()))?
        .write_tls(&mut hello)
        .map_err(|error| ClientError::Http(error.to_string()))?;
    Ok(hello.len())
}

/// Certificate and key for servers that ask for a certificate.
pub struct ClientIdentity {
    /// Own certificate and intermediates, DER.
    pub chain: Vec<Vec<u8>>,
    /// Its private key, PKCS #8 DER.
    pub key: Secret,
}

impl Connector {
    /// Offers the policy's groups, sends a share of the first, and trusts `roots` (DER).
    pub fn new(policy: &Policy, roots: &[Vec<u8>]) -> Result<Self, ClientError> {
        Self::with_identity(policy, roots, None)
    }

    /// Like [`Connector::new`], with a certificate for servers that ask for one.
    pub fn with_identity(
        policy: &Policy,
        roots: &[Vec<u8>],
        identity: Option<&ClientIdentity>,
    ) -> Result<Self, ClientError> {
        let mut store = RootCertStore::empty();
        for der in roots {
            store
                .add(CertificateDer::from(der.clone()))
                .map_err(|error| ClientError::Trust(error.to_string()))?;
        }
        let builder = ClientConfig::builder_with_provider(policy.provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|error| ClientError::Trust(error.to_string()))?
            .with_root_certificates(store);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = identity.chain.iter().cloned().map(CertificateDer::from).collect();
                let key = PrivatePkcs8KeyDer::from(identity.key.expose().to_vec());
                builder
                    .with_client_auth_cert(chain, PrivateKeyDer::from(key))
                    .map_err(|error| ClientError::Identity(error.to_string()))?
            }
        };
        Ok(Self { config: Arc::new(config) })
    }

    /// Disables resumption: every handshake is a full one. Otherwise sessions are resumed while there are tickets.
    #[must_use]
    pub fn without_sessions(self) -> Self {
        let mut config = Arc::unwrap_or_clone(self.config);
        config.resumption = Resumption::disabled();
        Self { config: Arc::new(config) }
    }

    /// Connects to a host and port, does the handshake and then speaks HTTP/1.1.
    pub async fn connect(&self, host: &str, port: u16) -> Result<Connection, ClientError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        self.open(bare, format!("{host}:{port}"), TcpStream::connect((bare, port))).await
    }

    /// Like [`Connector::connect`], to a known address and a server with this name.
    pub async fn connect_to(
        &self,
        name: &str,
        address: SocketAddr,
    ) -> Result<Connection, ClientError> {
        self.open(name, format!("{name} at {address}"), TcpStream::connect(address)).await
    }

    /// Opens a TLS stream to a host and port.
    pub(crate) async fn stream(
        &self,
        host: &str,
        port: u16,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + 'static, ClientError> {
        let tcp = TcpStream::connect((host, port));
        let (stream, ..) = self.handshake(host, format!("{host}:{port}"), tcp).await?;
        Ok(stream)
    }

    async fn handshake(
        &self,
        host: &str,
        endpoint: String,
        tcp: impl Future<Output = io::Result<TcpStream>>,
    ) -> Result<(TlsStream<Counting>, Arc<Counts>, ConnectTimes), ClientError> {
        let failed = |error| ClientError::Connect { endpoint: endpoint.clone(), error };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| ClientError::Name(host.to_owned()))?;
        let connecting = async {
            let begun = Instant::now();
            let stream = tcp.await?;
            let connected = Instant::now();
            stream.set_nodelay(true)?;
            let counts = Arc::new(Counts::default());
            let counted = Counting { stream, counts: counts.clone() };
            let stream = TlsConnector::from(self.config.clone()).connect(name, counted).await?;
            let times = ConnectTimes { tcp: connected - begun, tls: connected.elapsed() };
            Ok((stream, counts, times))
        };
        let outcome = timeout(limits::HANDSHAKE, connecting).await;
        outcome.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(failed)
    }

    async fn open(
        &self,
        host: &str,
        endpoint: String,
        tcp: impl Future<Output = io::Result<TcpStream>>,
    ) -> Result<Connection, ClientError> {
        let (stream, counts, times) = self.handshake(host, endpoint, tcp).await?;
        let negotiated = Negotiated::of(stream.get_ref().1);
        let handshake = HandshakeBytes {
            sent: counts.sent.load(Ordering::Relaxed),
            received: counts.received.load(Ordering::Relaxed),
        };
        let error = LastError::default();
        let stream = Remembering { stream, error: error.clone() };
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| ClientError::Http(error.to_string()))?;
        let task = tokio::spawn(async move {
            // A waiting request gets an error from here too.
            let _ = connection.await;
        });
        Ok(Connection { sender, task, error, negotiated, handshake, times })
    }
}

impl Connection {
    /// Sends a request and reads the response: status and body.
    pub async fn send(&mut self, request: Request<Vec<u8>>) -> Result<(u16, Bytes), ClientError> {
        let response = self.exchange(request).await?;
        Ok((response.status().as_u16(), response.into_body()))
    }

    /// Sends a request and reads the response with its headers.
    pub async fn exchange(
        &mut self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Bytes>, ClientError> {
        let http = |error: hyper::Error| ClientError::Http(error.to_string());
        let exchange = async {
            self.sender.ready().await.map_err(http)?;
            let request = request.map(|body| Full::new(Bytes::from(body)));
            let response = self.sender.send_request(request).await.map_err(http)?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, limits::MAX_ANSWER).collect().await;
            let body = body.map_err(|error| ClientError::Http(error.to_string()))?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        let outcome = timeout(limits::ANSWER, exchange).await.map_err(|_| ClientError::Answer)?;
        match outcome {
            Err(ClientError::Http(error)) => Err(ClientError::Http(self.reason(error).await)),
            other => other,
        }
    }

    /// Closes the connection with close_notify, without waiting for the server.
    pub async fn close(self) {
        drop(self.sender);
        let _ = timeout(limits::LAST_WORDS, self.task).await;
    }

    /// Cause of a broken connection, if known. A server that refuses the client's certificate says so in an alert
    /// after the handshake (RFC 8446, section 4.4.2.4), while the request only reports that it was dropped.
    async fn reason(&mut self, error: String) -> String {
        let _ = timeout(limits::LAST_WORDS, &mut self.task).await;
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(error)
    }
}

/// The error that ended reading.
type LastError = Arc<Mutex<Option<String>>>;

/// Keeps the read error, which hyper drops between two messages.
struct Remembering<S> {
    stream: S,
    error: LastError,
}

impl<S: AsyncRead + Unpin> AsyncRead for Remembering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Poll::Ready(Err(error)) = &outcome {
            let mut last = self.error.lock().unwrap_or_else(PoisonError::into_inner);
            last.get_or_insert_with(|| error.to_string());
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Remembering<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
}

/// Counts the bytes in both directions.
struct Counting {
    stream: TcpStream,
    counts: Arc<Counts>,
}

impl AsyncRead for Counting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let read = buffer.filled().len() - before;
        self.counts.received.fetch_add(read as u64, Ordering::Relaxed);
        outcome
    }
}

impl AsyncWrite for Counting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(written)) = outcome {
            self.counts.sent.fetch_add(written as u64, Ordering::Relaxed);
        }
        outcome
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
