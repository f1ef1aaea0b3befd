//! General names (RFC 5280, section 4.2.1.6): every kind in AWS's `GeneralName`, from plain values and back.
//!
//! `x400Address` is parsed as [`GeneralName::Other`], so that a certificate with one can still be shown; it cannot be
//! made.

use std::net::IpAddr;

use const_oid::ObjectIdentifier;
use der::asn1::{AnyRef, Ia5StringRef, Utf8StringRef};
use der::{Class, Decode, Encode, Reader, SliceReader, Tag, TagNumber};
use x509_cert::name::Name;

use crate::PkiError;

mod syntax;

pub use syntax::{dns_name, mailbox, uri};

/// Names in one extension at most.
pub const MAX_NAMES: usize = 1000;

/// A general name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GeneralName {
    /// A value of a type of its own. AWS gives a string, which becomes a `UTF8String`.
    OtherName {
        /// Type.
        type_id: ObjectIdentifier,
        /// DER of the value; see [`GeneralName::other_name`].
        value: Vec<u8>,
    },
    /// An e-mail address.
    Rfc822Name(String),
    /// A host's name.
    DnsName(String),
    /// A distinguished name.
    DirectoryName(Name),
    /// A name in electronic data interchange.
    EdiPartyName {
        /// Name of the party.
        party_name: String,
        /// Who assigned the name.
        name_assigner: Option<String>,
    },
    /// An absolute URI.
    UniformResourceIdentifier(String),
    /// An address.
    IpAddress(IpAddr),
    /// An object identifier.
    RegisteredId(ObjectIdentifier),
    /// A name that this crate parses but does not make: an `x400Address`, or an address or party name whose form has
    /// no plain value. The tag's number and the contents.
    Other(u32, Vec<u8>),
}

impl GeneralName {
    /// An `otherName` whose value is a `UTF8String`, as AWS makes it.
    pub fn other_name(type_id: ObjectIdentifier, text: &str) -> Result<Self, PkiError> {
        let value = Utf8StringRef::new(text).and_then(|text| text.to_der()).map_err(malformed)?;
        Ok(Self::OtherName { type_id, value })
    }

    /// Checks the name against RFC 5280, section 4.2.1.6.
    pub fn check(&self) -> Result<(), PkiError> {
        let wrong = |kind: &str, text: &str, reason: &str| {
            Err(PkiError::Name {
                kind: kind.to_owned(),
                reason: format!("{} {reason}", shortened(text)),
            })
        };
        match self {
            Self::Rfc822Name(text) => match mailbox(text) {
                Ok(()) => Ok(()),
                Err(reason) => wrong("Rfc822Name", text, reason),
            },
            Self::DnsName(text) => match dns_name(text) {
                Ok(()) => Ok(()),
                Err(reason) => wrong("DnsName", text, reason),
            },
            Self::UniformResourceIdentifier(text) => match uri(text) {
                Ok(()) => Ok(()),
                Err(reason) => wrong("UniformResourceIdentifier", text, reason),
            },
            Self::DirectoryName(name) if name.is_empty() => {
                wrong("DirectoryName", "it", "is empty")
            }
            Self::EdiPartyName { party_name, name_assigner } => {
                if party_name.is_empty() || name_assigner.as_ref().is_some_and(String::is_empty) {
                    return wrong("EdiPartyName", "it", "is empty");
                }
                Ok(())
            }
            Self::OtherName { value, .. } if !crate::strict_der::is_der(value) => {
                wrong("OtherName", "its value", "is not DER")
            }
            _ => Ok(()),
        }
    }

    /// DER.
    pub fn to_der(&self) -> Result<Vec<u8>, PkiError> {
        self.encode().map_err(malformed)
    }

    fn encode(&self) -> der::Result<Vec<u8>> {
        match self {
            // OtherName ::= SEQUENCE { type-id OBJECT IDENTIFIER, value [0] EXPLICIT ANY DEFINED BY type-id }
            Self::OtherName { type_id, value } => {
                let mut content = type_id.to_der()?;
                content.extend(tagged(0, true, value)?);
                tagged(0, true, &content)
            }
            Self::Rfc822Name(text) => tagged(1, false, Ia5StringRef::new(text)?.as_bytes()),
            Self::DnsName(text) => tagged(2, false, Ia5StringRef::new(text)?.as_bytes()),
            // A CHOICE is tagged explicitly, even where tags are implicit (X.680, 31.2.7).
            Self::DirectoryName(name) => tagged(4, true, &name.to_der()?),
            Self::EdiPartyName { party_name, name_assigner } => {
                let mut content = Vec::new();
                if let Some(assigner) = name_assigner {
                    content.extend(tagged(0, true, &Utf8StringRef::new(assigner)?.to_der()?)?);
                }
                content.extend(tagged(1, true, &Utf8StringRef::new(party_name)?.to_der()?)?);
                tagged(5, true, &content)
            }
            Self::UniformResourceIdentifier(text) => {
                tagged(6, false, Ia5StringRef::new(text)?.as_bytes())
            }
            Self::IpAddress(IpAddr::V4(address)) => tagged(7, false, &address.octets()),
            Self::IpAddress(IpAddr::V6(address)) => tagged(7, false, &address.octets()),
            Self::RegisteredId(oid) => tagged(8, false, oid.as_bytes()),
            Self::Other(number, content) => {
                tagged(*number, matches!(number, 0 | 3 | 4 | 5), content)
            }
        }
    }

    /// Parses a name.
    pub fn from_der(der: &[u8]) -> Result<Self, PkiError> {
        Self::read(AnyRef::from_der(der).map_err(malformed)?).map_err(malformed)
    }

    fn read(any: AnyRef<'_>) -> der::Result<Self> {
        use der::Tagged;
        let tag = any.tag();
        let number = tag.number().value();
        let content = any.value();
        let constructed = matches!(number, 0 | 3 | 4 | 5);
        if tag.class() != Class::ContextSpecific
            || tag.is_constructed() != constructed
            || number > 8
        {
            return Err(tag.unexpected_error(None).into());
        }
        let text = || Ia5StringRef::new(content).map(|text| text.as_str().to_owned());
        Ok(match number {
            0 => {
                let mut reader = SliceReader::new(content)?;
                let type_id = ObjectIdentifier::decode(&mut reader)?;
                let value = explicit(&mut reader, 0)?.to_vec();
                reader.finish()?;
                Self::OtherName { type_id, value }
            }
            1 => Self::Rfc822Name(text()?),
            2 => Self::DnsName(text()?),
            4 => Self::DirectoryName(Name::from_der(content)?),
            5 => match party_name(content) {
                Ok(name) => name,
                Err(_) => Self::Other(number, content.to_vec()),
            },
            6 => Self::UniformResourceIdentifier(text()?),
            7 => match content.len() {
                4 => Self::IpAddress(<[u8; 4]>::try_from(content).unwrap_or_default().into()),
                16 => Self::IpAddress(<[u8; 16]>::try_from(content).unwrap_or_default().into()),
                _ => Self::Other(number, content.to_vec()),
            },
            8 => Self::RegisteredId(
                ObjectIdentifier::from_bytes(content)
                    .map_err(|_| der::Error::from(tag.value_error()))?,
            ),
            _ => Self::Other(number, content.to_vec()),
        })
    }
}

impl std::fmt::Display for GeneralName {
    /// Roughly as `openssl x509 -text` prints it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OtherName { type_id, .. } => write!(f, "otherName:{type_id}"),
            Self::Rfc822Name(text) => write!(f, "email:{text}"),
            Self::DnsName(text) => write!(f, "DNS:{text}"),
            Self::DirectoryName(name) => write!(f, "DirName:{name}"),
            Self::EdiPartyName { party_name, .. } => write!(f, "EdiPartyName:{party_name}"),
            Self::UniformResourceIdentifier(text) => write!(f, "URI:{text}"),
            Self::IpAddress(address) => write!(f, "IP Address:{address}"),
            Self::RegisteredId(oid) => write!(f, "Registered ID:{oid}"),
            Self::Other(3, _) => write!(f, "X400Name"),
            Self::Other(number, content) => write!(f, "[{number}] {} bytes", content.len()),
        }
    }
}

/// `GeneralNames`: a SEQUENCE of checked names.
pub fn encode_names(names: &[GeneralName]) -> Result<Vec<u8>, PkiError> {
    sequence(&names_content(names)?).map_err(malformed)
}

/// The names alone, without the SEQUENCE's header.
pub(crate) fn names_content(names: &[GeneralName]) -> Result<Vec<u8>, PkiError> {
    if names.is_empty() || names.len() > MAX_NAMES {
        return Err(PkiError::Name {
            kind: "GeneralNames".into(),
            reason: format!("there must be 1 to {MAX_NAMES} names"),
        });
    }
    let mut content = Vec::new();
    for name in names {
        name.check()?;
        content.extend(name.to_der()?);
    }
    Ok(content)
}

/// Parses `GeneralNames`, without checking their syntax.
pub fn decode_names(der: &[u8]) -> Result<Vec<GeneralName>, PkiError> {
    let any = AnyRef::from_der(der).map_err(malformed)?;
    any.sequence(|reader| {
        let mut names = Vec::new();
        while !reader.is_finished() {
            if names.len() == MAX_NAMES {
                return Err(Tag::Sequence.length_error().into());
            }
            names.push(GeneralName::read(AnyRef::decode(reader)?)?);
        }
        if names.is_empty() { Err(Tag::Sequence.length_error().into()) } else { Ok(names) }
    })
    .map_err(malformed)
}

/// Parses an address.
pub fn ip_address(text: &str) -> Result<GeneralName, PkiError> {
    text.parse().map(GeneralName::IpAddress).map_err(|_| PkiError::Name {
        kind: "IpAddress".into(),
        reason: format!("{} is neither an IPv4 nor an IPv6 address", shortened(text)),
    })
}

/// `EDIPartyName ::= SEQUENCE { nameAssigner [0] DirectoryString OPTIONAL, partyName [1] DirectoryString }`
fn party_name(content: &[u8]) -> der::Result<GeneralName> {
    let mut reader = SliceReader::new(content)?;
    let name_assigner = match Tag::peek(&reader)?.number() {
        TagNumber(0) => Some(directory_string(explicit(&mut reader, 0)?)?),
        _ => None,
    };
    let party_name = directory_string(explicit(&mut reader, 1)?)?;
    reader.finish()?;
    Ok(GeneralName::EdiPartyName { party_name, name_assigner })
}

fn directory_string(der: &[u8]) -> der::Result<String> {
    use der::Tagged;
    let any = AnyRef::from_der(der)?;
    match any.tag() {
        Tag::Utf8String | Tag::PrintableString => Ok(Utf8StringRef::new(any.value())?.to_string()),
        other => Err(other.unexpected_error(Some(Tag::Utf8String)).into()),
    }
}

/// The contents of `[number] EXPLICIT`, whole.
fn explicit<'a>(reader: &mut SliceReader<'a>, number: u32) -> der::Result<&'a [u8]> {
    use der::Tagged;
    let any = AnyRef::decode(reader)?;
    let expected = TagNumber(number).context_specific(true);
    any.tag().assert_eq(expected)?;
    Ok(any.value())
}

/// A context-specific tag around `content`.
pub(crate) fn tagged(number: u32, constructed: bool, content: &[u8]) -> der::Result<Vec<u8>> {
    AnyRef::new(TagNumber(number).context_specific(constructed), content)?.to_der()
}

/// A SEQUENCE around `content`.
pub(crate) fn sequence(content: &[u8]) -> der::Result<Vec<u8>> {
    AnyRef::new(Tag::Sequence, content)?.to_der()
}

/// The part of a peer's text that an error may quote.
fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(64).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    format!("{short:?}")
}

fn malformed(error: der::Error) -> PkiError {
    PkiError::malformed("general name", &error)
}
