//! What a message says without its file: who signed which digest, and the message without the rest.

use der::Encode;
use der::asn1::{Any, OctetString, SetOfVec};

use super::super::ID_SIGNED_DATA;
use super::super::message::{ContentInfo, EncapsulatedContentInfo, SignedData, SignerInfo};
use super::{MESSAGE_DIGEST, SignedMessage, VerifyError, digest_row};

impl SignedMessage {
    /// Like [`SignedMessage::authenticate`], for somebody without the file: each signature belongs to the certificate
    /// that its signer names and to the digest in its attributes, and none is missing. The certificates must be in the
    /// message.
    pub fn authenticate_alone(&self) -> Result<(), VerifyError> {
        self.none_is_missing(&self.certificates)?;
        for signer in &self.signers {
            let digest = digest_row(&signer.digest_algorithm)?;
            let said = signer.attribute::<OctetString>(MESSAGE_DIGEST, "messageDigest")?;
            let certificate = signer.certificate_among(&self.certificates)?;
            signer.verify(&certificate, self.content_type, digest, said.as_bytes())?;
        }
        Ok(())
    }

    /// The message in DER with its signers and their certificates alone: without content, CAs, CRLs, OCSP responses and
    /// unsigned attributes. No signature covers any of these.
    pub fn reduced(&self) -> Result<Vec<u8>, VerifyError> {
        let mut certificates: SetOfVec<Any> = SetOfVec::new();
        let mut digest_algorithms = SetOfVec::new();
        let mut signer_infos = SetOfVec::new();
        let not_cms = |error: der::Error| VerifyError::NotCms(error.to_string());
        for signer in &self.signers {
            let certificate = signer.certificate_among(&self.certificates)?;
            let any = <Any as der::Decode>::from_der(certificate.der()).map_err(not_cms)?;
            if !certificates.iter().any(|known| *known == any) {
                certificates.insert(any).map_err(not_cms)?;
            }
            if !digest_algorithms.iter().any(|known| *known == signer.digest_algorithm) {
                digest_algorithms.insert(signer.digest_algorithm.clone()).map_err(not_cms)?;
            }
            let reduced = SignerInfo { unsigned_attributes: None, ..signer.clone() };
            signer_infos.insert(reduced).map_err(not_cms)?;
        }
        let data = SignedData {
            version: 1,
            digest_algorithms,
            encap_content_info: EncapsulatedContentInfo {
                econtent_type: self.content_type,
                econtent: None,
            },
            certificates: Some(certificates),
            crls: None,
            signer_infos,
        };
        let content = Any::encode_from(&data).map_err(not_cms)?;
        ContentInfo { content_type: ID_SIGNED_DATA, content }.to_der().map_err(not_cms)
    }
}
