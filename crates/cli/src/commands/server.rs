//! `outlast server`: serves a data folder.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_api::service::Sink;
use outlast_domain::limits;
use outlast_domain::settings::Settings;
use outlast_net::acme::Validator;
use outlast_net::certificate::{KINDS, Kind};
use outlast_net::door::Door;
use outlast_net::plain::PlainServer;
use outlast_net::policy::Policy;
use outlast_net::server::{PROTOCOLS, Server, system_clock};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde::Deserialize;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};

use crate::client_ca::{self, Clients};
use crate::data::{self, Data};
use crate::failure::Failure;
use crate::place::Place;
use crate::root_key::Provider;
use crate::{acme, buckets, files, output};

/// How often expired keys are erased and the certificate is looked at.
const CHORES: Duration = Duration::from_secs(3600);

/// How often it is looked whether a checkpoint over the audit events is due.
const CHECKPOINTS: Duration = Duration::from_secs(2);

/// How often it is looked whether CRLs are due, or something is for a bucket.
const REVOCATION: Duration = Duration::from_secs(2);

/// How often it is looked whether the files with client CAs and CRLs have changed.
const CLIENT_FILES: Duration = Duration::from_secs(5);

/// Connections that wait to be accepted; the kernel may allow fewer.
const BACKLOG: u32 = 4096;

/// Arguments of `server`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Data folder, made by `outlast init`.
    #[arg(long, env = "OUTLAST_DATA")]
    data: PathBuf,
    /// Settings file [default: outlast.toml in the data folder].
    #[arg(long, env = "OUTLAST_CONFIG")]
    config: Option<PathBuf>,
    /// Where the records are: sqlite, or a URL such as postgres://USER@HOST/DATABASE, which several servers may
    /// share [default: sqlite, in the data folder].
    #[arg(long, env = "OUTLAST_STORE", hide_env_values = true)]
    store: Option<String>,
    /// What wraps the store's root key: file:PATH, passphrase:SOURCE (env:NAME, file:PATH, or nothing to be
    /// asked) or pkcs11:URI [default: file:root.key in the data folder].
    #[arg(long, env = "OUTLAST_ROOT_KEY", hide_env_values = true)]
    root_key: Option<String>,
    /// Address and port [default: 127.0.0.1:8443]; port 0 takes a free one.
    #[arg(long, env = "OUTLAST_LISTEN")]
    listen: Option<SocketAddr>,
    /// Kind of the TLS certificate [default: ecdsa-p256; ml-dsa-65 for closed worlds].
    #[arg(long, env = "OUTLAST_TLS_CERT")]
    tls_cert: Option<String>,
    /// Further DNS name or address in the TLS certificate; may be repeated.
    #[arg(long = "tls-name", env = "OUTLAST_TLS_NAMES", value_delimiter = ',')]
    tls_names: Option<Vec<String>>,
    /// Address and port of plain HTTP for CRLs and OCSP, or off [default: the next port at the same address].
    #[arg(long, env = "OUTLAST_REVOCATION_LISTEN", value_name = "ADDRESS|off")]
    revocation_listen: Option<String>,
    /// What certificates say of where that is, such as http://pki.example.com [default: the address,
    /// or localhost].
    #[arg(long, env = "OUTLAST_REVOCATION_URL")]
    revocation_url: Option<String>,
    /// For how many seconds an OCSP answer is valid [default: 3600].
    #[arg(long, env = "OUTLAST_OCSP_VALIDITY", value_name = "SECONDS")]
    ocsp_validity: Option<i64>,
    /// What others reach this server by, such as https://outlast.example.com [default: the address].
    #[arg(long, env = "OUTLAST_SERVICE_URL")]
    service_url: Option<String>,
    #[command(flatten)]
    acme: acme::Flags,
    /// What to log to stderr: error, warn, info, debug, or directives such as outlast_net=debug
    /// [default: info].
    #[arg(long, env = "OUTLAST_LOG")]
    log: Option<String>,
    #[command(flatten)]
    clients: client_ca::ClientArguments,
}

/// `outlast.toml`. Unknown keys are errors.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    listen: Option<SocketAddr>,
    tls_cert: Option<String>,
    tls_names: Option<Vec<String>>,
    revocation_listen: Option<String>,
    revocation_url: Option<String>,
    ocsp_validity: Option<i64>,
    service_url: Option<String>,
    /// How ACME's targets are looked at.
    #[serde(default)]
    acme: acme::File,
    /// Where audit reports and CRLs are written.
    #[serde(default)]
    buckets: buckets::Settings,
    log: Option<String>,
    client_ca: Option<PathBuf>,
    client_auth: Option<String>,
    client_crls: Option<Vec<PathBuf>>,
    /// Where the root key is.
    pub(crate) root_key: Option<String>,
    /// Where the records are.
    pub(crate) store: Option<String>,
}

impl File {
    /// Reads the file that was given, or that of the folder if there is one.
    pub(crate) fn load(given: Option<&Path>, folder: &Path) -> Result<Self, Failure> {
        let default = folder.join("outlast.toml");
        let path = given.unwrap_or(&default);
        if given.is_none() && !path.exists() {
            return Ok(Self::default());
        }
        let bytes = files::read(path, 1 << 20)?;
        let text = String::from_utf8_lossy(&bytes);
        toml::from_str(&text).map_err(|error| Failure::file(path, &error.to_string().trim_end()))
    }
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let file = File::load(arguments.config.as_deref(), &arguments.data)?;
    // Flags and variables came together in `arguments`, in that order; the file is asked last.
    let log = arguments.log.or(file.log).unwrap_or_else(|| "info".into());
    start_log(&log)?;
    let listen = arguments
        .listen
        .or(file.listen)
        .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8443)));
    let kind = kind(arguments.tls_cert.or(file.tls_cert).as_deref())?;
    let mut names = data::default_names();
    if !listen.ip().is_unspecified() && !listen.ip().is_loopback() {
        names.push(listen.ip().to_string());
    }
    names.extend(arguments.tls_names.or(file.tls_names).unwrap_or_default());
    let revocation = Revocation {
        listen: match arguments.revocation_listen.or(file.revocation_listen) {
            Some(text) => Listen::parse(&text)?,
            None => Listen::NextPort,
        },
        url: arguments
            .revocation_url
            .or(file.revocation_url)
            .map(|url| base_url(&url, "http://"))
            .transpose()?,
        service_url: arguments
            .service_url
            .or(file.service_url)
            .map(|url| base_url(&url, "https://"))
            .transpose()?,
        ocsp_validity: ocsp_validity(arguments.ocsp_validity.or(file.ocsp_validity))?,
        buckets: file.buckets,
        acme: acme::settings(arguments.acme, file.acme)?,
    };
    let provider =
        Provider::choose(arguments.root_key.as_deref(), file.root_key.as_deref(), &arguments.data)?;
    let place = Place::choose(&arguments.data, arguments.store.as_deref(), file.store.as_deref())?;
    let settings = client_ca::Settings {
        client_ca: file.client_ca,
        client_auth: file.client_auth,
        client_crls: file.client_crls,
    };
    let clients = Clients::choose(arguments.clients, settings, &arguments.data)?;
    let tls = Tls { kind, names, clients };
    let data = Data::open(&place, &provider)?;
    raise_open_files();
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new(format!("the runtime cannot be started: {error}")))?;
    runtime.block_on(async {
        let receive = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("signals cannot be received: {error}")))
        };
        let mut terminate = receive(SignalKind::terminate())?;
        let mut interrupt = receive(SignalKind::interrupt())?;
        let running = Running::start(data, listen, tls, revocation).await?;
        if let Err(failure) = data::update_profile(&arguments.data, running.address) {
            tracing::warn!(error = failure.message(), "the AWS profile was not brought up to date");
        }
        output::line(&format!("listening on https://{}", running.address));
        if let Some(address) = running.revocation {
            output::line(&format!("revocation on http://{address}"));
        }
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: open requests may finish");
        running.stop().await;
        Ok(())
    })
}

fn kind(name: Option<&str>) -> Result<&'static Kind, Failure> {
    let Some(name) = name else { return Ok(&KINDS[0]) };
    Kind::by_name(name).ok_or_else(|| {
        let known: Vec<_> = KINDS.iter().map(|row| row.name).collect();
        Failure::new(format!("{name} is not a kind of TLS certificate"))
            .hint(format!("known are {}", known.join(", ")))
    })
}

fn ocsp_validity(given: Option<i64>) -> Result<i64, Failure> {
    let seconds = given.unwrap_or(limits::OCSP_VALIDITY_SECONDS);
    if limits::OCSP_VALIDITY_RANGE.contains(&seconds) {
        return Ok(seconds);
    }
    Err(Failure::new(format!(
        "an OCSP answer is valid for {} to {} seconds",
        limits::OCSP_VALIDITY_RANGE.start(),
        limits::OCSP_VALIDITY_RANGE.end()
    )))
}

/// A URL that paths are appended to.
fn base_url(url: &str, scheme: &str) -> Result<String, Failure> {
    let rest = url.strip_prefix(scheme).map(|rest| rest.trim_end_matches('/'));
    let odd = |c: char| !c.is_ascii_graphic() || "?#@\"<>\\^`{|}".contains(c);
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !rest.contains(odd) => {
            Ok(format!("{scheme}{rest}"))
        }
        _ => Err(Failure::new(format!("{url} is not a URL that begins with {scheme}"))),
    }
}

/// Each connection is an open file, and shells and service managers often allow 1024 unless asked for more.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit on open files could not be raised");
    }
}

fn start_log(directives: &str) -> Result<(), Failure> {
    let filter = tracing_subscriber::EnvFilter::try_new(directives)
        .map_err(|error| Failure::new(format!("the log setting is not valid: {error}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    Ok(())
}

/// Where plain HTTP listens.
#[derive(Default)]
pub(crate) enum Listen {
    /// At the same address as the APIs, at the next port.
    #[default]
    NextPort,
    /// Nowhere.
    Off,
    /// There.
    At(SocketAddr),
}

impl Listen {
    fn parse(text: &str) -> Result<Self, Failure> {
        if text == "off" {
            return Ok(Self::Off);
        }
        text.parse().map(Self::At).map_err(|_| {
            Failure::new(format!("{text} is no address with a port"))
                .hint("give --revocation-listen something like 0.0.0.0:80, or off")
        })
    }

    /// The address, if there is to be a listener beside one for the APIs at `api`, which was asked for as `asked`.
    fn address(&self, asked: SocketAddr, api: SocketAddr) -> Option<SocketAddr> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(*address),
            // Who takes any port for the one takes any for the other.
            Self::NextPort if asked.port() == 0 => Some(SocketAddr::new(asked.ip(), 0)),
            Self::NextPort => Some(SocketAddr::new(api.ip(), api.port().checked_add(1)?)),
        }
    }
}

/// What certificates say of the server, and where it writes.
pub(crate) struct Revocation {
    listen: Listen,
    url: Option<String>,
    service_url: Option<String>,
    ocsp_validity: i64,
    buckets: buckets::Settings,
    acme: outlast_net::acme::Settings,
}

impl Default for Revocation {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            url: None,
            service_url: None,
            ocsp_validity: limits::OCSP_VALIDITY_SECONDS,
            buckets: buckets::Settings::default(),
            acme: outlast_net::acme::Settings::default(),
        }
    }
}

/// How the server shows itself, and whom it asks for a certificate.
pub(crate) struct Tls {
    /// Kind of its certificate.
    pub(crate) kind: &'static Kind,
    /// Names in it.
    pub(crate) names: Vec<String>,
    /// Where it is written which clients to believe; absent where they are not asked.
    pub(crate) clients: Option<Clients>,
}

/// A server that runs in this process.
pub(crate) struct Running {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Where plain HTTP listens.
    pub(crate) revocation: Option<SocketAddr>,
    stop: tokio::sync::watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Starts a server on a data folder, for this machine and at any port.
    pub(crate) async fn start_here(data: Data) -> Result<Self, Failure> {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let tls = Tls { kind: &KINDS[0], names: data::default_names(), clients: None };
        Self::start(data, any_port, tls, Revocation::default()).await
    }

    /// Starts a server on a data folder.
    pub(crate) async fn start(
        data: Data,
        listen: SocketAddr,
        tls: Tls,
        revocation: Revocation,
    ) -> Result<Self, Failure> {
        let (listener, address) = listen_at(listen, "--listen")?;
        let plain = match revocation.listen.address(listen, address) {
            Some(at) => Some(listen_at(at, "--revocation-listen, or switch it off: off")?),
            None => None,
        };
        let plain_address = plain.as_ref().map(|(_, address)| *address);
        let at = |scheme: &str, address: SocketAddr| {
            if address.ip().is_unspecified() {
                // Not an address that anybody could go to.
                format!("{scheme}://localhost:{}", address.port())
            } else {
                format!("{scheme}://{address}")
            }
        };
        data.service.set_settings(Settings {
            revocation_url: revocation.url.or_else(|| Some(at("http", plain_address?))),
            service_url_is_given: revocation.service_url.is_some(),
            service_url: revocation.service_url.unwrap_or_else(|| at("https", address)),
        });
        data.service.set_ocsp_validity(revocation.ocsp_validity);
        let sink = revocation.buckets.sink(data.folder())?;
        let validator = Validator::new(revocation.acme);
        let Tls { kind, names, clients } = tls;
        let key = data.certificate(kind, &names)?.certified_key;
        let auth = clients.as_ref().map(Clients::load).transpose()?;
        let door = Door::with_clients(Policy::default(), key, PROTOCOLS, auth.as_ref())
            .map_err(|error| Failure::new(format!("TLS cannot be configured: {error}")))?;
        let server = Arc::new(Server {
            service: data.service.clone(),
            door: Arc::new(door),
            clock: system_clock,
        });
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let stopping = |mut stopped: tokio::sync::watch::Receiver<bool>| async move {
            // If whoever could say so is gone, that is the end, too.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let plain = plain.map(|(listener, _)| {
            let server = Arc::new(PlainServer::new(data.service.clone(), system_clock));
            tokio::spawn(server.run(listener, stopping(stopped.clone())))
        });
        let data = Arc::new(data);
        let chores = tokio::spawn(chores(data.clone(), server.clone(), kind, names));
        let checkpoints = tokio::spawn(checkpoints(data.clone()));
        let revocation = tokio::spawn(revocation_chores(data.clone()));
        let publishing = tokio::spawn(publishing(data.clone(), sink, stopped.clone()));
        let watch = tokio::spawn(watch_clients(server.clone(), clients));
        let validating = match validator {
            Ok(validator) => {
                let service = data.service.clone();
                Some(tokio::spawn(Arc::new(validator).run(service, system_clock)))
            }
            Err(error) => {
                tracing::warn!(%error, "there is no DNS: ACME's challenges are not looked at");
                None
            }
        };
        let task = tokio::spawn(async move {
            server.run(listener, stopping(stopped)).await;
            if let Some(plain) = plain {
                let _ = plain.await;
            }
            watch.abort();
            if let Some(validating) = validating {
                // What it was at is looked at again.
                validating.abort();
            }
            for chore in [chores, checkpoints, revocation, publishing] {
                chore.abort();
                let _ = chore.await;
            }
            checkpoint(&data, true);
            drop(data);
        });
        Ok(Self { address, revocation: plain_address, stop, task })
    }

    /// Stops it and waits until it has.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }
}

/// A listener, and where it is; `flag` says where else it could be.
fn listen_at(at: SocketAddr, flag: &str) -> Result<(TcpListener, SocketAddr), Failure> {
    let bound = bind(at).and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|error| {
        Failure::new(format!("{at}: {error}")).hint(format!("choose another address with {flag}"))
    })?;
    Ok((listener, address))
}

/// Tokio's own `bind` lets 128 connections wait to be accepted; in a burst the others would be late by a second.
fn bind(listen: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if listen.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(listen)?;
    socket.listen(BACKLOG)
}

/// Signs checkpoints over the audit events as they become due, and at once over those that a server before
/// left unsigned. Never ends.
async fn checkpoints(data: Arc<Data>) {
    checkpoint(&data, true);
    loop {
        tokio::time::sleep(CHECKPOINTS).await;
        checkpoint(&data, false);
    }
}

fn checkpoint(data: &Data, at_end: bool) {
    tokio::task::block_in_place(|| {
        if let Err(fault) = data.service.make_checkpoints(system_clock(), at_end) {
            tracing::error!(%fault, "the audit events could not be signed");
        }
    });
}

/// Makes CRLs and what OCSP needs as they become due. Never ends.
async fn revocation_chores(data: Arc<Data>) {
    loop {
        tokio::task::block_in_place(|| {
            if let Err(fault) = data.service.keep_revocation(system_clock()) {
                tracing::error!(%fault, "not all that revocation needs could be made");
            }
        });
        tokio::time::sleep(REVOCATION).await;
    }
}

/// Writes audit reports and CRLs to their buckets. Never ends.
async fn publishing(
    data: Arc<Data>,
    sink: Arc<dyn Sink>,
    stopped: tokio::sync::watch::Receiver<bool>,
) {
    loop {
        tokio::task::block_in_place(|| {
            let go_on = || !*stopped.borrow();
            if let Err(fault) = data.service.publish(sink.as_ref(), system_clock(), &go_on) {
                tracing::error!(%fault, "not all that is for buckets could be written");
            }
        });
        tokio::time::sleep(REVOCATION).await;
    }
}

/// Takes over changed CA files and CRLs of clients. Never ends, unless there are none.
async fn watch_clients(server: Arc<Server>, clients: Option<Clients>) {
    let Some(clients) = clients else { return };
    let mut stamp = clients.stamp();
    loop {
        tokio::time::sleep(CLIENT_FILES).await;
        let newer = clients.stamp();
        if newer == stamp {
            continue;
        }
        stamp = newer;
        let taken = tokio::task::block_in_place(|| clients.load()).and_then(|auth| {
            server.door.replace_clients(&auth).map_err(|error| Failure::new(error.to_string()))
        });
        match taken {
            Ok(()) => tracing::info!("the client CAs and CRLs were read again"),
            Err(failure) => tracing::error!(
                error = failure.message(),
                "the client CAs and CRLs have changed and cannot be used: those before stay"
            ),
        }
    }
}

/// What must be done from time to time. Never ends.
async fn chores(data: Arc<Data>, server: Arc<Server>, kind: &'static Kind, names: Vec<String>) {
    loop {
        tokio::task::block_in_place(|| {
            if let Err(fault) = data.service.keep_house(system_clock()) {
                tracing::error!(%fault, "not all that was due could be done");
            }
        });
        tokio::time::sleep(CHORES).await;
        // Not at start: the server has only just looked at its certificate.
        tokio::task::block_in_place(|| match data.certificate(kind, &names) {
            Ok(chain) => server.door.replace_certificate(chain.certified_key),
            Err(failure) => {
                tracing::error!(error = failure.message(), "the certificate could not be renewed");
            }
        });
    }
}
