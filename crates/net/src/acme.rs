//! ACME over HTTPS, and the validation of clients' challenges over HTTP, TLS and DNS, and of the names of requested
//! certificates.
//!
//! `outlast-api` decides what is right or wrong with a request; [`Validator`] only reports what it found.

pub(crate) mod addresses;
mod answer;
mod dns;
mod http;
mod serve;
mod tls;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use answer::TlsAnswers;
pub use ipnet::IpNet;
use outlast_api::acme::jobs::Lane;
use outlast_api::service::Service;
use outlast_domain::acme::{Job, Kind, Outcome, Queue, Target};
use tokio::time::{Instant, timeout};

use crate::limits;
use crate::server::Clock;
use dns::Resolver;

/// How targets are validated.
#[derive(Debug, Clone)]
pub struct Settings {
    /// DNS server for look-ups; `None` means the system's.
    pub dns: Option<SocketAddr>,
    /// Port of http-01: 80, except in tests.
    pub http_port: u16,
    /// Port of tls-alpn-01: 443, except in tests.
    pub tls_port: u16,
    /// Networks in which targets may be; all if empty. Link-local addresses are never contacted, because cloud
    /// providers serve credentials there. Addresses of this machine are contacted only if a network is listed that
    /// contains no others.
    pub networks: Vec<IpNet>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { dns: None, http_port: 80, tls_port: 443, networks: Vec::new() }
    }
}

/// Why a validation did not succeed.
#[derive(Debug)]
struct Unmet {
    kind: &'static Kind,
    detail: String,
    again: bool,
}

impl Unmet {
    /// The expected value may appear later.
    fn not_yet(kind: &'static Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), again: true }
    }

    /// A wrong value is there.
    fn wrong(kind: &'static Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), again: false }
    }
}

/// Validates targets.
pub struct Validator {
    settings: Settings,
    resolver: Resolver,
}

/// A validation's slot in its queue; released on drop.
struct Slot {
    lane: Arc<Mutex<Lane>>,
    record_key: String,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner).ended(&self.record_key);
    }
}

/// Interval between scans for challenges that clients wait for.
const CHALLENGES: Duration = Duration::from_millis(500);
/// Interval between scans for domain validations, and for names of requested certificates, that are due.
const DOMAINS: Duration = Duration::from_secs(5);

impl Validator {
    /// Reads the system's DNS settings if no server is given.
    ///
    /// # Errors
    /// The system's settings cannot be read.
    pub fn new(settings: Settings) -> std::io::Result<Self> {
        let resolver = Resolver::new(settings.dns)?;
        Ok(Self { settings, resolver })
    }

    /// Carries out validations that are due, from now on. Never ends. It may be dropped at any time: another server,
    /// or this one when it runs again, then carries out the unfinished ones.
    pub async fn run(self: Arc<Self>, service: Arc<Service>, clock: Clock) {
        // Each queue has its own slots, so that one cannot delay the other.
        let lane = |size| Arc::new(Mutex::new(Lane::new(size)));
        let challenges = lane(limits::MAX_VALIDATIONS);
        let domains = lane(limits::MAX_DOMAIN_VALIDATIONS);
        let certificates = lane(limits::MAX_DOMAIN_VALIDATIONS);
        let mut domains_due = Instant::now();
        loop {
            self.begin(Queue::Challenges, &service, clock, &challenges).await;
            if Instant::now() >= domains_due {
                domains_due = Instant::now() + DOMAINS;
                self.begin(Queue::Domains, &service, clock, &domains).await;
                self.begin(Queue::Certificates, &service, clock, &certificates).await;
            }
            tokio::time::sleep(CHALLENGES).await;
        }
    }

    /// Starts as many validations as there are free slots.
    async fn begin(
        self: &Arc<Self>,
        queue: Queue,
        service: &Arc<Service>,
        clock: Clock,
        lane: &Arc<Mutex<Lane>>,
    ) {
        let (asked, given) = (service.clone(), lane.clone());
        let taking = move || asked.acme_jobs(queue, clock(), &given);
        let jobs = match tokio::task::spawn_blocking(taking).await {
            Ok(Ok(jobs)) => jobs,
            Ok(Err(fault)) => {
                tracing::error!(%fault, "the ACME validation tasks cannot be read");
                return;
            }
            Err(error) => {
                tracing::error!(%error, "the ACME validation tasks cannot be read");
                return;
            }
        };
        for job in jobs {
            let (validator, service) = (self.clone(), service.clone());
            let slot = Slot { lane: lane.clone(), record_key: job.record_key.clone() };
            tokio::spawn(async move {
                validator.finish(job, service, clock).await;
                drop(slot);
            });
        }
    }

    async fn finish(&self, job: Job, service: Arc<Service>, clock: Clock) {
        let outcome = self.look(&job.target).await;
        tracing::debug!(target = ?job.target, ?outcome, "an ACME validation target was queried");
        let noted =
            tokio::task::spawn_blocking(move || service.acme_outcome(&job, &outcome, clock()));
        if let Ok(Err(fault)) = noted.await {
            tracing::error!(%fault, "the outcome of an ACME validation could not be recorded");
        }
    }

    /// Validates a target once, for at most [`limits::VALIDATION`].
    pub async fn look(&self, target: &Target) -> Outcome {
        let looking = async {
            match target {
                Target::Http { host, token, content } => self.http(host, token, content).await,
                Target::TlsAlpn { host, digest } => self.tls_alpn(host, digest).await,
                Target::Txt { name, value } => self.resolver.has_txt(name, value).await,
                Target::Cname { name, value } => self.resolver.has_cname(name, value).await,
            }
        };
        let found = timeout(limits::VALIDATION, looking).await.unwrap_or_else(|_| {
            Err(Unmet::not_yet(Kind::CONNECTION, "The target took too long to answer."))
        });
        match found {
            Ok(()) => Outcome::Found,
            Err(Unmet { kind, detail, again }) => Outcome::Missing { kind, detail, again },
        }
    }
}

/// One step of a validation, with a time limit.
async fn step<T, E: std::fmt::Display>(
    host: &str,
    doing: impl Future<Output = Result<T, E>>,
) -> Result<T, Unmet> {
    match timeout(limits::VALIDATION_STEP, doing).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(Unmet::not_yet(
            Kind::CONNECTION,
            format!("The connection to {host} failed: {error}."),
        )),
        Err(_) => Err(Unmet::not_yet(Kind::CONNECTION, format!("{host} does not answer in time."))),
    }
}
