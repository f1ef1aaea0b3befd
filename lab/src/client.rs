//! Clients of a real Outlast server: an agent that makes the requests of a job, and measures each one.
//!
//! It is a separate process, so that it can be at the other end of an emulated link, and so that each process is a
//! level of the bootstrap ([`crate::statistics::two_level`]). The job comes as JSON over its standard input, since it
//! contains the server's access key.

pub mod bursts;
pub mod pool;
pub mod turns;

use std::io::{Read, Write};
use std::time::Duration;

use outlast_api::client::Client;
use outlast_api::ops::kms::{create_key, generate_data_key};
use outlast_net::client::{Connection, Connector};
use outlast_net::policy::Policy;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::server::{Access, NAME, call};
use outlast_harness::agent::Agent;

/// The agent's row.
pub const AGENT: Agent = Agent { name: "client", run };

/// A server to call.
#[derive(Clone, Serialize, Deserialize)]
pub struct Target {
    /// The server.
    pub access: Access,
    /// A KMS key on the server.
    pub key: String,
}

/// A way of calling.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Caller {
    /// Index of the target in the job.
    pub target: usize,
    /// IANA name of the only group to offer.
    pub group: String,
    /// Whether to resume sessions: all connections but the first resume one.
    pub sessions: bool,
}

/// A job for an agent.
#[derive(Serialize, Deserialize)]
pub struct Job {
    /// The servers.
    pub targets: Vec<Target>,
    /// The work to do.
    pub work: Work,
}

/// Kinds of work.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Makes a KMS key on each target; the result is their names.
    Keys,
    /// Ways of calling, in turns; the result is `Vec<Vec<turns::Slot>>`.
    Turns(turns::Turns),
    /// Requests at random times, through pools of connections, one pool after the other; the result is
    /// `Vec<pool::Served>`.
    Pools(pool::Pools),
    /// Bursts of requests through pools that close idle connections, side by side; the result is
    /// `Vec<bursts::Served>`.
    Bursts(bursts::Bursts),
}

fn run(_: &str) -> Result<(), LabError> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(LabError::failed)?;
    let job: Job = serde_json::from_str(&text).map_err(LabError::failed)?;
    let answer = perform(&job)?;
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &answer).map_err(LabError::failed)?;
    out.flush().map_err(LabError::failed)
}

/// Does a job in this process.
pub fn perform(job: &Job) -> Result<serde_json::Value, LabError> {
    let one_thread = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let one_thread = one_thread.map_err(LabError::failed)?;
    match &job.work {
        Work::Keys => json(&one_thread.block_on(keys(&job.targets))?),
        Work::Turns(turns) => json(&one_thread.block_on(turns::run(&job.targets, turns))?),
        Work::Pools(pools) => json(&one_thread.block_on(pool::run(&job.targets, pools))?),
        Work::Bursts(bursts) => {
            let threads = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(bursts.threads)
                .enable_all()
                .build()
                .map_err(LabError::failed)?;
            json(&threads.block_on(bursts::run(&job.targets, bursts))?)
        }
    }
}

fn json(value: &impl Serialize) -> Result<serde_json::Value, LabError> {
    serde_json::to_value(value).map_err(LabError::failed)
}

async fn keys(targets: &[Target]) -> Result<Vec<String>, LabError> {
    let mut keys = Vec::new();
    for target in targets {
        let mut session = crate::server::Session::open(
            &target.access,
            &target.access.connector(&Policy::default())?,
        )
        .await?;
        let made = session.call::<create_key::CreateKey>(serde_json::json!({})).await?;
        keys.push(made.key_metadata.key_id);
    }
    Ok(keys)
}

/// A way of calling that is ready to use.
pub(crate) struct Ready {
    access: Access,
    connector: Connector,
    client: Client,
    input: generate_data_key::Input,
    group: String,
    sessions: bool,
}

impl Ready {
    /// Finds the caller's target.
    pub(crate) fn new(targets: &[Target], caller: &Caller) -> Result<Self, LabError> {
        let target = targets
            .get(caller.target)
            .ok_or_else(|| LabError::Plan(format!("there is no server {}", caller.target)))?;
        let policy = Policy::named(&[&caller.group])
            .map_err(|name| LabError::Plan(format!("no group is named {name}")))?;
        let connector = target.access.connector(&policy)?;
        Ok(Self {
            access: target.access.clone(),
            connector: if caller.sessions { connector } else { connector.without_sessions() },
            client: target.access.client(),
            input: generate_data_key::Input {
                key_id: target.key.clone(),
                encryption_context: None,
                number_of_bytes: None,
                key_spec: Some("AES_256".into()),
                grant_tokens: None,
                dry_run: None,
            },
            group: caller.group.clone(),
            sessions: caller.sessions,
        })
    }

    /// Connects, and checks what was negotiated. `first` is for a connection that has no session to resume.
    pub(crate) async fn connect(&self, first: bool) -> Result<Connection, LabError> {
        let connection =
            self.connector.connect_to(NAME, self.access.address).await.map_err(|error| {
                LabError::Peer { peer: "the Outlast server".into(), reason: error.to_string() }
            })?;
        let negotiated = &connection.negotiated;
        let wanted = if self.sessions && !first { "resumed" } else { "full" };
        let group = negotiated.group.as_deref().unwrap_or_default();
        if !group.eq_ignore_ascii_case(&self.group) || negotiated.handshake.name() != wanted {
            return Err(LabError::failed(format!(
                "got a {} handshake with {} instead of a {wanted} one with {}",
                negotiated.handshake.name(),
                if group.is_empty() { "no group" } else { group },
                self.group
            )));
        }
        Ok(connection)
    }

    /// Makes one GenerateDataKey request.
    pub(crate) async fn request(&self, connection: &mut Connection) -> Result<(), LabError> {
        call::<generate_data_key::GenerateDataKey>(&self.client, connection, &self.input)
            .await
            .map(drop)
    }

    /// Connects and makes one request, unmeasured: the first time costs more on both sides.
    pub(crate) async fn warm_up(&self) -> Result<(), LabError> {
        let mut connection = self.connect(true).await?;
        self.request(&mut connection).await?;
        connection.close().await;
        Ok(())
    }
}

/// In microseconds, the unit of all results.
pub(crate) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
