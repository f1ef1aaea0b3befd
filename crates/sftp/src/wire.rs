//! Reading and writing the basic types of SSH (RFC 4251, section 5) in SFTP's packets.

use bytes::{Buf, Bytes};

/// The packet ends too early, a length in it is wrong, or something follows its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Takes values from a packet. Data is shared with the packet, not copied.
#[derive(Debug, Clone)]
pub struct Reader(Bytes);

impl Reader {
    /// Reads a packet, or the rest of one.
    #[must_use]
    pub fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// A byte.
    ///
    /// # Errors
    /// The packet ends before it.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        self.0.try_get_u8().map_err(|_| Malformed)
    }

    /// A `uint32`.
    ///
    /// # Errors
    /// The packet ends before it.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.0.try_get_u32().map_err(|_| Malformed)
    }

    /// A `uint64`.
    ///
    /// # Errors
    /// The packet ends before it.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.0.try_get_u64().map_err(|_| Malformed)
    }

    /// A `string`.
    ///
    /// # Errors
    /// The packet ends before it does.
    pub fn string(&mut self) -> Result<Bytes, Malformed> {
        let length = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        if length > self.0.len() {
            return Err(Malformed);
        }
        Ok(self.0.split_to(length))
    }

    /// Whether everything has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What has not been read yet.
    #[must_use]
    pub fn rest(self) -> Bytes {
        self.0
    }
}

/// A packet in progress; its length is filled in at the end.
#[derive(Debug)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Begins a packet of a type.
    #[must_use]
    pub fn packet(kind: u8) -> Self {
        Self(vec![0, 0, 0, 0, kind])
    }

    /// Begins bytes that are no packet, such as a list within one.
    #[must_use]
    pub fn bare() -> Self {
        Self(Vec::new())
    }

    /// Appends a `uint32`.
    pub fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    /// Appends a `uint64`.
    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    /// Appends a `string`. What is longer than 4 GiB cannot occur, and is cut.
    pub fn string(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.u32(length);
        self.0.extend_from_slice(&bytes[..bytes.len().min(length as usize)]);
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing has been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The packet with its length.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len().saturating_sub(4)).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_be_bytes());
        self.0
    }

    /// The bytes of what is no packet.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
