//! `outlast server`: serves a data folder.

use std::io::IsTerminal;
use std::path::PathBuf;

use outlast_domain::limits;
use tokio::signal::unix::{SignalKind, signal};

use crate::client_ca::Clients;
use crate::data::{self, Data};
use crate::events::Configured;
use crate::failure::Failure;
use crate::http3::Http3;
use crate::location::StoreLocation;
use crate::root_key::Provider;
use crate::rotation::Functions;
use crate::running::{Listen, Network, Revocation, Running, Upkeep};
use crate::settings::Settings;
use crate::tls::Tls;
use crate::{
    acme, artifact_log_options, audit_options, backup_schedule, connectors, dumps, ledger_options,
    limits_options, listeners, metrics_options, output, public_certificates, sftp, tsa_options,
};

/// Arguments of `server`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Data folder, made by `outlast init`.
    #[arg(long, env = "OUTLAST_DATA")]
    data: PathBuf,
    /// Settings file [default: outlast.toml in the data folder].
    #[arg(long, env = "OUTLAST_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

impl Arguments {
    /// Options and variables, completed by the settings file.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        let file = Settings::load(self.config.as_deref(), &self.data)?;
        Ok(self.settings.clone().or(file))
    }
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let settings = arguments.settings()?;
    let folder = &arguments.data;
    start_log(&settings.log.log())?;
    if !settings.process.allow_dumps() {
        // Before the root key is read.
        dumps::refuse();
    }
    let provider = Provider::choose(settings.store.root_key.as_ref(), folder)?;
    let of_network = settings.network;
    let revocation = Revocation {
        key_storage: provider.certified_to(settings.key_storage.key_storage_standard.as_deref())?,
        ocsp_validity: ocsp_validity(of_network.ocsp_validity())?,
        listen: match of_network.revocation_listen {
            Some(text) => Listen::parse(&text)?,
            None => Listen::NextPort,
        },
        url: of_network
            .revocation_url
            .map(|url| base_url(&url, "http://", "revocation_url"))
            .transpose()?,
        service_url: of_network
            .service_url
            .map(|url| base_url(&url, "https://", "service_url"))
            .transpose()?,
        buckets: settings.buckets,
        functions: match &settings.rotation.functions {
            Some(path) => Functions::read(path).map_err(|failure| failure.about("functions"))?,
            None => Functions::default(),
        },
        end_sessions: settings.roles_anywhere.end_sessions_on_revocation(),
        timestamping: tsa_options::choose(settings.tsa)?,
        acme: acme::settings(settings.acme)?,
        public_certificates: public_certificates::choose(settings.acm)?,
    };
    let location = StoreLocation::choose(folder, settings.store.store.as_deref())?;
    let network = Network {
        listen: settings.api.listen().0,
        http3: of_network.http3.map_or(Ok(Http3::default()), |text| text.parse())?,
        connections_per_peer: of_network.connections_per_peer,
    };
    let clients = Clients::choose(settings.clients)?;
    let tls = Tls::choose(settings.tls, network.listen, clients)?;
    let metrics = metrics_options::Settings::choose(settings.metrics)?;
    let ledger = ledger_options::choose(settings.ledger, folder)?;
    let told =
        [format!("policy {} in mode {}", tls.rules.policy.name, tls.rules.mode), ledger.told()];
    let workflow_functions = sftp::workflow_functions(&settings.sftp)?;
    let (sftp, identity) = sftp::choose(settings.sftp, &settings.sftp_uploads)?;
    let connectors = connectors::choose(settings.connectors, &settings.sftp_uploads)?;
    let upkeep = Upkeep {
        audit: audit_options::choose(settings.audit)?,
        artifact_log: artifact_log_options::choose(settings.artifact_log)?,
        backups: backup_schedule::choose(settings.backup)?,
        events: Configured::choose(settings.events)?,
        sftp,
        identity,
        workflow_functions,
        connectors,
    };
    let quotas = limits_options::choose(&settings.limits)?;
    let data = Data::open(&location, &provider)?;
    data.service.set_quotas(quotas);
    if settings.trust_clock {
        data.service.trust_clock();
    }
    listeners::raise_open_files();
    let runtime = crate::runtime::runtime()?;
    runtime.block_on(async {
        let receive = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("signals cannot be received: {error}")))
        };
        let mut terminate = receive(SignalKind::terminate())?;
        let mut interrupt = receive(SignalKind::interrupt())?;
        // SIGHUP asks for files to be read again. It must not end the process, even before files are watched or if
        // there are none.
        let _hang_up = receive(SignalKind::hangup())?;
        let running =
            Running::start(data, network, tls, revocation, metrics, ledger, upkeep).await?;
        if let Err(failure) = data::update_profile(folder, running.address) {
            tracing::warn!(error = failure.message(), "the AWS profile was not updated");
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
        if let Some(address) = running.sftp {
            output::line(&format!("SFTP on sftp://{address}"));
        }
        // Programs that start a server read the addresses, so these lines come last.
        told.iter().for_each(|line| output::line(line));
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: open requests may finish");
        running.stop().await;
        Ok(())
    })
}

fn ocsp_validity(seconds: i64) -> Result<i64, Failure> {
    if limits::OCSP_VALIDITY_RANGE.contains(&seconds) {
        return Ok(seconds);
    }
    Err(Failure::new(format!(
        "an OCSP response must be valid for {} to {} seconds",
        limits::OCSP_VALIDITY_RANGE.start(),
        limits::OCSP_VALIDITY_RANGE.end()
    ))
    .hint("choose a value between them for --ocsp-validity, or leave it out for an hour")
    .about("ocsp_validity"))
}

/// A base URL from a setting, which paths are appended to.
fn base_url(url: &str, scheme: &str, setting: &'static str) -> Result<String, Failure> {
    let rest = url.strip_prefix(scheme).map(|rest| rest.trim_end_matches('/'));
    let odd = |c: char| !c.is_ascii_graphic() || "?#@\"<>\\^`{|}".contains(c);
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !rest.contains(odd) => {
            Ok(format!("{scheme}{rest}"))
        }
        _ => Err(Failure::new(format!("{url} is not a URL that begins with {scheme}"))
            .hint(format!("give {scheme}, a host and, if needed, a port and a path"))
            .about(setting)),
    }
}

/// Logs to stderr.
pub(crate) fn start_log(directives: &str) -> Result<(), Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new(format!("the log setting is not valid: {error}"))
            .hint("give --log a level (error, warn, info, debug), or directives such as info,outlast_net=debug")
            .about("log")
    };
    // A word alone would be taken for the name of a module, and everything else would be silent.
    let is_odd = |word: &&str| {
        !word.is_empty()
            && !word.contains(['=', '[', '_', ':'])
            && word.parse::<tracing_subscriber::filter::LevelFilter>().is_err()
    };
    if let Some(odd) = directives.split(',').map(str::trim).find(is_odd) {
        return Err(wrong(&format!("{odd} is not a level")));
    }
    let filter =
        tracing_subscriber::EnvFilter::try_new(directives).map_err(|error| wrong(&error))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // It would report with `eprintln!` that stderr cannot be written to, and so panic.
        .log_internal_errors(false)
        .init();
    Ok(())
}
