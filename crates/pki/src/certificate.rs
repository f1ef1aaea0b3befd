//! X.509 certificates: parsing, and building in two steps around a signer elsewhere.

use const_oid::ObjectIdentifier;
use der::asn1::BitString;
use der::{Decode, Encode};
use outlast_crypto::digests;
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use spki::{
    AlgorithmIdentifierOwned, DynSignatureAlgorithmIdentifier, EncodePublicKey,
    SubjectPublicKeyInfoOwned, SubjectPublicKeyInfoRef,
};
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::builder::{Builder, CertificateBuilder};
use x509_cert::certificate::TbsCertificate;
pub use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectKeyIdentifier};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::time::Validity;

use crate::PkiError;
use crate::extensions::SUBJECT_ALT_NAME;
use crate::general_name::{GeneralName, decode_names};
use crate::seen::Seen;
use crate::time::{unix_time, x509_time};

/// Length of the serial numbers that Outlast gives, in bytes (RFC 5280, 4.1.2.2: at most 20).
pub const SERIAL_LEN: usize = 16;

/// A parsed certificate.
#[derive(Debug, Clone)]
pub struct Certificate {
    der: Vec<u8>,
    parsed: x509_cert::Certificate,
}

impl Certificate {
    /// Parses a certificate in DER.
    pub fn parse(der: &[u8]) -> Result<Self, PkiError> {
        let parsed = x509_cert::Certificate::from_der(der)
            .map_err(|error| PkiError::malformed("certificate", &error))?;
        Ok(Self { der: der.to_vec(), parsed })
    }

    /// Parses what is to be signed (DER of a `TBSCertificate`) as a certificate with an empty signature, to check it
    /// before it is signed.
    pub(crate) fn unsigned(to_be_signed: &[u8]) -> Result<Self, PkiError> {
        let wrap = || {
            let tbs = TbsCertificate::from_der(to_be_signed)?;
            let mut content = to_be_signed.to_vec();
            content.extend(tbs.signature().to_der()?);
            content.extend(BitString::from_bytes(&[])?.to_der()?);
            der::asn1::AnyRef::new(der::Tag::Sequence, &content)?.to_der()
        };
        Self::parse(&wrap().map_err(|error| PkiError::malformed("certificate", &error))?)
    }

    /// The DER that was parsed.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    fn tbs(&self) -> &TbsCertificate {
        self.parsed.tbs_certificate()
    }

    /// Whether it is of version 3, the one with extensions.
    pub fn is_v3(&self) -> bool {
        self.tbs().version() == x509_cert::Version::V3
    }

    /// Subject.
    pub fn subject(&self) -> &Name {
        self.tbs().subject()
    }

    /// Issuer.
    pub fn issuer(&self) -> &Name {
        self.tbs().issuer()
    }

    /// Serial number, big-endian without leading zeros.
    pub fn serial(&self) -> &[u8] {
        let bytes = self.tbs().serial_number().as_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        &bytes[zeros.min(bytes.len().saturating_sub(1))..]
    }

    /// The content octets of the serial number in DER.
    pub fn serial_number(&self) -> &SerialNumber {
        self.tbs().serial_number()
    }

    /// Start of validity, seconds since 1970.
    pub fn not_before(&self) -> i64 {
        unix_time(&self.tbs().validity().not_before)
    }

    /// End of validity, seconds since 1970.
    pub fn not_after(&self) -> i64 {
        unix_time(&self.tbs().validity().not_after)
    }

    /// DER `SubjectPublicKeyInfo`.
    pub fn public_key(&self) -> Result<Vec<u8>, PkiError> {
        self.tbs()
            .subject_public_key_info()
            .to_der()
            .map_err(|error| PkiError::malformed("certificate", &error))
    }

    /// OID of the public key's algorithm.
    pub fn public_key_algorithm(&self) -> ObjectIdentifier {
        self.tbs().subject_public_key_info().algorithm.oid
    }

    /// OID of the algorithm that the issuer signed with.
    pub fn signature_algorithm(&self) -> ObjectIdentifier {
        self.parsed.signature_algorithm().oid
    }

    /// Row of that algorithm; `None` if the tables have none.
    pub fn signature_row(&self) -> Option<&'static SignatureAlgorithm> {
        signature_row(self.parsed.signature_algorithm()).ok()
    }

    /// Subject key identifier, if there is one.
    pub fn subject_key_identifier(&self) -> Option<Vec<u8>> {
        self.extension::<SubjectKeyIdentifier>().map(|(_, id)| id.0.as_bytes().to_vec())
    }

    /// Basic constraints, if there are any.
    pub fn basic_constraints(&self) -> Option<BasicConstraints> {
        self.extension::<BasicConstraints>().map(|(_, value)| value)
    }

    /// Whether it belongs to a CA that may sign certificates: CA:TRUE, and keyCertSign if it has a key usage.
    pub fn may_issue(&self) -> bool {
        self.basic_constraints().is_some_and(|constraints| constraints.ca)
            && self.key_usage().is_none_or(|(_, usage)| usage.key_cert_sign())
    }

    /// How many CAs may follow below, if that is limited.
    pub fn path_len(&self) -> Option<usize> {
        self.basic_constraints()?.path_len_constraint.map(usize::from)
    }

    /// Key usage, and whether it is critical.
    pub fn key_usage(&self) -> Option<(bool, KeyUsage)> {
        self.extension::<KeyUsage>()
    }

    /// Extended key usage, and whether it is critical.
    pub fn extended_key_usage(&self) -> Option<(bool, Vec<ObjectIdentifier>)> {
        self.extension::<ExtendedKeyUsage>().map(|(critical, value)| (critical, value.0))
    }

    /// All extensions.
    pub fn extensions(&self) -> &[Extension] {
        self.tbs().extensions().map_or(&[], Vec::as_slice)
    }

    /// Subject alternative names, as text for people: `DNS:a.example`.
    pub fn subject_alternative_names(&self) -> Vec<String> {
        self.general_names().iter().map(ToString::to_string).collect()
    }

    /// Subject alternative names; empty if the extension cannot be read.
    pub fn general_names(&self) -> Vec<GeneralName> {
        self.extensions()
            .iter()
            .find(|extension| extension.extn_id == SUBJECT_ALT_NAME)
            .and_then(|extension| decode_names(extension.extn_value.as_bytes()).ok())
            .unwrap_or_default()
    }

    pub(crate) fn extension<'a, T: Decode<'a> + const_oid::AssociatedOid>(
        &'a self,
    ) -> Option<(bool, T)> {
        self.tbs().get_extension::<T>().ok().flatten()
    }

    /// Whether `issuer`'s key signed this certificate. Checks neither validity nor constraints.
    pub fn signed_by(&self, issuer: &Self) -> bool {
        self.signed_by_seen(issuer, None)
    }

    /// [`Certificate::signed_by`], without verifying again what has been `seen`.
    pub(crate) fn signed_by_seen(&self, issuer: &Self, seen: Option<&Seen>) -> bool {
        let signed =
            |key: Vec<u8>| Seen::or_verify(seen, &key, self.der(), || self.signed_with(&key));
        self.issuer() == issuer.subject() && issuer.public_key().is_ok_and(signed)
    }

    /// Whether the tables have a row for the algorithm that the issuer signed with.
    pub(crate) fn has_known_signature_algorithm(&self) -> bool {
        signature_row(self.parsed.signature_algorithm()).is_ok()
    }

    /// Whether the key in the DER `SubjectPublicKeyInfo` made the signature.
    pub fn signed_with(&self, public_key: &[u8]) -> bool {
        let outer = self.parsed.signature_algorithm();
        let signed = || {
            let algorithm = signature_row(outer).ok()?;
            let tbs = raw_tbs(&self.der)?;
            let signature = self.parsed.signature().as_bytes()?;
            algorithm.verify(public_key, Message::Raw(tbs), signature).ok()
        };
        // RFC 5280, section 4.1.1.2: the signed part names the same algorithm.
        outer == self.tbs().signature() && signed().is_some()
    }
}

/// The to-be-signed bytes exactly as they are in a certificate or request.
pub(crate) fn raw_tbs(der: &[u8]) -> Option<&[u8]> {
    use der::Reader;
    let mut reader = der::SliceReader::new(der).ok()?;
    reader
        .sequence(|inner| {
            let tbs = inner.tlv_bytes()?;
            inner.drain(inner.remaining_len())?;
            Ok::<_, der::Error>(tbs)
        })
        .ok()
}

/// Leftmost 160 bits of the SHA-256 of the public key's BIT STRING (RFC 7093, section 2, method 1, as
/// RFC 9881 uses it): 20 bytes.
pub fn key_identifier(spki: &[u8]) -> Result<Vec<u8>, PkiError> {
    let parsed = SubjectPublicKeyInfoRef::from_der(spki)
        .map_err(|error| PkiError::malformed("public key", &error))?;
    Ok(digests::sha256(parsed.subject_public_key.raw_bytes())[..20].to_vec())
}

/// The `AlgorithmIdentifier` of a signature.
pub fn algorithm_identifier(
    algorithm: &SignatureAlgorithm,
) -> Result<AlgorithmIdentifierOwned, PkiError> {
    let oid = algorithm
        .oid
        .ok_or_else(|| PkiError::UnsupportedAlgorithm(algorithm.kms_name.to_owned()))?;
    let unsupported = |_| PkiError::UnsupportedAlgorithm(algorithm.kms_name.to_owned());
    let parameters = algorithm.encoded_parameters().map_err(unsupported)?;
    let parameters = parameters
        .map(|der| der::asn1::Any::from_der(&der))
        .transpose()
        .map_err(|error| PkiError::malformed("algorithm", &error))?;
    Ok(AlgorithmIdentifierOwned { oid, parameters })
}

/// The row of a signature's `AlgorithmIdentifier`.
pub fn signature_row(
    identifier: &AlgorithmIdentifierOwned,
) -> Result<&'static SignatureAlgorithm, PkiError> {
    let parameters = identifier.parameters.as_ref().map(Encode::to_der).transpose();
    let parameters = parameters.map_err(|error| PkiError::malformed("algorithm", &error))?;
    SignatureAlgorithm::by_identifier(identifier.oid, parameters.as_deref())
        .ok_or_else(|| PkiError::UnsupportedAlgorithm(identifier.oid.to_string()))
}

/// Contents of a certificate.
pub struct Content {
    /// Serial number, big-endian; its top bit is cleared before use.
    pub serial: [u8; SERIAL_LEN],
    /// Issuer.
    pub issuer: Name,
    /// Subject.
    pub subject: Name,
    /// DER `SubjectPublicKeyInfo`.
    pub public_key: Vec<u8>,
    /// Seconds since 1970.
    pub not_before: i64,
    /// Seconds since 1970.
    pub not_after: i64,
    /// Extensions, in order.
    pub extensions: Vec<Extension>,
}

/// A certificate without its signature.
pub struct Unsigned {
    builder: CertificateBuilder<Profile>,
    signer: RemoteSigner,
    /// The bytes to sign.
    pub to_be_signed: Vec<u8>,
}

impl Content {
    /// Encodes the content; `issuer_key` is the issuer's DER `SubjectPublicKeyInfo`.
    pub fn prepare(
        mut self,
        algorithm: &SignatureAlgorithm,
        issuer_key: &[u8],
    ) -> Result<Unsigned, PkiError> {
        let malformed = |error: x509_cert::builder::Error| PkiError::Malformed {
            what: "certificate",
            reason: error.to_string(),
        };
        let public_key = |der: &[u8]| {
            SubjectPublicKeyInfoOwned::from_der(der)
                .map_err(|error| PkiError::malformed("public key", &error))
        };
        // RFC 5280, 4.1.2.2: positive and not zero. The second highest bit keeps the length constant.
        self.serial[0] = (self.serial[0] & 0x7f) | 0x40;
        let signer = RemoteSigner {
            algorithm: algorithm_identifier(algorithm)?,
            key: PublicKey(public_key(issuer_key)?),
        };
        let validity = Validity::new(x509_time(self.not_before)?, x509_time(self.not_after)?);
        let serial = SerialNumber::new(&self.serial)
            .map_err(|error| PkiError::malformed("serial number", &error))?;
        let subject_key = public_key(&self.public_key)?;
        let profile =
            Profile { issuer: self.issuer, subject: self.subject, extensions: self.extensions };
        let mut builder =
            CertificateBuilder::new(profile, serial, validity, subject_key).map_err(malformed)?;
        let to_be_signed = builder.finalize(&signer).map_err(malformed)?;
        Ok(Unsigned { builder, signer, to_be_signed })
    }
}

impl Unsigned {
    /// Adds the signature and returns the certificate in DER.
    pub fn assemble(self, signature: &[u8]) -> Result<Vec<u8>, PkiError> {
        let malformed = |reason: String| PkiError::Malformed { what: "certificate", reason };
        let bits =
            BitString::from_bytes(signature).map_err(|error| malformed(error.to_string()))?;
        self.builder
            .assemble(bits, &self.signer)
            .map_err(|error| malformed(error.to_string()))?
            .to_der()
            .map_err(|error| malformed(error.to_string()))
    }
}

/// Passes our own extensions to the builder, in our order and with our criticality.
struct Profile {
    issuer: Name,
    subject: Name,
    extensions: Vec<Extension>,
}

impl BuilderProfile for Profile {
    fn get_issuer(&self, _: &Name) -> Name {
        self.issuer.clone()
    }

    fn get_subject(&self) -> Name {
        self.subject.clone()
    }

    fn build_extensions(
        &self,
        _: SubjectPublicKeyInfoRef<'_>,
        _: SubjectPublicKeyInfoRef<'_>,
        _: &TbsCertificate,
    ) -> x509_cert::builder::Result<Vec<Extension>> {
        Ok(self.extensions.clone())
    }
}

/// Tells the builder about the signer, whose key is elsewhere.
struct RemoteSigner {
    algorithm: AlgorithmIdentifierOwned,
    key: PublicKey,
}

#[derive(Clone)]
struct PublicKey(SubjectPublicKeyInfoOwned);

impl signature::Keypair for RemoteSigner {
    type VerifyingKey = PublicKey;

    fn verifying_key(&self) -> PublicKey {
        self.key.clone()
    }
}

impl DynSignatureAlgorithmIdentifier for RemoteSigner {
    fn signature_algorithm_identifier(&self) -> spki::Result<AlgorithmIdentifierOwned> {
        Ok(self.algorithm.clone())
    }
}

impl EncodePublicKey for PublicKey {
    fn to_public_key_der(&self) -> spki::Result<der::Document> {
        Ok(der::Document::try_from(self.0.to_der()?)?)
    }
}
