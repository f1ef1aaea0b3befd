//! `outlast server`: serves a data folder.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_net::certificate::{KINDS, Kind};
use outlast_net::door::Door;
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
use crate::{files, output};

/// How often expired keys are erased and the certificate is looked at.
const CHORES: Duration = Duration::from_secs(3600);

/// How often it is looked whether a checkpoint over the audit events is due.
const CHECKPOINTS: Duration = Duration::from_secs(2);

/// How often it is looked whether the files with client CAs and CRLs have changed.
const CLIENT_FILES: Duration = Duration::from_secs(10);

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
    /// What to log to stderr: error, warn, info, debug, or directives such as outlast_net=debug
    /// [default: info].
    #[arg(long, env = "OUTLAST_LOG")]
    log: Option<String>,
    #[command(flatten)]
    clients: client_ca::Arguments,
}

/// `outlast.toml`. Unknown keys are errors.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    listen: Option<SocketAddr>,
    tls_cert: Option<String>,
    tls_names: Option<Vec<String>>,
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
    let provider =
        Provider::choose(arguments.root_key.as_deref(), file.root_key.as_deref(), &arguments.data)?;
    let place = Place::choose(&arguments.data, arguments.store.as_deref(), file.store.as_deref())?;
    let settings = client_ca::Settings {
        client_ca: file.client_ca,
        client_auth: file.client_auth,
        client_crls: file.client_crls,
    };
    let clients = Clients::choose(arguments.clients, settings, &arguments.data)?;
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
        let running = Running::start_for(data, listen, kind, names, clients).await?;
        if let Err(failure) = data::update_profile(&arguments.data, running.address) {
            tracing::warn!(error = failure.message(), "the AWS profile was not brought up to date");
        }
        output::line(&format!("listening on https://{}", running.address));
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

/// A server that runs in this process.
pub(crate) struct Running {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    stop: tokio::sync::oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Starts a server on a data folder.
    pub(crate) async fn start(
        data: Data,
        listen: SocketAddr,
        kind: &'static Kind,
        names: Vec<String>,
    ) -> Result<Self, Failure> {
        Self::start_for(data, listen, kind, names, None).await
    }

    /// Starts a server that may ask its clients for certificates.
    pub(crate) async fn start_for(
        data: Data,
        listen: SocketAddr,
        kind: &'static Kind,
        names: Vec<String>,
        clients: Option<Clients>,
    ) -> Result<Self, Failure> {
        let unusable = |error: &dyn std::fmt::Display| Failure::new(format!("{listen}: {error}"));
        let listener = bind(listen)
            .map_err(|error| unusable(&error).hint("choose another address with --listen"))?;
        let address = listener.local_addr().map_err(|error| unusable(&error))?;
        let chain = data.certificate(kind, &names)?;
        let auth = clients.as_ref().map(Clients::load).transpose()?;
        let key = chain.certified_key;
        let door = Door::with_clients(Policy::default(), key, PROTOCOLS, auth.as_ref())
            .map_err(|error| Failure::new(format!("TLS cannot be configured: {error}")))?;
        let server = Arc::new(Server {
            service: data.service.clone(),
            door: Arc::new(door),
            clock: system_clock,
        });
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let data = Arc::new(data);
        let chores = tokio::spawn(chores(data.clone(), server.clone(), kind, names));
        let checkpoints = tokio::spawn(checkpoints(data.clone()));
        let watch = tokio::spawn(watch_clients(server.clone(), clients));
        let task = tokio::spawn(async move {
            server
                .run(listener, async {
                    let _ = stopped.await;
                })
                .await;
            chores.abort();
            let _ = chores.await;
            checkpoints.abort();
            let _ = checkpoints.await;
            watch.abort();
            checkpoint(&data, true);
            drop(data);
        });
        Ok(Self { address, stop, task })
    }

    /// Stops it and waits until it has.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
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
