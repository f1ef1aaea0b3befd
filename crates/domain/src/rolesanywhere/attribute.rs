//! Attributes of distinguished names by the names that tags and mapping rules use.

use const_oid::ObjectIdentifier;
use outlast_pki::name::{Name, attributes};

/// The types with a name, which is the one of RFC 4519 or of OpenSSL where that RFC has none.
static TYPES: &[(&str, ObjectIdentifier)] = &[
    ("CN", oid("2.5.4.3")),
    ("SN", oid("2.5.4.4")),
    ("serialNumber", oid("2.5.4.5")),
    ("C", oid("2.5.4.6")),
    ("L", oid("2.5.4.7")),
    ("ST", oid("2.5.4.8")),
    ("street", oid("2.5.4.9")),
    ("O", oid("2.5.4.10")),
    ("OU", oid("2.5.4.11")),
    ("title", oid("2.5.4.12")),
    ("description", oid("2.5.4.13")),
    ("businessCategory", oid("2.5.4.15")),
    ("postalCode", oid("2.5.4.17")),
    ("name", oid("2.5.4.41")),
    ("GN", oid("2.5.4.42")),
    ("initials", oid("2.5.4.43")),
    ("generationQualifier", oid("2.5.4.44")),
    ("dnQualifier", oid("2.5.4.46")),
    ("pseudonym", oid("2.5.4.65")),
    ("organizationIdentifier", oid("2.5.4.97")),
    ("UID", oid("0.9.2342.19200300.100.1.1")),
    ("DC", oid("0.9.2342.19200300.100.1.25")),
    ("emailAddress", oid("1.2.840.113549.1.9.1")),
];

const fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(text)
}

/// Which attributes a rule selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    /// All that have a name here.
    Named,
    /// Those of one type.
    Type(ObjectIdentifier),
}

impl Selected {
    /// Reads `*`, a name or a dotted object identifier.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Named);
        }
        let named = TYPES.iter().find(|(name, _)| *name == text).map(|(_, oid)| *oid);
        named.or_else(|| ObjectIdentifier::new(text).ok()).map(Self::Type)
    }

    /// The values of the selected attributes by their names. Several values of one type are joined by slashes in their order
    /// ("Certificate Subject Alternative Name (SAN) fields mapping"). A type without a name is called by its identifier.
    pub fn values(self, name: &Name) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        for (oid, value) in attributes(name) {
            let known = TYPES.iter().find(|(_, known)| *known == oid).map(|(name, _)| *name);
            let key = match self {
                Self::Named => known.map(str::to_owned),
                Self::Type(wanted) => {
                    (wanted == oid).then(|| known.map_or_else(|| oid.to_string(), str::to_owned))
                }
            };
            let Some(key) = key else { continue };
            match found.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => {
                    values.push('/');
                    values.push_str(&value);
                }
                None => found.push((key, value)),
            }
        }
        found
    }
}

/// The common names of a subject, joined as in a tag.
pub fn common_name(subject: &Name) -> Option<String> {
    let common_name = Selected::Type(oid("2.5.4.3"));
    common_name.values(subject).pop().map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_pki::name::parse;

    #[test]
    fn several_values_are_one() {
        let name = parse("CN=alice,OU=Research,OU=Engineering,OU=Security").unwrap();
        let found = Selected::parse("OU").unwrap().values(&name);
        // RFC 4514 writes a name from its end.
        assert_eq!(found, [("OU".to_owned(), "Security/Engineering/Research".to_owned())]);
        assert_eq!(Selected::Named.values(&name).len(), 2);
        assert_eq!(Selected::parse("2.5.4.11"), Selected::parse("OU"));
        assert_eq!(common_name(&name).as_deref(), Some("alice"));
        assert_eq!(common_name(&parse("OU=x").unwrap()), None);
    }

    #[test]
    fn names_are_distinct_whatever_their_case() {
        for (index, (name, oid)) in TYPES.iter().enumerate() {
            assert_eq!(Selected::parse(name), Some(Selected::Type(*oid)));
            let others = TYPES.iter().skip(index + 1);
            assert!(others.clone().all(|(other, _)| !other.eq_ignore_ascii_case(name)), "{name}");
            assert!(others.clone().all(|(_, other)| other != oid), "{name}");
        }
        for wrong in ["", "cn", "commonName", "2.5.4.", "**"] {
            assert_eq!(Selected::parse(wrong), None, "{wrong}");
        }
    }
}
