//! What connections of one listener, or of one connector, share.

use std::sync::Arc;

use crate::algorithms::{Algorithms, USER_KEYS};
use crate::certificate::Certificate;
use crate::limits::Limits;
use crate::private_key::PrivateKey;

/// A host key, with the certificate that an SSH authority issued for it, if there is one.
pub struct HostKey {
    /// The key.
    pub key: Arc<PrivateKey>,
    /// Its host certificate. It is offered beside the key itself.
    pub certificate: Option<Certificate>,
}

impl From<PrivateKey> for HostKey {
    fn from(key: PrivateKey) -> Self {
        Self { key: Arc::new(key), certificate: None }
    }
}

/// What the connections of a listener share.
pub struct ServerConfig {
    /// Software name and version in the identification string, without spaces (RFC 4253, section 4.2).
    pub software: String,
    /// What the server allows, the preferred first.
    pub algorithms: Algorithms,
    /// Key exchange methods that a client gets in any case if it offers one of them, whatever its own order: they are the
    /// server's whole list then, which is sent after the client's. Empty if the client's order decides.
    pub preferred: Vec<&'static str>,
    /// Host keys that exchanges are signed with.
    pub host_keys: Vec<HostKey>,
    /// Host keys that clients are told of, and that the server proves to have, before it uses them.
    pub next_host_keys: Vec<Arc<PrivateKey>>,
    /// Signature algorithms of users' keys, the preferred first: names of [`USER_KEYS`].
    pub user_keys: Vec<&'static str>,
    /// Authentication methods that a refused client is told of: `publickey`, `password`, `keyboard-interactive`.
    pub methods: Vec<&'static str>,
    /// Text that clients show before they authenticate.
    pub banner: Option<String>,
    /// Limits.
    pub limits: Limits,
}

impl ServerConfig {
    /// Public keys only, everything that this crate supports, and default limits.
    pub fn new(host_keys: Vec<HostKey>) -> Self {
        Self {
            software: concat!("Outlast_", env!("CARGO_PKG_VERSION")).to_owned(),
            algorithms: Algorithms::all(),
            preferred: Vec::new(),
            host_keys,
            next_host_keys: Vec::new(),
            user_keys: USER_KEYS.to_vec(),
            methods: vec!["publickey"],
            banner: None,
            limits: Limits::default(),
        }
    }
}

/// What the connections of a connector share.
pub struct ClientConfig {
    /// Software name and version in the identification string, without spaces.
    pub software: String,
    /// What the client offers, the preferred first.
    pub algorithms: Algorithms,
    /// Whether certificates of hosts are asked for, before plain keys: for who trusts an SSH authority.
    pub host_certificates: bool,
    /// Limits.
    pub limits: Limits,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            software: concat!("Outlast_", env!("CARGO_PKG_VERSION")).to_owned(),
            algorithms: Algorithms::all(),
            host_certificates: false,
            limits: Limits::default(),
        }
    }
}
