//! What is added to signatures once they are made: timestamps, and entries in the artifact log.

use std::time::Duration;

use outlast_net::policy::Policy;

use crate::artifact_log::Waiting;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::profile::Connection;
use crate::timestamping::{self, Client};
use crate::{output, shell};

/// What to add.
#[derive(clap::Args)]
pub(super) struct Additions {
    /// Enter each signature in the service's artifact log, and write the proof to FILE.tlog-proof. The log gets digests,
    /// nothing of the file.
    #[arg(long)]
    pub(super) log: bool,
    /// Enter the file's name, too; who can read the log can read it.
    #[arg(long, requires = "log")]
    pub(super) log_name: bool,
    /// Seconds to wait for the log's witnesses, if it has some, so that the proofs have their cosignatures.
    #[arg(long, requires = "log", value_name = "SECONDS", default_value_t = 60)]
    log_wait: u64,
    /// Put a timestamp of this time-stamping authority (RFC 3161), http:// or https://, into each signature; given several
    /// times, one of each.
    #[arg(long, value_name = "URL")]
    pub(super) timestamp: Vec<String>,
    #[command(flatten)]
    pub(super) timestamps: timestamping::Options,
}

impl Additions {
    /// The client of the time-stamping authorities, if some are named.
    pub(super) fn stamper(&self, connection: &Connection) -> Result<Option<Client>, Failure> {
        if self.timestamp.is_empty() {
            return Ok(None);
        }
        let ca_bundle = connection.reach()?.ca_bundle;
        Client::new(&self.timestamp, &self.timestamps, Some(&ca_bundle)).map(Some)
    }

    /// Waits for the cosignatures of proofs. Without them the proofs are there, and can be replaced later.
    pub(super) async fn cosigned(&self, connection: &Connection, waiting: Waiting) {
        let complete = async {
            let mut endpoint = Endpoint::new(connection.settings()?, &Policy::default())?;
            waiting.complete(&mut endpoint, Duration::from_secs(self.log_wait)).await
        };
        match complete.await {
            Ok(left) => {
                for path in left {
                    output::warning(&format!(
                        "{}: too few witnesses have cosigned the log yet; get a proof with their signatures later: outlast log \
                         proof {}",
                        path.display(),
                        shell::quoted(&path)
                    ));
                }
            }
            Err(failure) => {
                output::warning(&format!("the proofs have no cosignatures: {}", failure.message()));
            }
        }
    }
}
