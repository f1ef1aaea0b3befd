//! A pool of connections as HTTP clients have it, and requests at random times.
//!
//! The most recently used connection is taken first; when all are busy requests wait in order; a connection is opened
//! only while there are fewer than the pool allows: as in the pools of AWS's SDKs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outlast_net::client::Connection;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, mpsc};

use super::{Caller, Ready, Target, micros};
use crate::error::LabError;

/// A pool.
pub(super) struct Pool {
    ready: Ready,
    /// One permit for each connection that the pool allows.
    free: Semaphore,
    /// Idle connections, the most recently used one last.
    idle: Mutex<Vec<(Connection, Instant)>>,
    /// Idle timeout of a connection.
    idle_timeout: Option<Duration>,
    opened: AtomicU32,
}

impl Pool {
    pub(super) fn new(ready: Ready, limit: usize, idle_timeout: Option<Duration>) -> Self {
        Self {
            ready,
            free: Semaphore::new(limit),
            idle: Mutex::new(Vec::new()),
            idle_timeout,
            opened: AtomicU32::new(0),
        }
    }

    /// Makes one request.
    pub(super) async fn request(&self) -> Result<(), LabError> {
        let _permit = self.free.acquire().await.map_err(LabError::failed)?;
        let idle = self.lock().pop();
        let mut connection = match idle {
            Some((connection, _)) => connection,
            None => {
                self.opened.fetch_add(1, Ordering::Relaxed);
                self.ready.connect(false).await?
            }
        };
        self.ready.request(&mut connection).await?;
        self.lock().push((connection, Instant::now()));
        Ok(())
    }

    /// Closes connections that have been idle too long; to be called again after the returned time.
    pub(super) async fn close_idle(&self) -> Option<Duration> {
        let limit = self.idle_timeout?;
        let now = Instant::now();
        let (old, next) = {
            let mut idle = self.lock();
            let (old, young): (Vec<_>, Vec<_>) =
                idle.drain(..).partition(|(_, since)| now - *since >= limit);
            *idle = young;
            (old, idle.first().map(|(_, since)| *since + limit))
        };
        for (connection, _) in old {
            connection.close().await;
        }
        Some(next.map_or(limit / 10, |next| next.saturating_duration_since(now)))
    }

    /// Number of connections opened so far.
    pub(super) fn opened(&self) -> u32 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Closes all connections.
    pub(super) async fn close(&self) {
        let all = std::mem::take(&mut *self.lock());
        for (connection, _) in all {
            connection.close().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Connection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pool to be measured.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Size {
    /// The way of calling.
    pub caller: Caller,
    /// Most connections.
    pub connections: usize,
}

/// Pools to be measured one after the other, in this order, with the same arrivals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pools {
    /// The pools.
    pub pools: Vec<Size>,
    /// Average number of requests a second; they arrive independently of each other (a Poisson process).
    pub rate: f64,
    /// Duration of the arrivals.
    pub length_us: u64,
    /// Seed for the times of arrival.
    pub seed: u64,
}

/// Results of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Time from when each request was due to the end of its answer, in microseconds, in order of arrival.
    pub times_us: Vec<u32>,
    /// Number of connections opened.
    pub handshakes: u32,
}

/// Times of arrival, from the start.
pub(super) fn arrivals(rate: f64, length: Duration, seed: u64) -> Vec<Duration> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut arrivals = Vec::new();
    let mut at = 0.0;
    loop {
        at -= (1.0 - random.random::<f64>()).ln() / rate;
        // A rate of 0 gives none.
        if !at.is_finite() || at >= length.as_secs_f64() {
            return arrivals;
        }
        arrivals.push(Duration::from_secs_f64(at));
    }
}

pub(super) async fn run(targets: &[Target], pools: &Pools) -> Result<Vec<Served>, LabError> {
    let due = arrivals(pools.rate, Duration::from_micros(pools.length_us), pools.seed);
    let mut served = Vec::new();
    for size in &pools.pools {
        let ready = Ready::new(targets, &size.caller)?;
        ready.warm_up().await?;
        served.push(one(Arc::new(Pool::new(ready, size.connections, None)), &due).await?);
    }
    Ok(served)
}

async fn one(pool: Arc<Pool>, due: &[Duration]) -> Result<Served, LabError> {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let start = Instant::now() + Duration::from_millis(5);
    let times: Vec<Instant> = due.iter().map(|due| start + *due).collect();
    // The runtime's timers have a resolution of a millisecond; a sleeping thread's is about 50 microseconds.
    let pacer = std::thread::spawn(move || {
        for at in times {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if sender.send(at).is_err() {
                return;
            }
        }
    });
    let mut tasks = Vec::new();
    while let Some(at) = receiver.recv().await {
        let pool = pool.clone();
        tasks.push(tokio::spawn(async move {
            pool.request().await?;
            Ok::<_, LabError>(micros(at.elapsed()))
        }));
    }
    pacer.join().map_err(|_| LabError::failed("the pacer died"))?;
    let mut times_us = Vec::new();
    for task in tasks {
        times_us.push(task.await.map_err(LabError::failed)??);
    }
    pool.close().await;
    Ok(Served { times_us, handshakes: pool.opened() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_the_rate_and_repeat() {
        let minute = Duration::from_secs(60);
        let some = arrivals(200.0, minute, 7);
        assert_eq!(some, arrivals(200.0, minute, 7));
        assert_ne!(some, arrivals(200.0, minute, 8));
        assert!(some.is_sorted() && some.last().is_some_and(|last| *last < minute));
        // 12,000 with a standard deviation of 110.
        assert!((11_450..12_550).contains(&some.len()), "{}", some.len());
        // Independent: 36.8 % of the gaps are longer than the mean, 1/e.
        let mean = minute / u32::try_from(some.len()).unwrap();
        let long = some.windows(2).filter(|pair| pair[1] - pair[0] > mean).count();
        assert!((4_000..4_900).contains(&long), "{long}");
        assert!(arrivals(0.0, minute, 7).is_empty());
    }
}
