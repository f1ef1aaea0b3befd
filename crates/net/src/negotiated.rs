//! Result of a handshake.

use outlast_api::audit::{ClientCertificate, TlsDetails};
use outlast_crypto::groups::Group;
use rustls::{CommonState, ProtocolVersion};

/// Kind of handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandshakeKind {
    /// One round trip.
    Full,
    /// With a HelloRetryRequest: one more round trip.
    FullWithHelloRetryRequest,
    /// Resumed from an earlier session.
    Resumed,
}

impl HandshakeKind {
    /// Name in audit records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::FullWithHelloRetryRequest => "full-with-hello-retry-request",
            Self::Resumed => "resumed",
        }
    }
}

/// Negotiated parameters of a connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Negotiated {
    /// `TLSv1.3`
    pub version: String,
    /// IANA name.
    pub cipher_suite: String,
    /// IANA name of the group; `None` when a TLS 1.2 session was resumed.
    pub group: Option<String>,
    /// Whether the group is hybrid or ML-KEM alone.
    pub post_quantum: bool,
    /// How the handshake went.
    pub handshake: HandshakeKind,
    /// The client's verified certificate; only a server knows it.
    #[serde(skip)]
    pub client_certificate: Option<ClientCertificate>,
}

impl Negotiated {
    /// Reads the parameters of a connection after its handshake.
    pub fn of(connection: &CommonState) -> Self {
        let code = connection.negotiated_key_exchange_group().map(|group| u16::from(group.name()));
        let row = code.and_then(Group::by_code_point);
        Self {
            version: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "TLSv1.3".into(),
                Some(ProtocolVersion::TLSv1_2) => "TLSv1.2".into(),
                other => format!("{other:?}"),
            },
            cipher_suite: connection
                .negotiated_cipher_suite()
                .and_then(|suite| suite.suite().as_str().map(iana_suite))
                .unwrap_or_default(),
            group: row
                .map(|row| row.name.to_owned())
                .or_else(|| code.map(|code| format!("0x{code:04x}"))),
            post_quantum: row.is_some_and(|row| row.strength.is_post_quantum()),
            handshake: match connection.handshake_kind() {
                Some(rustls::HandshakeKind::Resumed) => HandshakeKind::Resumed,
                Some(rustls::HandshakeKind::FullWithHelloRetryRequest) => {
                    HandshakeKind::FullWithHelloRetryRequest
                }
                _ => HandshakeKind::Full,
            },
            client_certificate: None,
        }
    }

    /// The same for an audit record.
    pub fn tls_details(&self) -> TlsDetails {
        TlsDetails {
            version: self.version.clone(),
            cipher_suite: self.cipher_suite.clone(),
            key_exchange: self.group.clone(),
            post_quantum: self.post_quantum,
            handshake: self.handshake.name(),
            client_certificate: self.client_certificate.clone(),
        }
    }
}

/// rustls writes `TLS13_AES_256_GCM_SHA384`, IANA `TLS_AES_256_GCM_SHA384`.
fn iana_suite(name: &str) -> String {
    name.replacen("TLS13_", "TLS_", 1)
}
