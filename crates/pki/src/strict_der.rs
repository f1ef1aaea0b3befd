//! Checks that bytes are DER and not only BER.

use const_oid::ObjectIdentifier;
use der::asn1::AnyRef;
use der::{Decode, Reader, SliceReader, Tag, Tagged};

/// Deepest nesting of constructed values.
const MAX_DEPTH: usize = 16;

/// Whether `bytes` are exactly one DER value, at every level.
pub fn is_der(bytes: &[u8]) -> bool {
    let Ok(mut reader) = SliceReader::new(bytes) else { return false };
    one_value(&mut reader, 0) && reader.is_finished()
}

fn one_value(reader: &mut SliceReader<'_>, depth: usize) -> bool {
    let Ok(value) = AnyRef::decode(reader) else { return false };
    let tag = value.tag();
    if !tag.is_constructed() {
        return match tag {
            Tag::Boolean => matches!(value.value(), [0x00 | 0xff]),
            Tag::Integer => match value.value() {
                [] => false,
                [0x00, next, ..] => *next >= 0x80,
                [0xff, next, ..] => *next < 0x80,
                _ => true,
            },
            Tag::Null => value.value().is_empty(),
            Tag::ObjectIdentifier => value.decode_as::<ObjectIdentifier>().is_ok(),
            _ => true,
        };
    }
    if depth == MAX_DEPTH {
        return false;
    }
    let Ok(mut inner) = SliceReader::new(value.value()) else { return false };
    let mut before: &[u8] = &[];
    while !inner.is_finished() {
        let start = usize::try_from(inner.position()).unwrap_or(usize::MAX);
        if !one_value(&mut inner, depth + 1) {
            return false;
        }
        let end = usize::try_from(inner.position()).unwrap_or(usize::MAX);
        let Some(this) = value.value().get(start..end) else { return false };
        // X.690, section 11.6: the elements of a SET OF ascend.
        if tag == Tag::Set && this < before {
            return false;
        }
        before = this;
    }
    true
}
