//! Listeners of `outlast proxy`, from flags or a settings file, which have the same names.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args as _;
use outlast_crypto::Secret;
use outlast_ledger::Observe;
use outlast_negotiate::names::nearest;
use outlast_net::client::ClientIdentity;
use outlast_net::door::{self, Door, ServerCertificate};
use outlast_net::metrics::Metrics;
use outlast_net::proxy::protocol::VERSIONS;
use outlast_net::proxy::{
    Address, BALANCES, Backend, Connecting, HealthCheck, IpNet, PROTOCOLS, Protocol, Settings,
    Tickets, UpstreamSettings, UpstreamTls, server_certificate, server_name,
};
use outlast_pki::key_forms::PrivateKey;
use outlast_pki::{object, pem};
use serde::Deserialize;

use crate::client_ca::Clients;
use crate::failure::{Failure, USAGE};
use crate::settings::{self, Located};
use crate::values::{self, ListenAddress};
use crate::{files, reload, tls, trust};

/// A settings file. Unknown keys are errors.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) log: Option<String>,
    pub(crate) grace: Option<f64>,
    pub(crate) metrics_listen: Option<String>,
    pub(crate) ledger: Option<Located>,
    pub(crate) ledger_days: Option<u32>,
    pub(crate) ledger_bytes: Option<u64>,
    /// `[[listener]]`
    #[serde(default)]
    pub(crate) listener: Vec<Listener>,
}

impl File {
    /// Reads the file.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let bytes = files::read(path, 1 << 20)?;
        let text = String::from_utf8_lossy(&bytes);
        if let Some(key) = unknown_key(&text) {
            let keys = if key.of_listener { listener_keys() } else { file_keys() };
            let meant = nearest(&key.name, keys.iter().map(String::as_str));
            let meant = meant.map(|name| format!("did you mean {name}? ")).unwrap_or_default();
            let place = if key.of_listener { " of a listener" } else { "" };
            return Err(Failure::file(path, &format!("there is no key {}{place}", key.name))
                .hint(format!("{meant}there are: {}", keys.join(", "))));
        }
        let file: Self = toml::from_str(&text)
            .map_err(|error| Failure::file(path, &error.to_string().trim_end()))?;
        if file.listener.is_empty() {
            return Err(Failure::file(path, &"there is no listener in it").hint(
                "each listener is a table [[listener]] with listen, to and its certificate",
            ));
        }
        Ok(file)
    }
}

/// A key that the settings file cannot have.
struct UnknownKey {
    name: String,
    of_listener: bool,
}

/// The first unknown key. A file that is no TOML has none: it is refused anyway.
fn unknown_key(text: &str) -> Option<UnknownKey> {
    let table: toml::Table = toml::from_str(text).ok()?;
    let odd = |table: &toml::Table, known: &[String]| {
        table.keys().find(|key| !known.contains(key)).cloned()
    };
    if let Some(name) = odd(&table, &file_keys()) {
        return Some(UnknownKey { name, of_listener: false });
    }
    let listeners = table.get("listener")?.as_array()?;
    let known = listener_keys();
    let name = listeners.iter().filter_map(toml::Value::as_table).find_map(|one| odd(one, &known));
    name.map(|name| UnknownKey { name, of_listener: true })
}

/// Keys at the top of the settings file.
fn file_keys() -> Vec<String> {
    ["log", "grace", "metrics_listen", "ledger", "ledger_days", "ledger_bytes", "listener"]
        .map(String::from)
        .into()
}

/// Keys of a listener: those of its options.
fn listener_keys() -> Vec<String> {
    let command = Listener::augment_args(clap::Command::new(""));
    command.get_arguments().map(|argument| argument.get_id().to_string()).collect()
}

/// A listener, by flags or as a table of the settings file.
#[derive(clap::Args, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[group(id = "listener")]
pub(crate) struct Listener {
    /// Name of the listener in logs, metrics and the ledger [default: proxy].
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Address, or host name, and port; port 0 picks a free one.
    #[arg(long, env = "OUTLAST_LISTEN")]
    pub(crate) listen: Option<ListenAddress>,
    /// Backend: tcp://HOST:PORT, http://HOST:PORT or unix:PATH, or with TLS tls://HOST:PORT or https://HOST:PORT;
    /// may be repeated.
    #[arg(long, env = "OUTLAST_TO", value_delimiter = ',', value_name = "URL", value_parser = backend)]
    pub(crate) to: Vec<String>,
    /// Protocol inside TLS: tcp, http or postgres [default: http if --to is an HTTP URL, else tcp].
    #[arg(long, value_parser = values::names(PROTOCOLS), hide_possible_values = true)]
    pub(crate) protocol: Option<String>,
    /// Certificate chain in PEM, the server's own first. May be repeated, with its key each time: the preferred
    /// certificate first, such as ML-DSA before ECDSA.
    #[arg(long = "tls-cert-file", env = "OUTLAST_TLS_CERT_FILE", value_delimiter = ',')]
    pub(crate) tls_cert_file: Vec<PathBuf>,
    /// Private key in PEM, one for each certificate.
    #[arg(long = "tls-key-file", env = "OUTLAST_TLS_KEY_FILE", value_delimiter = ',')]
    pub(crate) tls_key_file: Vec<PathBuf>,
    /// Security policy: see `outlast policy list` [default: 2026-11].
    #[arg(long, env = "OUTLAST_POLICY", value_name = "NAME", value_parser = values::tls_policies(), hide_possible_values = true)]
    pub(crate) policy: Option<String>,
    /// How to apply the policy's post-quantum groups: require, prefer, allow or off [default: the policy's own,
    /// which is prefer for most].
    #[arg(long, env = "OUTLAST_MODE", value_parser = values::modes(), hide_possible_values = true)]
    pub(crate) mode: Option<String>,
    /// ALPN name for the protocol tcp; may be repeated.
    #[arg(long, value_delimiter = ',')]
    pub(crate) alpn: Vec<String>,
    /// Ask clients for certificates, and accept those issued below the CAs in this PEM file or folder.
    #[arg(long, env = "OUTLAST_CLIENT_CA", value_name = "FILE")]
    pub(crate) client_ca: Option<PathBuf>,
    /// Whether a client must have a certificate: require or request [default: require].
    #[arg(long, env = "OUTLAST_CLIENT_AUTH", value_name = "MODE")]
    pub(crate) client_auth: Option<String>,
    /// CRL for client certificates; may be repeated.
    #[arg(long = "client-crl", value_delimiter = ',', value_name = "FILE")]
    pub(crate) client_crls: Option<Vec<PathBuf>>,
    /// Proxy in front that begins connections with a PROXY protocol header, v1 or v2; may be repeated.
    #[arg(long, value_delimiter = ',', value_name = "CIDR", value_parser = network)]
    pub(crate) proxy_protocol_from: Vec<String>,
    /// Begin each connection to a backend with a PROXY protocol header: v1 or v2. v2 describes TLS, too.
    #[arg(long, value_name = "VERSION", value_parser = values::names(VERSIONS), hide_possible_values = true)]
    pub(crate) send_proxy_protocol: Option<String>,
    /// Proxy in front whose X-Forwarded-* and Forwarded headers are trusted; may be repeated. Those of others are
    /// removed.
    #[arg(long, value_delimiter = ',', value_name = "CIDR", value_parser = network)]
    pub(crate) trust_forwarded: Vec<String>,
    /// Send X-Outlast-Tls-* headers to the backend: what was negotiated, and the client's certificate.
    #[arg(long)]
    pub(crate) tls_headers: bool,
    /// How to choose among several backends: round-robin or least-connections [default: round-robin].
    #[arg(long, value_parser = values::names(BALANCES), hide_possible_values = true)]
    pub(crate) balance: Option<String>,
    /// Health check of backends: tcp, or a path that must answer with 200 to 399.
    #[arg(long, value_name = "tcp|PATH", value_parser = health)]
    pub(crate) health: Option<String>,
    /// Host header of health checks [default: the backend's own name].
    #[arg(long, value_name = "NAME")]
    pub(crate) health_host: Option<String>,
    /// Seconds between health checks [default: 5].
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) health_interval: Option<f64>,
    /// Timeout of a health check, in seconds [default: 2].
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) health_timeout: Option<f64>,
    /// Successful checks in a row after which a backend is used again [default: 2].
    #[arg(long, value_name = "NUMBER", value_parser = values::positive::<u32>)]
    pub(crate) health_rise: Option<u32>,
    /// Failed checks in a row after which it is not used [default: 3].
    #[arg(long, value_name = "NUMBER", value_parser = values::positive::<u32>)]
    pub(crate) health_fall: Option<u32>,
    /// Timeout of connecting to a backend, in seconds [default: 5].
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) connect_timeout: Option<f64>,
    /// Timeout of a backend's answer to an HTTP request, in seconds [default: 60].
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) answer_timeout: Option<f64>,
    /// Idle timeout of a connection, in seconds [default: 3600].
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) idle_timeout: Option<f64>,
    /// Concurrent connections [default: 16384].
    #[arg(long, value_name = "NUMBER", value_parser = values::positive::<usize>)]
    pub(crate) max_connections: Option<usize>,
    /// Concurrent connections of one peer (an IPv4 address or an IPv6 network of 64 bits). Raise it if all clients come
    /// from one, such as a load balancer without the PROXY protocol [default: an eighth, at least 256].
    #[arg(long, value_name = "NUMBER", value_parser = values::positive::<usize>)]
    pub(crate) connections_per_peer: Option<usize>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) upstream: Upstream,
}

/// TLS with the backends.
#[derive(clap::Args, Default, Clone, Deserialize)]
#[serde(default)]
#[group(id = "upstream")]
pub(crate) struct Upstream {
    /// Trusted CAs for backends' certificates, PEM [default: those of the system].
    #[arg(long, value_name = "FILE")]
    pub(crate) backend_ca: Option<PathBuf>,
    /// Name in backends' certificates [default: the host].
    #[arg(long, value_name = "NAME")]
    pub(crate) backend_name: Option<String>,
    /// Certificate chain to show to backends, PEM.
    #[arg(long, value_name = "FILE", requires = "backend_key")]
    pub(crate) backend_cert: Option<PathBuf>,
    /// Its private key, PEM.
    #[arg(long, value_name = "FILE", requires = "backend_cert")]
    pub(crate) backend_key: Option<PathBuf>,
    /// Security policy for connections to them [default: 2026-11].
    #[arg(long, value_name = "NAME", value_parser = values::tls_policies(), hide_possible_values = true)]
    pub(crate) backend_policy: Option<String>,
    /// How to apply its post-quantum groups there [default: the policy's own, which is prefer for most].
    #[arg(long, value_parser = values::modes(), hide_possible_values = true)]
    pub(crate) backend_mode: Option<String>,
}

/// State that all listeners share, across reloads of the settings.
#[derive(Default)]
pub(crate) struct Common {
    pub(crate) observer: Option<Arc<dyn Observe>>,
    pub(crate) metrics: Option<Arc<Metrics>>,
    pub(crate) tickets: Tickets,
}

impl Listener {
    /// Checks the settings and reads the files that they name; paths are relative to `folder`.
    pub(crate) fn settings(&self, folder: &Path, common: &Common) -> Result<Settings, Failure> {
        let name = self.name.as_deref().unwrap_or("proxy");
        self.build(name, folder, common).map_err(|failure| match self.name {
            Some(_) => failure.prefixed(&format!("listener {name}")),
            None => failure,
        })
    }

    fn build(&self, name: &str, folder: &Path, common: &Common) -> Result<Settings, Failure> {
        let ListenAddress(listen) = self.listen.ok_or_else(|| {
            Failure::new("no address to listen at was given")
                .hint("give one, such as --listen 0.0.0.0:443")
                .code(USAGE)
        })?;
        if self.to.is_empty() {
            return Err(Failure::new("no backend was given")
                .hint("give one, such as --to http://127.0.0.1:8080; it may be repeated")
                .code(USAGE));
        }
        let to: Vec<_> =
            self.to.iter().map(|url| Destination::parse(url)).collect::<Result<_, _>>()?;
        let protocol = match &self.protocol {
            Some(name) => row(PROTOCOLS, "protocol", name)?,
            None if to.iter().all(|destination| destination.is_http) => Protocol::Http,
            None => Protocol::Tcp,
        };
        let backends = to.into_iter().map(|destination| {
            let tls =
                destination.tls.then(|| self.upstream.tls(&destination, protocol, folder, None));
            Ok(Backend { address: destination.address, tls: tls.transpose()?.map(Arc::new) })
        });
        let mut settings = Settings::new(name, listen, backends.collect::<Result<_, Failure>>()?);
        settings.protocol = protocol;
        settings.door = Some(Arc::new(self.door(name, protocol, folder, common)?));
        self.limits(&mut settings)?;
        Ok(settings)
    }

    fn door(
        &self,
        name: &str,
        protocol: Protocol,
        folder: &Path,
        common: &Common,
    ) -> Result<Door, Failure> {
        let clients = settings::Clients {
            client_ca: self.client_ca.clone(),
            client_auth: self.client_auth.clone(),
            client_crls: self.client_crls.clone(),
        };
        let clients = Clients::choose(clients.below(folder))?;
        let clients = clients.as_ref().map(Clients::load).transpose()?;
        let cannot = |error: String| Failure::new(format!("TLS cannot be configured: {error}"));
        let alpn = match protocol {
            Protocol::Tcp => self.alpn.iter().map(String::as_str).collect(),
            _ if !self.alpn.is_empty() => {
                return Err(Failure::new("ALPN names can only be given for the protocol tcp")
                    .hint("leave them out, or add --protocol tcp")
                    .about("alpn"));
            }
            _ => protocol.alpn().to_vec(),
        };
        let settings = door::Settings {
            listener: name.to_owned(),
            rules: tls::rules(self.policy.as_deref(), self.mode.as_deref())?,
            tickets: Some(common.tickets.of(name).map_err(cannot)?),
            observer: common.observer.clone(),
            metrics: common.metrics.clone(),
            ..door::Settings::with_protocols(&alpn)
        };
        let certificates = self.certificates(folder)?;
        let kinds: Vec<_> = certificates.iter().map(|one| one.kind.clone()).collect();
        let door = Door::new(settings, certificates, clients)
            .map_err(|error| cannot(error.to_string()))?;
        match reload::useless(&door) {
            None => Ok(door),
            Some(policy) => Err(Failure::new(format!(
                "the policy {policy} allows none of the certificates ({})",
                kinds.join(", ")
            ))
            .hint(format!(
                "give another with --tls-cert-file and --tls-key-file, or another --policy; outlast policy show {policy} lists what it allows"
            ))),
        }
    }

    fn certificates(&self, folder: &Path) -> Result<Vec<ServerCertificate>, Failure> {
        let (chains, keys) = (&self.tls_cert_file, &self.tls_key_file);
        if chains.is_empty() || chains.len() != keys.len() {
            return Err(Failure::new("a listener needs a certificate and its private key")
                .hint("give --tls-cert-file FILE and --tls-key-file FILE the same number of times")
                .code(USAGE));
        }
        let load = |(chain, key): (&PathBuf, &PathBuf)| {
            let (chain, key) = (folder.join(chain), folder.join(key));
            let certificates = pem::read_certificates(&files::read(&chain, 4 << 20)?)
                .map_err(|error| Failure::file(&chain, &error))?;
            server_certificate(&certificates, &private_key(&key)?)
                .map_err(|error| Failure::file(&chain, &error))
        };
        chains.iter().zip(keys).map(load).collect()
    }

    fn limits(&self, settings: &mut Settings) -> Result<(), Failure> {
        let seconds = |value: Option<f64>, usual| value.map_or(Ok(usual), duration);
        settings.connecting = Connecting {
            timeout: seconds(self.connect_timeout, settings.connecting.timeout)?,
            ..Connecting::default()
        };
        if let Some(name) = &self.balance {
            settings.connecting.balance = row(BALANCES, "way to choose a backend", name)?;
        }
        if let Some(name) = &self.send_proxy_protocol {
            let version = row(VERSIONS, "version of the PROXY protocol", name)?;
            settings.connecting.announce = Some(version);
        }
        settings.proxies = nets(&self.proxy_protocol_from)?;
        settings.trusted = nets(&self.trust_forwarded)?;
        settings.tls_headers = self.tls_headers;
        self.positive()?;
        settings.idle = seconds(self.idle_timeout, settings.idle)?;
        settings.answer = seconds(self.answer_timeout, settings.answer)?;
        settings.max_connections = self.max_connections.unwrap_or(settings.max_connections);
        settings.connections_by_peer = self.connections_per_peer;
        let usual = HealthCheck::default();
        settings.health = match self.health.as_deref() {
            None => None,
            Some(path) if path == "tcp" || path.starts_with('/') => Some(HealthCheck {
                path: (path != "tcp").then(|| path.to_owned()),
                host: self.health_host.clone(),
                interval: seconds(self.health_interval, usual.interval)?,
                timeout: seconds(self.health_timeout, usual.timeout)?,
                rise: self.health_rise.unwrap_or(usual.rise),
                fall: self.health_fall.unwrap_or(usual.fall),
            }),
            Some(other) => {
                return Err(Failure::new(format!("{other} is not a health check")).hint(HEALTH));
            }
        };
        Ok(())
    }

    /// Refuses numbers of zero, and durations of no or endless time, even where they would not be used.
    fn positive(&self) -> Result<(), Failure> {
        let wide = |number: Option<u32>| number.map(u64::from);
        let count = |number: Option<usize>| number.map(|number| number as u64);
        for (key, number) in [
            ("max_connections", count(self.max_connections)),
            ("connections_per_peer", count(self.connections_per_peer)),
            ("health_rise", wide(self.health_rise)),
            ("health_fall", wide(self.health_fall)),
        ] {
            if number == Some(0) {
                return Err(Failure::new(format!("{key} is 0"))
                    .hint("give a number from 1 on, or leave it out for the default")
                    .about(key));
            }
        }
        for (key, seconds) in [
            ("health_interval", self.health_interval),
            ("health_timeout", self.health_timeout),
            ("connect_timeout", self.connect_timeout),
            ("answer_timeout", self.answer_timeout),
            ("idle_timeout", self.idle_timeout),
        ] {
            if let Some(Err(error)) = seconds.map(values::duration) {
                return Err(Failure::new(format!("{key}: {error}")).about(key));
            }
        }
        Ok(())
    }
}

/// What a backend is, for messages.
const BACKEND: &str = "a backend is tcp://HOST:PORT, http://HOST:PORT, tls://HOST:PORT, https://HOST:PORT or unix:PATH";

/// The URL of a backend on the command line.
fn backend(text: &str) -> Result<String, String> {
    if Destination::parse(text).is_ok() {
        return Ok(text.to_owned());
    }
    let has_scheme = text.contains("://") || text.starts_with("unix:");
    let meant = format!("http://{text}");
    if !has_scheme && Destination::parse(&meant).is_ok() {
        return Err(format!("it has no scheme: write {meant}, or tcp://{text}"));
    }
    Err(BACKEND.to_owned())
}

/// A network on the command line.
fn network(text: &str) -> Result<String, String> {
    nets(&[text.to_owned()]).map(|_| text.to_owned()).map_err(|_| NETWORK.to_owned())
}

/// What a network is, for messages.
const NETWORK: &str = "write a network like 10.0.0.0/8, or an address";

/// A health check on the command line.
fn health(text: &str) -> Result<String, String> {
    let is_known = text == "tcp" || text.starts_with('/');
    is_known.then(|| text.to_owned()).ok_or_else(|| HEALTH.to_owned())
}

/// What a health check is, for messages.
const HEALTH: &str = "give tcp, or a path such as /healthz";

/// Address of a backend, as a URL.
pub(crate) struct Destination {
    pub(crate) address: Address,
    pub(crate) tls: bool,
    pub(crate) is_http: bool,
}

impl Destination {
    /// Its host, for the `Host` header.
    pub(crate) fn host(&self) -> Option<String> {
        match &self.address {
            Address::Tcp(host, _) if host.contains(':') => Some(format!("[{host}]")),
            Address::Tcp(host, _) => Some(host.clone()),
            Address::Unix(_) => None,
        }
    }

    /// `tcp://HOST:PORT` and its like, or `unix:PATH`.
    pub(crate) fn parse(url: &str) -> Result<Self, Failure> {
        let wrong = || Failure::new(format!("{url} is not a backend")).hint(BACKEND);
        if let Some(path) = url.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self { address: Address::Unix(path.into()), tls: false, is_http: false });
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (tls, is_http, usual) = match scheme {
            "tcp" => (false, false, None),
            "http" => (false, true, Some(80)),
            "tls" => (true, false, None),
            "https" => (true, true, Some(443)),
            _ => return Err(wrong()),
        };
        let authority = rest.trim_end_matches('/');
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (authority, usual.ok_or_else(wrong)?),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let odd = |c: char| !(c.is_ascii_alphanumeric() || ".-_:".contains(c));
        if bare.is_empty() || bare.contains(odd) || (bare.contains(':') && bare == host) {
            return Err(wrong());
        }
        Ok(Self { address: Address::Tcp(bare.to_owned(), port), tls, is_http })
    }
}

impl Upstream {
    /// TLS settings for the backend at this address.
    pub(crate) fn tls(
        &self,
        destination: &Destination,
        protocol: Protocol,
        folder: &Path,
        tell: Option<outlast_net::proxy::Tell>,
    ) -> Result<UpstreamTls, Failure> {
        let host = match (&self.backend_name, &destination.address) {
            (Some(name), _) => name.as_str(),
            (None, Address::Tcp(host, _)) => host,
            (None, Address::Unix(_)) => "localhost",
        };
        let roots = match &self.backend_ca {
            Some(path) => trust::load(&folder.join(path))?,
            None => trust::system_roots()?,
        };
        let identity = match (&self.backend_cert, &self.backend_key) {
            (Some(chain), Some(key)) => Some(identity(&folder.join(chain), &folder.join(key))?),
            (None, None) => None,
            _ => return Err(Failure::new("backend_cert and backend_key must be given together")),
        };
        let alpn: &[&str] = match protocol {
            Protocol::Postgres => protocol.alpn(),
            Protocol::Http => &["http/1.1"],
            Protocol::Tcp if destination.is_http => &["http/1.1"],
            Protocol::Tcp => &[],
        };
        let settings = UpstreamSettings {
            rules: tls::rules(self.backend_policy.as_deref(), self.backend_mode.as_deref())
                .map_err(|failure| match failure.setting() {
                    Some("policy") => failure.about("backend_policy"),
                    _ => failure.about("backend_mode"),
                })?,
            roots: &roots,
            identity: identity.as_ref(),
            name: server_name(host).map_err(Failure::new)?,
            protocols: alpn.iter().map(|name| name.as_bytes().to_vec()).collect(),
            tell,
        };
        UpstreamTls::new(settings).map_err(|error| Failure::new(error.to_string()))
    }
}

/// A certificate chain and its private key, PEM.
pub(crate) fn identity(chain: &Path, key: &Path) -> Result<ClientIdentity, Failure> {
    let certificates = pem::read_certificates(&files::read(chain, 4 << 20)?)
        .map_err(|error| Failure::file(chain, &error))?;
    Ok(ClientIdentity { chain: certificates, key: private_key(key)? })
}

/// PKCS #8 form of the private key in a file.
fn private_key(path: &Path) -> Result<Secret, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::file(path, error);
    let objects = object::read(&files::read(path, 1 << 20)?).map_err(|error| wrong(&error))?;
    let object = objects
        .iter()
        .find(|object| object.kind.is_bare_private_key())
        .ok_or_else(|| wrong(&"there is no unencrypted private key in it"))?;
    let key = PrivateKey::read(object).and_then(|key| key.to_pkcs8());
    key.map_err(|error| wrong(&error))
}

fn nets(texts: &[String]) -> Result<Vec<IpNet>, Failure> {
    let parse = |text: &String| {
        let alone = || text.parse().ok().map(|address: std::net::IpAddr| IpNet::from(address));
        text.parse()
            .ok()
            .or_else(alone)
            .ok_or_else(|| Failure::new(format!("{text} is not a network")).hint(NETWORK))
    };
    texts.iter().map(parse).collect()
}

/// A duration in seconds, from a setting.
pub(crate) fn duration(seconds: f64) -> Result<Duration, Failure> {
    values::duration(seconds).map_err(Failure::new)
}

/// The row with this name.
pub(crate) fn row<T: Copy>(rows: &[(&str, T)], what: &str, name: &str) -> Result<T, Failure> {
    rows.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = rows.iter().map(|(known, _)| *known).collect();
        Failure::new(format!("{name} is not a {what}"))
            .hint(format!("choose one of {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations() {
        for (url, expected) in [
            ("tcp://a.example:1", Some("a.example:1 false false")),
            ("http://a", Some("a:80 false true")),
            ("https://a/", Some("a:443 true true")),
            ("tls://[::1]:5", Some("[::1]:5 true false")),
            ("unix:/run/x.sock", Some("unix:/run/x.sock false false")),
            ("tcp://a", None),
            ("tcp://:1", None),
            ("tcp://::1:5", None),
            ("tcp://a:b", None),
            ("tcp://a:65536", None),
            ("http://a/path", None),
            ("http://user@a", None),
            ("ftp://a:1", None),
            ("unix:", None),
            ("a:1", None),
        ] {
            let found = Destination::parse(url).ok();
            let shown = found.map(|destination| {
                format!("{} {} {}", destination.address, destination.tls, destination.is_http)
            });
            assert_eq!(shown.as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn unknown_keys_are_errors() {
        let read = |text: &str| toml::from_str::<File>(text).map(|file| file.listener.len());
        let good = "log = 'info'\n[[listener]]\nlisten = '127.0.0.1:1'\nto = ['tcp://a:1']\nbackend_ca = 'x'\n";
        assert_eq!(read(good), Ok(1));
        for bad in [
            "listeners = 1",
            "[[listener]]\nlisten = 1",
            "[[listener]]\nlisten = '127.0.0.1:1'\nto = []\ntls_header = true",
            "[[listener]]\nbackend_cas = 'x'",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    /// The guide explains every key, and its example is right.
    #[test]
    fn the_guide_is_complete() {
        let guide = include_str!("../../../docs/guide/endpoints.md");
        let (_, rest) = guide.split_once("### The proxy's settings file\n").unwrap();
        let section = rest.split("\n## ").next().unwrap();
        let (_, example) = section.split_once("```toml\n").unwrap();
        let (example, _) = example.split_once("```").unwrap();
        assert!(unknown_key(example).is_none());
        let file: File = toml::from_str(example).unwrap();
        assert_eq!(file.listener.len(), 2);
        for key in [file_keys(), listener_keys()].concat() {
            assert!(section.contains(&format!("`{key}`")), "{key}");
        }
        // What the table says is what the file can have.
        for line in section.lines().filter_map(|line| line.strip_prefix("| `")) {
            let keys = line.split_once(" | ").unwrap().0.replace('`', "");
            for key in keys.split(", ") {
                let known = [file_keys(), listener_keys()].concat();
                assert!(known.iter().any(|known| known == key), "{key}");
            }
        }
    }

    #[test]
    fn misspelt_keys_are_found() {
        let name = |text: &str| unknown_key(text).map(|key| (key.name, key.of_listener));
        assert_eq!(name("logs = 1"), Some(("logs".into(), false)));
        let text = "log = 'info'\n[[listener]]\nbackend_ca = 'x'\ntls_header = true\n";
        assert_eq!(name(text), Some(("tls_header".into(), true)));
        assert_eq!(name("[[listener]]\nclient_crls = []"), None);
    }

    #[test]
    fn networks_and_seconds() {
        let texts = ["10.0.0.0/8", "192.0.2.1", "::1"].map(String::from);
        let shown: Vec<_> = nets(&texts).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.0/8", "192.0.2.1/32", "::1/128"]);
        assert!(nets(&["10.0.0.0/40".to_owned()]).is_err());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(duration(bad).is_err());
        }
        assert_eq!(duration(0.5).unwrap(), Duration::from_millis(500));
    }
}
