//! A server that runs in this process: its listeners and its background work.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outlast_api::service::Sink;
use outlast_domain::limits;
use outlast_domain::settings::{KeyStorage, PublicCertificates, Settings};
use outlast_ledger::{Observe, Observers};
use outlast_net::acme::Validator;
use outlast_net::door::{self, Door};
use outlast_net::errands::Errands;
use outlast_net::metrics::EventCounts;
use outlast_net::plain::PlainServer;
use outlast_net::quic::{self, HTTP3};
use outlast_net::readiness::reading;
use outlast_net::server::{PROTOCOLS, Server, system_clock};
use outlast_net::sftp::{self as sftp_door, SftpServer};
use outlast_net::tickets::Tickets;

use crate::backup_schedule::Schedule;
use crate::client_ca::Clients;
use crate::cosigner::OwnLog;
use crate::data::Data;
use crate::events::{self, Configured};
use crate::failure::Failure;
use crate::heartbeat::{self, Heart};
use crate::http3::Http3;
use crate::listeners::{listen_at, listen_both};
use crate::rotation::{self, Functions};
use crate::settings::{self as said, Buckets};
use crate::tls::{Shows, Tls, default_names};
use crate::workflow_functions::WorkflowFunctions;
use crate::workflows::{self, Means};
use crate::{
    artifact_log_options, audit_options, buckets, connectors, ledger_options, metrics_options,
    reload, sftp, values,
};

/// Interval between sweeps that erase expired keys and check the certificate.
const CHORES: Duration = Duration::from_secs(3600);

/// Interval between checks whether a checkpoint over the audit events is due.
const CHECKPOINTS: Duration = Duration::from_secs(2);

/// Interval between checks whether a CRL is due or a file waits for its bucket.
const REVOCATION: Duration = Duration::from_secs(2);

/// The address of plain HTTP (CRLs, OCSP).
#[derive(Default)]
pub(crate) enum Listen {
    /// At the same address as the APIs, at the next port.
    #[default]
    NextPort,
    /// Nowhere.
    Off,
    /// At this address.
    At(SocketAddr),
}

impl Listen {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        if text == "off" {
            return Ok(Self::Off);
        }
        values::address(text).map(Self::At).map_err(|error| {
            Failure::new(error)
                .hint("give --revocation-listen an address such as 0.0.0.0:80, or off")
                .about("revocation_listen")
        })
    }

    /// The address for this listener, if any, given the APIs' at `api`, for which `asked` was configured.
    fn address(&self, asked: SocketAddr, api: SocketAddr) -> Option<SocketAddr> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(*address),
            // Port 0 for the APIs means a free port for this one as well.
            Self::NextPort if asked.port() == 0 => Some(SocketAddr::new(asked.ip(), 0)),
            Self::NextPort => Some(SocketAddr::new(api.ip(), api.port().checked_add(1)?)),
        }
    }
}

/// Settings for URLs in certificates, for the storage of CRLs and reports, for what the services call, and for timestamps.
pub(crate) struct Revocation {
    pub(crate) listen: Listen,
    pub(crate) url: Option<String>,
    pub(crate) service_url: Option<String>,
    pub(crate) ocsp_validity: i64,
    pub(crate) buckets: Buckets,
    /// The functions that rotate secrets.
    pub(crate) functions: Functions,
    pub(crate) acme: outlast_net::acme::Settings,
    /// Certificates whose requests name no CA.
    pub(crate) public_certificates: PublicCertificates,
    /// The standard that the token with the root key is certified for, by its operator's word.
    pub(crate) key_storage: Option<&'static KeyStorage>,
    /// Whether a revocation ends running sessions of Roles Anywhere, too.
    pub(crate) end_sessions: bool,
    /// Time-stamping authorities.
    pub(crate) timestamping: outlast_api::service::tsa::Settings,
}

impl Default for Revocation {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            url: None,
            service_url: None,
            ocsp_validity: limits::OCSP_VALIDITY_SECONDS,
            buckets: Buckets::default(),
            functions: Functions::default(),
            acme: outlast_net::acme::Settings::default(),
            public_certificates: PublicCertificates::default(),
            key_storage: None,
            end_sessions: false,
            timestamping: outlast_api::service::tsa::Settings::default(),
        }
    }
}

/// Addresses of the APIs, and limits on connections.
pub(crate) struct Network {
    pub(crate) listen: SocketAddr,
    pub(crate) http3: Http3,
    /// Connections that one peer may have at each listener; `None` for the default.
    pub(crate) connections_per_peer: Option<usize>,
}

/// Background work for the two logs, for backups and for events.
#[derive(Default)]
pub(crate) struct Upkeep {
    pub(crate) audit: audit_options::Settings,
    pub(crate) artifact_log: artifact_log_options::Settings,
    pub(crate) backups: Option<Schedule>,
    /// Where events go.
    pub(crate) events: Configured,
    pub(crate) sftp: Option<sftp::Chosen>,
    pub(crate) identity: sftp::Identity,
    /// The functions that workflows call.
    pub(crate) workflow_functions: WorkflowFunctions,
    pub(crate) connectors: connectors::Chosen,
}

/// A server that runs in this process.
pub(crate) struct Running {
    /// Address of the APIs.
    pub(crate) address: SocketAddr,
    /// Address of plain HTTP.
    pub(crate) revocation: Option<SocketAddr>,
    /// Address of the metrics.
    pub(crate) metrics: Option<SocketAddr>,
    /// Address of HTTP/3, over UDP.
    pub(crate) http3: Option<SocketAddr>,
    /// Address of SFTP.
    pub(crate) sftp: Option<SocketAddr>,
    stop: tokio::sync::watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Starts a server on a data folder, for this machine only, at any free port.
    pub(crate) async fn start_here(data: Data) -> Result<Self, Failure> {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let network = Network { listen, http3: Http3::Off, connections_per_peer: None };
        let tls = Tls { names: default_names(), ..Tls::default() };
        let metrics = metrics_options::Settings::default();
        let ledger = ledger_options::choose(said::Ledger::default(), data.folder())?;
        let revocation = Revocation::default();
        Self::start(data, network, tls, revocation, metrics, ledger, Upkeep::default()).await
    }

    /// Starts a server on a data folder.
    pub(crate) async fn start(
        data: Data,
        network: Network,
        tls: Tls,
        revocation: Revocation,
        metrics: metrics_options::Settings,
        ledger: ledger_options::Settings,
        upkeep: Upkeep,
    ) -> Result<Self, Failure> {
        let Upkeep {
            audit,
            artifact_log,
            backups,
            events,
            sftp,
            identity,
            workflow_functions,
            connectors,
        } = upkeep;
        data.service.publish_log(audit.publish, audit.readers.clone());
        let Network { listen, http3, connections_per_peer } = network;
        let (listener, address, udp) = listen_both(listen, http3)?;
        let plain = match revocation.listen.address(listen, address) {
            Some(at) => Some(listen_at(
                at,
                "--revocation-listen, or switch it off: --revocation-listen off",
            )?),
            None => None,
        };
        let metrics = metrics.keep()?;
        let metrics_address = metrics.as_ref().and_then(|metrics| metrics.address);
        let plain_address = plain.as_ref().map(|(_, address)| *address);
        let at = |scheme: &str, address: SocketAddr| {
            if address.ip().is_unspecified() {
                // Not an address that a client could connect to.
                format!("{scheme}://localhost:{}", address.port())
            } else {
                format!("{scheme}://{address}")
            }
        };
        let http3_port = announced(revocation.service_url.as_deref(), address.port());
        let functions = Arc::new(revocation.functions);
        data.service.set_settings(Settings {
            revocation_url: revocation.url.or_else(|| Some(at("http", plain_address?))),
            service_url_is_given: revocation.service_url.is_some(),
            service_url: revocation.service_url.unwrap_or_else(|| at("https", address)),
            key_storage: revocation.key_storage,
            rotation_functions: Some(functions.names()),
            login_functions: Some(identity.functions),
            workflow_functions: Some(workflow_functions.names()),
            end_sessions_on_revocation: revocation.end_sessions,
            public_certificates: revocation.public_certificates,
            events: events.wanted(),
            artifact_log: artifact_log.of_service(),
        });
        data.service.set_ocsp_validity(revocation.ocsp_validity);
        data.service.set_timestamping(revocation.timestamping).map_err(|error| {
            Failure::new(error).hint("leave ordering out").about("tsa.ordering")
        })?;
        let s3 = buckets::client(&revocation.buckets)?;
        let shared_buckets = sftp::SharedBuckets::new(revocation.buckets.clone(), s3.clone());
        let sink = buckets::sink(revocation.buckets, s3, data.folder());
        let upload_key = sftp.as_ref().and_then(|chosen| chosen.sign.clone());
        data.service.set_upload_signing(upload_key);
        let workflow_files = match &sftp {
            Some(chosen) => chosen.workflow_files(&shared_buckets, sink.clone(), data.folder())?,
            None => None,
        };
        let sftp = sftp
            .map(|chosen| {
                let settings = chosen.settings(
                    &shared_buckets,
                    sink.clone(),
                    &identity.providers,
                    data.folder(),
                )?;
                let (listener, address) = listen_at(chosen.listen, "--sftp-listen")?;
                Ok::<_, Failure>((settings, listener, address))
            })
            .transpose()?;
        let sftp_address = sftp.as_ref().map(|(_, _, address)| *address);
        let validator = Validator::new(revocation.acme);
        let Tls { rules, shows, names, clients } = tls;
        let watch = reload::Watch::new(&shows, clients.as_ref());
        let shown = data.certificates(&shows, &names)?;
        if let Some(failure) = shown.untimely {
            tracing::warn!(error = failure.message(), "clients will refuse this server");
        }
        let tickets = Tickets::new(system_clock);
        data.refresh_tickets(&tickets)?;
        let auth = clients.as_ref().map(Clients::load).transpose()?;
        let mut observers: Vec<Arc<dyn Observe>> =
            metrics.iter().map(|kept| kept.metrics.clone() as Arc<dyn Observe>).collect();
        let ledger = ledger.open()?;
        observers.extend(ledger.iter().map(|ledger| ledger.clone() as Arc<dyn Observe>));
        if let (Some(kept), Some(ledger)) = (&metrics, &ledger) {
            let ledger = ledger.clone();
            kept.metrics.watch_ledger(move || ledger.lost());
        }
        if let (Some(kept), Some(backups)) = (&metrics, &backups) {
            kept.metrics.watch_backups(backups.failures());
        }
        let counts = metrics.as_ref().filter(|_| events.has_targets());
        let counts = EventCounts::new(counts.map(|kept| kept.metrics.as_ref()));
        let observer: Option<Arc<dyn Observe>> =
            (!observers.is_empty()).then(|| Arc::new(Observers(observers)) as _);
        let counted = metrics.as_ref().map(|kept| kept.metrics.as_ref());
        let outbound = connectors.outbound(observer.clone(), counted);
        let (service, folder) = (data.service.clone(), data.folder());
        let connectors =
            connectors.runner(service, outbound.clone(), &shared_buckets, sink.clone(), folder)?;
        let settings = door::Settings {
            listener: "api".into(),
            rules,
            observer: observer.clone(),
            quic_protocols: udp.iter().map(|_| HTTP3.as_bytes().to_vec()).collect(),
            tickets: Some(tickets.bound("api", &rules)),
            metrics: metrics.as_ref().map(|kept| kept.metrics.clone()),
            ..door::Settings::with_protocols(PROTOCOLS)
        };
        let door = Door::new(settings, shown.certificates, auth)
            .map_err(|error| Failure::new(format!("TLS cannot be configured: {error}")))?;
        reload::check(&door)?;
        data.give_roots(&shown.roots)?;
        let door = Arc::new(door);
        let counted = metrics.as_ref().map(|kept| kept.metrics.clone());
        let mut server =
            Server::new(data.service.clone(), door.clone(), system_clock).counting(counted.clone());
        server = server.asking(Arc::new(Errands::new(identity.providers, outbound)));
        let mut plain_server =
            PlainServer::new(data.service.clone(), system_clock).counting(counted);
        let mut over_quic = quic::Settings::default();
        if let Some(number) = connections_per_peer {
            server = server.with_connections_by_peer(number);
            plain_server = plain_server.with_connections_by_peer(number);
            over_quic.connections_by_peer = number;
        }
        let udp = match udp {
            Some(socket) => {
                let started = quic::Listener::start(door, socket, over_quic);
                let listener = started.map_err(|error| {
                    Failure::new(format!("HTTP/3 cannot be served: {error}"))
                        .hint("switch it off: --http3 off")
                })?;
                match http3_port {
                    Some(port) => server = server.announcing_http3(port),
                    None => tracing::info!(
                        "HTTP/3 is not announced: the service URL has a different port than the listener"
                    ),
                }
                Some(listener)
            }
            None => None,
        };
        let http3 = udp.as_ref().map(quic::Listener::address);
        let server = Arc::new(server);
        let sftp = sftp.map(|((settings, users), listener, _)| {
            let metrics = metrics.as_ref().map(|kept| kept.metrics.clone());
            let settings = sftp_door::Settings { metrics, observer, ..settings };
            (SftpServer::new(data.service.clone(), system_clock, settings), users, listener)
        });
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let stopping = |mut stopped: tokio::sync::watch::Receiver<bool>| async move {
            // If the sender is gone, the server is stopping, too.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let udp =
            udp.map(|udp| tokio::spawn(server.clone().run_http3(udp, stopping(stopped.clone()))));
        let plain = plain.map(|(listener, _)| {
            tokio::spawn(Arc::new(plain_server).run(listener, stopping(stopped.clone())))
        });
        let sftp = sftp.map(|(server, users, listener)| {
            server.tell();
            let served = tokio::spawn(Arc::new(server).run(listener, stopping(stopped.clone())));
            (served, users.map(|users| tokio::spawn(users.run())))
        });
        let (sftp, sftp_users) = sftp.unzip();
        let metrics = metrics.map(|metrics| metrics.go(stopping(stopped.clone()))).transpose()?;
        let data = Arc::new(data);
        let heart = Heart::start(&data)?;
        let server_id = heart.as_ref().map(Heart::id);
        let beating = heart.map(|heart| tokio::spawn(heart.run()));
        let ticket_keys = tokio::spawn(reload::ticket_keys(data.clone(), tickets));
        let chores =
            tokio::spawn(chores(data.clone(), server.clone(), shows.clone(), names.clone()));
        let checkpoints = tokio::spawn(checkpoints(data.clone()));
        let own = [(&audit.witnesses, OwnLog::Audit), (&artifact_log.witnesses, OwnLog::Artifacts)];
        let mut cosigning = Vec::new();
        for (witnesses, log) in own {
            let cosigner = witnesses.cosigner(log)?;
            cosigning.extend(cosigner.map(|cosigner| tokio::spawn(cosigner.run(data.clone()))));
        }
        let retention = audit.retention.map(|kept| tokio::spawn(kept.run(data.clone())));
        let backups = backups.map(|schedule| tokio::spawn(schedule.run(data.clone())));
        let revocation = tokio::spawn(revocation_chores(data.clone()));
        let rotating = tokio::spawn(rotation::run(data.service.clone(), functions));
        let working = workflow_files.map(|files| {
            let functions = Arc::new(workflow_functions);
            let means = Means { service: data.service.clone(), files, functions };
            tokio::spawn(workflows::run(means, stopped.clone()))
        });
        let connectors = Arc::new(connectors);
        let connecting = tokio::spawn(connectors.clone().run());
        let telling = tokio::spawn(events::run(data.service.clone(), events, counts));
        let publishing = tokio::spawn(publishing(data.clone(), sink, stopped.clone()));
        let watch =
            tokio::spawn(watch.run(data.clone(), server.door.clone(), shows, names, clients));
        let validating = match validator {
            Ok(validator) => {
                let service = data.service.clone();
                Some(tokio::spawn(Arc::new(validator).run(service, system_clock)))
            }
            Err(error) => {
                tracing::warn!(%error, "there is no DNS resolver: ACME challenges are not validated");
                None
            }
        };
        let task = tokio::spawn(async move {
            server.run(listener, stopping(stopped)).await;
            for other in [plain, udp, sftp].into_iter().flatten() {
                let _ = other.await;
            }
            watch.abort();
            if let Some(users) = sftp_users.flatten() {
                users.abort();
            }
            // Steps that have begun are repeated when their leases have ended.
            rotating.abort();
            if let Some(working) = working {
                // It has ended its own when the server began to stop: programs could not answer any more.
                let _ = working.await;
            }
            // Another server, or the next one here, goes on with the files that have no result.
            connecting.abort();
            connectors.stop();
            // So are deliveries.
            telling.abort();
            if let Some(validating) = validating {
                // The next server starts those attempts again.
                validating.abort();
            }
            for other in [retention, backups].into_iter().flatten().chain(cosigning) {
                other.abort();
                let _ = other.await;
            }
            let always = [chores, checkpoints, revocation, publishing, ticket_keys];
            for chore in always.into_iter().chain(beating) {
                chore.abort();
                let _ = chore.await;
            }
            if let Some(id) = server_id {
                tokio::task::block_in_place(|| heartbeat::stop(&data, &id));
            }
            sum_up(&data);
            checkpoint(&data, true);
            if let Some(ledger) = ledger {
                tokio::task::block_in_place(|| ledger.flush());
            }
            drop(data);
            if let Some(metrics) = metrics {
                metrics.end().await;
            }
        });
        Ok(Self {
            address,
            revocation: plain_address,
            metrics: metrics_address,
            http3,
            sftp: sftp_address,
            stop,
            task,
        })
    }

    /// Stops it and waits until it has.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }
}

/// The port to announce for HTTP/3: the listener's own, unless clients connect to another, which may forward TCP
/// only.
fn announced(service_url: Option<&str>, port: u16) -> Option<u16> {
    let Some(url) = service_url else { return Some(port) };
    let given = url.parse::<http::Uri>().ok()?.authority()?.port_u16().unwrap_or(443);
    (given == port).then_some(port)
}

/// Signs the head of the audit log when it is due, and at the start for events that an earlier server left unsigned;
/// verifies old events again. Never ends.
async fn checkpoints(data: Arc<Data>) {
    checkpoint(&data, true);
    loop {
        tokio::time::sleep(CHECKPOINTS).await;
        checkpoint(&data, false);
    }
}

/// Writes the sums of what was signed for strangers since the last full minute to the audit log.
fn sum_up(data: &Data) {
    tokio::task::block_in_place(|| {
        if let Err(fault) = data.service.sum_up_strangers(system_clock(), true) {
            tracing::error!(%fault, "the audit summary of what was signed for unauthenticated callers could not be written");
        }
    });
}

fn checkpoint(data: &Data, at_end: bool) {
    tokio::task::block_in_place(|| {
        if let Err(fault) = data.service.sign_log(system_clock(), at_end) {
            tracing::error!(%fault, "the audit events could not be signed");
        }
        if !at_end && let Err(fault) = data.service.patrol_log(system_clock()) {
            tracing::error!(%fault, "the audit events could not be verified again");
        }
    });
}

/// Makes CRLs and what OCSP needs as they become due. Never ends.
async fn revocation_chores(data: Arc<Data>) {
    loop {
        tokio::task::block_in_place(|| {
            if let Err(fault) = data.service.keep_revocation(system_clock()) {
                tracing::error!(%fault, "some CRLs or OCSP data could not be made");
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
                tracing::error!(%fault, "some objects could not be written to buckets");
            }
        });
        tokio::time::sleep(REVOCATION).await;
    }
}

/// Housekeeping. Never ends.
async fn chores(data: Arc<Data>, server: Arc<Server>, shows: Shows, names: Vec<String>) {
    loop {
        tokio::task::block_in_place(|| {
            if let Err(fault) = data.service.sweep(reading(system_clock)) {
                tracing::error!(%fault, "some housekeeping that was due failed");
            }
        });
        tokio::time::sleep(CHORES).await;
        // Not at the start, when the server has just checked its certificates. Certificates in files are renewed by
        // their owner. With a wrong clock no client would accept the new ones.
        if !shows.has_files() && data.service.clock_problem().is_none() {
            reload::renew(&data, &server.door, &shows, &names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http3_is_announced_where_clients_can_reach_it() {
        for (url, expected) in [
            (None, Some(8443)),
            (Some("https://a.example:8443"), Some(8443)),
            (Some("https://[::1]:8443/kms"), Some(8443)),
            (Some("https://a.example"), None),
            (Some("https://a.example:443"), None),
        ] {
            assert_eq!(announced(url, 8443), expected, "{url:?}");
        }
        assert_eq!(announced(Some("https://a.example/x"), 443), Some(443));
    }
}
