//! Errands of calls of the API: what an operation has to ask somebody outside before it can answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_api::outside::{Errand, Reply};
use tokio::sync::Semaphore;

use crate::limits;
use crate::outbound::Outbound;
use crate::providers::Providers;

/// Runs errands, [`limits::MAX_ERRANDS`] of each kind at a time.
pub struct Errands {
    providers: Arc<Providers>,
    outbound: Arc<Outbound>,
    room: Semaphore,
    /// Servers of connectors may take their time, and others must not wait for them.
    connections: Semaphore,
    /// Tests under way by account.
    tests: Mutex<HashMap<String, usize>>,
}

/// One of the tests of an account.
struct Test<'a> {
    all: &'a Mutex<HashMap<String, usize>>,
    account: String,
}

impl<'a> Test<'a> {
    /// Nothing if the account has as many as it may.
    fn begin(all: &'a Mutex<HashMap<String, usize>>, arn: &str) -> Option<Self> {
        let account = arn.split(':').nth(4).unwrap_or_default().to_owned();
        let mut counts = all.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(account.clone()).or_default();
        if *count >= limits::MAX_TESTS_OF_ACCOUNT {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Self { all, account })
    }
}

impl Drop for Test<'_> {
    fn drop(&mut self) {
        let mut counts = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.account);
            }
        }
    }
}

impl Errands {
    /// Asks these identity providers, and connects through `outbound`.
    pub fn new(providers: Arc<Providers>, outbound: Arc<Outbound>) -> Self {
        let room = || Semaphore::new(limits::MAX_ERRANDS);
        Self { providers, outbound, room: room(), connections: room(), tests: Mutex::default() }
    }

    /// Runs an errand, for [`limits::SFTP_PROVIDER`] or [`limits::OUTBOUND_TEST`] at most.
    pub async fn run(&self, errand: Errand) -> Reply {
        let (room, arn) = match &errand {
            Errand::Provider { server_arn, .. } => (&self.room, server_arn),
            Errand::Connection(endpoint) => (&self.connections, &endpoint.connector_arn),
        };
        let room = room.try_acquire().ok();
        let test = room.and_then(|room| Some((room, Test::begin(&self.tests, arn)?)));
        let Some(_test) = test else { return Reply::Busy };
        match errand {
            Errand::Connection(endpoint) => Reply::Connection(self.outbound.test(&endpoint).await),
            Errand::Provider { question, .. } => {
                Reply::Provider(self.providers.fetch(&question).await.map_err(|error| {
                    // What the network says about an address is for the operator, who may see it, not for the caller.
                    tracing::warn!(error, "an identity provider could not be asked for a test");
                    "it could not be reached, or did not answer; the server's log has the reason"
                        .to_owned()
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use outlast_crypto::Secret;
    use outlast_domain::transfer::connector::Endpoint;

    use super::*;
    use crate::clock::system_clock;
    use crate::metrics::ConnectorCounts;
    use crate::outbound::Destinations;

    #[test]
    fn an_account_has_few_tests_at_a_time() {
        let all = Mutex::default();
        let of = |account: &str| {
            Test::begin(&all, &format!("arn:aws:transfer:us-east-1:{account}:connector/c-1"))
        };
        let first: Vec<_> = (0..limits::MAX_TESTS_OF_ACCOUNT).map(|_| of("1").unwrap()).collect();
        assert!(of("1").is_none() && of("2").is_some());
        drop(first);
        assert!(of("1").is_some() && all.lock().unwrap().is_empty());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn more_tests_than_an_account_has_are_not_begun() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let destinations = Destinations::parse(["127.0.0.1"]).unwrap();
        let counts = ConnectorCounts::new(None);
        let outbound = Outbound::new(destinations, system_clock, None, counts);
        let errands = Arc::new(Errands::new(Arc::default(), Arc::new(outbound)));
        let errand = |account: &str| {
            Errand::Connection(Box::new(Endpoint {
                connector_arn: format!("arn:aws:transfer:us-east-1:{account}:connector/c-1"),
                host: "127.0.0.1".to_owned(),
                port,
                security_policy: "2026-11".to_owned(),
                trusted_host_keys: Vec::new(),
                user: "alice".to_owned(),
                private_key: None,
                password: Some(Secret::new(b"password".to_vec())),
                max_connections: 1,
            }))
        };
        let running: Vec<_> = (0..limits::MAX_TESTS_OF_ACCOUNT)
            .map(|_| {
                let (errands, errand) = (errands.clone(), errand("1"));
                tokio::spawn(async move { errands.run(errand).await })
            })
            .collect();
        outlast_testing::until("tests run", || {
            errands.tests.lock().unwrap().get("1") == Some(&limits::MAX_TESTS_OF_ACCOUNT)
        });
        assert!(matches!(errands.run(errand("1")).await, Reply::Busy));
        for one in running {
            one.abort();
        }
        outlast_testing::until("tests end", || errands.tests.lock().unwrap().is_empty());
    }
}
