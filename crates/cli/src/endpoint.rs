//! A session with a service: one connection that is kept, and reopened when it breaks.

use std::path::PathBuf;

use outlast_api::aws::Operation;
use outlast_api::call::Run;
use outlast_api::client::{Client, ServiceError};
use outlast_api::wire::sigv4::Credentials;
use outlast_net::Negotiated;
use outlast_net::client::{ClientError, ClientIdentity, Connection, Connector, HandshakeBytes};
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::key_forms::PrivateKey;
use outlast_pki::{object, pem};

use crate::failure::Failure;
use crate::files;
use crate::profile::Settings;

/// An ordinary client of the AWS APIs.
pub(crate) struct Endpoint {
    client: Client,
    connector: Connector,
    host: String,
    port: u16,
    connection: Option<Connection>,
}

/// Why a call failed.
pub(crate) enum CallError {
    /// The service returned an error.
    Service(ServiceError),
    /// No answer came.
    Other(Failure),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Other(failure) => failure,
            CallError::Service(error) => {
                let hint = match error.code.as_str() {
                    "InvalidSignatureException" => {
                        Some("check the secret access key and this machine's clock")
                    }
                    "UnrecognizedClientException" => Some("check the access key id"),
                    "AccessDeniedException" if error.message.contains("have approved") => {
                        Some("ask for approval: outlast sign request FILE --key KEY")
                    }
                    "NotFoundException" => Some("check the key's name, account and region"),
                    _ => None,
                };
                let failure = Self::new(error.to_string());
                match hint {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
        }
    }
}

impl Endpoint {
    /// A session with these settings that offers the groups of `policy`. Connects at the first call.
    pub(crate) fn new(settings: Settings, policy: &Policy) -> Result<Self, Failure> {
        let (authority, host, port) = address(&settings.endpoint_url)?;
        let roots = pem::read_certificates(&files::read(&settings.ca_bundle, 4 << 20)?)
            .map_err(|error| Failure::file(&settings.ca_bundle, &error))?;
        let identity = settings.client.as_ref().map(identity).transpose()?;
        let connector =
            Connector::with_identity(policy, &roots, identity.as_ref()).map_err(client_failure)?;
        Ok(Self {
            host,
            port,
            connector,
            connection: None,
            client: Client {
                host: authority,
                region: settings.region,
                credentials: Credentials {
                    token: settings.token,
                    access_key_id: settings.access_key_id,
                    secret: settings.secret,
                },
            },
        })
    }

    /// Connects now, and reports what was negotiated and how long the handshake took.
    pub(crate) async fn connect(&mut self) -> Result<(Negotiated, HandshakeBytes), Failure> {
        let connection =
            self.connector.connect(&self.host, self.port).await.map_err(client_failure)?;
        let told = (connection.negotiated.clone(), connection.handshake);
        self.connection = Some(connection);
        Ok(told)
    }

    /// Calls an operation. If the server has closed the connection, it is reopened once.
    pub(crate) async fn call<O: Run>(&mut self, input: &O::Input) -> Result<O::Output, CallError> {
        let reused = self.connection.is_some();
        match self.attempt::<O>(input).await {
            // The server closes idle connections; a read-only call can be sent again.
            Err(CallError::Other(_)) if reused && O::READ_ONLY => self.attempt::<O>(input).await,
            other => other,
        }
    }

    async fn attempt<O: Operation>(&mut self, input: &O::Input) -> Result<O::Output, CallError> {
        if self.connection.is_none() {
            self.connect().await.map_err(CallError::Other)?;
        }
        let request = self
            .client
            .request::<O>(input, system_clock().div_euclid(1000))
            .map_err(|error| CallError::Other(Failure::new(error.message)))?;
        let Some(connection) = &mut self.connection else {
            return Err(CallError::Other(Failure::new("there is no connection")));
        };
        match connection.send(request).await {
            Ok((status, body)) => Client::response::<O>(status, &body).map_err(CallError::Service),
            Err(error) => {
                self.connection = None;
                Err(CallError::Other(client_failure(error)))
            }
        }
    }
}

/// Authority, host and port of an endpoint's URL.
pub(crate) fn address(url: &str) -> Result<(String, String, u16), Failure> {
    let wrong = || {
        Failure::new(format!("{url} is not an endpoint"))
            .hint("an endpoint looks like https://localhost:8443")
    };
    let authority = url.strip_prefix("https://").ok_or_else(wrong)?;
    let authority = authority.trim_end_matches('/');
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            (host, port.parse::<u16>().map_err(|_| wrong())?)
        }
        _ => (authority, 443),
    };
    if host.is_empty() || host.contains('/') {
        return Err(wrong());
    }
    Ok((authority.to_owned(), host.to_owned(), port))
}

/// Reads a client's certificate and key.
pub(crate) fn identity((certificate, key): &(PathBuf, PathBuf)) -> Result<ClientIdentity, Failure> {
    let chain = pem::read_certificates(&files::read(certificate, 4 << 20)?)
        .map_err(|error| Failure::file(certificate, &error))?;
    let wrong = |error: &dyn std::fmt::Display| Failure::file(key, error);
    let objects = object::read(&files::read(key, 1 << 20)?).map_err(|error| wrong(&error))?;
    let object = objects
        .iter()
        .find(|object| object.kind.is_bare_private_key())
        .ok_or_else(|| wrong(&"there is no unencrypted private key in it"))?;
    let pkcs8 = PrivateKey::read(object).and_then(|key| key.to_pkcs8());
    Ok(ClientIdentity { chain, key: pkcs8.map_err(|error| wrong(&error))? })
}

/// Errors of the connection, with hints.
pub(crate) fn client_failure(error: ClientError) -> Failure {
    let hint = match &error {
        ClientError::Connect { error, .. }
            if error.kind() == std::io::ErrorKind::ConnectionRefused =>
        {
            Some("is the server running? outlast server --data DIR")
        }
        ClientError::Connect { error, .. } if error.kind() == std::io::ErrorKind::InvalidData => {
            Some(if std::env::var_os("AWS_CA_BUNDLE").is_some() {
                "AWS_CA_BUNDLE is set and overrides the profile's ca_bundle; unset it"
            } else {
                "check that --ca-bundle is the ca.pem of this server's data folder"
            })
        }
        // rustls's texts for the alerts of RFC 8446, section 6.2.
        ClientError::Http(text) if text.contains("CertificateRequired") => Some(
            "the server asks for a client certificate: give --client-cert FILE --client-key FILE",
        ),
        ClientError::Http(text) if text.contains("CertificateRevoked") => {
            Some("the client certificate is revoked: get a new one")
        }
        _ => None,
    };
    let failure = Failure::new(error.to_string());
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
