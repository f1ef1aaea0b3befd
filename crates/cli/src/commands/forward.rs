//! `outlast forward`: a local port for clients without post-quantum TLS, which it carries on to a remote server.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_net::Negotiated;
use outlast_net::certificate::{KINDS, ensure};
use outlast_net::door::{self, Door};
use outlast_net::limits;
use outlast_net::proxy::{Backend, PROTOCOLS, Protocol, Proxy, Settings, Unavailable, probe};
use outlast_net::server::system_clock;
use outlast_store::memory::MemoryStore;

use super::proxy::{Signals, failure, finish};
use super::server::start_log;
use crate::failure::Failure;
use crate::listeners::raise_open_files;
use crate::proxy_config::{Destination, Upstream, duration, row};
use crate::tls::default_names;
use crate::{dumps, files, output, values};

/// Arguments of `forward`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Remote server: https://HOST:PORT or tls://HOST:PORT.
    #[arg(long, env = "OUTLAST_TO", value_name = "URL", value_parser = remote)]
    to: String,
    /// Local address and port [default: 127.0.0.1:0, which picks a free port].
    #[arg(long, env = "OUTLAST_LISTEN", value_parser = values::address)]
    listen: Option<SocketAddr>,
    /// Listen at an address that other machines can reach: their connections are not encrypted.
    #[arg(long)]
    allow_remote: bool,
    /// Protocol: tcp, http or postgres. tcp passes HTTP on unchanged, AWS signatures included [default: tcp].
    #[arg(long, value_parser = values::names(PROTOCOLS), hide_possible_values = true)]
    protocol: Option<String>,
    /// Trusted CAs for the remote server's certificate, PEM [default: those of the system].
    #[arg(long = "ca-bundle", alias = "ca", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Name in the remote server's certificate [default: the host].
    #[arg(long)]
    name: Option<String>,
    /// Certificate chain to show if the remote server asks for one, PEM.
    #[arg(long = "client-cert", alias = "cert", value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key, PEM.
    #[arg(long = "client-key", alias = "key", value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Security policy: see `outlast policy list` [default: 2026-11].
    #[arg(long, env = "OUTLAST_POLICY", value_name = "NAME", value_parser = values::tls_policies(), hide_possible_values = true)]
    policy: Option<String>,
    /// Whether the remote server must do post-quantum key exchange: require, or prefer [default: require].
    #[arg(long, env = "OUTLAST_MODE", value_parser = ["require", "prefer"])]
    mode: Option<String>,
    /// Serve TLS on the local side, too, with a certificate made at the start; its CA is written to this file.
    #[arg(long, value_name = "FILE")]
    local_ca: Option<PathBuf>,
    /// Do not connect to the remote server before the first client connects.
    #[arg(long)]
    lazy: bool,
    /// Idle timeout of a connection, in seconds [default: 3600].
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    idle_timeout: Option<f64>,
    /// What to log to stderr: error, warn, info, debug, or directives such as outlast_net=debug [default: warn].
    #[arg(long, env = "OUTLAST_LOG")]
    log: Option<String>,
}

/// The remote server's URL.
fn remote(text: &str) -> Result<String, String> {
    let is_tls = Destination::parse(text).is_ok_and(|destination| destination.tls);
    let wrong = "the remote server is reached over TLS: give https://HOST:PORT or tls://HOST:PORT";
    is_tls.then(|| text.to_owned()).ok_or_else(|| wrong.to_owned())
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let destination = Destination::parse(&arguments.to)?;
    let listen = arguments.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    if !listen.ip().is_loopback() && !arguments.allow_remote {
        return Err(Failure::new(format!("{listen} can be reached from other machines"))
            .hint("listen at 127.0.0.1 or ::1, or add --allow-remote")
            .about("listen"));
    }
    // Before a private key is read.
    dumps::refuse();
    start_log(arguments.log.as_deref().unwrap_or("warn"))?;
    raise_open_files();
    let door = arguments.local_door()?;
    let settings = arguments.settings(destination, listen, door.as_ref())?;
    if arguments.cert.is_some() {
        tracing::warn!(
            "everyone who can reach {listen}, including all users of this machine, acts with the certificate of --client-cert"
        );
    }
    let runtime = crate::runtime::runtime()?;
    runtime.block_on(async {
        let mut signals = Signals::new()?;
        if !arguments.lazy {
            probe(&settings).await.map_err(|error| arguments.unreachable(&error))?;
        }
        let mut proxy = Proxy::start(vec![settings]).map_err(failure)?;
        for (_, address) in proxy.addresses() {
            output::line(&format!("listening on {address}"));
        }
        while signals.next().await {
            // Changes to this client's certificate, or to the trusted CAs.
            let destination = Destination::parse(&arguments.to)?;
            let read = tokio::task::block_in_place(|| {
                arguments.settings(destination, listen, door.as_ref())
            });
            match read.and_then(|settings| proxy.reload(vec![settings]).map_err(failure)) {
                Ok(()) => tracing::info!("the files were read again"),
                Err(failure) => tracing::error!(
                    error = failure.message(),
                    "the files cannot be used: the previous ones stay in use"
                ),
            }
        }
        finish(proxy, &mut signals, limits::GRACE).await;
        Ok(())
    })
}

impl Arguments {
    fn protocol(&self) -> Result<Protocol, Failure> {
        self.protocol.as_ref().map_or(Ok(Protocol::Tcp), |name| row(PROTOCOLS, "protocol", name))
    }

    /// Made once: clients trust its CA.
    fn local_door(&self) -> Result<Option<Arc<Door>>, Failure> {
        let Some(path) = &self.local_ca else { return Ok(None) };
        Ok(Some(Arc::new(local_door(self.protocol()?, path)?)))
    }

    fn settings(
        &self,
        destination: Destination,
        listen: SocketAddr,
        door: Option<&Arc<Door>>,
    ) -> Result<Settings, Failure> {
        let protocol = self.protocol()?;
        let mut hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
        hosts.extend(self.name.clone());
        hosts.extend(destination.host());
        let upstream = Upstream {
            backend_ca: self.ca.clone(),
            backend_name: self.name.clone(),
            backend_cert: self.cert.clone(),
            backend_key: self.key.clone(),
            backend_policy: self.policy.clone(),
            backend_mode: Some(self.mode.clone().unwrap_or_else(|| "require".into())),
        };
        let to = self.to.clone();
        let tell = move |negotiated: &Negotiated| output::line(&told(&to, negotiated));
        let tls = upstream.tls(&destination, protocol, Path::new(""), Some(Box::new(tell)));
        let tls = tls.map_err(|failure| match failure.setting() {
            Some("backend_mode") => failure.about("mode"),
            Some("backend_policy") => failure.about("policy"),
            _ => failure,
        })?;
        let backend = Backend { address: destination.address, tls: Some(Arc::new(tls)) };
        let mut settings = Settings::new("forward", listen, vec![backend]);
        settings.protocol = protocol;
        // The forwarder belongs to the client and speaks for it.
        settings.transparent = true;
        settings.idle = self.idle_timeout.map_or(Ok(settings.idle), duration)?;
        // A web page whose host name resolves to this address must not be able to use it.
        settings.hosts = (!self.allow_remote).then_some(hosts);
        settings.door = door.cloned();
        // All clients are on this machine.
        settings.connections_by_peer = Some(settings.max_connections);
        Ok(settings)
    }

    fn unreachable(&self, error: &Unavailable) -> Failure {
        let failure = Failure::new(format!("the remote server cannot be used: {error}"));
        let Unavailable::Refused { error, .. } = error else { return failure };
        let text = error.to_string();
        let requires = self.mode.as_deref().is_none_or(|mode| mode == "require");
        let hint = match error.kind() {
            ErrorKind::ConnectionRefused => "check that it is running at this port",
            // rustls's texts for the alerts of RFC 8446, section 6.2.
            _ if requires
                && (text.contains("HandshakeFailure") || text.contains("ProtocolVersion")) =>
            {
                "it may support no post-quantum group: --mode prefer accepts a classical one, too"
            }
            _ if text.contains("UnknownIssuer") || text.contains("BadSignature") => {
                "name the CAs to trust with --ca-bundle FILE"
            }
            _ if text.contains("not valid for name") => {
                "give the name in its certificate with --name"
            }
            _ => return failure,
        };
        failure.hint(hint)
    }
}

fn told(to: &str, negotiated: &Negotiated) -> String {
    let Negotiated { version, cipher_suite, group, .. } = negotiated;
    let group = group.as_deref().unwrap_or("a resumed session");
    let kind = if negotiated.post_quantum { "post-quantum" } else { "classical" };
    format!("{to}: {version} {group} {cipher_suite} ({kind})")
}

/// TLS for clients on this machine, with a CA that lives as long as this process.
fn local_door(protocol: Protocol, ca: &Path) -> Result<Door, Failure> {
    let (store, root) = (MemoryStore::new(), RootKey::generate()?);
    let mut work = Work::new(&store, &root, system_clock());
    let made = ensure(&mut work, &KINDS[0], &default_names())?;
    files::write(ca, made.root_pem.as_bytes(), 0o644)?;
    // The protocol inside is the client's choice: HTTP/1.1, if it is HTTP.
    let alpn = match protocol {
        Protocol::Postgres => protocol.alpn(),
        Protocol::Tcp | Protocol::Http => &["http/1.1"],
    };
    let settings =
        door::Settings { listener: "forward".into(), ..door::Settings::with_protocols(alpn) };
    Door::new(settings, vec![made.certificate(&KINDS[0])], None)
        .map_err(|error| Failure::new(format!("TLS cannot be configured: {error}")))
}
