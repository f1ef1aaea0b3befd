//! Full handshakes at the highest possible rate, from one core.

use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use outlast_harness::pinned::{CLIENT_CORE, stay_on};
use outlast_net::policy::Policy;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme,
};

/// Calls in flight at once, so that the server does not wait for the client.
const IN_FLIGHT: usize = 6;

/// A client that offers these groups and only TLS_AES_256_GCM_SHA384, so that all servers choose the same suite. It
/// keeps no sessions.
pub(crate) fn client(policy: &Policy) -> Result<Arc<ClientConfig>, String> {
    let mut provider = (*policy.provider()).clone();
    provider.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_AES_256_GCM_SHA384);
    Ok(Arc::new(with_provider(provider)?))
}

/// The same with all suites: QUIC protects its first packets with TLS_AES_128_GCM_SHA256 in any case.
pub(crate) fn client_of_quic(policy: &Policy, protocol: &[u8]) -> Result<ClientConfig, String> {
    let mut config = with_provider((*policy.provider()).clone())?;
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}

fn with_provider(provider: CryptoProvider) -> Result<ClientConfig, String> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unverified))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// Does handshakes for the given time and returns their number. A handshake is complete when the server has answered
/// the client's last message by closing.
pub(crate) fn handshakes(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
    time: Duration,
) -> Result<u64, String> {
    let over = AtomicBool::new(false);
    let count = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let one = || -> Result<(), String> {
            stay_on(CLIENT_CORE)?;
            while !over.load(Ordering::Relaxed) {
                handshake(address, config).map_err(|error| error.to_string())?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let threads: Vec<_> = (0..IN_FLIGHT).map(|_| scope.spawn(one)).collect();
        std::thread::sleep(time);
        over.store(true, Ordering::Relaxed);
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a client died")?)
    })?;
    Ok(count.into_inner())
}

/// Does one full handshake.
pub(crate) fn handshake(address: SocketAddr, config: &Arc<ClientConfig>) -> io::Result<()> {
    let (mut socket, mut connection) = connect(address, config)?;
    let wanted = config.crypto_provider().kx_groups.first().copied();
    let chosen = connection.negotiated_key_exchange_group();
    if chosen.map(SupportedKxGroup::name) != wanted.map(SupportedKxGroup::name) {
        return Err(io::Error::other("the server chose another group"));
    }
    connection.send_close_notify();
    connection.complete_io(&mut socket)?;
    let _ = socket.shutdown(Shutdown::Write);
    let mut rest = [0; 4096];
    // A server that closed first may answer the client's close_notify with a reset.
    while socket.read(&mut rest).is_ok_and(|read| read > 0) {}
    Ok(())
}

/// A connection after its handshake.
pub(crate) fn connect(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> io::Result<(TcpStream, ClientConnection)> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok((socket, connection))
}

/// The client's core must not be the bottleneck, and the cost of verification in clients is not measured here.
#[derive(Debug)]
struct Unverified;

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
