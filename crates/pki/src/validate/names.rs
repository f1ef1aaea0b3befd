//! Comparing distinguished names as RFC 5280, section 7.1 wants it: without regard to case, to the amount of
//! white space and to the kind of string.
//!
//! Not done: the Unicode normalisation of RFC 4518. Names that differ in it only are different here.

use der::{Encode, Tag, Tagged};
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::name::{Name, RelativeDistinguishedName};

/// A name in the form in which it is compared: one value for each relative distinguished name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Comparable(Vec<Vec<u8>>);

impl Comparable {
    /// The comparable form of a name.
    pub fn new(name: &Name) -> Self {
        Self(name.iter_rdn().map(comparable_rdn).collect())
    }

    /// Whether this name is `base` or lies below it (RFC 5280, section 4.2.1.10, directoryName).
    pub fn is_within(&self, base: &Self) -> bool {
        self.0.starts_with(&base.0)
    }

    /// Whether it has no parts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether two names are the same.
pub fn same(a: &Name, b: &Name) -> bool {
    a == b || Comparable::new(a) == Comparable::new(b)
}

fn comparable_rdn(rdn: &RelativeDistinguishedName) -> Vec<u8> {
    let mut attributes: Vec<_> = rdn.iter().map(comparable_attribute).collect();
    attributes.sort();
    // Lengths are written, so that no two lists of attributes come out alike.
    let mut out = Vec::new();
    for attribute in attributes {
        out.extend_from_slice(&attribute.len().to_be_bytes());
        out.extend_from_slice(&attribute);
    }
    out
}

fn comparable_attribute(attribute: &AttributeTypeAndValue) -> Vec<u8> {
    let mut out = attribute.oid.as_bytes().to_vec();
    match text(attribute) {
        Some(text) => {
            out.push(0);
            for (place, word) in text.split_whitespace().enumerate() {
                if place > 0 {
                    out.push(b' ');
                }
                out.extend(word.chars().flat_map(char::to_lowercase).collect::<String>().bytes());
            }
        }
        None => {
            out.push(1);
            out.extend(attribute.value.to_der().unwrap_or_default());
        }
    }
    out
}

/// The text of a string value, whatever kind of string it is.
pub fn text(attribute: &AttributeTypeAndValue) -> Option<String> {
    let bytes = attribute.value.value();
    match attribute.value.tag() {
        Tag::PrintableString | Tag::Utf8String | Tag::Ia5String | Tag::NumericString => {
            std::str::from_utf8(bytes).ok().map(str::to_owned)
        }
        // In practice Latin-1.
        Tag::TeletexString => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        Tag::BmpString => {
            let units = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            char::decode_utf16(units).collect::<Result<String, _>>().ok()
        }
        _ => None,
    }
}
