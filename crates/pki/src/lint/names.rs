//! Rules about distinguished names and general names.

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280 as id;
use der::Tag;
use der::asn1::PrintableStringRef;

use super::Outcome;
use super::parts::{Attribute, Dn, Parts};
use crate::general_name::{self, GeneralName, decode_names};
use crate::name::FIELDS;

/// `emailAddress` (RFC 2985)
const EMAIL: ObjectIdentifier = oid("1.2.840.113549.1.9.1");
/// `domainComponent` (RFC 4519)
const DOMAIN_COMPONENT: ObjectIdentifier = oid("0.9.2342.19200300.100.1.25");
const COUNTRY: ObjectIdentifier = oid("2.5.4.6");
/// Most characters of attributes that AWS has no field for (RFC 5280, appendix A.1: `ub-name`,
/// `ub-emailaddress-length`).
const OTHER_BOUNDS: &[(ObjectIdentifier, usize)] = &[(EMAIL, 255), (oid("2.5.4.41"), 32_768)];
/// Attributes for which AWS's model has a smaller bound than RFC 5280: surname, givenName, initials,
/// generationQualifier have `ub-name`, dnQualifier has none.
const NAME_BOUND: &[ObjectIdentifier] =
    &[oid("2.5.4.4"), oid("2.5.4.42"), oid("2.5.4.43"), oid("2.5.4.44"), oid("2.5.4.46")];
/// PrintableString only: country, serialNumber, dnQualifier (RFC 5280, appendix A.1).
const PRINTABLE: &[ObjectIdentifier] = &[COUNTRY, oid("2.5.4.5"), oid("2.5.4.46")];

const fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(text)
}

pub(super) fn ca_subject(parts: &Parts<'_>) -> Outcome {
    (parts.is_ca() && parts.subject.attributes.is_empty()).then(|| "a CA has no subject".into())
}

pub(super) fn empty_subject(parts: &Parts<'_>) -> Outcome {
    if !parts.subject.attributes.is_empty() {
        return None;
    }
    match parts.find(id::ID_CE_SUBJECT_ALT_NAME) {
        Some(names) if names.critical => None,
        Some(_) => Some("the subject is empty and the alternative name is not critical".into()),
        None => Some("there is neither a subject nor an alternative name".into()),
    }
}

/// The first attribute of issuer or subject in which `wrong` finds a fault.
fn attributes(parts: &Parts<'_>, wrong: impl Fn(&Attribute<'_>) -> Outcome) -> Outcome {
    let all = |dn: &Dn<'_>| dn.attributes.iter().find_map(&wrong);
    all(&parts.issuer).or_else(|| all(&parts.subject))
}

pub(super) fn attribute_len(parts: &Parts<'_>) -> Outcome {
    attributes(parts, |attribute| {
        let max = if NAME_BOUND.contains(&attribute.oid) {
            32_768
        } else {
            let field = FIELDS.iter().find(|row| row.oid == attribute.oid).map(|row| row.max);
            let other = OTHER_BOUNDS.iter().find(|(oid, _)| *oid == attribute.oid);
            field.or(other.map(|(_, max)| *max))?
        };
        let len = match attribute.tag {
            Tag::BmpString => attribute.value.len() / 2,
            Tag::Utf8String => String::from_utf8_lossy(attribute.value).chars().count(),
            _ => attribute.value.len(),
        };
        (len == 0 || len > max)
            .then(|| format!("{} has {len} characters, at most {max}", attribute.oid))
    })
}

pub(super) fn attribute_type(parts: &Parts<'_>) -> Outcome {
    attributes(parts, |attribute| {
        let (fits, wanted) = match attribute.oid {
            EMAIL | DOMAIN_COMPONENT => (attribute.tag == Tag::Ia5String, "an IA5String"),
            oid if PRINTABLE.contains(&oid) => {
                (attribute.tag == Tag::PrintableString, "a PrintableString")
            }
            oid if FIELDS.iter().any(|row| row.oid == oid) => (
                matches!(attribute.tag, Tag::PrintableString | Tag::Utf8String),
                "a PrintableString or UTF8String",
            ),
            _ => return None,
        };
        (!fits).then(|| format!("{} is not {wanted}", attribute.oid))
    })
}

pub(super) fn attribute_characters(parts: &Parts<'_>) -> Outcome {
    attributes(parts, |attribute| {
        let fits = match attribute.tag {
            Tag::PrintableString => PrintableStringRef::new(attribute.value).is_ok(),
            Tag::Utf8String => std::str::from_utf8(attribute.value).is_ok(),
            Tag::Ia5String => attribute.value.is_ascii(),
            _ => true,
        };
        (!fits).then(|| {
            format!("{} has a character that its string type does not allow", attribute.oid)
        })
    })
}

pub(super) fn country_len(parts: &Parts<'_>) -> Outcome {
    attributes(parts, |attribute| {
        (attribute.oid == COUNTRY && attribute.value.len() != 2)
            .then(|| "the country does not have two characters".into())
    })
}

pub(super) fn country(parts: &Parts<'_>) -> Outcome {
    attributes(parts, |attribute| {
        let fits = attribute.value.len() == 2 && attribute.value.iter().all(u8::is_ascii_uppercase);
        (attribute.oid == COUNTRY && !fits).then(|| "the country is not two capital letters".into())
    })
}

pub(super) fn email_in_subject(parts: &Parts<'_>) -> Outcome {
    parts
        .subject
        .attributes
        .iter()
        .any(|attribute| attribute.oid == EMAIL)
        .then(|| "an e-mail address is in the subject, not in the alternative name".into())
}

/// The names of subject and issuer alternative name.
fn names<'a>(parts: &'a Parts<'_>) -> impl Iterator<Item = GeneralName> + 'a {
    let issuer = parts
        .find(id::ID_CE_ISSUER_ALT_NAME)
        .and_then(|extension| decode_names(extension.value).ok());
    parts.names.iter().flatten().cloned().chain(issuer.into_iter().flatten())
}

pub(super) fn san_criticality(parts: &Parts<'_>) -> Outcome {
    let critical = parts.find(id::ID_CE_SUBJECT_ALT_NAME)?.critical;
    (critical && !parts.subject.attributes.is_empty())
        .then(|| "the alternative name is critical although there is a subject".into())
}

pub(super) fn dns_name(parts: &Parts<'_>) -> Outcome {
    names(parts).find_map(|name| match &name {
        GeneralName::DnsName(text) => {
            general_name::dns_name(text).err().map(|reason| told(&name, reason))
        }
        _ => None,
    })
}

pub(super) fn dns_underscore(parts: &Parts<'_>) -> Outcome {
    names(parts).find_map(|name| match &name {
        GeneralName::DnsName(text) if text.contains('_') => Some(told(&name, "has an underscore")),
        _ => None,
    })
}

pub(super) fn rfc822_name(parts: &Parts<'_>) -> Outcome {
    names(parts).find_map(|name| match &name {
        GeneralName::Rfc822Name(text) => {
            general_name::mailbox(text).err().map(|reason| told(&name, reason))
        }
        _ => None,
    })
}

pub(super) fn uri(parts: &Parts<'_>) -> Outcome {
    names(parts).find_map(|name| match &name {
        GeneralName::UniformResourceIdentifier(text) => {
            general_name::uri(text).err().map(|reason| told(&name, reason))
        }
        _ => None,
    })
}

pub(super) fn ip_address(parts: &Parts<'_>) -> Outcome {
    names(parts).find_map(|name| match &name {
        GeneralName::Other(7, content) => {
            Some(format!("an address has {} octets, not 4 or 16", content.len()))
        }
        _ => None,
    })
}

pub(super) fn other_names(parts: &Parts<'_>) -> Outcome {
    names(parts).find_map(|name| match &name {
        GeneralName::DirectoryName(_)
        | GeneralName::EdiPartyName { .. }
        | GeneralName::OtherName { .. } => name.check().err().map(|error| error.to_string()),
        GeneralName::Other(5, _) => Some("a party name is malformed".into()),
        _ => None,
    })
}

fn told(name: &GeneralName, reason: &str) -> String {
    let text: String = name.to_string().chars().take(80).collect();
    format!("{text} {reason}")
}
