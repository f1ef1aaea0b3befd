//! Health checks of the backends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use tokio::time::timeout;

use super::backend::{Backends, Target};
use super::protocol::Announcement;
use crate::exchange::over;

/// How to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// Path that must return a status from 200 to 399 over HTTP; without it an accepted connection suffices.
    pub path: Option<String>,
    /// Value of `Host` in that request; the backend's own name by default.
    pub host: Option<String>,
    /// Time between two checks.
    pub interval: Duration,
    /// Time limit for a response.
    pub timeout: Duration,
    /// Consecutive successes after which a backend is healthy again.
    pub rise: u32,
    /// Consecutive failures after which it is unhealthy.
    pub fall: u32,
}

impl Default for HealthCheck {
    fn default() -> Self {
        Self {
            path: None,
            host: None,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            rise: 2,
            fall: 3,
        }
    }
}

/// Counts consecutive results that contradict the known state.
#[derive(Debug, Default)]
struct Count(u32);

impl Count {
    /// Whether the known state changes.
    fn changes(&mut self, check: &HealthCheck, known: bool, answer: bool) -> bool {
        if known == answer {
            self.0 = 0;
            return false;
        }
        self.0 += 1;
        if self.0 < if answer { check.rise } else { check.fall } {
            return false;
        }
        self.0 = 0;
        true
    }
}

/// Checks one backend again and again. Never ends.
pub(crate) async fn watch(
    backends: Arc<Backends>,
    target: Arc<Target>,
    check: HealthCheck,
    listener: String,
) {
    let mut count = Count::default();
    loop {
        let answer = timeout(check.timeout, ask(&backends, &target, &check)).await;
        let answer = answer.unwrap_or_else(|_| Err("there was no answer in time".into()));
        let known = target.well.load(Ordering::Relaxed);
        if count.changes(&check, known, answer.is_ok()) {
            target.well.store(answer.is_ok(), Ordering::Relaxed);
            let address = &target.backend.address;
            match answer {
                Ok(()) => tracing::info!(listener, %address, "a backend server is healthy again"),
                Err(reason) => {
                    tracing::warn!(listener, %address, reason, "a backend server is not healthy");
                }
            }
        }
        tokio::time::sleep(check.interval).await;
    }
}

async fn ask(backends: &Backends, target: &Target, check: &HealthCheck) -> Result<(), String> {
    // Without addresses, a PROXY protocol header means that the proxy itself connects.
    let itself = Announcement::default();
    let connecting = backends.connect_to(target, &itself);
    let stream = connecting.await.map_err(|error| error.to_string())?;
    let Some(path) = &check.path else { return Ok(()) };
    let host = check.host.clone().unwrap_or_else(|| match &target.backend.address {
        super::Address::Unix(_) => "localhost".into(),
        address @ super::Address::Tcp(..) => address.to_string(),
    });
    let request = Request::get(path.as_str())
        .header(http::header::HOST, host)
        .header(http::header::USER_AGENT, "outlast-health")
        .header(http::header::CONNECTION, "close")
        .body(Bytes::new())
        .map_err(|error| error.to_string())?;
    let response = over(stream, request, |_| 0).await.map_err(|error| error.to_string())?;
    match response.status() {
        status if status.is_success() || status.is_redirection() => Ok(()),
        status => Err(format!("it answered {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_answers_in_a_row() {
        let check = HealthCheck { rise: 2, fall: 3, ..HealthCheck::default() };
        let mut count = Count::default();
        let mut known = true;
        let mut story = String::new();
        for answer in "xx.xxxx.x.x..".chars() {
            if count.changes(&check, known, answer == '.') {
                known = !known;
            }
            story.push(if known { '.' } else { 'x' });
        }
        assert_eq!(story, ".....xxxxxxx.");
    }
}
