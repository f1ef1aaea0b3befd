//! Buffers of a connection, and packets in them (RFC 4253, section 6).

use std::ops::Range;

use bytes::BufMut;
use bytes::buf::Limit;

use crate::cipher::{Keys, LENGTH_LEN};
use crate::error::Error;
use crate::limits::{MAX_EARLY_PACKET_LEN, MAX_PACKET_LEN};

/// Empty buffers keep at most this many bytes after [`Buffer::rest`].
const IDLE_CAPACITY: usize = 32 * 1024;
/// Empty buffers keep at most this many bytes before: those of a busy connection are filled again at once.
const BUSY_CAPACITY: usize = 1024 * 1024;

/// Bytes that come in at the back and go out at the front.
#[derive(Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether something was dropped at the front of what there is: the rest may have to be copied before more is appended.
    pub(crate) fn is_begun(&self) -> bool {
        self.start > 0
    }

    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        // Small buffers do not double: there are many connections that are not authenticated.
        if self.bytes.len() + bytes.len() <= IDLE_CAPACITY {
            self.bytes.reserve_exact(bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Room for so many bytes at the back.
    pub(crate) fn spare(&mut self, len: usize) -> Limit<&mut Vec<u8>> {
        self.make_room(len);
        self.bytes.reserve(len);
        (&mut self.bytes).limit(len)
    }

    /// Gives up what was dropped at the front, if more bytes would not fit otherwise.
    fn make_room(&mut self, len: usize) {
        if self.start > 0 && self.bytes.len() + len > self.bytes.capacity() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// Drops bytes at the front; at most those that there are.
    pub(crate) fn drop_front(&mut self, len: usize) {
        self.start += len.min(self.len());
        if self.is_empty() {
            self.start = 0;
            self.bytes.clear();
            if self.bytes.capacity() > BUSY_CAPACITY {
                self.bytes = Vec::new();
            }
        }
    }

    /// Gives memory up that an idle connection does not need.
    pub(crate) fn rest(&mut self) {
        if self.is_empty() && self.bytes.capacity() > IDLE_CAPACITY {
            self.bytes = Vec::new();
        }
    }

    /// The bytes, to append more. What was dropped at the front is given up once it is the larger part.
    pub(crate) fn vec(&mut self) -> &mut Vec<u8> {
        if self.start > IDLE_CAPACITY && self.start >= self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        &mut self.bytes
    }
}

/// Where a packet's payload is in the input, and how long the packet is.
pub(crate) struct Opened {
    pub(crate) payload: Range<usize>,
    pub(crate) packet_len: usize,
}

/// One direction in which packets come.
pub(crate) struct Receiver {
    pub(crate) keys: Keys,
    pub(crate) sequence: u32,
    /// `packet_length` of the packet at the front of the input, once it is known.
    length: Option<usize>,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Self { keys: Keys::None, sequence: 0, length: None }
    }

    /// Opens the packet at the front of the input, if all of it is there. Its sequence number is the one before
    /// [`Receiver::sequence`] then.
    pub(crate) fn open(&mut self, input: &mut [u8], early: bool) -> Result<Option<Opened>, Error> {
        let length = match self.length {
            Some(length) => length,
            None => {
                let Some(head) = input.get_mut(..self.keys.head_len()) else { return Ok(None) };
                let length = self.keys.length(self.sequence, head)?;
                let length = self.checked_length(length, early)?;
                self.length = Some(length);
                length
            }
        };
        let packet_len = LENGTH_LEN + length + self.keys.tag_len();
        let Some(packet) = input.get_mut(..packet_len) else { return Ok(None) };
        self.keys.open(self.sequence, packet)?;
        self.length = None;
        let padding = usize::from(packet[LENGTH_LEN]);
        // RFC 4253, section 6: at least four bytes of padding. A payload has at least its message number.
        let payload_end = (LENGTH_LEN + length).checked_sub(padding);
        let payload = match payload_end {
            Some(end) if padding >= 4 && end > LENGTH_LEN + 1 => LENGTH_LEN + 1..end,
            _ => return Err(Error::protocol("a packet's padding is wrong")),
        };
        self.sequence = self.sequence.wrapping_add(1);
        Ok(Some(Opened { payload, packet_len }))
    }

    fn checked_length(&self, length: u32, early: bool) -> Result<usize, Error> {
        let most = if early { MAX_EARLY_PACKET_LEN } else { MAX_PACKET_LEN };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let counted =
            if self.keys.length_apart() { length } else { length.saturating_add(LENGTH_LEN) };
        // A padding's length, a message number and four bytes of padding, at least.
        let least = 1 + 1 + 4;
        if length > most || length < least || !counted.is_multiple_of(self.keys.block_len()) {
            return Err(Error::protocol("a packet's length is wrong"));
        }
        Ok(length)
    }
}

/// The other direction.
pub(crate) struct Sender {
    pub(crate) keys: Keys,
    pub(crate) sequence: u32,
    /// Random bytes for padding, which is short: one call makes them for many packets.
    random: [u8; 256],
    /// How many of them packets have had.
    used: usize,
}

impl Sender {
    pub(crate) fn new() -> Self {
        Self { keys: Keys::None, sequence: 0, random: [0; 256], used: 256 }
    }

    /// Fills padding, which has 255 bytes at most, with random bytes that no other packet has.
    fn pad(&mut self, padding: &mut [u8]) -> Result<(), Error> {
        let fits = self.random.get(self.used..self.used + padding.len()).is_some();
        if !fits {
            outlast_crypto::random::fill(&mut self.random).map_err(|_| Error::library())?;
            self.used = 0;
        }
        let end = self.used + padding.len();
        padding.copy_from_slice(self.random.get(self.used..end).ok_or(Error::library())?);
        self.used = end;
        Ok(())
    }

    /// Appends a packet with this payload. Returns the packet's length.
    pub(crate) fn seal(&mut self, payload: &[&[u8]], out: &mut Vec<u8>) -> Result<usize, Error> {
        let payload_len: usize = payload.iter().map(|part| part.len()).sum();
        let block = self.keys.block_len();
        let counted = 1 + payload_len + if self.keys.length_apart() { 0 } else { LENGTH_LEN };
        let mut padding = block - counted % block;
        if padding < 4 {
            padding += block;
        }
        let length = 1 + payload_len + padding;
        let start = out.len();
        out.reserve(LENGTH_LEN + length + self.keys.tag_len());
        out.extend_from_slice(&u32::try_from(length).map_err(|_| Error::library())?.to_be_bytes());
        out.push(u8::try_from(padding).map_err(|_| Error::library())?);
        for part in payload {
            out.extend_from_slice(part);
        }
        let at = out.len();
        out.resize(at + padding, 0);
        self.pad(&mut out[at..])?;
        self.keys.seal(self.sequence, out, start)?;
        self.sequence = self.sequence.wrapping_add(1);
        Ok(out.len() - start)
    }
}
