//! Signature algorithms for webpki: its own, and those of our rows that it lacks.

use der::Encode;
use der::asn1::BitStringRef;
use outlast_crypto::signatures::{
    ML_DSA_65_ECDSA_P256_SHA512, Message, SLH_DSA_SHA2_128S, SLH_DSA_SHA2_256S, SignatureAlgorithm,
};
use rustls_pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm};
use spki::{AlgorithmIdentifierRef, SubjectPublicKeyInfoRef};

/// webpki's, then ours.
pub(super) fn all() -> Vec<&'static dyn SignatureVerificationAlgorithm> {
    let ours = ROWS.iter().map(|row| row as &dyn SignatureVerificationAlgorithm);
    webpki::ALL_VERIFICATION_ALGS.iter().copied().chain(ours).collect()
}

/// Each has the same identifier for keys and signatures, without parameters.
static ROWS: &[Row] = &[
    // 2.16.840.1.101.3.4.3.20 and .24; 1.3.6.1.5.5.7.6.45: OIDs in DER.
    Row(&SLH_DSA_SHA2_128S, &[6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 3, 20]),
    Row(&SLH_DSA_SHA2_256S, &[6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 3, 24]),
    Row(&ML_DSA_65_ECDSA_P256_SHA512, &[6, 8, 0x2b, 6, 1, 5, 5, 7, 6, 45]),
];

#[derive(Debug)]
struct Row(&'static SignatureAlgorithm, &'static [u8]);

impl SignatureVerificationAlgorithm for Row {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let spki = SubjectPublicKeyInfoRef {
            algorithm: AlgorithmIdentifierRef {
                oid: self.0.oid.ok_or(InvalidSignature)?,
                parameters: None,
            },
            subject_public_key: BitStringRef::from_bytes(public_key)
                .map_err(|_| InvalidSignature)?,
        }
        .to_der()
        .map_err(|_| InvalidSignature)?;
        self.0.verify(&spki, Message::Raw(message), signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        AlgorithmIdentifier::from_slice(self.1)
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        AlgorithmIdentifier::from_slice(self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_those_of_the_rows() {
        for Row(algorithm, der) in ROWS {
            assert_eq!(algorithm.oid.unwrap().to_der().unwrap(), *der);
        }
    }
}
