//! `outlast server`: serves a data folder.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use outlast_domain::limits;
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::client_ca::{self, Clients};
use crate::data::{self, Data};
use crate::failure::Failure;
use crate::place::Place;
use crate::root_key::Provider;
use crate::running::{Listen, Network, Revocation, Running};
use crate::{
    acme, audit_options, backup_schedule, buckets, files, http3, ledger_options, limits_options,
    metrics_options, output, running, tls,
};

/// Port of the APIs unless one says otherwise.
pub(crate) const PORT: u16 = 8443;

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
    #[command(flatten)]
    tls: tls::Flags,
    #[command(flatten)]
    http3: http3::Flags,
    /// Connections at a time that one peer may have, an IPv4 address or an IPv6 network of 64 bits, of the 4096 at each
    /// listener. Say more if all clients come from one, such as a NAT or a load balancer [default: 512].
    #[arg(long, env = "OUTLAST_CONNECTIONS_PER_PEER", value_name = "NUMBER")]
    connections_per_peer: Option<usize>,
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
    /// Believe the clock though it is far from the last audit event: after it was wrong and has been set right. Without, a
    /// server on SQLite erases nothing by a clock that is behind that event, and waits up to a day if it is ahead.
    #[arg(long, env = "OUTLAST_TRUST_CLOCK")]
    trust_clock: bool,
    /// What to log to stderr: error, warn, info, debug, or directives such as outlast_net=debug
    /// [default: info].
    #[arg(long, env = "OUTLAST_LOG")]
    log: Option<String>,
    #[command(flatten)]
    clients: client_ca::ClientArguments,
    #[command(flatten)]
    metrics: metrics_options::Flags,
    #[command(flatten)]
    ledger: ledger_options::Flags,
}

/// `outlast.toml`. Unknown keys are errors.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    listen: Option<SocketAddr>,
    policy: Option<String>,
    mode: Option<String>,
    tls_cert: Option<String>,
    tls_cert_file: Option<Vec<PathBuf>>,
    tls_key_file: Option<Vec<PathBuf>>,
    tls_names: Option<Vec<String>>,
    http3: Option<String>,
    connections_per_peer: Option<usize>,
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
    /// Witnesses of the audit log, and who may read it.
    #[serde(default)]
    pub(crate) audit: audit_options::File,
    /// How many of something an account may have.
    #[serde(default)]
    pub(crate) limits: BTreeMap<String, u64>,
    /// Backups that the server makes by itself.
    backup: Option<backup_schedule::Settings>,
    log: Option<String>,
    client_ca: Option<PathBuf>,
    client_auth: Option<String>,
    client_crls: Option<Vec<PathBuf>>,
    metrics_listen: Option<String>,
    /// Where the ledger is written.
    pub(crate) ledger: Option<String>,
    ledger_days: Option<u32>,
    ledger_bytes: Option<u64>,
    /// Where the root key is.
    pub(crate) root_key: Option<String>,
    /// What the token with the root key is certified to: a `KeyStorageSecurityStandard` of Private CA.
    key_storage_standard: Option<String>,
    /// Where the records are.
    pub(crate) store: Option<String>,
}

impl File {
    /// Reads the file that was given, or that of the folder if there is one.
    pub(crate) fn load(given: Option<&Path>, folder: &Path) -> Result<Self, Failure> {
        let default = folder.join("outlast.toml");
        let path = given.unwrap_or(&default);
        if given.is_none() && !files::exists(path)? {
            return Ok(Self::default());
        }
        let bytes = files::read(path, 1 << 20)?;
        let text = String::from_utf8_lossy(&bytes);
        toml::from_str(&text).map_err(|error| {
            Failure::file(path, &error.to_string().trim_end())
                .hint("settings are called as the options of outlast server --help, with _ for -")
        })
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
        .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], PORT)));
    let provider =
        Provider::choose(arguments.root_key.as_deref(), file.root_key.as_deref(), &arguments.data)?;
    let revocation = Revocation {
        key_storage: provider.certified_to(file.key_storage_standard.as_deref())?,
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
    let place = Place::choose(&arguments.data, arguments.store.as_deref(), file.store.as_deref())?;
    let settings = client_ca::Settings {
        client_ca: file.client_ca,
        client_auth: file.client_auth,
        client_crls: file.client_crls,
    };
    let clients = Clients::choose(arguments.clients, settings, &arguments.data)?;
    let inside = |list: Option<Vec<PathBuf>>| -> Option<Vec<PathBuf>> {
        Some(list?.into_iter().map(|path| arguments.data.join(path)).collect())
    };
    let from_file = tls::Flags {
        policy: file.policy,
        mode: file.mode,
        tls_cert: file.tls_cert,
        tls_cert_file: inside(file.tls_cert_file),
        tls_key_file: inside(file.tls_key_file),
        tls_names: file.tls_names,
    };
    let tls = arguments.tls.or(from_file).choose(listen, clients)?;
    let metrics = metrics_options::Settings::choose(arguments.metrics, file.metrics_listen)?;
    let from_file = ledger_options::Flags {
        ledger: file.ledger,
        ledger_days: file.ledger_days,
        ledger_bytes: file.ledger_bytes,
    };
    let ledger = arguments.ledger.or(from_file).choose(&arguments.data);
    let network = Network {
        listen,
        http3: arguments.http3.choose(file.http3)?,
        connections_per_peer: arguments.connections_per_peer.or(file.connections_per_peer),
    };
    let audit = file.audit.choose(&arguments.data)?;
    let quotas = limits_options::choose(&file.limits)?;
    let backups = file.backup.map(|backup| backup.choose(&arguments.data)).transpose()?;
    let data = Data::open(&place, &provider)?.with_audit(audit).with_backups(backups);
    data.service.set_quotas(quotas);
    if arguments.trust_clock {
        data.service.trust_clock();
    }
    running::raise_open_files();
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new(format!("the runtime cannot be started: {error}")))?;
    runtime.block_on(async {
        let receive = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("signals cannot be received: {error}")))
        };
        let mut terminate = receive(SignalKind::terminate())?;
        let mut interrupt = receive(SignalKind::interrupt())?;
        // Who sends it wants files read again. It ends nothing, also where there are none and before they are watched.
        let _hang_up = receive(SignalKind::hangup())?;
        let running = Running::start(data, network, tls, revocation, metrics, ledger).await?;
        if let Err(failure) = data::update_profile(&arguments.data, running.address) {
            tracing::warn!(error = failure.message(), "the AWS profile was not brought up to date");
        }
        output::line(&format!("listening on https://{}", running.address));
        if let Some(address) = running.revocation {
            output::line(&format!("revocation on http://{address}"));
        }
        if let Some(address) = running.metrics {
            output::line(&format!("metrics on http://{address}/metrics"));
        }
        if let Some(address) = running.http3 {
            output::line(&format!("HTTP/3 on udp://{address}"));
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

fn ocsp_validity(given: Option<i64>) -> Result<i64, Failure> {
    let seconds = given.unwrap_or(limits::OCSP_VALIDITY_SECONDS);
    if limits::OCSP_VALIDITY_RANGE.contains(&seconds) {
        return Ok(seconds);
    }
    Err(Failure::new(format!(
        "an OCSP answer is valid for {} to {} seconds",
        limits::OCSP_VALIDITY_RANGE.start(),
        limits::OCSP_VALIDITY_RANGE.end()
    ))
    .hint("choose a value between them for --ocsp-validity, or leave it out for an hour"))
}

/// A URL that paths are appended to.
fn base_url(url: &str, scheme: &str) -> Result<String, Failure> {
    let rest = url.strip_prefix(scheme).map(|rest| rest.trim_end_matches('/'));
    let odd = |c: char| !c.is_ascii_graphic() || "?#@\"<>\\^`{|}".contains(c);
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !rest.contains(odd) => {
            Ok(format!("{scheme}{rest}"))
        }
        _ => Err(Failure::new(format!("{url} is not a URL that begins with {scheme}"))
            .hint(format!("give {scheme}, a host, and perhaps a port and a path"))),
    }
}

/// Logs to stderr.
pub(crate) fn start_log(directives: &str) -> Result<(), Failure> {
    let filter = tracing_subscriber::EnvFilter::try_new(directives).map_err(|error| {
        Failure::new(format!("the log setting is not valid: {error}"))
            .hint("give --log a level such as info, or directives such as info,outlast_net=debug")
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    Ok(())
}
