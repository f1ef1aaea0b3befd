//! Errands of calls of the API: what an operation has to ask somebody outside before it can answer.

use std::sync::Arc;

use outlast_api::outside::{ConnectionFailure, Errand, Reply};
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
}

impl Errands {
    /// Asks these identity providers, and connects through `outbound`.
    pub fn new(providers: Arc<Providers>, outbound: Arc<Outbound>) -> Self {
        let room = || Semaphore::new(limits::MAX_ERRANDS);
        Self { providers, outbound, room: room(), connections: room() }
    }

    /// Runs an errand, for [`limits::SFTP_PROVIDER`] or [`limits::OUTBOUND_TEST`] at most.
    pub async fn run(&self, errand: Errand) -> Reply {
        let room = match &errand {
            Errand::Provider(_) => &self.room,
            Errand::Connection(_) => &self.connections,
        };
        let room = room.try_acquire();
        match errand {
            Errand::Provider(_) if room.is_err() => {
                Reply::Provider(Err("too many others are being asked; try again".to_owned()))
            }
            Errand::Connection(_) if room.is_err() => Reply::Connection(Err(ConnectionFailure {
                message: "too many connections are being tested; try again".to_owned(),
                host_key: None,
            })),
            Errand::Connection(endpoint) => Reply::Connection(self.outbound.test(&endpoint).await),
            Errand::Provider(question) => {
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
