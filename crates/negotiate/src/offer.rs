//! What a ClientHello says (RFC 8446, section 4.1.2), read from the bytes before anything is chosen.

use serde::{Deserialize, Serialize};

/// Bytes of a ClientHello at most: more than any client sends (2 to 4 KiB with hybrids, 20 KiB with several shares).
pub const MAX_CLIENT_HELLO: usize = 64 * 1024;

/// How the handshake travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TLS records over TCP.
    Tcp,
    /// CRYPTO frames of QUIC.
    Quic,
}

/// What a client offers, in its order. Values without a meaning (GREASE, RFC 8701) are kept, since fingerprints and
/// bug reports want them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// How it came.
    pub transport: Transport,
    /// `supported_versions`, or the legacy version where there is none.
    pub versions: Vec<u16>,
    /// Cipher suites.
    pub suites: Vec<u16>,
    /// `supported_groups`
    pub groups: Vec<u16>,
    /// Groups of the key shares that were sent; `None` without the extension, as in TLS 1.2.
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
    /// Whether a session is to be resumed (`pre_shared_key`, or a ticket of TLS 1.2).
    pub resumes: bool,
}

/// What came so far of a ClientHello.
#[derive(Debug, PartialEq, Eq)]
pub enum Collected {
    /// The handshake message is whole, with its header of four bytes.
    Complete(Vec<u8>),
    /// More must come.
    Incomplete,
    /// It cannot become one.
    Malformed(OfferError),
}

/// Why bytes are no ClientHello.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// Not a TLS handshake record.
    #[error("the first record is not a handshake record of TLS")]
    Record,
    /// Another handshake message.
    #[error("the first message is not a ClientHello")]
    Message,
    /// Longer than [`MAX_CLIENT_HELLO`].
    #[error("the ClientHello is longer than {MAX_CLIENT_HELLO} bytes")]
    TooLong,
    /// A length inside does not fit.
    #[error("the ClientHello is malformed")]
    Malformed,
    /// An extension, a group or a share appears twice.
    #[error("the ClientHello repeats an extension or a key share")]
    Duplicate,
}

/// Puts the ClientHello together from TLS records (RFC 8446, section 5.1): it may be split at any byte.
pub fn collect(mut records: &[u8]) -> Collected {
    let mut message = Vec::new();
    loop {
        let wanted = match message.first_chunk::<4>() {
            Some([1, a, b, c]) => {
                let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
                if len > MAX_CLIENT_HELLO {
                    return Collected::Malformed(OfferError::TooLong);
                }
                Some(4 + len)
            }
            Some(_) => return Collected::Malformed(OfferError::Message),
            None => None,
        };
        if let Some(wanted) = wanted
            && message.len() >= wanted
        {
            message.truncate(wanted);
            return Collected::Complete(message);
        }
        match records {
            [22, 3, _, high, low, rest @ ..] => {
                let len = usize::from(u16::from_be_bytes([*high, *low]));
                if len == 0 || len > 1 << 14 {
                    return Collected::Malformed(OfferError::Record);
                }
                let Some(body) = rest.get(..len) else {
                    // What is there of the record tells already whether it can become one.
                    let first = message.first().or(rest.first());
                    return match first {
                        Some(1) | None => Collected::Incomplete,
                        Some(_) => Collected::Malformed(OfferError::Message),
                    };
                };
                message.extend_from_slice(body);
                records = rest.get(len..).unwrap_or_default();
            }
            [] | [22] | [22, 3] | [22, 3, _] | [22, 3, _, _] => return Collected::Incomplete,
            _ => return Collected::Malformed(OfferError::Record),
        }
    }
}

impl Offer {
    /// Reads a ClientHello with its header of four bytes: type and length.
    pub fn parse(message: &[u8], transport: Transport) -> Result<Self, OfferError> {
        let mut reader = Reader(message);
        if reader.u8()? != 1 {
            return Err(OfferError::Message);
        }
        let len = reader.u24()?;
        let mut body = Reader(reader.take(len)?);
        let legacy_version = body.u16()?;
        body.take(32)?;
        let session = body.u8()?.into();
        body.take(session)?;
        let suites = body.list()?;
        let compressions = body.u8()?.into();
        body.take(compressions)?;
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
        if !body.0.is_empty() {
            let len = body.u16()?.into();
            let mut extensions = Reader(body.take(len)?);
            while !extensions.0.is_empty() {
                let kind = extensions.u16()?;
                let len = extensions.u16()?.into();
                let content = Reader(extensions.take(len)?);
                if offer.extensions.contains(&kind) {
                    return Err(OfferError::Duplicate);
                }
                offer.extensions.push(kind);
                offer.extension(kind, content)?;
            }
        }
        if !body.0.is_empty() || !reader.0.is_empty() {
            return Err(OfferError::Malformed);
        }
        if offer.versions.is_empty() {
            offer.versions.push(legacy_version);
        }
        Ok(offer)
    }

    fn extension(&mut self, kind: u16, mut content: Reader<'_>) -> Result<(), OfferError> {
        match kind {
            0 => self.sni = content.server_name()?,
            10 => self.groups = content.list()?,
            13 => self.schemes = content.list()?,
            16 => self.protocols = content.protocols()?,
            35 => self.resumes |= !content.0.is_empty(),
            41 => self.resumes = true,
            43 => {
                let len = content.u8()?.into();
                self.versions = Reader(content.take(len)?).values()?;
            }
            50 => self.certificate_schemes = Some(content.list()?),
            51 => self.shares = Some(content.shares()?),
            _ => {}
        }
        Ok(())
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], OfferError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(OfferError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, OfferError> {
        self.take(1)?.first().copied().ok_or(OfferError::Malformed)
    }

    fn u16(&mut self) -> Result<u16, OfferError> {
        Ok(u16::from(self.u8()?) << 8 | u16::from(self.u8()?))
    }

    fn u24(&mut self) -> Result<usize, OfferError> {
        Ok(usize::from(self.u8()?) << 16 | usize::from(self.u16()?))
    }

    /// All that is left, as values of two bytes.
    fn values(mut self) -> Result<Vec<u16>, OfferError> {
        let mut out = Vec::with_capacity(self.0.len() / 2);
        while !self.0.is_empty() {
            out.push(self.u16()?);
        }
        Ok(out)
    }

    /// A length of two bytes and the values in it.
    fn list(&mut self) -> Result<Vec<u16>, OfferError> {
        let len = self.u16()?.into();
        Reader(self.take(len)?).values()
    }

    fn server_name(&mut self) -> Result<Option<String>, OfferError> {
        let len = self.u16()?.into();
        let mut names = Reader(self.take(len)?);
        while !names.0.is_empty() {
            let kind = names.u8()?;
            let len = names.u16()?.into();
            let name = names.take(len)?;
            if kind == 0 {
                return Ok(Some(name.escape_ascii().to_string()));
            }
        }
        Ok(None)
    }

    fn protocols(&mut self) -> Result<Vec<String>, OfferError> {
        let len = self.u16()?.into();
        let mut list = Reader(self.take(len)?);
        let mut out = Vec::new();
        while !list.0.is_empty() {
            let len = list.u8()?.into();
            out.push(list.take(len)?.escape_ascii().to_string());
        }
        Ok(out)
    }

    fn shares(&mut self) -> Result<Vec<u16>, OfferError> {
        let len = self.u16()?.into();
        let mut list = Reader(self.take(len)?);
        let mut out = Vec::new();
        while !list.0.is_empty() {
            let group = list.u16()?;
            let len = list.u16()?.into();
            list.take(len)?;
            if out.contains(&group) {
                return Err(OfferError::Duplicate);
            }
            out.push(group);
        }
        Ok(out)
    }
}
