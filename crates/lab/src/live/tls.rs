//! TLS at both ends of the link: rustls over blocking sockets.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use serde::{Deserialize, Serialize};

use super::agents::Times;
use super::clock::now_ns;
use super::script::{Client, Server, asked, receive, request};
use crate::error::LabError;
use crate::link::Transfer;
use crate::subject::{Kind, Subject};
use crate::tls::chain::SERVER_NAMES;
use crate::tls::{client_config, server_config};

/// A subject by its names, to be told to another process.
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

    /// The client's part; with this root in place of the subject's own.
    pub fn client(&self, root: Option<&[u8]>) -> Result<Box<dyn Client>, LabError> {
        let subject = self.subject()?;
        let mut config = client_config(&subject)?;
        if let Some(root) = root {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from(root.to_vec())).map_err(LabError::failed)?;
            let provider = config.crypto_provider().clone();
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
            config.dangerous().set_certificate_verifier(verifier.map_err(LabError::failed)?);
        }
        let name = ServerName::try_from(SERVER_NAMES[0]).map_err(LabError::failed)?;
        Ok(Box::new(Rustls { config: Arc::new(config), name, kind: subject.kind }))
    }

    /// The server's part.
    pub fn server(&self) -> Result<Box<dyn Server>, LabError> {
        Ok(Box::new(RustlsServer(Arc::new(server_config(&self.subject()?)?))))
    }
}

/// The client.
struct Rustls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    kind: Kind,
}

impl Rustls {
    fn begin(&self) -> io::Result<ClientConnection> {
        ClientConnection::new(self.config.clone(), self.name.clone()).map_err(io::Error::other)
    }

    /// Up to the client's Finished, which is written when this ends.
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
                    // The alert that says why.
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
        // Each ticket is for one connection: a full handshake that does not count fetches new ones.
        let fetch = |stream: &mut TcpStream| -> io::Result<()> {
            let mut session = self.begin()?;
            Self::shake(&mut session, stream)?;
            let transfer = Transfer { request: 0, body: 1 };
            let mut tls = rustls::Stream::new(&mut session, stream);
            tls.write_all(&request(transfer))?;
            tls.read_exact(&mut [0])
        };
        fetch(&mut open()?).map_err(LabError::failed)
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
            return Err(io::Error::other("the handshake is of another kind than asked"));
        }
        if transfer.request > 0 || transfer.body > 0 {
            let mut tls = rustls::Stream::new(&mut session, stream);
            tls.write_all(&request(transfer))?;
            receive(&mut tls, transfer.body, times, until)?;
        }
        Ok(())
    }
}

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
            left -= tls.read(&mut rest[..room])?.max(1);
        }
        tls.write_all(&vec![0; transfer.body as usize])
    }
}
