//! Where a connector connects to, and as whom.

use outlast_crypto::Secret;

/// Where a connector connects to, and as whom. There is no `Debug`: secrets are among it.
pub struct Endpoint {
    /// ARN of the connector.
    pub connector_arn: String,
    /// Host of `Url`: a name of DNS, or an address without brackets. Whether it may be reached is for `net` to decide.
    pub host: String,
    /// Port of `Url`.
    pub port: u16,
    /// `SecurityPolicyName`
    pub security_policy: String,
    /// `TrustedHostKeys`, each `type base64` without a comment. Empty if none was given: no server is trusted then.
    pub trusted_host_keys: Vec<String>,
    /// `Username` of the secret.
    pub user: String,
    /// `PrivateKey` of the secret: the text of a file, which OpenSSH or PEM may have written.
    pub private_key: Option<Secret>,
    /// `Password` of the secret.
    pub password: Option<Secret>,
    /// Connections that the job may have at a time: its share of `MaxConcurrentConnections`.
    pub max_connections: u32,
}

/// What a test of a connection learns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// The server's host key, as a line `type base64`.
    pub host_key: String,
}
