//! The attributes by which a signer names its own certificate: RFC 5035 with any digest, RFC 2634 with SHA-1.
//!
//! A SignerInfo names its certificate outside of what is signed. These attributes put the certificate's digest inside,
//! so that nobody can replace the certificate with another one for the same key.

use const_oid::ObjectIdentifier;
use der::asn1::{Any, OctetString, SetOfVec};
use der::{Decode, Encode, Sequence};
use outlast_crypto::digests::{Digest, SHA1_FOR_IDENTIFIERS};
use spki::AlgorithmIdentifierOwned;
use x509_cert::attr::Attribute;
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;

use crate::certificate::Certificate;
use crate::general_name::{GeneralName, decode_names};

/// `id-aa-signingCertificateV2`
pub(crate) const SIGNING_CERTIFICATE_V2: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.47");
/// `id-aa-signingCertificate`
pub(crate) const SIGNING_CERTIFICATE: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.12");

/// RFC 5035, section 4. The digest is SHA-256 unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub(crate) struct EssCertIdV2 {
    algorithm: Option<AlgorithmIdentifierOwned>,
    hash: OctetString,
    /// An [`IssuerSerial`].
    issuer_serial: Option<Any>,
}

/// RFC 5035, section 3: the first identifier is the signer's certificate; what follows restricts the path, and is not
/// evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub(crate) struct SigningCertificateV2 {
    certificates: Vec<EssCertIdV2>,
    policies: Option<Any>,
}

/// RFC 2634, section 5.4.1: SHA-1.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
struct EssCertId {
    hash: OctetString,
    issuer_serial: Option<Any>,
}

/// RFC 2634, section 5.4.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub(crate) struct SigningCertificate {
    certificates: Vec<EssCertId>,
    policies: Option<Any>,
}

#[derive(Sequence)]
struct IssuerSerial {
    issuer: Any,
    serial_number: SerialNumber,
}

impl EssCertIdV2 {
    /// Names the certificate in `der` by its SHA-256.
    pub(crate) fn of(der: &[u8]) -> der::Result<Self> {
        let hash = OctetString::new(outlast_crypto::digests::sha256(der))?;
        Ok(Self { algorithm: None, hash, issuer_serial: None })
    }

    /// Whether it has the digest of the certificate in `der`.
    pub(crate) fn has_digest_of(&self, der: &[u8]) -> bool {
        let digest = match &self.algorithm {
            None => Digest::by_name("sha256"),
            Some(algorithm) => Digest::by_oid(algorithm.oid),
        };
        digest.is_some_and(|digest| digest.digest(der) == self.hash.as_bytes())
    }
}

impl SigningCertificateV2 {
    /// Whether it names `certificate` as the signer's.
    pub(crate) fn names(&self, certificate: &Certificate) -> bool {
        self.certificates.first().is_some_and(|id| {
            id.has_digest_of(certificate.der()) && fits(id.issuer_serial.as_ref(), certificate)
        })
    }
}

impl SigningCertificate {
    /// Whether it names `certificate` as the signer's. SHA-1 identifies here, among certificates with the signer's
    /// key, and signs nothing.
    pub(crate) fn names(&self, certificate: &Certificate) -> bool {
        self.certificates.first().is_some_and(|id| {
            SHA1_FOR_IDENTIFIERS.digest(certificate.der()) == id.hash.as_bytes()
                && fits(id.issuer_serial.as_ref(), certificate)
        })
    }
}

/// The attribute signingCertificateV2 for the certificate in `der`.
pub(crate) fn signing_certificate(der: &[u8]) -> der::Result<Attribute> {
    let value = SigningCertificateV2 { certificates: vec![EssCertIdV2::of(der)?], policies: None };
    let values = SetOfVec::try_from(vec![Any::from_der(&value.to_der()?)?])?;
    Ok(Attribute { oid: SIGNING_CERTIFICATE_V2, values })
}

/// Whether issuer and serial number, if they are there, are the certificate's.
fn fits(issuer_serial: Option<&Any>, certificate: &Certificate) -> bool {
    let Some(value) = issuer_serial else { return true };
    let Ok(value) = value.decode_as::<IssuerSerial>() else { return false };
    let names = value.issuer.to_der().ok().and_then(|der| decode_names(&der).ok());
    let is_issuer = |name: &Name| name == certificate.issuer();
    value.serial_number == *certificate.serial_number()
        && names.is_some_and(|names| {
            names
                .iter()
                .any(|name| matches!(name, GeneralName::DirectoryName(name) if is_issuer(name)))
        })
}
