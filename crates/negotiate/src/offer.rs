//! The contents of a ClientHello (RFC 8446, section 4.1.2), parsed from the bytes before anything is chosen.

mod collect;
mod reader;
mod second;

use rustls::pki_types::ServerName;
use serde::{Deserialize, Serialize};

pub use collect::{Collected, Collector, collect};
use reader::{Reader, Seen};
pub use second::check_second;

/// Longest ClientHello in bytes: more than any client sends (2 to 4 KiB with hybrids, 20 KiB with several shares),
/// and less than rustls's limit of 65,535, which includes the headers of records.
pub const MAX_CLIENT_HELLO: usize = 60 * 1024;

/// Transport of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TLS records over TCP.
    Tcp,
    /// CRYPTO frames of QUIC.
    Quic,
}

/// A client's offer, in its order. Meaningless values (GREASE, RFC 8701) are kept, since fingerprints and bug reports
/// need them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Offer {
    /// Transport.
    pub transport: Transport,
    /// `supported_versions`, or the legacy version without it.
    pub versions: Vec<u16>,
    /// Cipher suites.
    pub suites: Vec<u16>,
    /// `supported_groups`
    pub groups: Vec<u16>,
    /// Groups of the key shares; `None` without the extension, as in TLS 1.2.
    pub shares: Option<Vec<u16>>,
    /// `signature_algorithms`
    pub schemes: Vec<u16>,
    /// `signature_algorithms_cert`, if sent.
    pub certificate_schemes: Option<Vec<u16>>,
    /// Server name.
    pub sni: Option<String>,
    /// ALPN names; bytes that are not text are escaped.
    pub protocols: Vec<String>,
    /// All extensions, in order.
    pub extensions: Vec<u16>,
    /// Whether it resumes a session (`pre_shared_key`, or a ticket of TLS 1.2).
    pub resumes: bool,
}

/// Why bytes are not a ClientHello, or not one that may be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// Not a TLS handshake record.
    #[error("the first record is not a handshake record of TLS")]
    Record,
    /// A record of neither TLS nor SSL 3.
    #[error("the record has no version of TLS")]
    Version,
    /// SSL 2.0.
    #[error("the ClientHello is in the format of SSL 2.0")]
    SslV2,
    /// HTTP without TLS.
    #[error("this is a plain HTTP request")]
    Http,
    /// An empty handshake record.
    #[error("a handshake record is empty")]
    EmptyRecord,
    /// A record that is too long, or too many records.
    #[error("a record is too long")]
    Overflow,
    /// An alert from the client.
    #[error("the client sent an alert")]
    Alert,
    /// Another handshake message.
    #[error("the first message is not a ClientHello")]
    Message,
    /// More data in the same record.
    #[error("something follows the ClientHello in its record")]
    Trailing,
    /// Longer than [`MAX_CLIENT_HELLO`].
    #[error("the ClientHello is longer than {MAX_CLIENT_HELLO} bytes")]
    TooLong,
    /// A length inside is wrong.
    #[error("the ClientHello is malformed")]
    Malformed,
    /// An extension, a group or a share occurs twice.
    #[error("the ClientHello repeats an extension or a key share")]
    Duplicate,
    /// Contents that are forbidden.
    #[error("the ClientHello has {0}")]
    Illegal(&'static str),
    /// Contents that TLS 1.3 requires are missing.
    #[error("the ClientHello offers TLS 1.3 without {0}")]
    Missing(&'static str),
    /// The ClientHello after a HelloRetryRequest differs.
    #[error("the second ClientHello has a forbidden change: {0}")]
    Changed(&'static str),
}

impl OfferError {
    /// The alert for the answer (RFC 8446, section 6.2); `None` if the peer could not read one.
    pub fn alert(self) -> Option<u8> {
        match self {
            Self::Http | Self::Alert => None,
            // unexpected_message; for empty records see section 5.4.
            Self::Record | Self::Message | Self::EmptyRecord | Self::Trailing => Some(10),
            // record_overflow: section 5.1.
            Self::Overflow => Some(22),
            // illegal_parameter
            Self::TooLong | Self::Duplicate | Self::Illegal(_) | Self::Changed(_) => Some(47),
            // decode_error
            Self::Malformed => Some(50),
            // protocol_version
            Self::Version | Self::SslV2 => Some(70),
            // missing_extension: section 9.2.
            Self::Missing(_) => Some(109),
        }
    }
}

const SERVER_NAME: u16 = 0;
const SUPPORTED_GROUPS: u16 = 10;
const SIGNATURE_ALGORITHMS: u16 = 13;
const PROTOCOLS: u16 = 16;
const SESSION_TICKET: u16 = 35;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
pub(crate) const SUPPORTED_VERSIONS: u16 = 43;
const COOKIE: u16 = 44;
const PSK_KEY_EXCHANGE_MODES: u16 = 45;
const SIGNATURE_ALGORITHMS_CERT: u16 = 50;
const KEY_SHARE: u16 = 51;

impl Offer {
    /// Parses a ClientHello with its header of four bytes: type and length.
    pub fn parse(message: &[u8], transport: Transport) -> Result<Self, OfferError> {
        let mut reader = Reader(message);
        if reader.u8()? != 1 {
            return Err(OfferError::Message);
        }
        let len = reader.u24()?;
        let mut body = Reader(reader.take(len)?);
        reader.finish()?;
        let legacy_version = body.u16()?;
        body.take(32)?;
        if body.vector8()?.0.len() > 32 {
            return Err(OfferError::Malformed);
        }
        let suites = body.vector16()?.values()?;
        let compressions = body.vector8()?.0;
        if compressions.is_empty() {
            return Err(OfferError::Malformed);
        }
        let mut offer = Self {
            transport,
            versions: Vec::new(),
            suites,
            groups: Vec::new(),
            shares: None,
            schemes: Vec::new(),
            certificate_schemes: None,
            sni: None,
            protocols: Vec::new(),
            extensions: Vec::new(),
            resumes: false,
        };
        if !body.is_empty() {
            offer.extensions(body.vector16()?)?;
            body.finish()?;
        }
        if offer.versions.is_empty() {
            offer.versions.push(legacy_version);
        }
        offer.check(compressions)?;
        Ok(offer)
    }

    fn extensions(&mut self, mut list: Reader<'_>) -> Result<(), OfferError> {
        let mut seen = Seen::new();
        while !list.is_empty() {
            let kind = list.u16()?;
            let mut content = list.vector16()?;
            if !seen.insert(kind) {
                return Err(OfferError::Duplicate);
            }
            self.extensions.push(kind);
            self.extension(kind, &mut content)?;
            if kind == PRE_SHARED_KEY && !list.is_empty() {
                // RFC 8446, section 4.2.11.
                return Err(OfferError::Illegal("something after pre_shared_key"));
            }
        }
        Ok(())
    }

    fn extension(&mut self, kind: u16, content: &mut Reader<'_>) -> Result<(), OfferError> {
        match kind {
            SERVER_NAME => self.sni = server_name(content)?,
            SUPPORTED_GROUPS => self.groups = content.vector16()?.values()?,
            SIGNATURE_ALGORITHMS => self.schemes = content.vector16()?.values()?,
            PROTOCOLS => self.protocols = protocols(content)?,
            SESSION_TICKET => {
                self.resumes |= !content.is_empty();
                return Ok(());
            }
            PRE_SHARED_KEY => {
                self.resumes = true;
                return Ok(());
            }
            SUPPORTED_VERSIONS => self.versions = content.vector8()?.values()?,
            SIGNATURE_ALGORITHMS_CERT => {
                self.certificate_schemes = Some(content.vector16()?.values()?);
            }
            KEY_SHARE => self.shares = Some(shares(content)?),
            EARLY_DATA => {}
            _ => return Ok(()),
        }
        content.finish()
    }

    /// Checks the parts together.
    fn check(&self, compressions: &[u8]) -> Result<(), OfferError> {
        let has = |kind: u16| self.extensions.contains(&kind);
        if !compressions.contains(&0) {
            return Err(OfferError::Illegal("no null compression method"));
        }
        if !(has(SUPPORTED_VERSIONS) && self.versions.contains(&0x0304)) {
            return Ok(());
        }
        // RFC 8446, section 4.1.2.
        if compressions != [0] {
            return Err(OfferError::Illegal("compression"));
        }
        // RFC 8446, section 9.2.
        if has(SUPPORTED_GROUPS) != has(KEY_SHARE) {
            return Err(OfferError::Missing("one of supported_groups and key_share"));
        }
        if has(PRE_SHARED_KEY) {
            // Section 4.2.9.
            if !has(PSK_KEY_EXCHANGE_MODES) {
                return Err(OfferError::Missing("psk_key_exchange_modes"));
            }
        } else if !has(SIGNATURE_ALGORITHMS) || !has(SUPPORTED_GROUPS) {
            return Err(OfferError::Missing("signature_algorithms or supported_groups"));
        }
        // Section 4.2.8: no shares for groups that are not offered.
        if let Some(shares) = &self.shares {
            let mut named = Seen::new();
            self.groups.iter().for_each(|group| {
                named.insert(*group);
            });
            if shares.iter().any(|share| !named.contains(*share)) {
                return Err(OfferError::Illegal("a share of a group that it does not offer"));
            }
        }
        Ok(())
    }

    /// Whether early data is announced.
    pub fn has_early_data(&self) -> bool {
        self.extensions.contains(&EARLY_DATA)
    }
}

/// RFC 6066, section 3: one host name. An IP address is not allowed, but some clients send one; it is ignored.
fn server_name(content: &mut Reader<'_>) -> Result<Option<String>, OfferError> {
    let mut names = content.filled16()?;
    let mut found = None;
    while !names.is_empty() {
        if names.u8()? != 0 {
            // The length of a name of another type is unknown.
            break;
        }
        let name = names.filled16()?.0;
        if found.is_some() {
            return Err(OfferError::Malformed);
        }
        if ServerName::try_from(name).is_err() {
            return Err(OfferError::Illegal("an invalid server name"));
        }
        found = Some(name.escape_ascii().to_string());
    }
    found.map(Some).ok_or(OfferError::Illegal("an invalid server name"))
}

fn protocols(content: &mut Reader<'_>) -> Result<Vec<String>, OfferError> {
    let mut list = content.filled16()?;
    let mut out = Vec::with_capacity(4);
    while !list.is_empty() {
        let name = list.vector8()?.0;
        if name.is_empty() {
            return Err(OfferError::Malformed);
        }
        out.push(name.escape_ascii().to_string());
    }
    Ok(out)
}

fn shares(content: &mut Reader<'_>) -> Result<Vec<u16>, OfferError> {
    let mut list = content.vector16()?;
    let mut out = Vec::with_capacity(4);
    let mut seen = None;
    while !list.is_empty() {
        let group = list.u16()?;
        list.filled16()?;
        if !seen.get_or_insert_with(Seen::new).insert(group) {
            return Err(OfferError::Duplicate);
        }
        out.push(group);
    }
    Ok(out)
}
