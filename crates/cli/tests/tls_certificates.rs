//! The certificates of a server: two at once, those in files, reloading, and sessions that outlive a server.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use common::{Folder, Server, fail, outlast};
use outlast_crypto::keys::KeySpec;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::pem;
use outlast_pki::whatif::{self, Made};
use outlast_testing::{PATIENCE, until};
use rustls::client::{ClientSessionMemoryCache, Resumption};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore};

fn made(specs: &[&str]) -> Made {
    let rows: Vec<_> = specs.iter().map(|name| KeySpec::by_name(name).unwrap()).collect();
    whatif::build(&rows, &["localhost".to_owned()], now() - 60).unwrap()
}

fn now() -> i64 {
    system_clock().div_euclid(1000)
}

fn config(roots: &[Vec<u8>]) -> Arc<ClientConfig> {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(CertificateDer::from(root.clone())).unwrap();
    }
    let mut config = ClientConfig::builder_with_provider(Policy::default().provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(store)
        .with_no_client_auth();
    config.resumption = Resumption::store(Arc::new(ClientSessionMemoryCache::new(8)));
    Arc::new(config)
}

/// An open connection.
struct Open {
    tls: ClientConnection,
    stream: TcpStream,
}

impl Open {
    fn new(port: u16, config: &Arc<ClientConfig>) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let name = "localhost".try_into().unwrap();
        Self { tls: ClientConnection::new(config.clone(), name).unwrap(), stream }
    }

    fn is_well(&mut self) -> Result<(), std::io::Error> {
        let mut tls = rustls::Stream::new(&mut self.tls, &mut self.stream);
        tls.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"ok\n") {
            let mut buffer = [0; 1024];
            let read = tls.read(&mut buffer)?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            answer.extend_from_slice(&buffer[..read]);
        }
        Ok(())
    }
}

fn shown_below(port: u16, root: &[u8]) -> bool {
    Open::new(port, &config(&[root.to_vec()])).is_well().is_ok()
}

struct Files {
    folder: Folder,
    chain: PathBuf,
    key: PathBuf,
}

impl Files {
    fn new() -> Self {
        let folder = Folder::new();
        let (chain, key) = (folder.path("chain.pem"), folder.path("key.der"));
        Self { folder, chain, key }
    }

    /// Writes a chain without its root, and the key; returns the root.
    fn write(&self, made: &Made) -> Vec<u8> {
        let (root, shown) = made.certificates.split_last().unwrap();
        std::fs::write(&self.key, made.leaf_key.expose()).unwrap();
        std::fs::write(&self.chain, pem::chain(shown.iter().map(Vec::as_slice))).unwrap();
        root.clone()
    }

    fn flags(&self) -> [&str; 4] {
        let (chain, key) = (self.chain.to_str().unwrap(), self.key.to_str().unwrap());
        ["--tls-cert-file", chain, "--tls-key-file", key]
    }
}

fn hang_up(server: &Server) {
    let pid = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
}

/// The log line about files that are refused.
const REFUSED: &str = "the TLS certificates cannot be used: the previous ones stay in use";

#[test]
fn certificate_files_are_reloaded_without_dropping_connections() {
    let files = Files::new();
    let first = files.write(&made(&["ECC_NIST_P384", "ECC_NIST_P256"]));
    let (server, log) = Server::start_logged(&files.folder.data, &files.flags());
    let mut open = Open::new(server.port, &config(std::slice::from_ref(&first)));
    open.is_well().unwrap();
    // By SIGHUP.
    let second = files.write(&made(&["ML_DSA_87", "ML_DSA_65", "ML_DSA_44"]));
    hang_up(&server);
    until("the second is shown", || shown_below(server.port, &second));
    assert!(!shown_below(server.port, &first));
    open.is_well().unwrap();
    // A broken file changes nothing.
    let broken = made(&["RSA_2048", "RSA_2048"]);
    std::fs::write(&files.key, broken.leaf_key.expose()).unwrap();
    hang_up(&server);
    log.until(REFUSED, 0);
    assert!(shown_below(server.port, &second));
    // Without a signal.
    let third = files.write(&broken);
    until("the third is shown", || shown_below(server.port, &third));
    open.is_well().unwrap();
}

#[test]
fn what_is_not_valid_now_replaces_nothing() {
    let files = Files::new();
    let good = files.write(&made(&["ECC_NIST_P256", "ECC_NIST_P256"]));
    let (server, log) = Server::start_logged(&files.folder.data, &files.flags());
    let ca = files.folder.data.join("client/ca.pem");
    let before = std::fs::read(&ca).unwrap();
    let rows = [KeySpec::by_name("ECC_NIST_P256").unwrap(); 2];
    for (what, from) in [("expired", 1_000_000_000), ("not valid yet", now() + 86_400)] {
        let other = whatif::build(&rows, &["localhost".to_owned()], from).unwrap();
        files.write(&other);
        // With its root, which clients must not be given.
        let all = pem::chain(other.certificates.iter().map(Vec::as_slice));
        let before_all = log.count(REFUSED);
        std::fs::write(&files.chain, all).unwrap();
        hang_up(&server);
        log.until(REFUSED, before_all);
        assert!(shown_below(server.port, &good), "{what}");
        assert_eq!(std::fs::read(&ca).unwrap(), before, "{what}");
    }
}

#[test]
fn a_hangup_ends_no_server() {
    let folder = Folder::new();
    let mut server = folder.serve();
    hang_up(&server);
    Open::new(server.port, &config(&server.roots())).is_well().unwrap();
    assert!(server.child.try_wait().unwrap().is_none());
}

#[test]
fn files_that_do_not_fit_are_refused_at_the_start() {
    let files = Files::new();
    files.write(&made(&["ECC_NIST_P256", "ECC_NIST_P256"]));
    let (chain, key) = (files.chain.to_str().unwrap(), files.key.to_str().unwrap());
    let other = made(&["ECC_NIST_P256", "ECC_NIST_P256"]);
    let other = files.folder.write("other.der", other.leaf_key.expose());
    let other = other.to_str().unwrap();
    for (arguments, text) in [
        (&["--tls-cert-file", chain][..], "each certificate file needs its key file"),
        (&["--tls-cert-file", chain, "--tls-key-file", other], "not the first certificate's"),
        (&["--tls-cert-file", chain, "--tls-key-file", chain], "exactly one private key"),
        (&["--tls-cert-file", "nowhere", "--tls-key-file", key], "nowhere"),
        (
            &["--tls-cert", "dual", "--tls-cert-file", chain, "--tls-key-file", key],
            "are given together",
        ),
        (
            &["--tls-cert", "gold"],
            "choose one of ecdsa-p256, ecdsa-p384, ml-dsa-44, ml-dsa-65, ml-dsa-87, dual",
        ),
    ] {
        let mut command = outlast();
        command.args(["server", "--listen", "127.0.0.1:0", "--data"]).arg(&files.folder.data);
        let code = if arguments.contains(&"gold") { 2 } else { 1 };
        let said = fail(command.args(arguments), code);
        assert!(said.contains(text), "{arguments:?}: {said}");
    }
}

#[test]
fn with_dual_certificates_clients_trust_both_roots() {
    let folder = Folder::new();
    let server = Server::start(&folder.data, &["--tls-cert", "dual"]);
    let roots = server.roots();
    assert_eq!(roots.len(), 2);
    // This client verifies ML-DSA, so it gets that certificate.
    assert!(shown_below(server.port, &roots[0]));
    assert!(!shown_below(server.port, &roots[1]));
}

#[test]
fn a_session_is_resumed_by_the_next_server_of_the_store() {
    let folder = Folder::new();
    let mut server = folder.serve();
    let config = config(&server.roots());
    for expected in [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed] {
        let mut open = Open::new(server.port, &config);
        open.is_well().unwrap();
        assert_eq!(open.tls.handshake_kind(), Some(expected));
        let group = open.tls.negotiated_key_exchange_group().unwrap();
        assert_eq!(group.name(), rustls::NamedGroup::X25519MLKEM768);
        if expected == HandshakeKind::Resumed {
            server.terminate();
            server = folder.serve();
        }
    }
    let mut command = outlast();
    common::succeed(command.args(["store", "check", "--data"]).arg(&folder.data));
}
