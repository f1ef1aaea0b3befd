//! Metrics of connections that connectors make.

use std::sync::Arc;

use super::Metrics;
use super::table::{Counter, Instrument, Readable, Table};

static CONNECTIONS: Instrument<1> = Instrument {
    name: "connector_connections",
    help: "Connections of SFTP connectors to servers outside, with what came of them",
    unit: None,
    labels: ["outcome"],
};

/// The counts of connections.
pub struct ConnectorCounts(Arc<Table<1, Counter>>);

impl ConnectorCounts {
    /// Counts that are shown with `metrics`, or nowhere.
    pub fn new(metrics: Option<&Metrics>) -> Self {
        let counts = Self(Arc::new(Table::new(&CONNECTIONS)));
        if let Some(metrics) = metrics {
            let all: [Arc<dyn Readable>; 1] = [counts.0.clone()];
            metrics.add(all);
        }
        counts
    }

    /// A connection was made, or was not.
    pub(crate) fn add(&self, outcome: &'static str) {
        self.0.row([outcome]).add(1);
    }
}
