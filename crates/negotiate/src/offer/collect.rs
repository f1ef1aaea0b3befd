//! Reassembles a ClientHello from TLS records (RFC 8446, section 5.1): it may be split at any byte.

use super::{MAX_CLIENT_HELLO, OfferError};

/// Result of reading a stream's beginning.
#[derive(Debug, PartialEq, Eq)]
pub enum Collected {
    /// The whole handshake message, with its header of four bytes.
    Complete(Vec<u8>),
    /// More bytes are needed.
    Incomplete,
    /// It is not a ClientHello.
    Malformed(OfferError),
}

/// Reads a ClientHello from the beginning of a stream.
pub fn collect(records: &[u8]) -> Collected {
    let mut collector = Collector::first();
    match collector.advance(records) {
        Ok(true) => Collected::Complete(collector.message),
        Ok(false) => Collected::Incomplete,
        Err(error) => Collected::Malformed(error),
    }
}

/// What may precede the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing: it is the first message of the connection.
    Nothing,
    /// It follows a HelloRetryRequest: a ChangeCipherSpec for middleboxes (RFC 8446, appendix D.4), and early data
    /// that was sent before its refusal was known (section 4.2.10), if it was announced.
    Retry { early_data: bool },
}

/// Collects a ClientHello; reads each byte once, in however many pieces they come.
#[derive(Debug)]
pub struct Collector {
    before: Before,
    message: Vec<u8>,
    /// Bytes of the input that have been read.
    at: usize,
    /// Handshake records so far.
    records: usize,
    /// Bytes left in the present record.
    left: usize,
    /// Whether the present record does not belong to the message.
    passing: bool,
    /// Records before the message.
    passed: Vec<u8>,
}

const HEADER: usize = 5;
/// RFC 8446, section 5.1: longest record; section 5.2: longest encrypted record.
const MAX_PLAINTEXT: usize = 1 << 14;
const MAX_CIPHERTEXT: usize = MAX_PLAINTEXT + 256;
/// Bytes of early data that are skipped: rustls skips no more.
const MAX_PASSED: usize = 2 * MAX_PLAINTEXT;

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

impl Collector {
    /// For the first ClientHello of a connection.
    pub fn first() -> Self {
        Self::new(Before::Nothing)
    }

    /// For the one that answers a HelloRetryRequest.
    pub fn second(early_data: bool) -> Self {
        Self::new(Before::Retry { early_data })
    }

    fn new(before: Before) -> Self {
        Self {
            before,
            message: Vec::new(),
            at: 0,
            records: 0,
            left: 0,
            passing: false,
            passed: Vec::new(),
        }
    }

    /// Continues with `input`: all that has been received, including what was read before. Returns whether the
    /// message is complete.
    pub fn advance(&mut self, input: &[u8]) -> Result<bool, OfferError> {
        loop {
            let rest = input.get(self.at..).unwrap_or_default();
            if self.left == 0 {
                let Some(header) = rest.first_chunk::<HEADER>() else { return Ok(false) };
                self.begin(*header)?;
                self.at += HEADER;
                continue;
            }
            let (body, _) = rest.split_at(self.left.min(rest.len()));
            if body.is_empty() {
                return Ok(false);
            }
            self.at += body.len();
            self.left -= body.len();
            if self.passing {
                self.passed.extend_from_slice(body);
                continue;
            }
            self.message.extend_from_slice(body);
            let Some(wanted) = self.wanted()? else { continue };
            if self.message.len() > wanted || (self.message.len() == wanted && self.left > 0) {
                // RFC 8446, section 5.1: messages must not span key changes, and keys change after this one.
                return Err(OfferError::Trailing);
            }
            if self.message.len() == wanted {
                return Ok(true);
            }
        }
    }

    /// The length of the whole message, once its header is there.
    fn wanted(&self) -> Result<Option<usize>, OfferError> {
        if self.message.first().is_some_and(|kind| *kind != 1) {
            return Err(OfferError::Message);
        }
        let Some([_, a, b, c]) = self.message.first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        if len > MAX_CLIENT_HELLO {
            return Err(OfferError::TooLong);
        }
        Ok(Some(4 + len))
    }

    fn begin(&mut self, header: [u8; HEADER]) -> Result<(), OfferError> {
        let [kind, major, _, high, low] = header;
        let len = usize::from(u16::from_be_bytes([high, low]));
        let is_first = self.before == Before::Nothing && self.records == 0;
        match kind {
            HANDSHAKE | CHANGE_CIPHER_SPEC | ALERT | APPLICATION_DATA if major != 3 => {
                return Err(OfferError::Version);
            }
            HANDSHAKE if len == 0 => return Err(OfferError::EmptyRecord),
            HANDSHAKE if len > MAX_PLAINTEXT => return Err(OfferError::Overflow),
            HANDSHAKE => {
                self.records += 1;
                self.passing = false;
            }
            ALERT if self.message.is_empty() => return Err(OfferError::Alert),
            CHANGE_CIPHER_SPEC | APPLICATION_DATA if self.may_pass(kind) && len > 0 => {
                let max = if kind == APPLICATION_DATA { MAX_CIPHERTEXT } else { 1 };
                if len > max || self.passed.len() + HEADER + len > MAX_PASSED {
                    return Err(OfferError::Overflow);
                }
                self.passing = true;
                self.passed.extend_from_slice(&header);
            }
            // RFC 6176, section 3: servers need not accept an SSL 2.0 CLIENT-HELLO. Its third byte is the message
            // type.
            0x80.. if is_first && header[2] == 1 => return Err(OfferError::SslV2),
            _ if is_first && HTTP.iter().any(|method| header.starts_with(method)) => {
                return Err(OfferError::Http);
            }
            _ => return Err(OfferError::Record),
        }
        self.left = len;
        Ok(())
    }

    fn may_pass(&self, kind: u8) -> bool {
        let Before::Retry { early_data } = self.before else { return false };
        // RFC 8446, section 5.1: no other records between those of one message.
        self.message.is_empty() && (kind == CHANGE_CIPHER_SPEC || early_data)
    }

    /// Whether the message came in one record, so that its bytes can be passed on unchanged.
    pub fn is_in_one_record(&self) -> bool {
        self.records == 1 && self.passed.is_empty()
    }

    /// Removes what has been read from the input, unless it can be passed on unchanged. The input is then the rest:
    /// with headers, a message in records of one byte is six times as long.
    pub fn trim(&mut self, input: &mut Vec<u8>) {
        if !self.is_in_one_record() {
            input.drain(..self.at.min(input.len()));
            self.at = 0;
        }
    }

    /// The message, complete or not.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// The message.
    pub fn into_message(self) -> Vec<u8> {
        self.message
    }

    /// What preceded the message, and then the message in as few records as possible.
    pub fn to_records(&self) -> Vec<u8> {
        let pieces = self.message.chunks(MAX_PLAINTEXT);
        let mut out = self.passed.clone();
        out.reserve(self.message.len() + pieces.len() * HEADER);
        for piece in pieces {
            let len = u16::try_from(piece.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&[HANDSHAKE, 3, 3]);
            out.extend_from_slice(&len.to_be_bytes());
            out.extend_from_slice(piece);
        }
        out
    }
}

/// Beginnings of HTTP requests.
const HTTP: &[&[u8]] = &[
    b"GET /", b"POST ", b"PUT /", b"HEAD ", b"DELET", b"OPTIO", b"PATCH", b"CONNE", b"TRACE",
    b"PRI *",
];
