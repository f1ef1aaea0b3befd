//! Metrics of deliveries of events. They exist only if `[events]` names targets.

use std::sync::Arc;

use super::Metrics;
use super::table::{Counter, Gauge, Instrument, Readable, Table, named};

static DELIVERIES: Instrument<2> = Instrument {
    name: "event_deliveries",
    help: "Attempts to deliver an event to a target, and events that were given up",
    unit: None,
    labels: ["target", "outcome"],
};

static WAITING: Instrument<1> = Instrument {
    name: "events_waiting",
    help: "Events that wait for their delivery",
    unit: None,
    labels: ["target"],
};

/// The counts of deliveries. Names of targets are the operator's.
pub struct EventCounts {
    deliveries: Arc<Table<2, Counter>>,
    waiting: Arc<Table<1, Gauge>>,
}

impl EventCounts {
    /// Counts that are shown with `metrics`, or nowhere.
    pub fn new(metrics: Option<&Metrics>) -> Self {
        let counts = Self {
            deliveries: Arc::new(Table::new(&DELIVERIES)),
            waiting: Arc::new(Table::new(&WAITING)),
        };
        if let Some(metrics) = metrics {
            let all: [Arc<dyn Readable>; 2] = [counts.deliveries.clone(), counts.waiting.clone()];
            metrics.add(all);
        }
        counts
    }

    /// A target has got an event.
    pub fn delivered(&self, target: &str) {
        self.deliveries.row([named(target), "delivered"]).add(1);
    }

    /// An attempt has failed; it will be repeated.
    pub fn failed(&self, target: &str) {
        self.deliveries.row([named(target), "failed"]).add(1);
    }

    /// So many events were given up: too old, or too many.
    pub fn given_up(&self, target: &str, number: usize) {
        self.deliveries.row([named(target), "given_up"]).add(number as u64);
    }

    /// So many events wait.
    pub fn waiting(&self, target: &str, number: u64) {
        self.waiting.row([named(target)]).set(i64::try_from(number).unwrap_or(i64::MAX));
    }
}
