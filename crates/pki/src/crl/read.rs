//! Parses CRLs. The DER stays as it came; an index takes four bytes an entry.

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280::{
    ID_CE_AUTHORITY_KEY_IDENTIFIER, ID_CE_CRL_NUMBER, ID_CE_CRL_REASONS, ID_CE_DELTA_CRL_INDICATOR,
    ID_CE_ISSUING_DISTRIBUTION_POINT,
};
use der::asn1::{AnyRef, BitStringRef, IntRef};
use der::{Decode, Reader, Sequence, SliceReader, Tag, TagMode, TagNumber};
use outlast_crypto::signatures::Message;
use rustls_pki_types::CertificateRevocationListDer;
use rustls_pki_types::pem::PemObject;
use spki::{AlgorithmIdentifierOwned, AlgorithmIdentifierRef};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::AuthorityKeyIdentifier;
use x509_cert::ext::pkix::crl::CrlNumber;
use x509_cert::ext::pkix::crl::dp::IssuingDistributionPoint;
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralName};
use x509_cert::name::Name;
use x509_cert::time::Time;

use super::reason::{CrlReasonCode, Revoked, UNSPECIFIED, invalidity_date};
use super::{CERTIFICATE_ISSUER, Entry, MAX_CRL_LEN, Reason};
use crate::PkiError;
use crate::certificate::{Certificate, raw_tbs, signature_row};
use crate::time::unix_time;
use crate::validate::{MAX_DISTRIBUTION_POINTS, MAX_EXTENSIONS, names};

/// A parsed CRL. Parsing does not verify its signature: see [`Crl::signed_by`].
#[derive(Debug, Clone)]
pub struct Crl {
    der: Vec<u8>,
    issuer: Name,
    this_update: i64,
    next_update: Option<i64>,
    extensions: Vec<Extension>,
    distribution_point: Option<IssuingDistributionPoint>,
    algorithm: AlgorithmIdentifierOwned,
    signed_algorithm: AlgorithmIdentifierOwned,
    /// Offsets of the entries in `der`, sorted by serial number.
    entries: Vec<u32>,
    unusable: Option<String>,
}

/// CRL extensions that must not be critical, their names, and the section that says so.
const NEVER_CRITICAL: &[(ObjectIdentifier, &str, &str)] = &[
    (ID_CE_CRL_NUMBER, "CRL number", "RFC 5280, section 5.2.3,"),
    (ID_CE_AUTHORITY_KEY_IDENTIFIER, "authority key identifier", "RFC 5280, section 4.2.1.1,"),
];

/// An entry as it is encoded.
#[derive(Sequence)]
struct RawEntry<'a> {
    serial: IntRef<'a>,
    revoked_at: Time,
    extensions: Option<AnyRef<'a>>,
}

/// The outer frame.
#[derive(Sequence)]
struct Frame<'a> {
    to_be_signed: AnyRef<'a>,
    algorithm: AlgorithmIdentifierRef<'a>,
    signature: BitStringRef<'a>,
}

impl Crl {
    /// Parses a CRL in DER or PEM.
    pub fn parse(bytes: &[u8]) -> Result<Self, PkiError> {
        let malformed = |reason: &str| PkiError::Malformed { what: "CRL", reason: reason.into() };
        // PEM is a third longer.
        if bytes.len() > MAX_CRL_LEN / 2 * 3 {
            return Err(malformed("it is too long"));
        }
        let der = if bytes.first() == Some(&0x30) {
            bytes.to_vec()
        } else {
            CertificateRevocationListDer::from_pem_slice(bytes)
                .map(|der| der.to_vec())
                .map_err(|_| malformed("there is no X509 CRL block in it"))?
        };
        if der.len() > MAX_CRL_LEN {
            return Err(malformed("it is too long"));
        }
        Self::read(der).map_err(|error| PkiError::malformed("CRL", &error))
    }

    /// Parses all CRLs in PEM text, in order; or the single one, if the bytes are DER.
    pub fn parse_all(bytes: &[u8]) -> Result<Vec<Self>, PkiError> {
        if bytes.first() == Some(&0x30) {
            return Ok(vec![Self::parse(bytes)?]);
        }
        let malformed = |reason: String| PkiError::Malformed { what: "CRL", reason };
        let list = CertificateRevocationListDer::pem_slice_iter(bytes)
            .map(|der| Self::parse(&der.map_err(|error| malformed(error.to_string()))?))
            .collect::<Result<Vec<_>, _>>()?;
        if list.is_empty() {
            return Err(malformed("there is no X509 CRL block in it".into()));
        }
        Ok(list)
    }

    fn read(der: Vec<u8>) -> der::Result<Self> {
        let frame = Frame::from_der(&der)?;
        let algorithm = AlgorithmIdentifierOwned {
            oid: frame.algorithm.oid,
            parameters: frame.algorithm.parameters.map(Into::into),
        };
        let mut unusable = None;
        let mut entries = Vec::new();
        let mut tbs = SliceReader::new(frame.to_be_signed.value())?;
        let base = offset(&der, frame.to_be_signed.value());
        // v1 has no version field (RFC 5280, section 5.1.2.1), and no extensions.
        let version = if Tag::peek(&tbs)? == Tag::Integer { u8::decode(&mut tbs)? } else { 0 };
        if version > 1 {
            return Err(Tag::Integer.value_error().into());
        }
        let signed_algorithm = AlgorithmIdentifierOwned::decode(&mut tbs)?;
        let issuer = Name::decode(&mut tbs)?;
        let this_update = unix_time(&Time::decode(&mut tbs)?);
        let next_update = match peek(&tbs)? {
            Some(Tag::UtcTime | Tag::GeneralizedTime) => Some(unix_time(&Time::decode(&mut tbs)?)),
            _ => None,
        };
        if peek(&tbs)? == Some(Tag::Sequence) {
            let list = AnyRef::decode(&mut tbs)?;
            let at = base + offset(frame.to_be_signed.value(), list.value());
            entries = index(list.value(), at, &der, &mut unusable)?;
        }
        let extensions = tbs
            .context_specific::<Vec<Extension>>(TagNumber(0), TagMode::Explicit)?
            .unwrap_or_default();
        tbs.finish()?;
        let mut crl = Self {
            issuer,
            this_update,
            next_update,
            extensions,
            distribution_point: None,
            signed_algorithm,
            algorithm,
            entries,
            unusable,
            der,
        };
        crl.read_extensions()?;
        Ok(crl)
    }

    fn read_extensions(&mut self) -> der::Result<()> {
        if self.extensions.len() > MAX_EXTENSIONS {
            return Err(Tag::Sequence.length_error().into());
        }
        for (index, extension) in self.extensions.iter().enumerate() {
            if self.extensions.iter().take(index).any(|other| other.extn_id == extension.extn_id) {
                return Err(Tag::Sequence.value_error().into());
            }
            if let Some((_, name, section)) =
                NEVER_CRITICAL.iter().find(|(id, ..)| *id == extension.extn_id)
                && extension.critical
            {
                self.unusable = Some(format!("its {name} is critical, which {section} forbids"));
            }
            match extension.extn_id {
                ID_CE_ISSUING_DISTRIBUTION_POINT => {
                    let point =
                        IssuingDistributionPoint::from_der(extension.extn_value.as_bytes())?;
                    if point.indirect_crl {
                        self.unusable = Some("it is an indirect CRL".into());
                    }
                    if let Some(DistributionPointName::FullName(names)) = &point.distribution_point
                        && names.len() > MAX_DISTRIBUTION_POINTS
                    {
                        self.unusable = Some("its distribution point has too many names".into());
                    }
                    self.distribution_point = Some(point);
                }
                // Parses both now, so that a malformed one is found here and not at its first use.
                ID_CE_CRL_NUMBER => {
                    CrlNumber::from_der(extension.extn_value.as_bytes())?;
                }
                ID_CE_AUTHORITY_KEY_IDENTIFIER => {
                    AuthorityKeyIdentifier::from_der(extension.extn_value.as_bytes())?;
                }
                ID_CE_DELTA_CRL_INDICATOR => self.unusable = Some("it is a delta CRL".into()),
                // RFC 5280, section 5.2: such a CRL says nothing about certificates that are not on it, so it is not
                // used at all.
                other if extension.critical => {
                    self.unusable = Some(format!("it has the unknown critical extension {other}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The DER that was parsed.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The issuer's name.
    pub fn issuer(&self) -> &Name {
        &self.issuer
    }

    /// Seconds since 1970.
    pub fn this_update(&self) -> i64 {
        self.this_update
    }

    /// Seconds since 1970. RFC 5280 requires it in every CRL.
    pub fn next_update(&self) -> Option<i64> {
        self.next_update
    }

    /// CRL number, big-endian.
    pub fn number(&self) -> Option<Vec<u8>> {
        let value = self.extension_value(ID_CE_CRL_NUMBER)?;
        CrlNumber::from_der(value).ok().map(|number| number.0.as_bytes().to_vec())
    }

    /// Key identifier in the authority key identifier.
    pub fn authority_key_identifier(&self) -> Option<Vec<u8>> {
        let value = self.extension_value(ID_CE_AUTHORITY_KEY_IDENTIFIER)?;
        let identifier = AuthorityKeyIdentifier::from_der(value).ok()?.key_identifier?;
        Some(identifier.as_bytes().to_vec())
    }

    /// The issuing distribution point, if there is one.
    pub fn issuing_distribution_point(&self) -> Option<&IssuingDistributionPoint> {
        self.distribution_point.as_ref()
    }

    /// The URLs of its issuing distribution point.
    pub fn distribution_urls(&self) -> Vec<String> {
        let point =
            self.distribution_point.as_ref().and_then(|idp| idp.distribution_point.as_ref());
        let Some(DistributionPointName::FullName(names)) = point else { return Vec::new() };
        let url = |name: &GeneralName| match name {
            GeneralName::UniformResourceIdentifier(uri) => Some(uri.as_str().to_owned()),
            _ => None,
        };
        names.iter().filter_map(url).collect()
    }

    /// All extensions.
    pub fn extensions(&self) -> &[Extension] {
        &self.extensions
    }

    /// OID of the algorithm that it is signed with.
    pub fn signature_algorithm(&self) -> ObjectIdentifier {
        self.algorithm.oid
    }

    /// Whether the algorithm in the signed part equals the one outside, as it must (RFC 5280, section 5.1.2.2).
    ///
    /// A CRL in which they differ is used nevertheless, as OpenSSL does: the signature is verified with the algorithm
    /// outside and the issuer's key, and the tables have no weak algorithm. The re-issued CRLs of PKITS are of this
    /// kind.
    pub fn algorithms_agree(&self) -> bool {
        self.algorithm == self.signed_algorithm
    }

    /// Why this CRL must not be used, if so: an extension that is critical and unknown (RFC 5280, sections 5.2 and
    /// 5.3) or must not be critical, or a delta or indirect CRL.
    pub fn unusable(&self) -> Option<&str> {
        self.unusable.as_deref()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry with this serial number (big-endian, leading zeros do not matter).
    pub fn entry(&self, serial: &[u8]) -> Option<Entry<Vec<u8>>> {
        self.find(&integer(serial))
    }

    /// The entry of a certificate's serial number, which may be negative: such certificates exist, although RFC 5280
    /// forbids them, and their numbers differ from the positive ones with the same bytes.
    pub fn entry_of(&self, certificate: &Certificate) -> Option<Entry<Vec<u8>>> {
        self.find(certificate.serial_number().as_bytes())
    }

    /// The revocation of a certificate that it lists, with the invalidity date.
    pub fn revocation_of(&self, certificate: &Certificate) -> Option<Revoked> {
        let found = self.position(certificate.serial_number().as_bytes())?;
        let raw = self.raw_entry(found)?;
        Some(Revoked {
            at: unix_time(&raw.revoked_at),
            reason: raw.extensions.and_then(reason_of).unwrap_or(UNSPECIFIED),
            invalid_since: raw.extensions.and_then(invalidity_of),
        })
    }

    /// Whether it lists the serial number with these content octets.
    pub fn lists(&self, serial_number: &[u8]) -> bool {
        self.find(serial_number).is_some()
    }

    /// Whether its issuer has this name.
    pub fn is_of(&self, issuer: &Name) -> bool {
        names::same(&self.issuer, issuer)
    }

    fn find(&self, integer: &[u8]) -> Option<Entry<Vec<u8>>> {
        self.entry_at(self.position(integer)?)
    }

    /// Offset of the entry whose serial number has these content octets.
    fn position(&self, integer: &[u8]) -> Option<u32> {
        let found =
            self.entries.binary_search_by(|start| compare(serial_at(&self.der, *start), integer));
        self.entries.get(found.ok()?).copied()
    }

    /// All entries, sorted by serial number.
    pub fn entries(&self) -> impl Iterator<Item = Entry<Vec<u8>>> + '_ {
        self.entries.iter().filter_map(|start| self.entry_at(*start))
    }

    fn entry_at(&self, start: u32) -> Option<Entry<Vec<u8>>> {
        let raw = self.raw_entry(start)?;
        Some(Entry {
            serial: significant(raw.serial.as_bytes()).to_vec(),
            revoked_at: unix_time(&raw.revoked_at),
            reason: raw.extensions.and_then(reason_of).unwrap_or(UNSPECIFIED),
        })
    }

    fn raw_entry(&self, start: u32) -> Option<RawEntry<'_>> {
        let mut reader = SliceReader::new(self.der.get(start as usize..)?).ok()?;
        RawEntry::decode(&mut reader).ok()
    }

    /// Whether `issuer` issued it: the name matches, and its key may sign CRLs and made the signature. Does not check
    /// times.
    pub fn signed_by(&self, issuer: &Certificate) -> bool {
        names::same(&self.issuer, issuer.subject())
            && issuer.key_usage().is_none_or(|(_, usage)| usage.crl_sign())
            && issuer.public_key().is_ok_and(|key| self.signed_with(&key))
    }

    /// Whether the key in the DER `SubjectPublicKeyInfo` made the signature.
    pub fn signed_with(&self, public_key: &[u8]) -> bool {
        let signed = || {
            let algorithm = signature_row(&self.algorithm).ok()?;
            let frame = Frame::from_der(&self.der).ok()?;
            let signature = frame.signature.as_bytes()?;
            algorithm.verify(public_key, Message::Raw(raw_tbs(&self.der)?), signature).ok()
        };
        signed().is_some()
    }

    fn extension_value(&self, oid: ObjectIdentifier) -> Option<&[u8]> {
        let found = self.extensions.iter().find(|extension| extension.extn_id == oid)?;
        Some(found.extn_value.as_bytes())
    }
}

/// Parses every entry once and returns their offsets, sorted by serial number.
fn index(
    list: &[u8],
    at: usize,
    der: &[u8],
    unusable: &mut Option<String>,
) -> der::Result<Vec<u32>> {
    let mut reader = SliceReader::new(list)?;
    let mut entries = Vec::new();
    let mut ordered = true;
    let mut known: &[u8] = &[];
    while !reader.is_finished() {
        let start = at + usize::try_from(reader.position())?;
        let entry = RawEntry::decode(&mut reader)?;
        // Most entries have one of a few reasons.
        if let Some(extensions) = entry.extensions.filter(|list| list.value() != known) {
            check_entry_extensions(extensions, unusable)?;
            known = extensions.value();
        }
        let start = u32::try_from(start).map_err(|_| der::ErrorKind::Overflow)?;
        if let Some(last) = entries.last() {
            ordered &= compare(serial_at(der, *last), serial_at(der, start)).is_lt();
        }
        entries.push(start);
    }
    if !ordered {
        entries.sort_by(|a, b| compare(serial_at(der, *a), serial_at(der, *b)));
    }
    Ok(entries)
}

fn check_entry_extensions(list: AnyRef<'_>, unusable: &mut Option<String>) -> der::Result<()> {
    for extension in list.decode_as::<Vec<Extension>>()? {
        match extension.extn_id {
            ID_CE_CRL_REASONS => {
                CrlReasonCode::from_der(extension.extn_value.as_bytes())?;
            }
            CERTIFICATE_ISSUER => *unusable = Some("it is an indirect CRL".into()),
            other if extension.critical => {
                *unusable = Some(format!("it has the unknown critical entry extension {other}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn reason_of(list: AnyRef<'_>) -> Option<&'static Reason> {
    let list = list.decode_as::<Vec<Extension>>().ok()?;
    let extension = list.iter().find(|extension| extension.extn_id == ID_CE_CRL_REASONS)?;
    Reason::by_code(CrlReasonCode::from_der(extension.extn_value.as_bytes()).ok()?.0)
}

/// RFC 5280, section 5.3.2.
fn invalidity_of(list: AnyRef<'_>) -> Option<i64> {
    invalidity_date(&list.decode_as::<Vec<Extension>>().ok()?)
}

/// The INTEGER bytes of the serial number of the entry at `start`.
fn serial_at(der: &[u8], start: u32) -> &[u8] {
    let read = || {
        let mut reader = SliceReader::new(der.get(start as usize..)?).ok()?;
        let header = der::Header::decode(&mut reader).ok()?;
        if header.tag() != Tag::Sequence {
            return None;
        }
        IntRef::decode(&mut reader).ok().map(|serial| serial.as_bytes())
    };
    read().unwrap_or_default()
}

/// Removes leading zeros.
pub(crate) fn significant(serial: &[u8]) -> &[u8] {
    let zeros = serial.iter().take_while(|byte| **byte == 0).count();
    serial.get(zeros.min(serial.len().saturating_sub(1))..).unwrap_or_default()
}

/// The bytes of the DER INTEGER for a serial number (big-endian).
pub(crate) fn integer(serial: &[u8]) -> Vec<u8> {
    let serial = significant(serial);
    let sign = serial.first().is_some_and(|first| *first >= 0x80);
    sign.then_some(0).into_iter().chain(serial.iter().copied()).collect()
}

fn compare(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn peek(reader: &SliceReader<'_>) -> der::Result<Option<Tag>> {
    if reader.is_finished() { Ok(None) } else { Tag::peek(reader).map(Some) }
}

/// Offset of `part` in `whole`, which contains it.
fn offset(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}
