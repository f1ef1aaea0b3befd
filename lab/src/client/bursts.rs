//! Bursts of requests through pools that close idle connections. Several pools take part in the same minute, with
//! shifted bursts, so that a disturbance affects all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use super::pool::Pool;
use super::{Caller, Ready, Target, micros};
use crate::error::LabError;

/// A pool with its timeout.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Idling {
    /// The way of calling.
    pub caller: Caller,
    /// Idle timeout of a connection, in microseconds.
    pub timeout_us: u64,
}

/// A job with bursts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bursts {
    /// The pools.
    pub pools: Vec<Idling>,
    /// Requests in a burst, all at once, each on its own thread.
    pub threads: usize,
    /// Bursts of each pool.
    pub bursts: u32,
    /// Interval between the bursts of a pool, in microseconds.
    pub period_us: u64,
    /// Seed for the time of each pool's bursts within the interval.
    pub seed: u64,
}

/// Results of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// For each burst, the time of each request in microseconds.
    pub bursts_us: Vec<Vec<u32>>,
    /// Connections that were opened.
    pub handshakes: u32,
}

pub(super) async fn run(targets: &[Target], bursts: &Bursts) -> Result<Vec<Served>, LabError> {
    let period = Duration::from_micros(bursts.period_us);
    let mut pools = Vec::new();
    for idling in &bursts.pools {
        let ready = Ready::new(targets, &idling.caller)?;
        ready.warm_up().await?;
        let timeout = Duration::from_micros(idling.timeout_us);
        pools.push(Arc::new(Pool::new(ready, bursts.threads, Some(timeout))));
    }
    let mut places: Vec<usize> = (0..pools.len()).collect();
    places.shuffle(&mut Pcg64Mcg::seed_from_u64(bursts.seed));
    let step = period / u32::try_from(pools.len().max(1)).unwrap_or(1);
    let start = Instant::now() + Duration::from_millis(10);
    let mut tasks = Vec::new();
    for (pool, place) in pools.into_iter().zip(places) {
        let first = start + step * u32::try_from(place).unwrap_or_default();
        let (threads, count) = (bursts.threads, bursts.bursts);
        tasks.push(tokio::spawn(one(pool, first, period, threads, count)));
    }
    let mut served = Vec::new();
    for task in tasks {
        served.push(task.await.map_err(LabError::failed)??);
    }
    Ok(served)
}

async fn one(
    pool: Arc<Pool>,
    first: Instant,
    period: Duration,
    threads: usize,
    count: u32,
) -> Result<Served, LabError> {
    let closing = pool.clone();
    let closer = tokio::spawn(async move {
        while let Some(again) = closing.close_idle().await {
            tokio::time::sleep(again).await;
        }
    });
    let mut bursts_us = Vec::new();
    for burst in 0..count {
        tokio::time::sleep_until((first + period * burst).into()).await;
        let requests: Vec<_> = (0..threads)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move {
                    let begun = Instant::now();
                    pool.request().await?;
                    Ok::<_, LabError>(micros(begun.elapsed()))
                })
            })
            .collect();
        let mut times = Vec::new();
        for request in requests {
            times.push(request.await.map_err(LabError::failed)??);
        }
        bursts_us.push(times);
    }
    closer.abort();
    pool.close().await;
    Ok(Served { bursts_us, handshakes: pool.opened() })
}
