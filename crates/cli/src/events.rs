//! Events for programs outside: the targets that `[events]` names, and the deliveries to them.
//!
//! Each target has a task of its own, so that none waits for another. What is due is in the store
//! (`outlast_domain::events::outbox`): a delivery that a stopped server has not finished is made again.

mod target;

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_api::service::Service;
use outlast_api::service::events::{Deliveries, event_json};
use outlast_domain::events::outbox::Delivery;
use outlast_domain::{Fault, settings};
use outlast_net::metrics::EventCounts;
use outlast_net::server::system_clock;
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::settings as said;

pub(crate) use target::Target;

/// Deliveries to one target at a time.
const AT_ONCE: usize = 8;
/// Interval between searches for new events.
const SEARCH: Duration = Duration::from_secs(1);
/// Interval between searches for deliveries that are to be repeated.
const REPEAT: Duration = Duration::from_secs(5);
/// Interval between log lines about a target that keeps failing.
const TOLD_AGAIN: Duration = Duration::from_secs(600);
/// What a lease lasts longer than the delivery may take.
const GRACE_MS: i64 = 10_000;

/// Where events go.
#[derive(Default)]
pub(crate) struct Configured {
    targets: Vec<Target>,
    /// `None` for the default.
    authority_days: Option<u32>,
}

impl Configured {
    /// Checks the settings.
    pub(crate) fn choose(settings: said::Events) -> Result<Self, Failure> {
        let authority_days = Some(settings.authority_days());
        let targets = settings.targets.unwrap_or_default();
        Ok(Self { targets: target::choose(targets.0)?, authority_days })
    }

    /// Which events are to be kept.
    pub(crate) fn wanted(&self) -> settings::Events {
        let default = settings::Events::default();
        settings::Events {
            targets: self.targets.iter().map(Target::wanted).collect(),
            authority_days: self.authority_days.map_or(default.authority_days, i64::from),
        }
    }

    /// Whether there is any target.
    pub(crate) fn has_targets(&self) -> bool {
        !self.targets.is_empty()
    }

    /// The targets.
    pub(crate) fn targets(&self) -> &[Target] {
        &self.targets
    }
}

/// Delivers events from now on. Never ends. It may be dropped at any time: when the leases of unfinished deliveries end, they
/// are made again.
pub(crate) async fn run(service: Arc<Service>, configured: Configured, counts: EventCounts) {
    let counts = Arc::new(counts);
    let mut tasks = JoinSet::new();
    for target in configured.targets {
        let courier = Courier {
            service: service.clone(),
            target: Arc::new(target),
            counts: counts.clone(),
            failing: None,
        };
        tasks.spawn(courier.run());
    }
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "deliveries to a target of events have ended");
        }
    }
    std::future::pending::<()>().await;
}

/// Delivers to one target.
struct Courier {
    service: Arc<Service>,
    target: Arc<Target>,
    counts: Arc<EventCounts>,
    /// When the log last said that the target fails, while it does.
    failing: Option<Instant>,
}

impl Courier {
    async fn run(mut self) {
        let mut after = String::new();
        let mut repeated: Option<Instant> = None;
        loop {
            if repeated.is_none_or(|at| at.elapsed() >= REPEAT) {
                repeated = Some(Instant::now());
                after.clear();
                self.trim().await;
            }
            let taken = self.take(after.clone()).await;
            if let Some(last) = taken.last {
                after = last;
            }
            if let Some(oldest) = taken.given_up.first() {
                let number = taken.given_up.len();
                self.counts.given_up(&self.target.name, number);
                tracing::error!(
                    target_name = self.target.name,
                    number,
                    oldest = oldest.id,
                    detail_type = oldest.kind.detail_type,
                    "events were given up: they could not be delivered within a day"
                );
            }
            let is_full = taken.now.len() + taken.given_up.len() >= AT_ONCE;
            if !taken.now.is_empty() {
                self.deliver(taken.now).await;
            }
            if !is_full {
                tokio::time::sleep(SEARCH).await;
            }
        }
    }

    async fn take(&self, after: String) -> Deliveries {
        let lease_ms = i64::try_from(self.target.timeout.as_millis()).unwrap_or(i64::MAX / 2);
        let taken = self.on_store(move |service, name| {
            service.event_deliveries(name, &after, AT_ONCE, lease_ms + GRACE_MS, system_clock())
        });
        taken.await.unwrap_or_else(|error| {
            tracing::error!(error, "the events that are due cannot be read");
            Deliveries::default()
        })
    }

    /// Gives up what is too much, and counts what waits.
    async fn trim(&self) {
        let trimmed = self.on_store(|service, name| {
            let given_up = service.trim_events(name, system_clock())?;
            Ok((given_up, service.waiting_events(name, system_clock())?))
        });
        match trimmed.await {
            Ok((given_up, waiting)) => {
                self.counts.waiting(&self.target.name, waiting);
                if given_up > 0 {
                    self.counts.given_up(&self.target.name, given_up);
                    tracing::error!(
                        target_name = self.target.name,
                        number = given_up,
                        "events were given up: too many wait for this target"
                    );
                }
            }
            Err(error) => tracing::error!(error, "the events that wait cannot be counted"),
        }
    }

    async fn deliver(&mut self, deliveries: Vec<Delivery>) {
        let mut tasks = JoinSet::new();
        for delivery in deliveries {
            let target = self.target.clone();
            tasks.spawn(async move {
                let outcome = target.send(&event_json(&delivery.event)).await;
                (delivery, outcome)
            });
        }
        let mut outcomes = Vec::new();
        while let Some(made) = tasks.join_next().await {
            match made {
                Ok((delivery, outcome)) => {
                    self.note(&delivery, &outcome);
                    outcomes.push((delivery, outcome.is_ok()));
                }
                Err(error) => tracing::error!(%error, "a delivery is lost; it is repeated"),
            }
        }
        let noted = self
            .on_store(move |service, _| service.event_outcomes(&outcomes, system_clock()))
            .await;
        if let Err(error) = noted {
            tracing::error!(error, "the outcomes of deliveries are lost; they are repeated");
        }
    }

    /// Counts an outcome, and logs when a target begins to fail and when it works again.
    fn note(&mut self, delivery: &Delivery, outcome: &Result<(), String>) {
        let target_name = &self.target.name;
        match outcome {
            Ok(()) => {
                self.counts.delivered(target_name);
                if self.failing.take().is_some() {
                    tracing::info!(target_name, "events are delivered again");
                }
            }
            Err(reason) => {
                self.counts.failed(target_name);
                if self.failing.is_none_or(|told| told.elapsed() >= TOLD_AGAIN) {
                    self.failing = Some(Instant::now());
                    let (id, failures) = (&delivery.event.id, delivery.failures);
                    tracing::warn!(
                        target_name,
                        id,
                        failures,
                        reason,
                        "an event could not be delivered; it is tried again for a day"
                    );
                }
            }
        }
    }

    /// Does something with the store, off the threads that run futures.
    async fn on_store<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Service, &str) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, String> {
        let (service, target) = (self.service.clone(), self.target.clone());
        match tokio::task::spawn_blocking(move || what(&service, &target.name)).await {
            Ok(outcome) => outcome.map_err(|fault| fault.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}
