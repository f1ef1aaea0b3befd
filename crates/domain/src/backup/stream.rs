//! Chunks of an encrypted stream. Each is bound to the header, to its number, and to whether it is the last one, so
//! that a stream cannot be cut off, reordered or put together from several.
//!
//! The construction is STREAM (Hoang, Reyhanitabar, Rogaway, Vizár: "Online Authenticated-Encryption and its
//! Nonce-Reuse Misuse-Resistance", CRYPTO 2015) with number and last flag in the associated data. All chunks
//! but the last have [`CHUNK`] bytes, so no lengths are needed.

use std::io::{Read, Write};

use outlast_crypto::{Secret, aead, digests};

use super::BackupError;

/// Plaintext bytes in a chunk.
pub(super) const CHUNK: usize = 64 * 1024;
const SEALED_CHUNK: usize = CHUNK + aead::OVERHEAD;

/// The key and context of all chunks of a stream, and the number of the next.
struct Sealing {
    key: Secret,
    head: [u8; 32],
    number: u64,
}

impl Sealing {
    fn new(key: Secret, head: &[u8]) -> Self {
        Self { key, head: digests::sha256(head), number: 0 }
    }

    fn associated_data(&mut self, last: bool) -> Vec<u8> {
        let number = self.number.to_be_bytes();
        self.number += 1;
        [self.head.as_slice(), &number, &[u8::from(last)]].concat()
    }
}

/// Encrypts a stream.
pub(super) struct Writer<'a> {
    out: &'a mut dyn Write,
    sealing: Sealing,
    // Never reallocated: that would leave copies of secrets behind.
    buffer: zeroize::Zeroizing<Vec<u8>>,
}

impl<'a> Writer<'a> {
    /// `head` is everything that precedes the chunks.
    pub(super) fn new(out: &'a mut dyn Write, key: Secret, head: &[u8]) -> Self {
        let buffer = zeroize::Zeroizing::new(Vec::with_capacity(CHUNK));
        Self { out, sealing: Sealing::new(key, head), buffer }
    }

    /// Appends bytes.
    pub(super) fn put(&mut self, bytes: &Secret) -> Result<(), BackupError> {
        let mut rest = bytes.expose();
        while !rest.is_empty() {
            // A full chunk is kept until more bytes come, because it may be the last.
            if self.buffer.len() == CHUNK {
                self.flush(false)?;
            }
            let (now, later) = rest.split_at(rest.len().min(CHUNK - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            rest = later;
        }
        Ok(())
    }

    /// Writes the last chunk.
    pub(super) fn finish(mut self) -> Result<(), BackupError> {
        self.flush(true)?;
        Ok(self.out.flush()?)
    }

    fn flush(&mut self, last: bool) -> Result<(), BackupError> {
        let data = self.sealing.associated_data(last);
        let sealed = aead::seal(self.sealing.key.expose(), &data, &self.buffer)?;
        self.buffer.clear();
        Ok(self.out.write_all(&sealed)?)
    }
}

/// Decrypts the stream of a [`Writer`].
pub(super) struct Reader<'a> {
    input: &'a mut dyn Read,
    sealing: Sealing,
    /// The chunk after the current one; empty at the end.
    next: Vec<u8>,
    open: Secret,
    position: usize,
}

impl<'a> Reader<'a> {
    /// `head` is everything that preceded the chunks.
    pub(super) fn new(
        input: &'a mut dyn Read,
        key: Secret,
        head: &[u8],
    ) -> Result<Self, BackupError> {
        let next = read_chunk(input)?;
        let sealing = Sealing::new(key, head);
        Ok(Self { input, sealing, next, open: Secret::new(Vec::new()), position: 0 })
    }

    /// The next `length` bytes.
    pub(super) fn take(&mut self, length: usize) -> Result<Secret, BackupError> {
        // A wrong length must not make us reserve memory: the bytes come chunk by chunk.
        let mut out = zeroize::Zeroizing::new(Vec::with_capacity(length.min(CHUNK)));
        while out.len() < length {
            if self.position == self.open.len() {
                self.advance()?;
            }
            let rest = &self.open.expose()[self.position..];
            let now = rest.len().min(length - out.len());
            out.extend_from_slice(&rest[..now]);
            self.position += now;
        }
        Ok(Secret::new(std::mem::take(&mut *out)))
    }

    /// Whether everything was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.position == self.open.len() && self.next.is_empty()
    }

    fn advance(&mut self) -> Result<(), BackupError> {
        if self.next.is_empty() {
            return Err(BackupError::Damaged("it is truncated".into()));
        }
        let sealed = std::mem::take(&mut self.next);
        self.next = read_chunk(self.input)?;
        let number = self.sealing.number;
        let data = self.sealing.associated_data(self.next.is_empty());
        self.open = aead::open(self.sealing.key.expose(), &data, &sealed).map_err(|_| {
            BackupError::Damaged(format!(
                "chunk {number} was changed or moved, or the file is truncated"
            ))
        })?;
        self.position = 0;
        if self.open.is_empty() {
            return Err(BackupError::Damaged("it is truncated".into()));
        }
        Ok(())
    }
}

fn read_chunk(input: &mut dyn Read) -> Result<Vec<u8>, BackupError> {
    let mut chunk = Vec::with_capacity(SEALED_CHUNK);
    input.take(SEALED_CHUNK as u64).read_to_end(&mut chunk)?;
    Ok(chunk)
}
