//! Metrics of `outlast agent`. They exist only in a process that is an agent.

use std::sync::Arc;

use super::Metrics;
use super::table::{Counter, Gauge, Instrument, Readable, Table};

static READS: Instrument<2> = Instrument {
    name: "agent_reads",
    help: "Secrets that programs asked the agent for",
    unit: None,
    labels: ["interface", "outcome"],
};

static UPSTREAM: Instrument<1> = Instrument {
    name: "agent_upstream_requests",
    help: "Secrets that the agent asked Secrets Manager for",
    unit: None,
    labels: ["outcome"],
};

static FILES: Instrument<1> = Instrument {
    name: "agent_files",
    help: "Files that the agent rendered or removed",
    unit: None,
    labels: ["outcome"],
};

static SECRETS: Instrument<0> = Instrument {
    name: "agent_cached_secrets",
    help: "Secrets that the agent keeps in memory",
    unit: None,
    labels: [],
};

/// The counts of an agent. All names are those of this program.
pub struct AgentCounts {
    reads: Arc<Table<2, Counter>>,
    upstream: Arc<Table<1, Counter>>,
    files: Arc<Table<1, Counter>>,
    secrets: Arc<Table<0, Gauge>>,
}

impl AgentCounts {
    /// Counts that are shown with `metrics`, or nowhere.
    pub fn new(metrics: Option<&Metrics>) -> Self {
        let counts = Self {
            reads: Arc::new(Table::new(&READS)),
            upstream: Arc::new(Table::new(&UPSTREAM)),
            files: Arc::new(Table::new(&FILES)),
            secrets: Arc::new(Table::new(&SECRETS)),
        };
        if let Some(metrics) = metrics {
            let all: [Arc<dyn Readable>; 4] = [
                counts.reads.clone(),
                counts.upstream.clone(),
                counts.files.clone(),
                counts.secrets.clone(),
            ];
            metrics.add(all);
        }
        counts
    }

    /// A program asked for a secret.
    pub fn read(&self, interface: &'static str, outcome: &'static str) {
        self.reads.row([interface, outcome]).add(1);
    }

    /// The agent asked Secrets Manager.
    pub fn upstream(&self, outcome: &'static str) {
        self.upstream.row([outcome]).add(1);
    }

    /// A file was rendered, or was not.
    pub fn file(&self, outcome: &'static str) {
        self.files.row([outcome]).add(1);
    }

    /// So many secrets are kept.
    pub fn secrets(&self, number: usize) {
        self.secrets.row([]).set(i64::try_from(number).unwrap_or(i64::MAX));
    }
}
