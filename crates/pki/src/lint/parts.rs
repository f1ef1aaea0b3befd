//! A certificate parsed for the rules, more leniently than by [`crate::certificate::Certificate`]: a certificate that
//! breaks the profile must still be readable, so that the fault can be named.

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280 as id;
use der::asn1::AnyRef;
use der::flagset::FlagSet;
use der::{Decode, Reader, SliceReader, Tag, TagNumber, Tagged};
use spki::SubjectPublicKeyInfoRef;
use x509_cert::ext::pkix::{BasicConstraints, KeyUsage, KeyUsages};

use crate::PkiError;
use crate::general_name::{GeneralName, decode_names};
use crate::public_key::Kind;

/// One extension.
pub(super) struct Extension<'a> {
    pub oid: ObjectIdentifier,
    pub critical: bool,
    /// Whether `critical` was written out although it is FALSE.
    pub default_encoded: bool,
    pub value: &'a [u8],
}

/// One attribute of a distinguished name.
pub(super) struct Attribute<'a> {
    pub oid: ObjectIdentifier,
    pub tag: Tag,
    pub value: &'a [u8],
}

/// A distinguished name.
pub(super) struct Dn<'a> {
    pub der: &'a [u8],
    pub attributes: Vec<Attribute<'a>>,
}

/// A certificate, or one that is to be signed.
pub(super) struct Parts<'a> {
    pub tbs: &'a [u8],
    /// 2 for version 3.
    pub version: u8,
    /// Contents of the INTEGER.
    pub serial: &'a [u8],
    /// `AlgorithmIdentifier` in the signed part.
    pub signature: &'a [u8],
    /// The one outside of it; `None` before the signature.
    pub outer_signature: Option<&'a [u8]>,
    pub issuer: Dn<'a>,
    pub not_before: AnyRef<'a>,
    pub not_after: AnyRef<'a>,
    pub subject: Dn<'a>,
    pub public_key: Option<SubjectPublicKeyInfoRef<'a>>,
    pub kind: Option<&'static Kind>,
    pub unique_identifiers: bool,
    /// Whether the field is present.
    pub has_extensions: bool,
    pub extensions: Vec<Extension<'a>>,
    pub constraints: Option<BasicConstraints>,
    pub key_usage: Option<FlagSet<KeyUsages>>,
    pub purposes: Option<Vec<ObjectIdentifier>>,
    /// Subject alternative names, as far as they can be read.
    pub names: Option<Vec<GeneralName>>,
}

/// Extensions that are examined, at most.
const MAX_EXTENSIONS: usize = 200;

impl<'a> Parts<'a> {
    /// Parses a whole certificate.
    pub(super) fn of_certificate(der: &'a [u8]) -> Result<Self, PkiError> {
        let split = || -> der::Result<(&'a [u8], &'a [u8])> {
            let mut reader = contents(der)?;
            let tbs = reader.tlv_bytes()?;
            let signature = reader.tlv_bytes()?;
            AnyRef::decode(&mut reader)?.tag().assert_eq(Tag::BitString)?;
            reader.finish()?;
            Ok((tbs, signature))
        };
        let (tbs, signature) = split().map_err(malformed)?;
        let mut parts = Self::of_tbs(tbs)?;
        parts.outer_signature = Some(signature);
        Ok(parts)
    }

    /// Parses a `TBSCertificate`.
    pub(super) fn of_tbs(tbs: &'a [u8]) -> Result<Self, PkiError> {
        Self::read(tbs).map_err(malformed)
    }

    fn read(tbs: &'a [u8]) -> der::Result<Self> {
        let mut reader = contents(tbs)?;
        let version = match Tag::peek(&reader)? {
            Tag::ContextSpecific { constructed: true, number: TagNumber(0) } => {
                AnyRef::decode(&mut reader)?.value()
            }
            _ => &[2, 1, 0],
        };
        let version = AnyRef::from_der(version)?.value().first().copied().unwrap_or(u8::MAX);
        let serial = AnyRef::decode(&mut reader)?;
        serial.tag().assert_eq(Tag::Integer)?;
        let signature = reader.tlv_bytes()?;
        let issuer = Dn::read(reader.tlv_bytes()?)?;
        let mut validity = contents(reader.tlv_bytes()?)?;
        let not_before = AnyRef::decode(&mut validity)?;
        let not_after = AnyRef::decode(&mut validity)?;
        validity.finish()?;
        let subject = Dn::read(reader.tlv_bytes()?)?;
        let public_key = SubjectPublicKeyInfoRef::from_der(reader.tlv_bytes()?).ok();
        let mut unique_identifiers = false;
        let mut extensions = None;
        while !reader.is_finished() {
            let field = AnyRef::decode(&mut reader)?;
            match field.tag() {
                Tag::ContextSpecific { number: TagNumber(1 | 2), .. } => unique_identifiers = true,
                Tag::ContextSpecific { constructed: true, number: TagNumber(3) } => {
                    extensions = Some(read_extensions(field.value())?);
                }
                other => return Err(other.unexpected_error(None).into()),
            }
        }
        let mut parts = Self {
            tbs,
            version,
            serial: serial.value(),
            signature,
            outer_signature: None,
            issuer,
            not_before,
            not_after,
            subject,
            kind: public_key.as_ref().and_then(Kind::by_algorithm),
            public_key,
            unique_identifiers,
            has_extensions: extensions.is_some(),
            extensions: extensions.unwrap_or_default(),
            constraints: None,
            key_usage: None,
            purposes: None,
            names: None,
        };
        parts.constraints = parts.decode(id::ID_CE_BASIC_CONSTRAINTS);
        parts.key_usage = parts.decode::<KeyUsage>(id::ID_CE_KEY_USAGE).map(|usage| usage.0);
        parts.purposes = parts.decode(id::ID_CE_EXT_KEY_USAGE);
        parts.names = parts
            .find(id::ID_CE_SUBJECT_ALT_NAME)
            .and_then(|extension| decode_names(extension.value).ok());
        Ok(parts)
    }

    /// The first extension of this kind.
    pub(super) fn find(&self, oid: ObjectIdentifier) -> Option<&Extension<'a>> {
        self.extensions.iter().find(|extension| extension.oid == oid)
    }

    /// The value of the first extension of this kind, if it can be read.
    pub(super) fn decode<T: Decode<'a>>(&self, oid: ObjectIdentifier) -> Option<T> {
        self.find(oid).and_then(|extension| T::from_der(extension.value).ok())
    }

    /// Whether basic constraints say CA:TRUE.
    pub(super) fn is_ca(&self) -> bool {
        self.constraints.as_ref().is_some_and(|constraints| constraints.ca)
    }

    /// Whether issuer and subject are the same, which is all that can be checked before the signature.
    pub(super) fn is_self_issued(&self) -> bool {
        self.issuer.der == self.subject.der
    }

    /// Whether the key usage has this bit.
    pub(super) fn may(&self, flag: KeyUsages) -> bool {
        self.key_usage.is_some_and(|usage| usage.contains(flag))
    }
}

impl<'a> Dn<'a> {
    fn read(der: &'a [u8]) -> der::Result<Self> {
        let mut reader = contents(der)?;
        let mut attributes = Vec::new();
        while !reader.is_finished() {
            let set = AnyRef::decode(&mut reader)?;
            set.tag().assert_eq(Tag::Set)?;
            let mut set = SliceReader::new(set.value())?;
            while !set.is_finished() {
                let mut pair = contents(set.tlv_bytes()?)?;
                let oid = ObjectIdentifier::decode(&mut pair)?;
                let value = AnyRef::decode(&mut pair)?;
                pair.finish()?;
                attributes.push(Attribute { oid, tag: value.tag(), value: value.value() });
            }
        }
        Ok(Self { der, attributes })
    }
}

fn read_extensions(der: &[u8]) -> der::Result<Vec<Extension<'_>>> {
    let mut reader = contents(der)?;
    let mut extensions = Vec::new();
    while !reader.is_finished() {
        if extensions.len() == MAX_EXTENSIONS {
            return Err(Tag::Sequence.length_error().into());
        }
        let mut fields = contents(reader.tlv_bytes()?)?;
        let oid = ObjectIdentifier::decode(&mut fields)?;
        let mut value = AnyRef::decode(&mut fields)?;
        let flag = (value.tag() == Tag::Boolean).then(|| value.value());
        if flag.is_some() {
            value = AnyRef::decode(&mut fields)?;
        }
        value.tag().assert_eq(Tag::OctetString)?;
        fields.finish()?;
        extensions.push(Extension {
            oid,
            critical: flag.is_some_and(|flag| flag != [0]),
            default_encoded: flag == Some(&[0]),
            value: value.value(),
        });
    }
    Ok(extensions)
}

/// A reader of the contents of a SEQUENCE.
fn contents(der: &[u8]) -> der::Result<SliceReader<'_>> {
    let any = AnyRef::from_der(der)?;
    any.tag().assert_eq(Tag::Sequence)?;
    SliceReader::new(any.value())
}

fn malformed(error: der::Error) -> PkiError {
    PkiError::malformed("certificate", &error)
}
