//! Certificate revocation lists (RFC 5280, section 5): building in two steps around a signer elsewhere, and parsing
//! without a tree of the entries.
//!
//! Delta CRLs and indirect CRLs are not made here. Both are recognised when they are read ([`Crl::unusable`]).

pub mod read;
pub mod reason;

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280::{
    ID_CE_AUTHORITY_KEY_IDENTIFIER, ID_CE_CRL_NUMBER, ID_CE_ISSUING_DISTRIBUTION_POINT,
};
use der::asn1::{AnyRef, BitStringRef, Ia5String, OctetString, UintRef};
use der::{Decode, Encode, Header, Length, Sequence, Tag};
use outlast_crypto::signatures::SignatureAlgorithm;
use spki::AlgorithmIdentifierOwned;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::AuthorityKeyIdentifier;
use x509_cert::ext::pkix::crl::CrlNumber;
use x509_cert::ext::pkix::crl::dp::IssuingDistributionPoint;
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralName};
use x509_cert::name::Name;
use x509_cert::time::Time;

use crate::PkiError;
use crate::certificate::algorithm_identifier;
use crate::extension::extension;
use crate::time::x509_time;

pub use read::Crl;
pub use reason::{REASONS, Reason, Revoked};

/// Longest CRL that is read, in bytes: more than two million entries.
pub const MAX_CRL_LEN: usize = 128 * 1024 * 1024;

/// Longest serial number, in bytes (RFC 5280, section 4.1.2.2).
pub const MAX_SERIAL_LEN: usize = 20;

/// One revoked certificate.
#[derive(Debug, Clone, Copy)]
pub struct Entry<S> {
    /// Serial number, big-endian; leading zeros do not matter.
    pub serial: S,
    /// When it was revoked, seconds since 1970.
    pub revoked_at: i64,
    /// The reason. [`reason::UNSPECIFIED`] is left out of the CRL (RFC 5280, section 5.3.1).
    pub reason: &'static Reason,
}

/// The certificates that a CRL covers (RFC 5280, section 5.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All certificates of the issuer, or all that name the distribution point.
    #[default]
    All,
    /// End-entity certificates only.
    UserCertificates,
    /// CA certificates only.
    CaCertificates,
}

/// Contents of a CRL, except its entries.
pub struct Content {
    /// The issuer's name: its certificate's subject.
    pub issuer: Name,
    /// The issuer's *own* subject key identifier, for this CRL's authority key identifier. (The issuer certificate's
    /// authority key identifier names the CA above, and verifiers would look for that CA's key.)
    pub issuer_key_id: Vec<u8>,
    /// CRL number; each later CRL of the same issuer and scope has a greater one.
    pub number: u64,
    /// Seconds since 1970.
    pub this_update: i64,
    /// Seconds since 1970.
    pub next_update: i64,
    /// The URLs where it is published, for the critical issuing distribution point, so that a partition cannot be
    /// taken for another. By RFC 5280, section 6.3.3 (b) (2) (i), one of them must be one of those in the
    /// certificate; so a URL can be replaced while certificates still have the old one.
    pub distribution_points: Vec<String>,
    /// The certificates that it covers.
    pub scope: Scope,
}

/// A CRL without its signature.
pub struct Unsigned {
    /// The bytes to sign. They are often longer than what KMS signs as RAW; ML-DSA signs them through its external
    /// mu.
    pub to_be_signed: Vec<u8>,
    algorithm: AlgorithmIdentifierOwned,
}

impl Content {
    /// Encodes the contents with `entries`, which are iterated once and kept only as DER.
    ///
    /// Entries are sorted by serial number; of several with the same serial number the first is kept.
    pub fn prepare<S: AsRef<[u8]>>(
        self,
        algorithm: &SignatureAlgorithm,
        entries: impl IntoIterator<Item = Entry<S>>,
    ) -> Result<Unsigned, PkiError> {
        let algorithm = algorithm_identifier(algorithm)?;
        let entries = encode_entries(entries)?;
        let this_update = x509_time(self.this_update)?;
        let next_update = x509_time(self.next_update)?;
        let extensions = self.extensions()?;
        let encode = || {
            let mut fields = Vec::with_capacity(entries.len() + 1024);
            // v2 (RFC 5280, section 5.1.2.1)
            1u8.encode_to_vec(&mut fields)?;
            algorithm.encode_to_vec(&mut fields)?;
            self.issuer.encode_to_vec(&mut fields)?;
            this_update.encode_to_vec(&mut fields)?;
            next_update.encode_to_vec(&mut fields)?;
            // RFC 5280, section 5.1.2.6: absent if there are no entries.
            if !entries.is_empty() {
                header(Tag::Sequence, entries.len())?.encode_to_vec(&mut fields)?;
                fields.extend_from_slice(&entries);
            }
            let extensions = extensions.to_der()?;
            let tag = Tag::ContextSpecific { constructed: true, number: der::TagNumber(0) };
            header(tag, extensions.len())?.encode_to_vec(&mut fields)?;
            fields.extend_from_slice(&extensions);
            let mut to_be_signed = Vec::with_capacity(fields.len() + 8);
            header(Tag::Sequence, fields.len())?.encode_to_vec(&mut to_be_signed)?;
            to_be_signed.append(&mut fields);
            Ok(to_be_signed)
        };
        Ok(Unsigned { to_be_signed: encode().map_err(malformed)?, algorithm })
    }

    fn extensions(&self) -> Result<Vec<Extension>, PkiError> {
        let key_id = OctetString::new(self.issuer_key_id.as_slice()).map_err(malformed)?;
        let authority =
            AuthorityKeyIdentifier { key_identifier: Some(key_id), ..Default::default() };
        let number = CrlNumber::try_from(self.number).map_err(malformed)?;
        let mut list = vec![
            extension(ID_CE_AUTHORITY_KEY_IDENTIFIER, false, &authority)?,
            extension(ID_CE_CRL_NUMBER, false, &number)?,
        ];
        if !self.distribution_points.is_empty() || self.scope != Scope::All {
            let uri = |url: &String| {
                let uri = Ia5String::new(url).map_err(malformed)?;
                Ok::<_, PkiError>(GeneralName::UniformResourceIdentifier(uri))
            };
            let names: Vec<_> =
                self.distribution_points.iter().map(uri).collect::<Result<_, PkiError>>()?;
            let point = IssuingDistributionPoint {
                distribution_point: (!names.is_empty())
                    .then_some(DistributionPointName::FullName(names)),
                only_contains_user_certs: self.scope == Scope::UserCertificates,
                only_contains_ca_certs: self.scope == Scope::CaCertificates,
                only_some_reasons: None,
                indirect_crl: false,
                only_contains_attribute_certs: false,
            };
            // With its own OID: the type's `AssociatedOid` in x509-cert 0.3.0 belongs to another extension.
            list.push(extension(ID_CE_ISSUING_DISTRIBUTION_POINT, true, &point)?);
        }
        Ok(list)
    }
}

impl Unsigned {
    /// Adds the signature and returns the CRL in DER.
    pub fn assemble(self, signature: &[u8]) -> Result<Vec<u8>, PkiError> {
        assemble(&self.to_be_signed, &self.algorithm, signature).map_err(malformed)
    }
}

/// A CRL as PEM text (RFC 7468, section 6).
pub fn pem(der: &[u8]) -> String {
    // Only an invalid label can fail.
    der::pem::encode_string("X509 CRL", der::pem::LineEnding::LF, der).unwrap_or_default()
}

/// `SEQUENCE { to-be-signed, algorithm, signature }`.
fn assemble(
    to_be_signed: &[u8],
    algorithm: &AlgorithmIdentifierOwned,
    signature: &[u8],
) -> der::Result<Vec<u8>> {
    let algorithm = algorithm.to_der()?;
    let signature = BitStringRef::from_bytes(signature)?.to_der()?;
    let len = to_be_signed.len() + algorithm.len() + signature.len();
    let mut out = Vec::with_capacity(len + 8);
    header(Tag::Sequence, len)?.encode_to_vec(&mut out)?;
    for part in [to_be_signed, &algorithm, &signature] {
        out.extend_from_slice(part);
    }
    Ok(out)
}

/// An encoded entry. The extensions are encoded once for each reason.
#[derive(Sequence)]
struct EncodedEntry<'a> {
    serial: UintRef<'a>,
    revoked_at: Time,
    extensions: Option<AnyRef<'a>>,
}

fn encode_entries<S: AsRef<[u8]>>(
    entries: impl IntoIterator<Item = Entry<S>>,
) -> Result<Vec<u8>, PkiError> {
    let entries = entries.into_iter();
    let mut reasons: Vec<Option<Vec<u8>>> = vec![None; REASONS.len()];
    // About 40 bytes an entry; the iterator's size hint is trusted within reason only.
    let mut encoded: Vec<u8> = Vec::with_capacity(entries.size_hint().0.min(1_000_000) * 40);
    let mut spans: Vec<EntrySpan> = Vec::new();
    let mut ordered = true;
    for entry in entries {
        let serial = UintRef::new(entry.serial.as_ref()).map_err(malformed)?;
        if serial.is_empty() || serial.as_bytes().len() > MAX_SERIAL_LEN {
            return Err(PkiError::Malformed {
                what: "serial number",
                reason: format!("it must have 1 to {MAX_SERIAL_LEN} bytes"),
            });
        }
        let extensions = match entry.reason.index().and_then(|index| reasons.get_mut(index)) {
            Some(Some(known)) => Some(&*known),
            Some(unknown) if entry.reason.code != 0 => {
                Some(&*unknown.insert(entry.reason.extensions().map_err(malformed)?))
            }
            _ => None,
        };
        let start = encoded.len();
        EncodedEntry {
            serial,
            revoked_at: x509_time(entry.revoked_at)?,
            extensions: extensions
                .map(|der| AnyRef::from_der(der))
                .transpose()
                .map_err(malformed)?,
        }
        .encode_to_vec(&mut encoded)
        .map_err(malformed)?;
        let span = EntrySpan { start, end: encoded.len() };
        if let Some(last) = spans.last() {
            ordered &= entry_serial(&encoded, *last) < entry_serial(&encoded, span);
        }
        spans.push(span);
    }
    if ordered {
        return Ok(encoded);
    }
    // A stable sort, so that the first of several entries stays.
    spans.sort_by(|a, b| entry_serial(&encoded, *a).cmp(&entry_serial(&encoded, *b)));
    spans.dedup_by(|b, a| entry_serial(&encoded, *a) == entry_serial(&encoded, *b));
    let mut out = Vec::with_capacity(encoded.len());
    for span in spans {
        out.extend_from_slice(encoded.get(span.start..span.end).unwrap_or_default());
    }
    Ok(out)
}

#[derive(Clone, Copy)]
struct EntrySpan {
    start: usize,
    end: usize,
}

/// Sort key of an encoded entry: length of the serial number, then its value. Both headers of an entry are short,
/// since it has less than 128 bytes.
fn entry_serial(encoded: &[u8], span: EntrySpan) -> (usize, &[u8]) {
    let entry = encoded.get(span.start..span.end).unwrap_or_default();
    let len = entry.get(3).map_or(0, |len| usize::from(*len));
    (len, entry.get(4..4 + len).unwrap_or_default())
}

fn header(tag: Tag, len: usize) -> der::Result<Header> {
    Ok(Header::new(tag, Length::try_from(len)?))
}

fn malformed(error: der::Error) -> PkiError {
    PkiError::malformed("CRL", &error)
}

/// `id-ce-certificateIssuer`, which makes a CRL indirect.
pub(crate) const CERTIFICATE_ISSUER: ObjectIdentifier =
    const_oid::db::rfc5280::ID_CE_CERTIFICATE_ISSUER;
