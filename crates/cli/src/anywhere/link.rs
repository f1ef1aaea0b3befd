//! A connection to a service that is kept, for clients that sign their requests themselves.

use std::time::Duration;

use http::{Request, Response};
use outlast_net::Negotiated;
use outlast_net::client::{ClientError, Connection, Connector};
use outlast_net::policy::Policy;
use outlast_pki::pem;
use tokio::time::timeout;

use crate::endpoint::{address, client_failure, identity};
use crate::failure::Failure;
use crate::profile::Reach;
use crate::{files, tls};

/// A connection, reopened when it breaks.
pub(crate) struct Link {
    connector: Connector,
    authority: String,
    host: String,
    port: u16,
    region: String,
    requires: bool,
    connection: Option<Connection>,
}

/// Why there is no response.
pub(crate) enum LinkError {
    /// It did not come in time.
    Timeout,
    /// The connection failed.
    Client(ClientError),
}

impl Link {
    /// For a service, under a policy and a mode, `require` or `prefer`. Connects at the first request.
    pub(crate) fn new(
        reach: &Reach,
        policy: Option<&str>,
        mode: Option<&str>,
    ) -> Result<Self, Failure> {
        let (authority, host, port) = address(&reach.endpoint_url)?;
        let roots = pem::read_certificates(&files::read(&reach.ca_bundle, 4 << 20)?)
            .map_err(|error| Failure::file(&reach.ca_bundle, &error))?;
        let client = reach.client.as_ref().map(identity).transpose()?;
        let mode = mode.unwrap_or("require");
        let policy = Policy::of(&tls::rules(policy, Some(mode))?);
        let connector =
            Connector::with_identity(&policy, &roots, client.as_ref()).map_err(client_failure)?;
        let region = reach.region.clone();
        let requires = mode == "require";
        Ok(Self { connector, authority, host, port, region, requires, connection: None })
    }

    /// Host and port, as signed.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Region, as signed.
    pub(crate) fn region(&self) -> &str {
        &self.region
    }

    /// What was negotiated with the connection that is open.
    pub(crate) fn negotiated(&self) -> Option<&Negotiated> {
        self.connection.as_ref().map(|connection| &connection.negotiated)
    }

    /// Sends a request that may be sent twice. A connection that was kept may have been closed meanwhile: then a new
    /// one is opened.
    pub(crate) async fn send(
        &mut self,
        request: Request<Vec<u8>>,
        within: Duration,
    ) -> Result<Response<bytes::Bytes>, LinkError> {
        let attempts = async {
            if self.connection.is_some()
                && let Ok(response) = self.attempt(request.clone()).await
            {
                return Ok(response);
            }
            self.connection = None;
            self.attempt(request).await
        };
        let outcome = timeout(within, attempts).await;
        if outcome.as_ref().map_or(true, Result::is_err) {
            // Its answer may still come, and would be taken for that to the next request.
            self.connection = None;
        }
        outcome.map_err(|_| LinkError::Timeout)?.map_err(LinkError::Client)
    }

    async fn attempt(
        &mut self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<bytes::Bytes>, ClientError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let opened = self.connector.connect(&self.host, self.port).await?;
                none.insert(opened)
            }
        };
        connection.exchange(request).await
    }

    /// An error of the connection, with a hint.
    pub(crate) fn failure(&self, error: ClientError) -> Failure {
        let text = error.to_string();
        // rustls's texts for the alerts of RFC 8446, section 6.2.
        let is_classical = matches!(error, ClientError::Connect { .. })
            && (text.contains("HandshakeFailure") || text.contains("ProtocolVersion"));
        if self.requires && is_classical {
            return Failure::new(format!("{text}: it may have no post-quantum group"))
                .hint("--mode prefer, or mode = \"prefer\", takes a classical one, too");
        }
        client_failure(error)
    }
}
