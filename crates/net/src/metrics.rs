//! Metrics: handshakes, connections, requests. Prometheus reads them ([`scrape`]) and OTLP pushes them ([`otlp`]),
//! both from the same tables.
//!
//! No label contains anything that a peer has chosen: values are names of rows in this program's tables, or names
//! that the operator chose, and their number is limited too ([`table`]).

mod agent;
mod connectors;
mod events;
pub mod otlp;
pub mod scrape;
mod ssh;
mod table;
mod tally;

use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use foldhash::HashMap;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Histogram;
use outlast_crypto::groups::Group;
use outlast_crypto::versions::Version;
use outlast_ledger::known::{Ability, ability};
use outlast_ledger::{End, Handshake, Observe, Outcome, Served, SshHandshake};
use outlast_negotiate::{Offer, Transport};

pub use self::agent::AgentCounts;
pub use self::connectors::ConnectorCounts;
pub use self::events::EventCounts;
pub(crate) use self::tally::{Action, Limit, Tally};

use self::ssh::Ssh;
use self::table::{Counter, Gauge, Instrument, Readable, Samples, Spread, Table, named};

const LISTENER: [&str; 2] = ["listener", "transport"];

static HANDSHAKES: Instrument<12> = Instrument {
    name: "tls_handshakes",
    help: "Handshakes that ended, well or not",
    unit: None,
    labels: [
        "listener",
        "transport",
        "policy",
        "mode",
        "outcome",
        "offered",
        "version",
        "group",
        "post_quantum",
        "hello_retry",
        "resumed",
        "certificate",
    ],
};

static HANDSHAKE_SECONDS: Instrument<4> = Instrument {
    name: "tls_handshake_duration",
    help: "Time from a connection's first byte to the end of its handshake",
    unit: Some("seconds"),
    labels: ["listener", "transport", "outcome", "group"],
};

static OPEN: Instrument<2> = Instrument {
    name: "tls_open_connections",
    help: "Connections that are open after their handshake",
    unit: None,
    labels: LISTENER,
};

static RECEIVED: Instrument<2> = Instrument {
    name: "tls_received",
    help: "Bytes from clients, including TLS, counted when a connection ends",
    unit: Some("bytes"),
    labels: LISTENER,
};

static SENT: Instrument<2> = Instrument {
    name: "tls_sent",
    help: "Bytes to clients, including TLS, counted when a connection ends",
    unit: Some("bytes"),
    labels: LISTENER,
};

static REQUESTS: Instrument<3> = Instrument {
    name: "api_requests",
    help: "Requests that were answered",
    unit: None,
    labels: ["service", "operation", "status"],
};

static REQUEST_SECONDS: Instrument<2> = Instrument {
    name: "api_request_duration",
    help: "Time from a request's head to its answer",
    unit: Some("seconds"),
    labels: ["service", "operation"],
};

static LIMITED: Instrument<3> = Instrument {
    name: "limited",
    help: "Connections closed to make room, and connections and requests refused, by the limit that was reached",
    unit: None,
    labels: ["listener", "limit", "action"],
};

static LEDGER_DROPPED: Instrument<0> = Instrument {
    name: "ledger_dropped_records",
    help: "Reports that the ledger had no room for",
    unit: None,
    labels: [],
};

static FAILED_BACKUPS: Instrument<0> = Instrument {
    name: "failed_backups",
    help: "Failed attempts at a scheduled backup",
    unit: None,
    labels: [],
};

static BUILD: Instrument<1> =
    Instrument { name: "build_info", help: "The running program", unit: None, labels: ["version"] };

static STARTED: Instrument<0> = Instrument {
    name: "start_time",
    help: "Start time of the program, since 1970",
    unit: Some("seconds"),
    labels: [],
};

/// Open connections, in shards so that cores do not wait for each other.
const SHARDS: usize = 16;

type Connections = HashMap<u64, Arc<Listener>>;

/// Counters of a listener's connections.
struct Listener {
    open: Arc<Gauge>,
    received: Arc<Counter>,
    sent: Arc<Counter>,
}

/// All metrics.
pub struct Metrics {
    handshakes: Arc<Table<12, Counter>>,
    handshake_seconds: Arc<Table<4, Spread>>,
    open: Arc<Table<2, Gauge>>,
    received: Arc<Table<2, Counter>>,
    sent: Arc<Table<2, Counter>>,
    requests: Arc<Table<3, Counter>>,
    request_seconds: Arc<Table<2, Spread>>,
    limited: Arc<Table<3, Counter>>,
    ssh: Ssh,
    sources: RwLock<Vec<Arc<dyn Readable>>>,
    listeners: RwLock<HashMap<[&'static str; 2], Arc<Listener>>>,
    connections: [Mutex<Connections>; SHARDS],
    /// Histograms of OTLP, whose library computes distributions itself.
    pushed: OnceLock<Pushed>,
}

struct Pushed {
    handshake_seconds: Histogram<f64>,
    ssh_handshake_seconds: Histogram<f64>,
    request_seconds: Histogram<f64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Creates metrics with all counts at zero.
    pub fn new() -> Self {
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let build: Table<1, Gauge> = Table::new(&BUILD);
        build.row([env!("CARGO_PKG_VERSION")]).add(1);
        let start: Table<0, Gauge> = Table::new(&STARTED);
        start.row([]).add(i64::try_from(started.as_secs()).unwrap_or(i64::MAX));
        Self {
            handshakes: Arc::new(Table::new(&HANDSHAKES)),
            handshake_seconds: Arc::new(Table::new(&HANDSHAKE_SECONDS)),
            open: Arc::new(Table::new(&OPEN)),
            received: Arc::new(Table::new(&RECEIVED)),
            sent: Arc::new(Table::new(&SENT)),
            requests: Arc::new(Table::new(&REQUESTS)),
            request_seconds: Arc::new(Table::new(&REQUEST_SECONDS)),
            limited: Arc::new(Table::new(&LIMITED)),
            ssh: Ssh::new(),
            sources: RwLock::new(vec![Arc::new(build), Arc::new(start)]),
            listeners: RwLock::default(),
            connections: std::array::from_fn(|_| Mutex::default()),
            pushed: OnceLock::new(),
        }
    }

    /// Adds the count of reports that the ledger had no room for.
    pub fn watch_ledger(&self, dropped: impl Fn() -> u64 + Send + Sync + 'static) {
        let source = Source { instrument: &LEDGER_DROPPED, read: Box::new(dropped) };
        self.sources.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(source));
    }

    /// Adds the count of scheduled backups that failed.
    pub fn watch_backups(&self, failed: impl Fn() -> u64 + Send + Sync + 'static) {
        let source = Source { instrument: &FAILED_BACKUPS, read: Box::new(failed) };
        self.sources.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(source));
    }

    /// Adds sources of numbers.
    fn add(&self, more: impl IntoIterator<Item = Arc<dyn Readable>>) {
        self.sources.write().unwrap_or_else(PoisonError::into_inner).extend(more);
    }

    /// Counts an answered request. The names are those of this program's tables; `None` if the request named none.
    pub fn request(
        &self,
        service: Option<&'static str>,
        operation: Option<&'static str>,
        status: u16,
        took: Duration,
    ) {
        let (service, operation) = (service.unwrap_or(NONE), operation.unwrap_or(NONE));
        let class = match status {
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            _ => "5xx",
        };
        self.requests.row([service, operation, class]).add(1);
        self.request_seconds.row([service, operation]).record(took);
        if let Some(pushed) = self.pushed.get() {
            let labels = [KeyValue::new("service", service), KeyValue::new("operation", operation)];
            pushed.request_seconds.record(took.as_secs_f64(), &labels);
        }
    }

    /// Everything that can be read.
    fn readables(&self) -> Vec<Arc<dyn Readable>> {
        let mut all: Vec<Arc<dyn Readable>> = vec![
            self.handshakes.clone(),
            self.handshake_seconds.clone(),
            self.open.clone(),
            self.received.clone(),
            self.sent.clone(),
            self.requests.clone(),
            self.request_seconds.clone(),
            self.limited.clone(),
        ];
        all.extend(self.ssh.readables());
        all.extend(self.sources.read().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        all
    }

    fn connections(&self, connection: u64) -> &Mutex<Connections> {
        &self.connections[(connection % SHARDS as u64) as usize]
    }

    fn opened(&self, connection: u64, listener: Arc<Listener>) {
        listener.open.add(1);
        let mut connections =
            self.connections(connection).lock().unwrap_or_else(PoisonError::into_inner);
        connections.insert(connection, listener);
    }

    /// Counters of a listener's connections, looked up once for all three.
    fn listener(&self, labels: [&'static str; 2]) -> Arc<Listener> {
        let known = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = known.get(&labels) {
            return listener.clone();
        }
        drop(known);
        let listener = Arc::new(Listener {
            open: self.open.row(labels),
            received: self.received.row(labels),
            sent: self.sent.row(labels),
        });
        let mut known = self.listeners.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < crate::limits::MAX_METRIC_ROWS {
            known.insert(labels, listener.clone());
        }
        listener
    }
}

impl Observe for Metrics {
    fn handshake(&self, handshake: &Handshake) {
        let took = Duration::from_micros(handshake.micros);
        let listener = named(&handshake.listener);
        let transport = handshake.offer.as_ref().map_or(NONE, |offer| match offer.transport {
            Transport::Tcp => "tcp",
            Transport::Quic => "quic",
        });
        let (outcome, outcome_class, served) = match &handshake.outcome {
            Outcome::Served(served) => ("served", "served", Some(served)),
            Outcome::Refused(refusal) => {
                let name = format!("refused:{refusal:?}").to_ascii_lowercase();
                (named(&name), "refused", None)
            }
            Outcome::Failed(_) => ("failed", "failed", None),
        };
        let group = served.map_or(NONE, group);
        let flag = |read: fn(&Served) -> bool| served.map_or(NONE, |served| yes_no(read(served)));
        let version = |served: &Served| Version::by_name(&served.version).map(Version::name);
        let labels = [
            listener,
            transport,
            named(&handshake.policy),
            named(&handshake.mode),
            outcome,
            handshake.offer.as_ref().map_or(NONE, offered),
            served.map_or(NONE, |served| version(served).unwrap_or(OTHER)),
            group,
            flag(|served| served.post_quantum),
            flag(|served| served.hello_retry),
            flag(|served| served.resumed),
            served.and_then(|served| served.certificate.as_deref()).map_or(NONE, named),
        ];
        self.handshakes.row(labels).add(1);
        self.handshake_seconds.row([listener, transport, outcome_class, group]).record(took);
        if let Some(pushed) = self.pushed.get() {
            let values = [listener, transport, outcome_class, group];
            let pairs = HANDSHAKE_SECONDS.labels.iter().zip(values);
            let labels: Vec<_> = pairs.map(|(name, value)| KeyValue::new(*name, value)).collect();
            pushed.handshake_seconds.record(took.as_secs_f64(), &labels);
        }
        if served.is_some() {
            self.opened(handshake.connection, self.listener([listener, transport]));
        }
    }

    fn ssh_handshake(&self, handshake: &SshHandshake) {
        let (listener, labels) = self.ssh.count(handshake);
        if let Some(pushed) = self.pushed.get() {
            let took = Duration::from_micros(handshake.micros);
            pushed.ssh_handshake_seconds.record(took.as_secs_f64(), &labels);
        }
        if let Some(listener) = listener {
            self.opened(handshake.connection, Arc::new(listener));
        }
    }

    fn end(&self, end: &End) {
        let found = self
            .connections(end.connection)
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&end.connection);
        let Some(listener) = found else { return };
        listener.open.add(-1);
        listener.received.add(end.received);
        listener.sent.add(end.sent);
    }
}

/// Label value if there is none.
const NONE: &str = "none";

/// Label value of something without a row.
const OTHER: &str = "other";

fn yes_no(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

fn group(served: &Served) -> &'static str {
    let Some(name) = &served.group else { return NONE };
    Group::by_name(name).map_or(OTHER, |row| row.name)
}

/// Whether a client offered a post-quantum group, by the ledger's rule. A client that got a classical connection all
/// the same is visible in the numbers. A client that names such a group in TLS 1.2, where it has no meaning, has not
/// offered it.
fn offered(offer: &Offer) -> &'static str {
    offered_as(ability(offer))
}

fn offered_as(ability: Ability) -> &'static str {
    match ability {
        Ability::PostQuantum => "post-quantum",
        Ability::Unserved => "unsupported",
        Ability::OldDraft | Ability::Classical | Ability::Tls12 | Ability::Unreadable => {
            "classical"
        }
    }
}

/// A count that another part maintains.
struct Source {
    instrument: &'static Instrument<0>,
    read: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl Readable for Source {
    fn head(&self) -> table::Head {
        self.instrument.head()
    }

    fn samples(&self) -> Samples {
        Samples::Counts(vec![(Vec::new(), (self.read)())])
    }
}

#[cfg(test)]
mod tests;
