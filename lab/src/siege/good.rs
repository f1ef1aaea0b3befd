//! The client that behaves: calls at a steady pace, each timed, in quiet and in attacked windows.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Request;
use outlast_api::ops::kms::generate_data_key::GenerateDataKey;
use outlast_net::client::{Connection, Connector};
use outlast_net::policy::Policy;
use quinn::Endpoint;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::door::Door;
use super::field::Field;
use super::limits::ANSWER;
use super::pattern::Pattern;
use super::plain::get;
use super::quic;
use crate::error::LabError;
use crate::server::{NAME, call};

/// A way in which a good client calls.
pub(super) struct Kind {
    /// Name in tables.
    pub name: &'static str,
    /// Interval between calls.
    pace: Duration,
    /// The doors whose patterns it accompanies.
    doors: &'static [Door],
    /// The only patterns of those that it accompanies; all if empty.
    only: &'static [&'static str],
    make: Make,
}

/// Makes the caller of a kind.
type Make = fn(Arc<Field>) -> Result<Box<dyn Caller>, LabError>;

impl Kind {
    fn is_beside(&self, pattern: &Pattern) -> bool {
        self.doors.contains(&pattern.door)
            && (self.only.is_empty() || self.only.contains(&pattern.name))
    }
}

/// All kinds.
static KINDS: &[Kind] = &[
    Kind {
        name: "kept connection",
        pace: Duration::from_millis(20),
        doors: &[Door::Api, Door::Plain, Door::Quic],
        only: &[],
        make: |field| Ok(Box::new(Kept { connector: connector(&field)?, field, connection: None })),
    },
    Kind {
        name: "new connection",
        pace: Duration::from_millis(100),
        doors: &[Door::Api, Door::Plain, Door::Quic],
        only: &[],
        make: |field| Ok(Box::new(Fresh { connector: connector(&field)?, field })),
    },
    Kind {
        name: "CRL",
        pace: Duration::from_millis(50),
        doors: &[Door::Api, Door::Plain, Door::Quic],
        only: &[],
        make: |field| Ok(Box::new(Crl { field })),
    },
    Kind {
        name: "OCSP",
        pace: Duration::from_millis(50),
        doors: &[Door::Api, Door::Plain, Door::Quic],
        only: &[],
        make: |field| {
            let question = STANDARD.encode(field.question(None)?).replace('/', "%2F");
            let question = question.replace('+', "%2B").replace('=', "%3D");
            Ok(Box::new(Ocsp { path: format!("/ocsp/{question}"), field }))
        },
    },
    Kind {
        name: "unknown operation",
        pace: Duration::from_millis(250),
        doors: &[Door::Api],
        only: &["unknown-operations"],
        make: |field| Ok(Box::new(Mistaken { connector: connector(&field)?, field })),
    },
    Kind {
        name: "HTTP/3",
        pace: Duration::from_millis(100),
        doors: &[Door::Quic],
        only: &[],
        make: |field| {
            let any = SocketAddr::new(field.access.address.ip(), 0);
            let mut endpoint = Endpoint::client(any).map_err(LabError::failed)?;
            endpoint.set_default_client_config(quic::config(&field.access.roots()?)?);
            Ok(Box::new(Http3 { endpoint, field }))
        },
    },
    Kind {
        name: "through the proxy",
        pace: Duration::from_millis(100),
        doors: &[Door::Proxy],
        only: &[],
        make: |field| {
            let door = field.proxy.as_ref().ok_or_else(|| LabError::failed("no proxy"))?;
            let connector = Connector::new(&Policy::default(), &door.roots()?);
            let connector = connector.map_err(LabError::failed)?.without_sessions();
            Ok(Box::new(Proxied { connector, address: door.address, field }))
        },
    },
];

fn connector(field: &Field) -> Result<Connector, LabError> {
    Ok(field.access.connector(&Policy::default())?.without_sessions())
}

/// Makes calls of a kind.
trait Caller: Send {
    /// Makes one call; the error says why it failed.
    fn call(&mut self) -> BoxFuture<'_, Result<(), String>>;
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// GenerateDataKey on a connection that stays open.
struct Kept {
    field: Arc<Field>,
    connector: Connector,
    connection: Option<Connection>,
}

impl Caller for Kept {
    fn call(&mut self) -> BoxFuture<'_, Result<(), String>> {
        async move {
            if self.connection.is_none() {
                self.connection = Some(connect(&self.connector, &self.field).await?);
            }
            let Some(connection) = &mut self.connection else { return Ok(()) };
            let outcome = data_key(&self.field, connection).await;
            if outcome.is_err() {
                self.connection = None;
            }
            outcome
        }
        .boxed()
    }
}

/// GenerateDataKey on a new connection.
struct Fresh {
    field: Arc<Field>,
    connector: Connector,
}

impl Caller for Fresh {
    fn call(&mut self) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let mut connection = connect(&self.connector, &self.field).await?;
            data_key(&self.field, &mut connection).await?;
            connection.close().await;
            Ok(())
        }
        .boxed()
    }
}

async fn connect(connector: &Connector, field: &Field) -> Result<Connection, String> {
    connector.connect_to(NAME, field.access.address).await.map_err(text)
}

async fn data_key(field: &Field, connection: &mut Connection) -> Result<(), String> {
    let input = json!({ "KeyId": field.prepared.key, "KeySpec": "AES_256" });
    let input = serde_json::from_value(input).map_err(text)?;
    let client = field.access.client();
    call::<GenerateDataKey>(&client, connection, &input).await.map(drop).map_err(text)
}

struct Crl {
    field: Arc<Field>,
}

impl Caller for Crl {
    fn call(&mut self) -> BoxFuture<'_, Result<(), String>> {
        async move { get(self.field.plain, &self.field.prepared.crl).await.map(drop) }.boxed()
    }
}

struct Ocsp {
    field: Arc<Field>,
    path: String,
}

impl Caller for Ocsp {
    fn call(&mut self) -> BoxFuture<'_, Result<(), String>> {
        async move { get(self.field.plain, &self.path).await.map(drop) }.boxed()
    }
}

/// Calls an operation that does not exist, with a body: the answer must say so.
struct Mistaken {
    field: Arc<Field>,
    connector: Connector,
}

impl Caller for Mistaken {
    fn call(&mut self) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let mut connection = connect(&self.connector, &self.field).await?;
            let request = Request::post("/")
                .header("host", NAME)
                .header("content-type", "application/x-amz-json-1.1")
                .header("x-amz-target", "TrentService.Siege")
                .body(vec![b' '; 40_000])
                .map_err(text)?;
            let (status, _) = connection.send(request).await.map_err(text)?;
            connection.close().await;
            match status {
                400 => Ok(()),
                other => Err(format!("an unknown operation was answered with {other}")),
            }
        }
        .boxed()
    }
}

struct Http3 {
    field: Arc<Field>,
    endpoint: Endpoint,
}

impl Caller for Http3 {
    fn call(&mut self) -> BoxFuture<'_, Result<(), String>> {
        quic::get_health(&self.endpoint, self.field.access.address).boxed()
    }
}

struct Proxied {
    field: Arc<Field>,
    connector: Connector,
    address: SocketAddr,
}

impl Caller for Proxied {
    fn call(&mut self) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let mut connection =
                self.connector.connect_to(NAME, self.address).await.map_err(text)?;
            let request = Request::get(&self.field.prepared.crl).header("host", NAME);
            let request = request.body(Vec::new()).map_err(text)?;
            let (status, _) = connection.send(request).await.map_err(text)?;
            connection.close().await;
            if status == 200 { Ok(()) } else { Err(format!("the proxy answered with {status}")) }
        }
        .boxed()
    }
}

/// The phase that a call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Between the windows: only failures count.
    Between = 0,
    Quiet = 1,
    Attacked = 2,
}

/// Durations of the calls of a kind in milliseconds, by phase.
#[derive(Debug, Default)]
pub(super) struct Waited {
    pub quiet: Vec<f64>,
    pub attacked: Vec<f64>,
}

/// The running client.
pub(super) struct Good {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    phase: AtomicU8,
    told: Mutex<Told>,
}

/// The client's report.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub waited: BTreeMap<&'static str, Waited>,
    pub failures: u64,
    pub first_failure: Option<String>,
}

impl Good {
    /// Starts to call, beside this pattern.
    pub fn start(field: &Arc<Field>, pattern: &Pattern) -> Result<Self, LabError> {
        let shared = Arc::new(Shared::default());
        let mut tasks = JoinSet::new();
        for kind in KINDS.iter().filter(|kind| kind.is_beside(pattern)) {
            tasks.spawn(pace(kind, (kind.make)(field.clone())?, shared.clone()));
        }
        Ok(Self { shared, tasks })
    }

    /// Sets the phase for the following calls.
    pub fn phase(&self, phase: Phase) {
        self.shared.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Ends when the calls that are under way have ended.
    pub async fn end(mut self) -> Told {
        self.shared.phase.store(OVER, Ordering::Relaxed);
        while self.tasks.join_next().await.is_some() {}
        std::mem::take(&mut *self.shared.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

const OVER: u8 = 3;

async fn pace(kind: &'static Kind, mut caller: Box<dyn Caller>, shared: Arc<Shared>) {
    let mut pace = interval(kind.pace);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        let phase = shared.phase.load(Ordering::Relaxed);
        if phase == OVER {
            return;
        }
        let begun = Instant::now();
        let outcome = timeout(ANSWER, caller.call()).await;
        let outcome = outcome.unwrap_or_else(|_| Err("there was no answer".into()));
        let took = begun.elapsed();
        let mut told = shared.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(reason) = outcome {
            told.failures += 1;
            told.first_failure.get_or_insert_with(|| format!("{}: {reason}", kind.name));
        }
        let waited = told.waited.entry(kind.name).or_default();
        let times = match phase {
            1 => &mut waited.quiet,
            2 => &mut waited.attacked,
            _ => continue,
        };
        times.extend(all_that_waited(took, kind.pace));
    }
}

/// A call that takes longer than the interval stands for those that would have been made in the meantime and would
/// have waited, too: a stall of ten seconds is not one slow call among a thousand quick ones.
fn all_that_waited(took: Duration, pace: Duration) -> impl Iterator<Item = f64> {
    let first = std::iter::once(took);
    let later = std::iter::successors(took.checked_sub(pace), move |left| left.checked_sub(pace));
    first.chain(later).map(|time| time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stall_counts_for_every_call_that_it_kept_waiting() {
        let pace = Duration::from_millis(20);
        let times: Vec<f64> = all_that_waited(Duration::from_millis(50), pace).collect();
        assert_eq!(times, [50.0, 30.0, 10.0]);
        assert_eq!(all_that_waited(Duration::from_millis(5), pace).count(), 1);
        assert_eq!(all_that_waited(Duration::from_secs(30), pace).count(), 1501);
    }
}
