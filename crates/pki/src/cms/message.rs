//! The ASN.1 of RFC 5652, section 5. Certificates and revocation information stay raw bytes, because others' signatures
//! are over exactly these.

use const_oid::ObjectIdentifier;
use der::asn1::{Any, AnyRef, OctetString, SetOfVec};
use der::{Choice, DerOrd, Encode, Sequence, ValueOrd};
use spki::AlgorithmIdentifierOwned;
use x509_cert::attr::Attributes;
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;

#[derive(Sequence)]
pub struct ContentInfo {
    pub content_type: ObjectIdentifier,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    pub content: Any,
}

#[derive(Sequence)]
pub struct EncapsulatedContentInfo {
    pub econtent_type: ObjectIdentifier,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    pub econtent: Option<Any>,
}

#[derive(Sequence)]
pub struct SignedData {
    /// Every version is parsed alike.
    pub version: u8,
    /// Ignored when it is parsed: each signer names its own digest.
    pub digest_algorithms: SetOfVec<AlgorithmIdentifierOwned>,
    pub encap_content_info: EncapsulatedContentInfo,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    pub certificates: Option<SetOfVec<Any>>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    pub crls: Option<SetOfVec<Any>>,
    pub signer_infos: SetOfVec<SignerInfo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Sequence, ValueOrd)]
pub struct IssuerAndSerialNumber {
    pub issuer: Name,
    pub serial_number: SerialNumber,
}

#[derive(Clone, Debug, PartialEq, Eq, Choice)]
pub enum SignerIdentifier {
    IssuerAndSerialNumber(IssuerAndSerialNumber),
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT")]
    SubjectKeyIdentifier(OctetString),
}

impl ValueOrd for SignerIdentifier {
    fn value_cmp(&self, other: &Self) -> der::Result<std::cmp::Ordering> {
        self.to_der()?.der_cmp(&other.to_der()?)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Sequence, ValueOrd)]
pub struct SignerInfo {
    pub version: u8,
    pub sid: SignerIdentifier,
    pub digest_algorithm: AlgorithmIdentifierOwned,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    pub signed_attributes: Option<Attributes>,
    pub signature_algorithm: AlgorithmIdentifierOwned,
    pub signature: OctetString,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    pub unsigned_attributes: Option<Attributes>,
}

/// `id-aa-timeStampToken` (RFC 3161, appendix A).
pub const TIMESTAMP_TOKEN: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.14");

/// Most timestamps of one signer that are read.
const MAX_TOKENS: usize = 16;

impl SignerInfo {
    /// The timestamps of the signature, in DER: the values of one unsigned attribute, or of several (RFC 5126, section
    /// 6.1.1).
    pub fn tokens(&self) -> Vec<Vec<u8>> {
        let attributes = self.unsigned_attributes.iter().flat_map(|set| set.iter());
        attributes
            .filter(|attribute| attribute.oid == TIMESTAMP_TOKEN)
            .flat_map(|attribute| attribute.values.iter())
            .filter_map(|value| value.to_der().ok())
            .take(MAX_TOKENS)
            .collect()
    }
}

/// BER decoded and encoded again as DER, and how many bytes follow it; `None` if it is not CMS SignedData.
pub fn der_from_ber(ber: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (outer, rest): (rasn_cms::ContentInfo, _) = rasn::ber::decode_with_remainder(ber).ok()?;
    let (data, inside): (rasn_cms::SignedData, _) =
        rasn::ber::decode_with_remainder(outer.content.as_bytes()).ok()?;
    let inner = rasn::der::encode(&data).ok()?;
    let content_type = {
        let arcs: Vec<String> = outer.content_type.iter().map(ToString::to_string).collect();
        ObjectIdentifier::new(&arcs.join(".")).ok()?
    };
    let content = Any::from(AnyRef::try_from(inner.as_slice()).ok()?);
    let der = ContentInfo { content_type, content }.to_der().ok()?;
    Some((der, rest.len() + inside.len()))
}
