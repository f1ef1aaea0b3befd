//! Distinguished names from the fields of AWS's `ASN1Subject`.

use const_oid::ObjectIdentifier;
use der::asn1::{Any, Ia5StringRef, PrintableStringRef, SetOfVec, Utf8StringRef};
use der::{Decode, Encode};
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::ext::pkix::name::DirectoryString;
pub use x509_cert::name::Name;
use x509_cert::name::{RdnSequence, RelativeDistinguishedName};

use crate::PkiError;

/// A field of a subject.
#[derive(Debug)]
pub struct Field {
    /// Name in AWS's `ASN1Subject`.
    pub name: &'static str,
    /// X.520 attribute type.
    pub oid: ObjectIdentifier,
    /// Most characters (RFC 5280, appendix A, and AWS's model).
    pub max: usize,
    text: Text,
}

/// Encoding of a value.
#[derive(Debug, Clone, Copy)]
enum Text {
    Printable,
    Utf8,
    Ia5,
}

/// Attributes of AWS's `CustomAttributes` that are not UTF8String: domainComponent (RFC 4519, section 2.4) and
/// emailAddress (RFC 2985, section 5.2.1).
const IA5: &[ObjectIdentifier] = &[oid("0.9.2342.19200300.100.1.25"), oid("1.2.840.113549.1.9.1")];

/// The fields, in the order in which they are encoded.
pub static FIELDS: &[Field] = &[
    Field { name: "Country", oid: oid("2.5.4.6"), max: 2, text: Text::Printable },
    Field { name: "Organization", oid: oid("2.5.4.10"), max: 64, text: Text::Utf8 },
    Field { name: "OrganizationalUnit", oid: oid("2.5.4.11"), max: 64, text: Text::Utf8 },
    Field {
        name: "DistinguishedNameQualifier",
        oid: oid("2.5.4.46"),
        max: 64,
        text: Text::Printable,
    },
    Field { name: "State", oid: oid("2.5.4.8"), max: 128, text: Text::Utf8 },
    Field { name: "CommonName", oid: oid("2.5.4.3"), max: 64, text: Text::Utf8 },
    Field { name: "SerialNumber", oid: oid("2.5.4.5"), max: 64, text: Text::Printable },
    Field { name: "Locality", oid: oid("2.5.4.7"), max: 128, text: Text::Utf8 },
    Field { name: "Title", oid: oid("2.5.4.12"), max: 64, text: Text::Utf8 },
    Field { name: "Surname", oid: oid("2.5.4.4"), max: 40, text: Text::Utf8 },
    Field { name: "GivenName", oid: oid("2.5.4.42"), max: 16, text: Text::Utf8 },
    Field { name: "Initials", oid: oid("2.5.4.43"), max: 5, text: Text::Utf8 },
    Field { name: "Pseudonym", oid: oid("2.5.4.65"), max: 128, text: Text::Utf8 },
    Field { name: "GenerationQualifier", oid: oid("2.5.4.44"), max: 3, text: Text::Utf8 },
];

const fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(text)
}

/// Builds a name from (field, value) pairs, encoded in the order of [`FIELDS`].
///
/// `custom` holds attributes by OID, which AWS allows only instead of the named fields; the caller checks that.
pub fn name(fields: &[(&str, &str)], custom: &[(String, String)]) -> Result<Name, PkiError> {
    let mut sequence = RdnSequence::default();
    for row in FIELDS {
        let Some((_, value)) = fields.iter().find(|(name, _)| *name == row.name) else { continue };
        sequence.push(attribute(row.name, row.oid, row.max, row.text, value)?);
    }
    for (dotted, value) in custom {
        let oid = ObjectIdentifier::new(dotted).map_err(|_| PkiError::Subject {
            field: "CustomAttributes".into(),
            reason: format!("{dotted} is not an object identifier"),
        })?;
        let row = FIELDS.iter().find(|row| row.oid == oid);
        let text = if IA5.contains(&oid) { Text::Ia5 } else { Text::Utf8 };
        let (max, text) = row.map_or((256, text), |row| (row.max, row.text));
        sequence.push(attribute(dotted, oid, max, text, value)?);
    }
    let failed = |error: der::Error| PkiError::malformed("name", &error);
    Name::from_der(&sequence.to_der().map_err(failed)?).map_err(failed)
}

/// Parses a name in the notation of RFC 4514. It must have at least one attribute.
///
/// ```
/// use outlast_pki::name;
///
/// let subject = name::parse("CN=Release,O=Example").unwrap();
/// assert_eq!(subject.to_string(), "CN=Release,O=Example");
/// assert!(name::parse("").is_err() && name::parse("Release").is_err());
/// ```
pub fn parse(text: &str) -> Result<Name, PkiError> {
    let refused = || PkiError::NotAName(text.to_owned());
    let name: Name = text.parse().map_err(|_| refused())?;
    if name.is_empty() {
        return Err(refused());
    }
    Ok(name)
}

/// DER of a name.
pub fn to_der(name: &Name) -> Result<Vec<u8>, PkiError> {
    name.to_der().map_err(|error| PkiError::malformed("name", &error))
}

/// Parses DER.
pub fn from_der(der: &[u8]) -> Result<Name, PkiError> {
    Name::from_der(der).map_err(|error| PkiError::malformed("name", &error))
}

/// A name with a common name only.
pub fn common_name(value: &str) -> Result<Name, PkiError> {
    name(&[("CommonName", value)], &[])
}

/// The name with this common name below `base`.
pub fn below(base: &Name, value: &str) -> Result<Name, PkiError> {
    let mut sequence = RdnSequence::default();
    for part in base.iter_rdn().chain(common_name(value)?.iter_rdn()) {
        sequence.push(part.clone());
    }
    let failed = |error: der::Error| PkiError::malformed("name", &error);
    Name::from_der(&sequence.to_der().map_err(failed)?).map_err(failed)
}

/// The attributes of a name in their order, as far as their values are text.
pub fn attributes(name: &Name) -> Vec<(ObjectIdentifier, String)> {
    name.iter()
        .filter_map(|attribute| {
            let value = match DirectoryString::try_from(&attribute.value) {
                Ok(text) => text.value().into_owned(),
                // Domain components and e-mail addresses are IA5 (RFC 4519, 2.4; RFC 2985, 5.2.1).
                Err(_) => attribute.value.decode_as::<Ia5StringRef<'_>>().ok()?.as_str().to_owned(),
            };
            Some((attribute.oid, value))
        })
        .collect()
}

/// The common names in a name, as far as they are text.
pub fn common_names(name: &Name) -> impl Iterator<Item = String> + use<> {
    let all = attributes(name).into_iter();
    all.filter(|(oid, _)| *oid == const_oid::db::rfc4519::COMMON_NAME).map(|(_, text)| text)
}

fn attribute(
    field: &str,
    oid: ObjectIdentifier,
    max: usize,
    text: Text,
    value: &str,
) -> Result<RelativeDistinguishedName, PkiError> {
    let failed = |reason: &str| PkiError::Subject { field: field.into(), reason: reason.into() };
    if value.is_empty() || value.chars().count() > max {
        return Err(failed(&format!("it must have 1 to {max} characters")));
    }
    let value = match text {
        Text::Printable => PrintableStringRef::new(value)
            .and_then(|text| Any::encode_from(&text))
            .map_err(|_| failed("only letters, digits and '()+,-./:=? are allowed"))?,
        Text::Utf8 => Utf8StringRef::new(value)
            .and_then(|text| Any::encode_from(&text))
            .map_err(|error| failed(&error.to_string()))?,
        Text::Ia5 => Ia5StringRef::new(value)
            .and_then(|text| Any::encode_from(&text))
            .map_err(|_| failed("only ASCII characters are allowed"))?,
    };
    let set = SetOfVec::try_from(vec![AttributeTypeAndValue { oid, value }])
        .map_err(|error| failed(&error.to_string()))?;
    RelativeDistinguishedName::try_from(set.into_vec()).map_err(|error| failed(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_back() {
        let fields: Vec<_> = FIELDS.iter().map(|row| (row.name, "DE")).collect();
        let custom = [
            ("2.5.4.17".to_owned(), "20095 Hamburg".to_owned()),
            ("0.9.2342.19200300.100.1.25".to_owned(), "example".to_owned()),
        ];
        let read = attributes(&name(&fields, &custom).unwrap());
        let mut expected: Vec<_> = FIELDS.iter().map(|row| (row.oid, "DE".to_owned())).collect();
        expected.extend(custom.iter().map(|(dotted, value)| (oid(dotted), value.clone())));
        assert_eq!(read, expected);
    }

    #[test]
    fn values_have_the_types_of_their_attributes() {
        let custom = |oid: &str, value: &str| name(&[], &[(oid.into(), value.into())]);
        for (oid, value, tag) in [
            ("1.2.840.113549.1.9.1", "a@b.example", 0x16),
            ("0.9.2342.19200300.100.1.25", "example", 0x16),
            ("2.5.4.6", "DE", 0x13),
            ("2.5.4.3", "DE", 0x0c),
            ("1.3.6.1.4.1.32473.1", "DE", 0x0c),
        ] {
            let der = custom(oid, value).unwrap().to_der().unwrap();
            assert_eq!(der[der.len() - value.len() - 2], tag, "{oid}");
        }
        assert!(custom("1.2.840.113549.1.9.1", "é@b.example").is_err());
        assert!(custom("not an oid", "x").is_err());
    }
}
