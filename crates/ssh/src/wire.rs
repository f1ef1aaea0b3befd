//! Reading and writing the data types of SSH (RFC 4251, section 5).

use crate::error::Error;
use crate::limits::{MAX_NAME_LEN, MAX_NAME_LIST_LEN, MAX_NAMES};

/// Reads values from the front of a message.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

const SHORT: Error = Error::protocol("a message is shorter than its fields");

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fails if bytes are left.
    pub(crate) fn end(&self) -> Result<(), Error> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Error::protocol("a message is longer than its fields"))
        }
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(SHORT)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        let (byte, rest) = self.0.split_first().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*byte)
    }

    /// RFC 4251, section 5: all values that are not zero mean true.
    pub(crate) fn bool(&mut self) -> Result<bool, Error> {
        Ok(self.byte()? != 0)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        let (bytes, rest) = self.0.split_first_chunk::<4>().ok_or(SHORT)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*bytes))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        let (bytes, rest) = self.0.split_first_chunk::<8>().ok_or(SHORT)?;
        self.0 = rest;
        Ok(u64::from_be_bytes(*bytes))
    }

    pub(crate) fn string(&mut self) -> Result<&'a [u8], Error> {
        let len = usize::try_from(self.u32()?).map_err(|_| SHORT)?;
        self.bytes(len)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Error> {
        std::str::from_utf8(self.string()?)
            .map_err(|_| Error::protocol("a text of a message is not UTF-8"))
    }

    /// A non-negative `mpint` without leading zeros.
    pub(crate) fn unsigned(&mut self) -> Result<&'a [u8], Error> {
        const BAD: Error = Error::protocol("an integer of a message is negative or not minimal");
        match self.string()? {
            [0, rest @ ..] => match rest {
                [first, ..] if *first >= 0x80 => Ok(rest),
                _ => Err(BAD),
            },
            [first, ..] if *first >= 0x80 => Err(BAD),
            bytes => Ok(bytes),
        }
    }

    /// A name-list as it was sent: US-ASCII, names separated by commas.
    pub(crate) fn names(&mut self) -> Result<&'a str, Error> {
        let list = self.string()?;
        if list.is_empty() {
            return Ok("");
        }
        let printable = |byte: &u8| byte.is_ascii_graphic();
        if list.len() > MAX_NAME_LIST_LEN
            || !list.iter().all(printable)
            || list.split(|byte| *byte == b',').count() > MAX_NAMES
            || list
                .split(|byte| *byte == b',')
                .any(|name| name.is_empty() || name.len() > MAX_NAME_LEN)
        {
            return Err(Error::protocol("a name-list is too long or malformed"));
        }
        std::str::from_utf8(list).map_err(|_| Error::protocol("a name-list is not US-ASCII"))
    }
}

/// Appends values to a buffer.
pub(crate) trait Writer {
    fn put(&mut self, bytes: &[u8]);

    fn put_byte(&mut self, byte: u8) {
        self.put(&[byte]);
    }

    fn put_bool(&mut self, value: bool) {
        self.put_byte(u8::from(value));
    }

    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }

    /// A `string`. All that this crate writes is far below 4 GiB.
    fn put_string(&mut self, bytes: &[u8]) {
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.put_u32(len);
        self.put(bytes);
    }

    /// A non-negative big-endian integer as `mpint`: no leading zeros, except one if the first bit is set.
    fn put_unsigned(&mut self, bytes: &[u8]) {
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
        let bytes = &bytes[start..];
        let sign = bytes.first().is_some_and(|first| *first >= 0x80);
        self.put_u32(u32::try_from(bytes.len() + usize::from(sign)).unwrap_or(u32::MAX));
        if sign {
            self.put_byte(0);
        }
        self.put(bytes);
    }
}

impl Writer for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl Writer for zeroize::Zeroizing<Vec<u8>> {
    fn put(&mut self, bytes: &[u8]) {
        // Growing would leave the old bytes behind, so that writers reserve first.
        if self.capacity() - self.len() < bytes.len() {
            let mut larger = Vec::with_capacity((self.len() + bytes.len()) * 2);
            larger.extend_from_slice(self);
            *self = zeroize::Zeroizing::new(larger);
        }
        self.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_encoding() {
        // RFC 4251, section 5.
        for (value, encoded) in [
            (&[][..], &[0, 0, 0, 0][..]),
            (&[0, 0], &[0, 0, 0, 0]),
            (
                &[0x09, 0xa3, 0x78, 0xf9, 0xb2, 0xe3, 0x32, 0xa7],
                &[0, 0, 0, 8, 0x09, 0xa3, 0x78, 0xf9, 0xb2, 0xe3, 0x32, 0xa7],
            ),
            (&[0x80], &[0, 0, 0, 2, 0, 0x80]),
        ] {
            let mut out = Vec::new();
            out.put_unsigned(value);
            assert_eq!(out, encoded);
            let minimal: Vec<u8> = value.iter().copied().skip_while(|byte| *byte == 0).collect();
            assert_eq!(Reader::new(encoded).unsigned().unwrap(), minimal);
        }
        // -1234 and two that are not minimal.
        for bad in [&[0, 0, 0, 2, 0xed, 0xcc][..], &[0, 0, 0, 1, 0], &[0, 0, 0, 2, 0, 1]] {
            assert!(Reader::new(bad).unsigned().is_err());
        }
    }

    #[test]
    fn name_lists_have_limits() {
        let list = |text: &str| {
            let mut out = Vec::new();
            out.put_string(text.as_bytes());
            Reader::new(&out).names().is_ok()
        };
        assert!(list("") && list("zlib") && list("zlib,none"));
        assert!(!list(",") && !list("a,,b") && !list("a,") && !list("a b") && !list("\u{e4}"));
        assert!(!list(&"x".repeat(65)) && list(&"x".repeat(64)));
        assert!(!list(&vec!["a"; 129].join(",")));
    }
}
