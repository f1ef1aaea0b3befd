//! TLS at both ends of the link: rustls over blocking sockets.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use serde::{Deserialize, Serialize};

use super::clock::now_ns;
use super::ends::{Client, Server, Times, asked, cut, receive, request};
use crate::error::LabError;
use crate::link::Transfer;
use crate::subject::{Kind, Subject};
use crate::tls::chain::SERVER_NAMES;
use crate::tls::{client_config, server_config};

/// A subject by its names, for another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Named {
    key_exchange: String,
    authentication: String,
    certificates: u8,
    kind: Kind,
}

impl Named {
    /// The names of a subject.
    pub fn new(subject: &Subject) -> Self {
        Self {
            key_exchange: subject.key_exchange.name.into(),
            authentication: subject.authentication.name.into(),
            certificates: subject.certificates,
            kind: subject.kind,
        }
    }

    fn subject(&self) -> Result<Subject, LabError> {
        let full = Subject::new(&self.key_exchange, &self.authentication, self.certificates)?;
        Ok(full.kind(self.kind))
    }

    /// The client's end, with a foreign server if one is given.
    pub fn client(&self, foreign: Option<&Foreign>) -> Result<Box<dyn Client>, LabError> {
        let subject = self.subject()?;
        let mut config = client_config(&subject)?;
        if let Some(foreign) = foreign {
            let mut roots = RootCertStore::empty();
            for root in &foreign.roots {
                roots.add(CertificateDer::from(root.clone())).map_err(LabError::failed)?;
            }
            let provider = config.crypto_provider().clone();
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
            config.dangerous().set_certificate_verifier(verifier.map_err(LabError::failed)?);
        }
        let name = foreign.map_or(SERVER_NAMES[0], |foreign| &foreign.name);
        let name = ServerName::try_from(name.to_owned()).map_err(LabError::failed)?;
        let foreign = foreign.cloned();
        Ok(Box::new(Rustls { config: Arc::new(config), name, kind: subject.kind, foreign }))
    }

    /// The server's end.
    pub fn server(&self) -> Result<Box<dyn Server>, LabError> {
        Ok(Box::new(RustlsServer(Arc::new(server_config(&self.subject()?)?))))
    }
}

/// A server that is not the engine's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreign {
    /// Its address.
    pub address: SocketAddr,
    /// The name in its certificate.
    pub name: String,
    /// Trusted roots, DER.
    pub roots: Vec<Vec<u8>>,
    /// Path of an HTTP request after the handshake, in which `{body}` stands for [`Transfer::body`]. The answer lasts
    /// until the server closes. `None` makes no request.
    pub path: Option<String>,
}

/// The client.
struct Rustls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    kind: Kind,
    foreign: Option<Foreign>,
}

impl Rustls {
    fn begin(&self) -> io::Result<ClientConnection> {
        ClientConnection::new(self.config.clone(), self.name.clone()).map_err(io::Error::other)
    }

    /// The request: the engine's own, or one of HTTP, padded to its size if possible.
    fn request(&self, transfer: Transfer) -> Vec<u8> {
        let Some(foreign) = &self.foreign else { return request(transfer) };
        let path = foreign.path.as_deref().unwrap_or("/");
        let path = path.replace("{body}", &transfer.body.to_string());
        let name = &foreign.name;
        let mut text = format!("GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n");
        let padding = "X-Padding: ";
        let room = (transfer.request as usize).saturating_sub(text.len() + padding.len() + 4);
        if room > 0 {
            text.push_str(padding);
            text.extend(std::iter::repeat_n('x', room));
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        text.into_bytes()
    }

    /// Up to the client's Finished, which has been written when this returns.
    fn shake(session: &mut ClientConnection, stream: &mut TcpStream) -> io::Result<()> {
        while session.is_handshaking() || session.wants_write() {
            while session.wants_write() {
                session.write_tls(stream)?;
            }
            if session.is_handshaking() {
                if session.read_tls(stream)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if let Err(error) = session.process_new_packets() {
                    // Sends the alert with the reason.
                    let _ = session.write_tls(stream);
                    return Err(io::Error::other(error));
                }
            }
        }
        Ok(())
    }
}

impl Client for Rustls {
    fn prepare(
        &mut self,
        open: &mut dyn FnMut() -> Result<TcpStream, LabError>,
    ) -> Result<(), LabError> {
        if self.kind != Kind::Resumed {
            return Ok(());
        }
        // Each ticket is for one connection: an uncounted full handshake gets new ones.
        let fetch = |stream: &mut TcpStream| -> io::Result<()> {
            let mut session = self.begin()?;
            Self::shake(&mut session, stream)?;
            let transfer = Transfer { request: 0, body: 1 };
            let mut tls = rustls::Stream::new(&mut session, stream);
            tls.write_all(&self.request(transfer))?;
            tls.read(&mut [0]).map(|_| ())
        };
        let mut stream = open()?;
        fetch(&mut stream).map_err(LabError::failed)?;
        cut(stream)
    }

    fn talk(
        &mut self,
        stream: &mut TcpStream,
        transfer: Transfer,
        times: &mut Times,
        until: Instant,
    ) -> io::Result<()> {
        let mut session = self.begin()?;
        Self::shake(&mut session, stream)?;
        times.handshake_ns = now_ns();
        (times.first_byte_ns, times.last_byte_ns) = (times.handshake_ns, times.handshake_ns);
        let resumed = session.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
        if resumed != (self.kind == Kind::Resumed) {
            return Err(io::Error::other("the handshake is not of the requested kind"));
        }
        if transfer.request == 0 && transfer.body == 0 {
            return Ok(());
        }
        let asks = self.foreign.as_ref().is_none_or(|foreign| foreign.path.is_some());
        let mut tls = rustls::Stream::new(&mut session, stream);
        if asks {
            tls.write_all(&self.request(transfer))?;
        }
        match &self.foreign {
            None => receive(&mut tls, transfer.body, times, until),
            Some(_) if asks => receive_all(&mut tls, times, until),
            Some(_) => Ok(()),
        }
    }
}

/// Receives an HTTP answer until the server closes.
fn receive_all(stream: &mut dyn Read, times: &mut Times, until: Instant) -> io::Result<()> {
    let mut buffer = vec![0; 65536];
    let mut begin = Vec::new();
    loop {
        let length = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            // Closed without close_notify, as many servers do.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        };
        let now = now_ns();
        if begin.is_empty() {
            times.first_byte_ns = now;
        }
        if begin.len() < STATUS {
            begin.extend(buffer[..length].iter().take(STATUS - begin.len()));
        }
        times.last_byte_ns = now;
        if Instant::now() > until {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    // RFC 9112, section 4: the status follows the version.
    let good = begin.starts_with(b"HTTP/1.") && matches!(begin.get(8..10), Some([b' ', b'2']));
    if begin.len() >= STATUS && !good {
        let said = String::from_utf8_lossy(&begin).into_owned();
        return Err(io::Error::other(format!("the server answers {said}")));
    }
    Ok(())
}

/// Bytes up to the end of the status.
const STATUS: usize = 12;

/// The server.
struct RustlsServer(Arc<ServerConfig>);

impl Server for RustlsServer {
    fn talk(&self, stream: &mut TcpStream) -> io::Result<()> {
        let mut session = ServerConnection::new(self.0.clone()).map_err(io::Error::other)?;
        let mut tls = rustls::Stream::new(&mut session, stream);
        let mut header = [0; 8];
        tls.read_exact(&mut header)?;
        let Some(transfer) = asked(&header) else { return Ok(()) };
        let mut rest = vec![0; 8192];
        let mut left = transfer.request as usize - header.len();
        while left > 0 {
            let room = rest.len().min(left);
            match tls.read(&mut rest[..room])? {
                0 => return Ok(()),
                length => left -= length,
            }
        }
        tls.write_all(&vec![0; transfer.body as usize])
    }
}
