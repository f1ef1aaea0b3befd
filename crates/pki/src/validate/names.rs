//! Compares distinguished names by RFC 5280, section 7.1: ignores case, the amount of white space and the type of
//! string.
//!
//! The Unicode normalisation of RFC 4518 is not applied: names that differ only in it count as different.

use const_oid::ObjectIdentifier;
use der::{Encode, Tag, Tagged};
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::name::{Name, RelativeDistinguishedName};

/// A name in the form for comparison.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Comparable(Vec<Part>);

/// A relative distinguished name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Part {
    value: Vec<u8>,
    kinds: Vec<ObjectIdentifier>,
    /// Whether one of its values has an unknown encoding: it may mean the same as another without being equal.
    opaque: bool,
}

impl Comparable {
    /// The comparable form of a name.
    pub fn new(name: &Name) -> Self {
        Self(name.iter_rdn().map(comparable_rdn).collect())
    }

    /// Whether this name is `base` or below it (RFC 5280, section 4.2.1.10, directoryName).
    pub fn is_within(&self, base: &Self) -> bool {
        self.0.starts_with(&base.0)
    }

    /// Whether this name may be `base` or below it: values that cannot be compared count as equal.
    pub fn may_be_within(&self, base: &Self) -> bool {
        let same = |(part, base): (&Part, &Part)| part == base || part.may_be(base);
        self.0.len() >= base.0.len() && self.0.iter().zip(&base.0).all(same)
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

impl Part {
    fn may_be(&self, other: &Self) -> bool {
        (self.opaque || other.opaque) && self.kinds == other.kinds
    }
}

fn comparable_rdn(rdn: &RelativeDistinguishedName) -> Part {
    let mut attributes: Vec<_> = rdn.iter().map(comparable_attribute).collect();
    attributes.sort();
    // Lengths are included, so that no two lists of attributes have the same form.
    let mut out = Vec::new();
    for attribute in attributes {
        out.extend_from_slice(&attribute.len().to_be_bytes());
        out.extend_from_slice(&attribute);
    }
    let mut kinds: Vec<_> = rdn.iter().map(|attribute| attribute.oid).collect();
    kinds.sort();
    let opaque = rdn.iter().any(|attribute| text(attribute).is_none());
    Part { value: out, kinds, opaque }
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

/// The text of a string value, whatever its type.
pub fn text(attribute: &AttributeTypeAndValue) -> Option<String> {
    let bytes = attribute.value.value();
    match attribute.value.tag() {
        Tag::PrintableString
        | Tag::Utf8String
        | Tag::Ia5String
        | Tag::NumericString
        | Tag::VisibleString => std::str::from_utf8(bytes).ok().map(str::to_owned),
        // In practice Latin-1.
        Tag::TeletexString => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        Tag::BmpString => {
            let units = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            char::decode_utf16(units).collect::<Result<String, _>>().ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use der::Decode;
    use der::asn1::{Any, SetOfVec};
    use x509_cert::name::RdnSequence;

    use super::*;

    const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");
    const UNIT: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.11");

    fn name(oid: ObjectIdentifier, tag: Tag, bytes: &[u8]) -> Comparable {
        let value = Any::new(tag, bytes).unwrap();
        let attribute = AttributeTypeAndValue { oid, value };
        let rdn = RelativeDistinguishedName::from(SetOfVec::try_from(vec![attribute]).unwrap());
        let der = RdnSequence::from(vec![rdn]).to_der().unwrap();
        Comparable::new(&Name::from_der(&der).unwrap())
    }

    #[test]
    fn names_compare_across_string_types() {
        let base = name(ORGANIZATION, Tag::Utf8String, b"Evil Corp");
        for (tag, bytes) in [
            (Tag::PrintableString, b"evil  CORP".as_slice()),
            (Tag::VisibleString, b"Evil Corp"),
            (Tag::Ia5String, b"Evil Corp"),
            (Tag::TeletexString, b"Evil Corp"),
            (Tag::BmpString, b"\0E\0v\0i\0l\0 \0C\0o\0r\0p"),
        ] {
            let name = name(ORGANIZATION, tag, bytes);
            assert!(name == base && name.is_within(&base) && name.may_be_within(&base), "{tag}");
        }
        // It is in no permitted subtree, and in every excluded one of its kind.
        let opaque = name(ORGANIZATION, Tag::OctetString, b"Evil Corp");
        assert!(!opaque.is_within(&base) && opaque.may_be_within(&base));
        assert!(!base.is_within(&opaque) && base.may_be_within(&opaque));
        assert!(!opaque.may_be_within(&name(UNIT, Tag::Utf8String, b"Evil Corp")));
        assert!(!name(ORGANIZATION, Tag::Utf8String, b"Other").may_be_within(&base));
        assert!(!Comparable::default().may_be_within(&base));
    }
}
