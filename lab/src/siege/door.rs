//! The doors of a server.

/// The door that is attacked, which the good client uses, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// The APIs over TLS and TCP.
    Api,
    /// CRLs and OCSP over plain HTTP.
    Plain,
    /// The APIs over QUIC.
    Quic,
    /// `outlast proxy` in front of another server.
    Proxy,
}

impl Door {
    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Api => "HTTPS",
            Self::Plain => "plain HTTP",
            Self::Quic => "QUIC",
            Self::Proxy => "proxy",
        }
    }
}
