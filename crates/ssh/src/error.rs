//! Why a connection ends.

use std::borrow::Cow;

use crate::limits::MAX_TEXT_LEN;

/// Reason codes of `SSH_MSG_DISCONNECT` (RFC 4253, section 11.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// 1: the server does not serve this host.
    HostNotAllowed,
    /// 2: the peer broke the protocol.
    ProtocolError,
    /// 3: no common algorithm, or the exchange of keys failed.
    KeyExchangeFailed,
    /// 5: a packet did not authenticate.
    MacError,
    /// 7: the requested service does not exist.
    ServiceNotAvailable,
    /// 8: the peer speaks another version of SSH.
    VersionNotSupported,
    /// 9: the host key is not the expected one.
    HostKeyNotVerifiable,
    /// 10: the connection was lost, or took too long.
    ConnectionLost,
    /// 11: ended on purpose.
    ByApplication,
    /// 12: too many connections.
    TooManyConnections,
    /// 14: no authentication method is left.
    NoMoreAuthMethods,
    /// Another code, from the peer.
    Other(u32),
}

impl Reason {
    const CODES: [(u32, Self); 11] = [
        (1, Self::HostNotAllowed),
        (2, Self::ProtocolError),
        (3, Self::KeyExchangeFailed),
        (5, Self::MacError),
        (7, Self::ServiceNotAvailable),
        (8, Self::VersionNotSupported),
        (9, Self::HostKeyNotVerifiable),
        (10, Self::ConnectionLost),
        (11, Self::ByApplication),
        (12, Self::TooManyConnections),
        (14, Self::NoMoreAuthMethods),
    ];

    /// The number on the wire.
    pub fn code(self) -> u32 {
        match self {
            Self::Other(code) => code,
            known => {
                Self::CODES.iter().find(|(_, reason)| *reason == known).map_or(2, |(code, _)| *code)
            }
        }
    }

    pub(crate) fn from_code(code: u32) -> Self {
        Self::CODES.iter().find(|(known, _)| *known == code).map_or(Self::Other(code), |(_, r)| *r)
    }
}

/// What ended a connection at this side. Its text is sent to the peer and contains nothing that the peer did not send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Code of `SSH_MSG_DISCONNECT`.
    pub reason: Reason,
    /// A sentence for the peer and the log.
    pub message: Cow<'static, str>,
}

impl Error {
    pub(crate) const fn new(reason: Reason, message: &'static str) -> Self {
        Self { reason, message: Cow::Borrowed(message) }
    }

    pub(crate) const fn protocol(message: &'static str) -> Self {
        Self::new(Reason::ProtocolError, message)
    }

    pub(crate) const fn exchange(message: &'static str) -> Self {
        Self::new(Reason::KeyExchangeFailed, message)
    }

    /// The library failed: no entropy or no memory.
    pub(crate) const fn library() -> Self {
        Self::new(Reason::ByApplication, "the cryptographic library failed")
    }
}

/// The end of a connection, the last event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disconnected {
    /// Whether the peer sent `SSH_MSG_DISCONNECT`; otherwise this side ended the connection.
    pub by_peer: bool,
    /// Reason code.
    pub reason: Reason,
    /// Description, at most 256 characters; a peer's control characters are replaced.
    pub message: String,
}

impl Disconnected {
    pub(crate) fn by_peer(code: u32, message: &[u8]) -> Self {
        Self { by_peer: true, reason: Reason::from_code(code), message: printable(message) }
    }

    pub(crate) fn by_us(error: &Error) -> Self {
        Self { by_peer: false, reason: error.reason, message: error.message.clone().into_owned() }
    }
}

/// A peer's text for logs: UTF-8, no control characters, at most 256 characters.
pub(crate) fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * MAX_TEXT_LEN)]);
    let clean = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().take(MAX_TEXT_LEN).map(clean).collect()
}
