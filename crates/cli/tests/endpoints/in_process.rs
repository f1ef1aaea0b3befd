//! Clients in this process: rustls over TCP, and over QUIC by quinn.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use outlast_crypto::groups::Group;
use outlast_crypto::suites::SUITES;
use outlast_crypto::versions::Version;
use outlast_net::{HandshakeKind, Negotiated};
use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup,
    aws_lc_rs,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig, Error, NamedGroup, ProtocolVersion};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::endpoints::clients::{ALL_SCHEMES, ALL_SUITES, TLS13_SUITES};
use crate::endpoints::matrix::{Report, Stack, group};
use crate::endpoints::world::{PROTOCOL, World};

pub const RUSTLS: Stack = Stack {
    name: "rustls, TCP",
    suites: ALL_SUITES,
    schemes: ALL_SCHEMES,
    certificate_schemes: None,
};

pub const QUINN: Stack = Stack {
    name: "rustls, QUIC by quinn",
    suites: TLS13_SUITES,
    schemes: ALL_SCHEMES,
    certificate_schemes: None,
};

/// Decides which share the client sends, and stores nothing.
#[derive(Debug)]
struct Hint(NamedGroup);

impl ClientSessionStore for Hint {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        Some(self.0)
    }
    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}
    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }
    fn remove_tls12_session(&self, _: &ServerName<'static>) {}
    fn insert_tls13_ticket(&self, _: ServerName<'static>, _: Tls13ClientSessionValue) {}
    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        None
    }
}

/// A group that is offered and never used: from a draft before the standard.
#[derive(Debug)]
struct Draft;

const DRAFT: u16 = 0x6399;

impl SupportedKxGroup for Draft {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(DraftShare(vec![0x5a; 32 + 1184])))
    }
    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }
    fn name(&self) -> NamedGroup {
        NamedGroup::Unknown(DRAFT)
    }
    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
    fn start_and_complete(&self, _: &[u8]) -> Result<CompletedKeyExchange, Error> {
        Err(Error::General("a draft".into()))
    }
}

struct DraftShare(Vec<u8>);

impl ActiveKeyExchange for DraftShare {
    fn complete(self: Box<Self>, _: &[u8]) -> Result<SharedSecret, Error> {
        Err(Error::General("a draft".into()))
    }
    fn pub_key(&self) -> &[u8] {
        &self.0
    }
    fn group(&self) -> NamedGroup {
        NamedGroup::Unknown(DRAFT)
    }
    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }
}

/// Records how a client's groups were used.
#[derive(Debug, Default)]
pub struct Trace {
    /// Number of shares that were made: one more after a HelloRetryRequest.
    shares: AtomicUsize,
    /// Code point of the group of the secret.
    used: AtomicU16,
}

/// A group that records its use.
#[derive(Debug)]
struct Traced {
    group: &'static dyn SupportedKxGroup,
    trace: Arc<Trace>,
}

impl SupportedKxGroup for Traced {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        self.trace.shares.fetch_add(1, Ordering::SeqCst);
        let exchange = self.group.start()?;
        Ok(Box::new(TracedShare { exchange, trace: self.trace.clone() }))
    }
    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        self.group.ffdhe_group()
    }
    fn name(&self) -> NamedGroup {
        self.group.name()
    }
    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        self.group.usable_for_version(version)
    }
    fn start_and_complete(&self, share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        self.group.start_and_complete(share)
    }
}

struct TracedShare {
    exchange: Box<dyn ActiveKeyExchange>,
    trace: Arc<Trace>,
}

impl ActiveKeyExchange for TracedShare {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        self.trace.used.store(self.exchange.group().into(), Ordering::SeqCst);
        self.exchange.complete(share)
    }
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        self.exchange.hybrid_component()
    }
    fn complete_hybrid_component(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        let half = self.exchange.hybrid_component().map_or(0, |(group, _)| group.into());
        self.trace.used.store(half, Ordering::SeqCst);
        self.exchange.complete_hybrid_component(share)
    }
    fn pub_key(&self) -> &[u8] {
        self.exchange.pub_key()
    }
    fn group(&self) -> NamedGroup {
        self.exchange.group()
    }
    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        self.exchange.ffdhe_group()
    }
}

/// The groups for which a rustls client sends shares, if it begins with `share`: a hybrid group adds its curve, if
/// the client has that, too.
pub fn rustls_shares(groups: &[&'static str], share: &'static str) -> Vec<&'static str> {
    let halves = [
        ("X25519MLKEM768", "x25519"),
        ("SecP256r1MLKEM768", "secp256r1"),
        ("SecP384r1MLKEM1024", "secp384r1"),
    ];
    let half = halves.iter().find(|row| row.0 == share).map(|row| row.1);
    [Some(share), half.filter(|half| groups.contains(half))].into_iter().flatten().collect()
}

/// A rustls client with these groups, which sends a share of `share`.
pub fn rustls_config(
    world: &World,
    versions: &[Version],
    groups: &[&str],
    share: &str,
) -> ClientConfig {
    client_config(world, versions, share, groups.iter().map(|name| row(name)).collect())
}

/// The same, recording the use of its groups.
pub fn traced_config(world: &World, groups: &[&str], share: &str) -> (ClientConfig, Arc<Trace>) {
    let trace = Arc::new(Trace::default());
    let traced = |name: &&str| -> &'static dyn SupportedKxGroup {
        // rustls requires groups with a static lifetime.
        Box::leak(Box::new(Traced { group: row(name), trace: trace.clone() }))
    };
    let rows = groups.iter().map(traced).collect();
    (client_config(world, &[Version::Tls13], share, rows), trace)
}

fn row(name: &str) -> &'static dyn SupportedKxGroup {
    Group::by_name(name).map_or(&Draft, |row| row.key_exchange)
}

fn client_config(
    world: &World,
    versions: &[Version],
    share: &str,
    kx_groups: Vec<&'static dyn SupportedKxGroup>,
) -> ClientConfig {
    let provider = CryptoProvider {
        kx_groups,
        cipher_suites: SUITES.iter().map(|row| row.suite).collect(),
        ..aws_lc_rs::default_provider()
    };
    let versions: Vec<_> = versions.iter().map(|version| version.rustls()).collect();
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions)
        .unwrap()
        .with_root_certificates(world.roots.clone())
        .with_no_client_auth();
    config.resumption = Resumption::store(Arc::new(Hint(group(share).into())));
    config
}

/// Connects, and reads until the server ends.
pub async fn rustls(address: SocketAddr, name: &str, config: ClientConfig) -> Report {
    let connect = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let server = ServerName::try_from(name.to_owned()).unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(server, stream).await?;
        stream.read_to_end(&mut Vec::new()).await?;
        Ok::<_, std::io::Error>(Negotiated::of(stream.get_ref().1))
    };
    match connect.await {
        Ok(negotiated) => report(&negotiated),
        Err(error) => {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
            failure(inner, &error.to_string())
        }
    }
}

/// The same configuration over QUIC, by quinn; a stream is opened, and read to its end.
pub async fn quinn(
    endpoint: &quinn::Endpoint,
    address: SocketAddr,
    name: &str,
    (mut config, trace): (ClientConfig, Arc<Trace>),
) -> Report {
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    let config = match QuicClientConfig::try_from(config) {
        Ok(config) => quinn::ClientConfig::new(Arc::new(config)),
        Err(error) => panic!("{error}"),
    };
    let connect = async {
        let connection = endpoint.connect_with(config, address, name).unwrap().await?;
        let (mut sending, mut receiving) = connection.open_bi().await?;
        let _ = sending.finish();
        assert_eq!(receiving.read_to_end(16).await.unwrap_or_default(), b"x");
        Ok::<_, quinn::ConnectionError>(connection)
    };
    match connect.await {
        Ok(connection) => {
            connection.close(0u32.into(), b"");
            // quinn does not report it.
            let code = trace.used.load(Ordering::SeqCst);
            Report {
                ok: true,
                // There is no other in QUIC (RFC 9001, section 4.2).
                version: Some("TLSv1.3".into()),
                group: Group::by_code_point(code).map(|row| row.name.to_owned()),
                hello_retry: Some(trace.shares.load(Ordering::SeqCst) > 1),
                ..Report::default()
            }
        }
        Err(error) => {
            // RFC 9001, section 4.8: an alert is sent as the error 0x100 and its number.
            let code = match &error {
                quinn::ConnectionError::ConnectionClosed(close) => u64::from(close.error_code),
                _ => 0,
            };
            let alert = code.checked_sub(0x100).and_then(|alert| u8::try_from(alert).ok());
            let alert = alert.and_then(|alert| AlertDescription::from(alert).as_str());
            let alert = alert.map(snake_case);
            Report { error: Some(error.to_string()), alert, ..Report::default() }
        }
    }
}

/// A client whose groups do not record their use.
pub async fn quinn_as_it_is(address: SocketAddr, name: &str, config: ClientConfig) -> Report {
    let endpoint = quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let report = quinn(&endpoint, address, name, (config, Arc::default())).await;
    Report { group: None, hello_retry: None, ..report }
}

/// The report from rustls's view of a connection.
pub fn report(negotiated: &Negotiated) -> Report {
    Report {
        ok: true,
        version: Some(negotiated.version.clone()),
        group: negotiated.group.clone(),
        hello_retry: Some(negotiated.handshake == HandshakeKind::FullWithHelloRetryRequest),
        suite: Some(negotiated.cipher_suite.clone()),
        resumed: Some(negotiated.handshake == HandshakeKind::Resumed),
        ..Report::default()
    }
}

/// The report of a failed handshake of rustls.
pub fn failure(error: Option<&Error>, text: &str) -> Report {
    let alert = match error {
        Some(Error::AlertReceived(alert)) => alert.as_str().map(snake_case),
        _ => None,
    };
    Report { error: Some(text.to_owned()), alert, ..Report::default() }
}

/// `HandshakeFailure` is `handshake_failure` in IANA's registry.
fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}
