//! The clients: rustls in this process, OpenSSL's `s_client`, and the programs of `tests/interop/endpoints`.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use outlast_crypto::groups::Group;
use outlast_crypto::suites::{SUITES, Suite};
use outlast_crypto::versions::Version;
use outlast_net::{HandshakeKind, Negotiated};
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup,
    aws_lc_rs,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, Error, NamedGroup, ProtocolVersion};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::common::peers::openssl;
use crate::common::{run, stderr, stdout};
use crate::matrix::{Report, Stack, group};
use crate::world::World;

const TLS13_SUITES: &[&str] =
    &["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];

/// Every suite that there is a row for.
const ALL_SUITES: &[&str] = &[
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

const ALL_SCHEMES: &[&str] = &[
    "mldsa65",
    "mldsa87",
    "mldsa44",
    "ecdsa_secp384r1_sha384",
    "ecdsa_secp256r1_sha256",
    "ed25519",
    "rsa_pss_rsae_sha256",
];

pub const RUSTLS: Stack = Stack {
    name: "rustls, TCP",
    suites: ALL_SUITES,
    schemes: ALL_SCHEMES,
    certificate_schemes: None,
};

pub const OPENSSL: Stack = Stack {
    name: "OpenSSL 3.5.7, TCP",
    suites: ALL_SUITES,
    schemes: ALL_SCHEMES,
    certificate_schemes: None,
};

pub const GO: Stack = Stack {
    name: "Go 1.27, TCP",
    suites: ALL_SUITES,
    schemes: ALL_SCHEMES,
    certificate_schemes: None,
};

/// Decides which share the client sends, and remembers nothing.
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

/// A group that is offered and never used: of a draft before the standard.
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

/// What a rustls client sends shares of, if told to begin with `share`: a hybrid brings its curve along, if the client has
/// that, too.
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
    let rows = groups.iter().map(|name| match Group::by_name(name) {
        Some(row) => row.key_exchange,
        None => &Draft,
    });
    let provider = CryptoProvider {
        kx_groups: rows.collect(),
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

/// From what rustls says of a connection.
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

/// From how a handshake of rustls failed.
pub fn failure(error: Option<&Error>, text: &str) -> Report {
    let alert = match error {
        Some(Error::AlertReceived(alert)) => alert.as_str().map(snake_case),
        _ => None,
    };
    Report { error: Some(text.to_owned()), alert, ..Report::default() }
}

/// `HandshakeFailure` is `handshake_failure` to IANA.
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

/// `openssl s_client`; `-ign_eof` lets it read until the server ends.
pub fn s_client(peer: &Path, address: SocketAddr, name: &str, ca: &Path, extra: &[&str]) -> Report {
    let mut command = openssl(peer, &["s_client", "-connect", &address.to_string()]);
    command.args(["-servername", name, "-verify_hostname", name]);
    command.args(["-verify_return_error", "-ign_eof", "-msg", "-CAfile"]).arg(ca);
    let output = run(command.args(extra).stdin(Stdio::null()));
    let text = stdout(&output);
    said_by_s_client(&text, &stderr(&output), output.status.success())
}

fn said_by_s_client(text: &str, errors: &str, success: bool) -> Report {
    let after = |prefix: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(prefix));
        line.map(|rest| rest.trim().to_owned())
    };
    let alert = text.lines().filter(|line| line.starts_with("<<<")).find_map(|line| {
        let (_, rest) = line.split_once(", Alert [length 0002], fatal ")?;
        Some(rest.trim().to_owned())
    });
    if !success {
        let error = errors.lines().find(|line| line.contains("error")).unwrap_or(errors);
        return Report { error: Some(error.to_owned()), alert, ..Report::default() };
    }
    let session = after("New, ").or_else(|| after("Reused, ")).unwrap_or_default();
    let (version, suite) = session.split_once(", Cipher is ").unwrap_or_default();
    let group = after("Negotiated TLS1.3 group: ").or_else(|| {
        let key = after("Peer Temp Key: ").or_else(|| after("Server Temp Key: "))?;
        let key = key.strip_prefix("ECDH, ").unwrap_or(&key);
        key.split(',').next().map(str::to_owned)
    });
    let hellos =
        text.lines().filter(|line| line.starts_with("<<<") && line.ends_with("ServerHello"));
    Report {
        ok: true,
        version: Some(version.to_owned()),
        group: group.map(|name| iana_group(&name)),
        hello_retry: Some(hellos.count() > 1),
        suite: Some(iana_suite(suite)),
        resumed: Some(text.lines().any(|line| line.starts_with("Reused, "))),
        signature: after("Peer signature type: "),
        ..Report::default()
    }
}

/// OpenSSL's and Go's names of groups that IANA calls something else.
pub fn iana_group(name: &str) -> String {
    let name = match name {
        "prime256v1" | "P-256" => "secp256r1",
        "P-384" => "secp384r1",
        "P-521" => "secp521r1",
        other => other,
    };
    Group::by_name(name).map_or(name, |row| row.name).to_owned()
}

/// OpenSSL's name `ECDHE-ECDSA-AES256-GCM-SHA384` is `TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384`.
fn iana_suite(name: &str) -> String {
    let plain = |name: &str| {
        name.replace("_WITH_", "-").replace("TLS_ECDHE", "ECDHE").replace(['_', '-'], "")
    };
    let found = SUITES.iter().find(|row| {
        let ours = plain(row.name);
        let ours = ours.strip_suffix("POLY1305SHA256").map_or(ours.clone(), |rest| {
            // OpenSSL leaves the digest out.
            format!("{rest}POLY1305")
        });
        row.version == Version::Tls12 && ours == plain(name)
    });
    found.map_or(name, |row: &Suite| row.name).to_owned()
}

/// A program that takes cases as lines of JSON.
pub struct Program {
    path: PathBuf,
    arguments: &'static [&'static str],
}

impl Program {
    pub fn new(path: PathBuf, arguments: &'static [&'static str]) -> Self {
        Self { path, arguments }
    }

    /// Runs the cases, each a JSON object, and gives what was said of each, in their order.
    pub fn run(&self, cases: &[Value]) -> Vec<Report> {
        let mut child = Command::new(&self.path)
            .args(self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let lines: String = cases
            .iter()
            .enumerate()
            .map(|(id, case)| {
                let mut case = case.clone();
                case["id"] = json!(id);
                format!("{case}\n")
            })
            .collect();
        // It answers while it still reads.
        let writing = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}: {}", self.path.display(), output.status);
        writing.join().unwrap().unwrap();
        let mut found: HashMap<usize, Report> = stdout(&output)
            .lines()
            .map(|line| {
                let mut report: Report =
                    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
                report.group = report.group.map(|name| iana_group(&name));
                (report.id, report)
            })
            .collect();
        (0..cases.len())
            .map(|id| found.remove(&id).unwrap_or_else(|| panic!("nothing was said of case {id}")))
            .collect()
    }
}
