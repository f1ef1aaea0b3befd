//! Heartbeats of servers that share a database, and the watch for them before a change that a running server would
//! not survive.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_domain::heartbeat::{self, Heartbeat};
use outlast_domain::work::Work;
use outlast_domain::{Fault, ids};
use outlast_net::server::system_clock;

use crate::data::Data;
use crate::failure::Failure;
use crate::output;

/// Interval between heartbeats.
const INTERVAL: Duration = Duration::from_secs(5);
/// Time without a heartbeat after which a server counts as dead: six intervals.
const WATCH: Duration = Duration::from_secs(30);
/// Interval between reads during that time.
const PAUSE: Duration = Duration::from_millis(500);
/// Heartbeats between checks for those of servers that have stopped.
const SIGNS_BETWEEN_LOOKS: u64 = 120;

/// A running server's own heartbeat.
pub(crate) struct Heart {
    data: Arc<Data>,
    last: Heartbeat,
    /// The others' counts at the last check.
    others: HashMap<String, u64>,
}

impl Heart {
    /// Writes the first heartbeat; `None` where the folder's lock tells which server serves it.
    pub(crate) fn start(data: &Arc<Data>) -> Result<Option<Self>, Failure> {
        if !data.service.store().is_remote() {
            return Ok(None);
        }
        let now_ms = system_clock();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let (id, process) = (ids::hex::<8>()?, std::process::id());
        let last = Heartbeat { id, host, process, started_ms: now_ms, beat_ms: now_ms, beats: 1 };
        change(data, |work| heartbeat::beat(work, &last))?;
        Ok(Some(Self { data: data.clone(), last, others: HashMap::new() }))
    }

    /// The server's id.
    pub(crate) fn id(&self) -> String {
        self.last.id.clone()
    }

    /// Writes heartbeats. Never ends.
    pub(crate) async fn run(mut self) {
        let mut is_failing = false;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let outcome = tokio::task::block_in_place(|| self.beat());
            if let Err(fault) = &outcome
                && !is_failing
            {
                tracing::warn!(%fault, "no heartbeat could be written for the other servers on the database");
            }
            is_failing = outcome.is_err();
        }
    }

    fn beat(&mut self) -> Result<(), Fault> {
        let next = self.last.next(system_clock());
        change(&self.data, |work| heartbeat::beat(work, &next))?;
        self.last = next;
        if self.last.beats.is_multiple_of(SIGNS_BETWEEN_LOOKS) {
            self.take_off_the_dead()?;
        }
        Ok(())
    }

    /// Removes servers whose count has not grown since the last check.
    fn take_off_the_dead(&mut self) -> Result<(), Fault> {
        let found = heartbeat::all(&self.data.service.work(system_clock()))?;
        let (dead, alive): (Vec<_>, Vec<_>) = found
            .into_iter()
            .filter(|one| one.id != self.last.id)
            .partition(|one| self.others.get(&one.id) == Some(&one.beats));
        take_off(&self.data, &dead)?;
        self.others = alive.into_iter().map(|one| (one.id, one.beats)).collect();
        Ok(())
    }
}

/// Removes the heartbeat of a server that stops.
pub(crate) fn stop(data: &Data, id: &str) {
    if let Err(fault) = change(data, |work| heartbeat::remove(work, id)) {
        tracing::warn!(%fault, "this server's last heartbeat could not be removed from the store");
    }
}

/// Fails if a server runs on the database: waits for the next heartbeat of each, for as long as that may take.
pub(crate) fn require_stopped(data: &Data) -> Result<(), Failure> {
    let all = || heartbeat::all(&data.service.work(system_clock()));
    let before = all()?;
    if before.is_empty() {
        return Ok(());
    }
    let bar = output::spinner(&format!(
        "the database has the heartbeats of {} servers; waiting {} s to see whether they send more",
        before.len(),
        WATCH.as_secs()
    ));
    let begun = Instant::now();
    while begun.elapsed() < WATCH {
        std::thread::sleep(PAUSE);
        let alive: Vec<_> =
            all()?.into_iter().filter(|one| !before.contains(one)).map(|one| named(&one)).collect();
        if !alive.is_empty() {
            bar.finish_and_clear();
            return Err(Failure::new(format!(
                "{} on the database: {}",
                if alive.len() == 1 { "a server still runs" } else { "servers still run" },
                alive.join("; ")
            ))
            .hint("stop all of them and run the same command again; nothing was changed"));
        }
    }
    bar.finish_and_clear();
    take_off(data, &before)?;
    Ok(())
}

fn named(one: &Heartbeat) -> String {
    let since = outlast_pki::time::rfc3339(one.started_ms.div_euclid(1000));
    format!("{} (process {}, started {since}, id {})", one.host, one.process, one.id)
}

fn take_off(data: &Data, dead: &[Heartbeat]) -> Result<(), Fault> {
    change(data, |work| dead.iter().try_for_each(|one| heartbeat::remove(work, &one.id)))
}

/// Commits a change that needs no event.
fn change(data: &Data, make: impl Fn(&mut Work<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
    data.change(|work| Ok((make(work)?, Vec::new())))
}
