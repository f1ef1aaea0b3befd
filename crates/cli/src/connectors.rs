//! SFTP connectors, according to the settings.

use std::path::Path;
use std::sync::Arc;

use outlast_api::service::{Service, Sink};
use outlast_ledger::Observe;
use outlast_net::connectors::Connectors;
use outlast_net::metrics::{ConnectorCounts, Metrics};
use outlast_net::outbound::{Destinations, Outbound};
use outlast_net::server::system_clock;
use outlast_sftp::arrival::Inspector;

use crate::failure::Failure;
use crate::settings::{self, SftpUploads};
use crate::sftp::{self, SharedBuckets};
use crate::sftp_scan::{self, Scan};

/// Where connectors may connect to, and what decides about the files that they retrieve.
#[derive(Default)]
pub(crate) struct Chosen {
    destinations: Destinations,
    scan: Option<Arc<Scan>>,
}

/// Checks the settings.
pub(crate) fn choose(said: settings::Connectors, uploads: &SftpUploads) -> Result<Chosen, Failure> {
    let texts = said.destinations.unwrap_or_default();
    let destinations = Destinations::parse(texts.iter().map(String::as_str)).map_err(|error| {
        Failure::new(error.to_string())
            .hint("give hosts and networks, each with a port or for all ports")
            .about("connectors.destinations")
    })?;
    Ok(Chosen { destinations, scan: sftp_scan::choose(uploads)?.map(Arc::new) })
}

impl Chosen {
    /// What connects to servers outside, and reports that.
    pub(crate) fn outbound(
        &self,
        observer: Option<Arc<dyn Observe>>,
        metrics: Option<&Metrics>,
    ) -> Arc<Outbound> {
        let counts = ConnectorCounts::new(metrics);
        Arc::new(Outbound::new(self.destinations.clone(), system_clock, observer, counts))
    }

    /// What does the jobs.
    pub(crate) fn runner(
        self,
        service: Arc<Service>,
        outbound: Arc<Outbound>,
        buckets: &SharedBuckets,
        sink: Arc<dyn Sink>,
        data: &Path,
    ) -> Result<Connectors, Failure> {
        // What is retrieved appears whole, whatever is configured for the users of SFTP.
        let needs_folders = self.scan.is_some().then_some("sftp_uploads.scan");
        let storage = sftp::storage(buckets, data, true, needs_folders)?;
        let inspector = self.scan.map(|scan| scan as Arc<dyn Inspector>);
        Ok(Connectors::new(service, system_clock, outbound, storage, sink, inspector))
    }
}
