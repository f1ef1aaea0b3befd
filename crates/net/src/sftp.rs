//! SFTP: the SSH door to the files of Transfer Family's users.
//!
//! [`SftpServer::run`] accepts connections; `sftp/connection.rs` moves the bytes of one between its socket, the SSH
//! transport (`outlast-ssh`), SFTP sessions (`outlast-sftp`) and threads that touch files; `sftp/login.rs` asks the service
//! who may come in; `sftp/home.rs` is what a user then sees; `sftp/journal.rs` writes the audit events, before the user is
//! told of what they record.

mod bucket;
mod budget;
mod certified;
mod channel;
mod connection;
mod failures;
mod file_login;
pub(crate) mod home;
mod inspections;
mod journal;
mod listener;
mod login;
mod quotas;
pub(crate) mod report;
pub mod roster;
mod signing;
mod startups;
mod tree;
mod turns;
mod workflow;

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use outlast_api::service::sftp::Session;
use outlast_api::service::{Service, Sink};
use outlast_ledger::Observe;
use outlast_negotiate::Mode;
use outlast_sftp::arrival::{Inspector, Reception, Signer};
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub(crate) use bucket::OfUser;
pub use bucket::S3Buckets;
pub use certified::{Authorities, ReadAuthorities};
pub use home::Buckets;
pub use listener::check;
pub use workflow::WorkflowFiles;

use crate::limits;
use crate::metrics::{Metrics, Tally};
use crate::peer::Peer;
use crate::providers::{Ask, Providers};
use crate::server::{Activity, Clock};
use crate::slots::{Number, Of, Slots};
use crate::turns::Turns;
use home::Storage;
use inspections::Inspections;
use listener::Listening;
use quotas::Quotas;
use roster::Roster;
use signing::{Signatures, Signing};
use startups::Startups;

/// Name of the listener in metrics and ledgers.
const LISTENER: &str = "sftp";

/// What a listener serves, and within which limits.
pub struct Settings {
    /// Id of the Transfer server; the only one that is online if there is none, and all servers are of one account.
    pub server: Option<String>,
    /// How the post-quantum methods of the server's security policy are applied; the policy's own mode if there is none.
    pub mode: Option<Mode>,
    /// Users of a file; those of the Transfer Family API if there are none. A listener serves one of both.
    pub users: Option<watch::Receiver<Arc<Roster>>>,
    /// Whether uploads to folders of the machine become visible when they are closed.
    pub atomic_uploads: bool,
    /// Decides which uploads appear; all if there is none.
    pub inspector: Option<Arc<dyn Inspector>>,
    /// Where signatures of uploads go, if the key of [`Service::set_upload_signing`] signs them.
    pub signatures: Option<PathBuf>,
    /// Where buckets are.
    pub buckets: Arc<dyn Buckets>,
    /// Decides which accounts may use which buckets.
    pub sink: Arc<dyn Sink>,
    /// Asks identity providers.
    pub ask: Ask,
    /// Reads whose certificates count, and which do not; nobody's if there is none.
    pub authorities: Option<ReadAuthorities>,
    /// Receives reports of handshakes.
    pub observer: Option<Arc<dyn Observe>>,
    /// Counters of limits that took effect.
    pub metrics: Option<Arc<Metrics>>,
    /// From accept to the end of authentication.
    pub login_grace: Duration,
    /// Time without a request after which a session ends.
    pub idle: Duration,
    /// Interval between questions whether a client that sends nothing is still there.
    pub keepalive: Duration,
    /// Time that sessions have to finish what they are doing when the server stops.
    pub grace: Duration,
    /// Connections, at most.
    pub connections: usize,
    /// Connections of one peer, at most.
    pub connections_by_peer: usize,
    /// Files and folders that all sessions have open together, at most; a user may have an eighth of them.
    pub handles: usize,
    /// Sessions of one user, at most.
    pub sessions_by_user: usize,
    /// Connections that have not authenticated: from `begin` on a new one is dropped with a probability that grows to 1 at
    /// `full`, and for certain if its peer has an eighth of `full`. What peers have beyond that does not count against others.
    pub startups: (usize, usize),
}

impl Settings {
    /// Default limits.
    pub fn new(buckets: Arc<dyn Buckets>, sink: Arc<dyn Sink>) -> Self {
        Self {
            server: None,
            mode: None,
            users: None,
            atomic_uploads: false,
            inspector: None,
            signatures: None,
            buckets,
            sink,
            ask: Arc::<Providers>::default().ask(),
            authorities: None,
            observer: None,
            metrics: None,
            login_grace: limits::SFTP_LOGIN_GRACE,
            idle: limits::SFTP_IDLE,
            keepalive: limits::SFTP_KEEPALIVE,
            grace: limits::GRACE,
            connections: limits::MAX_SFTP_CONNECTIONS,
            connections_by_peer: limits::MAX_SFTP_CONNECTIONS / limits::PEER_SHARE,
            handles: handles(),
            sessions_by_user: limits::MAX_SFTP_SESSIONS_BY_USER,
            startups: limits::SFTP_STARTUPS,
        }
    }

    /// So many connections. The limits that keep one peer, or those who have not authenticated, from taking all of them follow.
    #[must_use]
    pub fn with_connections(self, connections: usize) -> Self {
        let part = |of: usize| connections.saturating_mul(of) / limits::MAX_SFTP_CONNECTIONS;
        let (begin, full) = limits::SFTP_STARTUPS;
        Self {
            connections,
            connections_by_peer: (connections / limits::PEER_SHARE).max(1),
            startups: (part(begin).max(1), part(full).max(1)),
            ..self
        }
    }
}

/// Files and folders that sessions may have open, by the descriptors that the process may have.
fn handles() -> usize {
    let descriptors = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    usize::try_from(descriptors / 4).unwrap_or(usize::MAX).clamp(1, limits::MAX_SFTP_HANDLES)
}

/// An SFTP listener, ready to run.
pub struct SftpServer {
    service: Arc<Service>,
    clock: Clock,
    settings: Settings,
    storage: Storage,
    startups: Arc<Startups>,
    users: login::Users,
    /// Turns of addresses whose passwords are compared.
    passwords: Turns,
    /// Turns of addresses whose logins identity providers decide.
    questions: Turns,
    /// Threads that operations may occupy.
    threads: Semaphore,
    /// Threads that logins may occupy to open folders.
    logins: Semaphore,
    inspections: Arc<Inspections>,
    quotas: Quotas,
    signing: Option<Arc<Signatures>>,
    /// What was last learnt of the Transfer server.
    listening: RwLock<Option<Arc<Listening>>>,
    tally: Tally,
}

impl SftpServer {
    /// Serves a Transfer server of `service`.
    pub fn new(service: Arc<Service>, clock: Clock, settings: Settings) -> Self {
        let storage = Storage {
            buckets: settings.buckets.clone(),
            sink: settings.sink.clone(),
            atomic_uploads: settings.atomic_uploads,
        };
        let (begin, full) = settings.startups;
        Self {
            service,
            clock,
            storage,
            startups: Arc::new(Startups::new(begin, full)),
            users: login::Users::new(settings.handles),
            passwords: Turns::new(),
            questions: Turns::of(limits::SFTP_QUESTIONS, limits::SFTP_QUESTIONS_OF_PEER),
            threads: Semaphore::new(limits::SFTP_THREADS),
            logins: Semaphore::new(limits::SFTP_LOGINS),
            inspections: Arc::default(),
            quotas: Quotas::default(),
            signing: settings.signatures.clone().map(|folder| Arc::new(Signatures::new(folder))),
            listening: RwLock::default(),
            tally: Tally::new(settings.metrics.clone(), LISTENER),
            settings,
        }
    }

    /// Where the buckets of a user are. The uploads of one user leave memory to those of others.
    fn storage_of(&self, user_arn: &str) -> Storage {
        let buckets = Arc::new(OfUser::new(self.storage.buckets.clone(), user_arn));
        Storage { buckets, ..self.storage.clone() }
    }

    /// How the uploads of a session are received.
    fn reception(&self, session: &Arc<Session>) -> Reception {
        let signer = |signing| {
            let (service, session) = (self.service.clone(), session.clone());
            Arc::new(Signing::new(signing, service, session, self.clock)) as Arc<dyn Signer>
        };
        let inspector = self.settings.inspector.clone();
        Reception {
            inspector: inspector
                .map(|inspector| self.inspections.of_user(inspector, &session.user_arn)),
            signer: self.signing.clone().map(signer),
        }
    }

    /// Serves until `stop` is ready, then lets sessions finish what they are doing, for [`Settings::grace`] at most.
    pub async fn run(self: Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let number = Number::of(self.settings.connections, Some(self.settings.connections_by_peer));
        let slots = Slots::new(Of::Requests, number, self.tally.clone());
        let (stopping, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, or the client left: neither may end the server.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
            let (from, tally) = (Peer::of(peer.ip()), &self.tally);
            let Some(startup) = Startups::admit(&self.startups, from, tally) else { continue };
            let activity = Arc::new(Activity::new());
            let Ok(slot) = slots.enter(Some(from), &activity) else { continue };
            while connections.try_join_next().is_some() {}
            let (server, stopped) = (self.clone(), stopped.clone());
            connections.spawn(async move {
                server.connection(stream, peer, startup, stopped).await;
                drop(slot);
            });
        }
        drop(listener);
        let _ = stopping.send(true);
        let all = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(self.settings.grace, all).await;
        // The process waits for threads that inspect or sign.
        if let Some(inspector) = &self.settings.inspector {
            inspector.stop();
        }
        if let Some(signing) = &self.signing {
            signing.stop();
        }
    }
}
