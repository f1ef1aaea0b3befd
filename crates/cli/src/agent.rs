//! `outlast agent`: its configuration, its connection to Secrets Manager, the programs that ask it, and its files.
//!
//! What it decides is in `outlast-agent`; here are the clock, the files, the processes and the environment.

pub(crate) mod config;
mod files;
mod serve;
mod upstream;
mod users;

use std::sync::Arc;
use std::time::Duration;

use outlast_agent::cache::Cache;
use outlast_net::local::Local;
use outlast_net::metrics::{AgentCounts, Metrics};
use tokio::net::{TcpListener, UnixListener};

use crate::failure::Failure;
use config::Settings;
use serve::Agent;
pub(crate) use serve::now_ms;
use upstream::Upstream;

/// Interval between searches for secrets that may not be served any more.
const PURGE: Duration = Duration::from_secs(1);

/// An agent that runs.
pub(crate) struct Running {
    agent: Arc<Agent>,
    tasks: tokio::task::JoinSet<()>,
    again: tokio::sync::watch::Sender<u64>,
}

/// Listeners, bound already.
pub(crate) struct Listeners {
    /// TCP.
    pub(crate) tcp: Option<TcpListener>,
    /// Unix socket.
    pub(crate) unix: Option<UnixListener>,
}

impl Running {
    /// Checks the credentials, renders the files once, and serves.
    pub(crate) async fn start(
        settings: Settings,
        listeners: Listeners,
        metrics: Option<&Metrics>,
    ) -> Result<Self, Failure> {
        let cache = Cache::new(settings.limits).map_err(|error| {
            Failure::new(error.to_string()).hint(
                "let the process lock cache_bytes: ulimit -l, or LimitMEMLOCK= in its unit; or lock_memory = \"prefer\"",
            )
        })?;
        if cache.vault().is_unlocked() {
            tracing::warn!("memory cannot be locked: secrets may be written to swap");
        }
        let mut upstream = Upstream::new(settings.upstream)?;
        if settings.validate_credentials {
            upstream.validate(settings.ignore_transient_errors).await?;
        }
        let agent = Arc::new(Agent::new(
            settings.interface,
            settings.rules,
            cache,
            upstream,
            AgentCounts::new(metrics),
        ));
        let mut tasks = tokio::task::JoinSet::new();
        let (again, _) = tokio::sync::watch::channel(0);
        files::remove_leftovers(&settings.files);
        for file in settings.files {
            let mut file = files::Rendered::new(file);
            file.refresh(&agent).await;
            tasks.spawn(file.run(agent.clone(), again.subscribe()));
        }
        let local = Local::new(agent.clone(), settings.max_connections);
        if let Some(listener) = listeners.tcp {
            tasks.spawn(local.clone().tcp(listener));
        }
        if let Some(listener) = listeners.unix {
            tasks.spawn(local.unix(listener));
        }
        let purged = agent.clone();
        tasks.spawn(async move {
            loop {
                tokio::time::sleep(PURGE).await;
                purged.purge();
            }
        });
        Ok(Self { agent, tasks, again })
    }

    /// Forgets all secrets and renders all files again.
    pub(crate) fn again(&self) {
        self.agent.forget_all();
        self.again.send_modify(|number| *number += 1);
    }

    /// Ends: secrets are erased with the memory.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
        self.agent.forget_all();
    }
}
