//! The ASN.1 of RFC 4998, appendix B (implicit tags). Timestamps stay raw, because later ones are over exactly these bytes.

use der::asn1::{Any, OctetString, SetOfVec};
use der::{Encode, Sequence};
use spki::AlgorithmIdentifierOwned;

#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct EvidenceRecord {
    /// Always 1.
    pub version: u8,
    /// The digests of all chains.
    pub digest_algorithms: Vec<AlgorithmIdentifierOwned>,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    pub crypto_infos: Option<Vec<Any>>,
    /// For evidence of encrypted data, which is refused.
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    pub encryption_info: Option<Vec<Any>>,
    /// `ArchiveTimeStampSequence`: the chains, oldest first.
    pub sequence: Vec<Vec<ArchiveTimestamp>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct ArchiveTimestamp {
    /// That of the timestamp's imprint if it is absent.
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    pub digest_algorithm: Option<AlgorithmIdentifierOwned>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    pub attributes: Option<SetOfVec<Any>>,
    /// `SEQUENCE OF PartialHashtree`: see [`super::tree`].
    #[asn1(context_specific = "2", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    pub reduced_hashtree: Option<Vec<Vec<OctetString>>>,
    /// A `ContentInfo`: an RFC 3161 token.
    pub timestamp: Any,
}

impl ArchiveTimestamp {
    /// The token in DER.
    pub fn token(&self) -> der::Result<Vec<u8>> {
        self.timestamp.to_der()
    }
}
