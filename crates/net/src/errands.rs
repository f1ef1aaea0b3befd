//! Errands of calls of the API: what an operation has to ask somebody outside before it can answer.

use std::sync::Arc;

use outlast_api::outside::{Errand, Reply};
use tokio::sync::Semaphore;

use crate::limits;
use crate::providers::Providers;

/// Runs errands, [`limits::MAX_ERRANDS`] at a time.
pub struct Errands {
    providers: Arc<Providers>,
    room: Semaphore,
}

impl Errands {
    /// Asks these identity providers.
    pub fn new(providers: Arc<Providers>) -> Self {
        Self { providers, room: Semaphore::new(limits::MAX_ERRANDS) }
    }

    /// Runs an errand, for [`limits::SFTP_PROVIDER`] at most.
    pub async fn run(&self, errand: Errand) -> Reply {
        let room = self.room.try_acquire();
        match errand {
            Errand::Provider(_) if room.is_err() => {
                Reply::Provider(Err("too many others are being asked; try again".to_owned()))
            }
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
