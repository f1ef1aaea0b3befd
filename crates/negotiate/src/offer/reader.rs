//! Reads the presentation language of TLS (RFC 8446, section 3), within bounds.

use super::OfferError;

/// The bytes left to read.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], OfferError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(OfferError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, OfferError> {
        self.take(1)?.first().copied().ok_or(OfferError::Malformed)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, OfferError> {
        Ok(u16::from(self.u8()?) << 8 | u16::from(self.u8()?))
    }

    pub(crate) fn u24(&mut self) -> Result<usize, OfferError> {
        Ok(usize::from(self.u8()?) << 16 | usize::from(self.u16()?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fails if anything is left.
    pub(crate) fn finish(&self) -> Result<(), OfferError> {
        if self.is_empty() { Ok(()) } else { Err(OfferError::Malformed) }
    }

    /// A vector with a length of one byte.
    pub(crate) fn vector8(&mut self) -> Result<Self, OfferError> {
        let len = self.u8()?.into();
        self.take(len).map(Self)
    }

    /// A vector with a length of two bytes.
    pub(crate) fn vector16(&mut self) -> Result<Self, OfferError> {
        let len = self.u16()?.into();
        self.take(len).map(Self)
    }

    /// The same; an empty one is an error.
    pub(crate) fn filled16(&mut self) -> Result<Self, OfferError> {
        let vector = self.vector16()?;
        if vector.is_empty() { Err(OfferError::Malformed) } else { Ok(vector) }
    }

    /// All that is left, as values of two bytes, at least one.
    pub(crate) fn values(mut self) -> Result<Vec<u16>, OfferError> {
        let mut out = Vec::with_capacity(self.0.len() / 2);
        while !self.is_empty() {
            out.push(self.u16()?);
        }
        if out.is_empty() { Err(OfferError::Malformed) } else { Ok(out) }
    }
}

/// A set of code points. A ClientHello has room for thousands: searching a list would take too long.
pub(crate) struct Seen(Box<[u64; 1024]>);

impl Seen {
    pub(crate) fn new() -> Self {
        Self(Box::new([0; 1024]))
    }

    pub(crate) fn contains(&self, code: u16) -> bool {
        self.0.get(usize::from(code >> 6)).is_some_and(|word| word & bit(code) != 0)
    }

    /// Adds one; returns whether it is new.
    pub(crate) fn insert(&mut self, code: u16) -> bool {
        let Some(word) = self.0.get_mut(usize::from(code >> 6)) else { return false };
        let was = *word & bit(code) != 0;
        *word |= bit(code);
        !was
    }
}

fn bit(code: u16) -> u64 {
    1 << (code & 63)
}
