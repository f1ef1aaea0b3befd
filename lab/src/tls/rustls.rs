//! rustls with AWS-LC, which Outlast itself uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::client::{ClientSessionMemoryCache, Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, Signer, SigningKey, SingleCertAndKey};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, NamedGroup, ServerConfig, ServerConnection,
    SignatureAlgorithm, SignatureScheme,
};

use super::chain::{self, Chain, SERVER_NAMES};
use super::exchange::{Peer, shake};
use super::implementation::{Handshaker, Stack, locked_version, wrong_group};
use crate::error::LabError;
use crate::subject::{Kind, Subject};
use crate::trace::Trace;

/// The stack's row.
#[derive(Debug)]
pub struct Rustls;

impl Stack for Rustls {
    fn name(&self) -> &'static str {
        "rustls"
    }

    fn version(&self) -> Result<String, LabError> {
        Ok(locked_version("rustls"))
    }

    fn supports(&self, _: &Subject) -> bool {
        true
    }

    fn prepare(&self, subject: &Subject) -> Result<Box<dyn Handshaker>, LabError> {
        let server_signer = Arc::new(Counted::new(server_chain(subject)?.as_ref()));
        let client_signer = match subject.kind {
            Kind::Mutual => Some(Arc::new(Counted::new(client_chain(subject)?.as_ref()))),
            _ => None,
        };
        let name = ServerName::try_from(SERVER_NAMES[0]).map_err(LabError::failed)?;
        let mut ready = Ready {
            subject: *subject,
            client: Arc::new(client_config_with(
                subject,
                client_signer.clone().map(|key| key as _),
            )?),
            server: Arc::new(server_config_with(subject, server_signer.clone())?),
            name,
            server_signer,
            client_signer,
        };
        if subject.kind == Kind::Resumed {
            ready.shake()?;
        }
        Ok(Box::new(ready))
    }
}

/// The server's configuration: only the subject's group and certificate, TLS 1.3, tickets, no ALPN. Callers may
/// change it.
pub fn server_config(subject: &Subject) -> Result<ServerConfig, LabError> {
    let chain = server_chain(subject)?;
    server_config_with(subject, chain.tls_key.clone())
}

/// The client's configuration: trusts the subject's root, and offers only the subject's group; before it another one
/// for [`Kind::HelloRetry`]. Stores sessions only for [`Kind::Resumed`]. Names to connect to: [`SERVER_NAMES`].
pub fn client_config(subject: &Subject) -> Result<ClientConfig, LabError> {
    let key = match subject.kind {
        Kind::Mutual => Some(client_chain(subject)?.tls_key.clone()),
        _ => None,
    };
    client_config_with(subject, key)
}

fn server_chain(subject: &Subject) -> Result<Arc<Chain>, LabError> {
    chain::server(subject.authentication, subject.certificates)
}

fn client_chain(subject: &Subject) -> Result<Arc<Chain>, LabError> {
    chain::client(subject.authentication, subject.certificates)
}

fn provider(subject: &Subject, groups: Vec<&'static dyn SupportedKxGroup>) -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        kx_groups: groups,
        signature_verification_algorithms: subject.authentication.maker.verification(),
        ..aws_lc_rs::default_provider()
    })
}

fn server_config_with(
    subject: &Subject,
    key: Arc<dyn SigningKey>,
) -> Result<ServerConfig, LabError> {
    let provider = provider(subject, vec![subject.key_exchange.group]);
    let certified = CertifiedKey { key, ..server_chain(subject)?.certified() };
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(LabError::failed)?;
    let builder = match subject.kind {
        Kind::Mutual => {
            let roots = Arc::new(client_chain(subject)?.roots()?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(LabError::failed)?;
            builder.with_client_cert_verifier(verifier)
        }
        _ => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(LabError::failed)?;
    Ok(config)
}

fn client_config_with(
    subject: &Subject,
    key: Option<Arc<dyn SigningKey>>,
) -> Result<ClientConfig, LabError> {
    let group = subject.key_exchange.group;
    let groups = match subject.kind {
        Kind::HelloRetry => vec![wrong_group(subject)?.group, group],
        _ => vec![group],
    };
    let provider = provider(subject, groups);
    let roots = Arc::new(server_chain(subject)?.roots()?);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
        .build()
        .map_err(LabError::failed)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(LabError::failed)?
        .with_webpki_verifier(verifier);
    let mut config = match key {
        Some(key) => {
            let certified = CertifiedKey { key, ..client_chain(subject)?.certified() };
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
        }
        None => builder.with_no_client_auth(),
    };
    config.resumption = match subject.kind {
        Kind::Resumed => Resumption::store(Arc::new(ClientSessionMemoryCache::new(8))),
        _ => Resumption::disabled(),
    };
    Ok(config)
}

/// A key that records how much shorter its last signature was than its counted length.
#[derive(Debug)]
struct Counted {
    key: Arc<dyn SigningKey>,
    last: Arc<AtomicUsize>,
}

impl Counted {
    fn new(chain: &Chain) -> Self {
        Self { key: chain.tls_key.clone(), last: Arc::default() }
    }

    /// The length of the signature made since the last call; 0 if there was none.
    fn take(&self) -> usize {
        self.last.swap(0, Ordering::Relaxed)
    }
}

impl SigningKey for Counted {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.key.choose_scheme(offered)?;
        Some(Box::new(CountedSigner { signer, last: self.last.clone() }))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

#[derive(Debug)]
struct CountedSigner {
    signer: Box<dyn Signer>,
    last: Arc<AtomicUsize>,
}

impl Signer for CountedSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let signature = self.signer.sign(message)?;
        self.last.store(signature.len(), Ordering::Relaxed);
        Ok(signature)
    }

    fn scheme(&self) -> SignatureScheme {
        self.signer.scheme()
    }
}

struct Ready {
    subject: Subject,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    name: ServerName<'static>,
    server_signer: Arc<Counted>,
    client_signer: Option<Arc<Counted>>,
}

impl Handshaker for Ready {
    fn handshake(&mut self) -> Result<Trace, LabError> {
        let trace = self.shake()?;
        self.check(&trace)?;
        Ok(trace)
    }
}

impl Ready {
    fn shake(&mut self) -> Result<Trace, LabError> {
        let client = || {
            let connection = ClientConnection::new(self.client.clone(), self.name.clone());
            connection.map(Client).map_err(LabError::failed)
        };
        let server =
            || ServerConnection::new(self.server.clone()).map(Server).map_err(LabError::failed);
        let (mut trace, client, server) = shake(client, server)?;
        trace.hello_retry =
            client.0.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest);
        trace.resumed = client.0.handshake_kind() == Some(HandshakeKind::Resumed);
        let done = trace.client_done;
        self.lengthen(&mut trace, done.saturating_sub(1), &self.server_signer);
        if let Some(signer) = &self.client_signer {
            self.lengthen(&mut trace, done, signer);
        }
        let group = NamedGroup::from(self.subject.key_exchange.code_point);
        let negotiated =
            [client.0.negotiated_key_exchange_group(), server.0.negotiated_key_exchange_group()];
        if negotiated.iter().any(|found| found.is_none_or(|found| found.name() != group)) {
            return Err(LabError::failed(format!("{negotiated:?} instead of {group:?}")));
        }
        let shown = |sent: Option<usize>, chain: Option<Arc<Chain>>| {
            sent == chain.map(|chain| chain.certificates.len())
        };
        let client_chain = match self.subject.kind {
            Kind::Mutual => Some(client_chain(&self.subject)?),
            _ => None,
        };
        if !shown(client.0.peer_certificates().map(<[_]>::len), Some(server_chain(&self.subject)?))
            || !shown(server.0.peer_certificates().map(<[_]>::len), client_chain)
        {
            return Err(LabError::failed("another chain was shown"));
        }
        Ok(trace)
    }

    /// Counts a flight as if its signature had full length.
    fn lengthen(&self, trace: &mut Trace, step: usize, signer: &Counted) {
        let signed = signer.take();
        if signed == 0 {
            return;
        }
        let Some(step) = trace.steps.get_mut(step) else { return };
        let full = self.subject.authentication.signature_len;
        let len = (step.bytes as usize + full).saturating_sub(signed);
        step.bytes = u32::try_from(len).unwrap_or(u32::MAX);
    }

    fn check(&self, trace: &Trace) -> Result<(), LabError> {
        let expected = (self.subject.kind == Kind::HelloRetry, self.subject.kind == Kind::Resumed);
        if (trace.hello_retry, trace.resumed) == expected {
            return Ok(());
        }
        Err(LabError::failed(format!(
            "{}: hello retry {}, resumed {}",
            self.subject.name(),
            trace.hello_retry,
            trace.resumed
        )))
    }
}

struct Client(ClientConnection);

struct Server(ServerConnection);

/// Both sides process records in the same way, but have no type in common.
fn turn<D>(
    connection: &mut rustls::ConnectionCommon<D>,
    mut input: &[u8],
    output: &mut Vec<u8>,
) -> Result<(), LabError> {
    while !input.is_empty() {
        connection.read_tls(&mut input).map_err(LabError::failed)?;
        connection.process_new_packets().map_err(LabError::failed)?;
    }
    while connection.wants_write() {
        connection.write_tls(output).map_err(LabError::failed)?;
    }
    Ok(())
}

impl Peer for Client {
    fn turn(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), LabError> {
        turn(&mut self.0, input, output)
    }

    fn done(&self) -> bool {
        !self.0.is_handshaking()
    }
}

impl Peer for Server {
    fn turn(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), LabError> {
        turn(&mut self.0, input, output)
    }

    fn done(&self) -> bool {
        !self.0.is_handshaking()
    }
}
