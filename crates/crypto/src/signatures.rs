//! Signature algorithms as rows: names, identifiers and verification.
//!
//! Signing needs a private key: see [`crate::keys`].

pub(crate) mod algorithm;
mod pss;

use aws_lc_rs::signature as aws;
use const_oid::ObjectIdentifier;

use algorithm::by_aws_lc;
pub use algorithm::{Family, Message, Parameters, SignatureAlgorithm};

use crate::CryptoError;
use crate::keys::{composite, ed25519, ml_dsa, slh_dsa};

const NONE: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "",
    pca_name: None,
    oid: None,
    parameters: Parameters::Absent,
    family: Family::Rsa,
    digest: None,
    cms_digests: &[],
    slow: false,
    verify: by_aws_lc,
    verifiers: &[],
    verify_mu: None,
};

/// ML-DSA-44 (FIPS 204): signatures of 2420 bytes.
pub static ML_DSA_44: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "ML_DSA_SHAKE_256",
    pca_name: Some("ML_DSA_44"),
    oid: Some(oid("2.16.840.1.101.3.4.3.17")),
    family: Family::MlDsa,
    cms_digests: &[
        "sha512", "shake256", "sha384", "sha256", "sha3-512", "sha3-384", "sha3-256", "shake128",
    ],
    verifiers: &[&aws::ML_DSA_44],
    verify_mu: Some(|spki, mu, signature| ml_dsa::ML_DSA_44.verify_mu(spki, mu, signature)),
    ..NONE
};
/// ML-DSA-65: signatures of 3309 bytes.
pub static ML_DSA_65: SignatureAlgorithm = SignatureAlgorithm {
    pca_name: Some("ML_DSA_65"),
    oid: Some(oid("2.16.840.1.101.3.4.3.18")),
    cms_digests: &["sha512", "shake256", "sha384", "sha3-512", "sha3-384"],
    verifiers: &[&aws::ML_DSA_65],
    verify_mu: Some(|spki, mu, signature| ml_dsa::ML_DSA_65.verify_mu(spki, mu, signature)),
    kms_name: "ML_DSA_SHAKE_256",
    family: Family::MlDsa,
    ..NONE
};
/// ML-DSA-87: signatures of 4627 bytes.
pub static ML_DSA_87: SignatureAlgorithm = SignatureAlgorithm {
    pca_name: Some("ML_DSA_87"),
    oid: Some(oid("2.16.840.1.101.3.4.3.19")),
    cms_digests: &["sha512", "shake256", "sha3-512"],
    verifiers: &[&aws::ML_DSA_87],
    verify_mu: Some(|spki, mu, signature| ml_dsa::ML_DSA_87.verify_mu(spki, mu, signature)),
    kms_name: "ML_DSA_SHAKE_256",
    family: Family::MlDsa,
    ..NONE
};
/// SLH-DSA-SHA2-128s (FIPS 205): signatures of 7856 bytes.
pub static SLH_DSA_SHA2_128S: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "SLH_DSA_SHA2_128S",
    pca_name: Some("SLH_DSA_SHA2_128S"),
    oid: Some(oid("2.16.840.1.101.3.4.3.20")),
    family: Family::SlhDsa,
    // RFC 9814: the hash of the parameter set.
    cms_digests: &["sha256"],
    verify: |_, spki, message, signature| slh_dsa::SHA2_128S.verify(spki, message, signature),
    slow: true,
    ..NONE
};
/// SLH-DSA-SHA2-256s: signatures of 29792 bytes.
pub static SLH_DSA_SHA2_256S: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "SLH_DSA_SHA2_256S",
    pca_name: Some("SLH_DSA_SHA2_256S"),
    oid: Some(oid("2.16.840.1.101.3.4.3.24")),
    family: Family::SlhDsa,
    cms_digests: &["sha512"],
    verify: |_, spki, message, signature| slh_dsa::SHA2_256S.verify(spki, message, signature),
    slow: true,
    ..NONE
};
/// ML-DSA-65 with ECDSA P-256, both over a SHA-512 digest; signatures of 3309 bytes and a DER
/// `ECDSA-Sig-Value`. The OID is the draft's (draft-ietf-lamps-pq-composite-sigs); in CMS with SHA-512
/// (draft-ietf-lamps-cms-composite-sigs).
pub static ML_DSA_65_ECDSA_P256_SHA512: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "ML_DSA_65_ECDSA_P256_SHA512",
    pca_name: Some("ML_DSA_65_ECDSA_P256_SHA512"),
    oid: Some(composite::OID),
    family: Family::Composite,
    digest: Some("sha512"),
    cms_digests: &["sha512"],
    verify: composite::verify,
    ..NONE
};
/// ECDSA with SHA-256; signatures are a DER `ECDSA-Sig-Value`.
pub static ECDSA_SHA_256: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "ECDSA_SHA_256",
    pca_name: Some("SHA256WITHECDSA"),
    oid: Some(oid("1.2.840.10045.4.3.2")),
    family: Family::Ec,
    digest: Some("sha256"),
    cms_digests: &["sha256"],
    verifiers: &[
        &aws::ECDSA_P256_SHA256_ASN1,
        &aws::ECDSA_P384_SHA256_ASN1,
        &aws::ECDSA_P521_SHA256_ASN1,
        &aws::ECDSA_P256K1_SHA256_ASN1,
    ],
    ..NONE
};
/// ECDSA with SHA-384.
pub static ECDSA_SHA_384: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "ECDSA_SHA_384",
    pca_name: Some("SHA384WITHECDSA"),
    oid: Some(oid("1.2.840.10045.4.3.3")),
    family: Family::Ec,
    digest: Some("sha384"),
    cms_digests: &["sha384"],
    verifiers: &[
        &aws::ECDSA_P256_SHA384_ASN1,
        &aws::ECDSA_P384_SHA384_ASN1,
        &aws::ECDSA_P521_SHA384_ASN1,
    ],
    ..NONE
};
/// ECDSA with SHA-512.
pub static ECDSA_SHA_512: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "ECDSA_SHA_512",
    pca_name: Some("SHA512WITHECDSA"),
    oid: Some(oid("1.2.840.10045.4.3.4")),
    family: Family::Ec,
    digest: Some("sha512"),
    cms_digests: &["sha512"],
    verifiers: &[
        &aws::ECDSA_P256_SHA512_ASN1,
        &aws::ECDSA_P384_SHA512_ASN1,
        &aws::ECDSA_P521_SHA512_ASN1,
    ],
    ..NONE
};
/// Ed25519 (RFC 8032), named after the hash inside; takes whole messages only.
pub static ED25519: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "ED25519_SHA_512",
    oid: Some(ed25519::OID),
    family: Family::Ed25519,
    // RFC 8419, section 3.1.
    cms_digests: &["sha512"],
    verifiers: &[&aws::ED25519],
    ..NONE
};
/// Ed25519ph (RFC 8032) without a context: signs a SHA-512 digest. It has no OID (RFC 8410, section 3).
pub static ED25519_PH: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "ED25519_PH_SHA_512",
    family: Family::Ed25519,
    digest: Some("sha512"),
    verify: ed25519::verify_prehashed,
    ..NONE
};
/// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017).
pub static RSA_PKCS1_SHA_256: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "RSASSA_PKCS1_V1_5_SHA_256",
    pca_name: Some("SHA256WITHRSA"),
    oid: Some(oid("1.2.840.113549.1.1.11")),
    parameters: Parameters::Null,
    digest: Some("sha256"),
    cms_digests: &["sha256"],
    verifiers: &[&aws::RSA_PKCS1_2048_8192_SHA256],
    ..NONE
};
/// RSASSA-PKCS1-v1_5 with SHA-384.
pub static RSA_PKCS1_SHA_384: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "RSASSA_PKCS1_V1_5_SHA_384",
    pca_name: Some("SHA384WITHRSA"),
    oid: Some(oid("1.2.840.113549.1.1.12")),
    parameters: Parameters::Null,
    digest: Some("sha384"),
    cms_digests: &["sha384"],
    verifiers: &[&aws::RSA_PKCS1_2048_8192_SHA384],
    ..NONE
};
/// RSASSA-PKCS1-v1_5 with SHA-512.
pub static RSA_PKCS1_SHA_512: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "RSASSA_PKCS1_V1_5_SHA_512",
    pca_name: Some("SHA512WITHRSA"),
    oid: Some(oid("1.2.840.113549.1.1.13")),
    parameters: Parameters::Null,
    digest: Some("sha512"),
    cms_digests: &["sha512"],
    verifiers: &[&aws::RSA_PKCS1_2048_8192_SHA512],
    ..NONE
};
/// RSASSA-PSS with SHA-256 and a salt of 32 bytes.
pub static RSA_PSS_SHA_256: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "RSASSA_PSS_SHA_256",
    pca_name: Some("SHA256WITHRSA_PSS"),
    oid: Some(pss::OID),
    parameters: Parameters::Pss,
    digest: Some("sha256"),
    verifiers: &[&aws::RSA_PSS_2048_8192_SHA256],
    ..NONE
};
/// RSASSA-PSS with SHA-384 and a salt of 48 bytes.
pub static RSA_PSS_SHA_384: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "RSASSA_PSS_SHA_384",
    pca_name: Some("SHA384WITHRSA_PSS"),
    oid: Some(pss::OID),
    parameters: Parameters::Pss,
    digest: Some("sha384"),
    verifiers: &[&aws::RSA_PSS_2048_8192_SHA384],
    ..NONE
};
/// RSASSA-PSS with SHA-512 and a salt of 64 bytes.
pub static RSA_PSS_SHA_512: SignatureAlgorithm = SignatureAlgorithm {
    kms_name: "RSASSA_PSS_SHA_512",
    pca_name: Some("SHA512WITHRSA_PSS"),
    oid: Some(pss::OID),
    parameters: Parameters::Pss,
    digest: Some("sha512"),
    verifiers: &[&aws::RSA_PSS_2048_8192_SHA512],
    ..NONE
};

/// All signature algorithms.
pub static SIGNATURES: &[&SignatureAlgorithm] = &[
    &ML_DSA_44,
    &ML_DSA_65,
    &ML_DSA_87,
    &SLH_DSA_SHA2_128S,
    &SLH_DSA_SHA2_256S,
    &ML_DSA_65_ECDSA_P256_SHA512,
    &ECDSA_SHA_256,
    &ECDSA_SHA_384,
    &ECDSA_SHA_512,
    &ED25519,
    &ED25519_PH,
    &RSA_PSS_SHA_256,
    &RSA_PSS_SHA_384,
    &RSA_PSS_SHA_512,
    &RSA_PKCS1_SHA_256,
    &RSA_PKCS1_SHA_384,
    &RSA_PKCS1_SHA_512,
];

impl SignatureAlgorithm {
    /// Row with this OID in X.509 and CMS. RSASSA-PSS has one OID for all hashes and so is not found: see
    /// [`SignatureAlgorithm::by_identifier`].
    pub fn by_oid(oid: ObjectIdentifier) -> Option<&'static Self> {
        let alone = |row: &&Self| row.oid == Some(oid) && row.parameters != Parameters::Pss;
        SIGNATURES.iter().copied().find(alone)
    }

    /// Row with this `AlgorithmIdentifier`: the OID and the DER of the parameters, if present.
    pub fn by_identifier(
        oid: ObjectIdentifier,
        parameters: Option<&[u8]>,
    ) -> Option<&'static Self> {
        SIGNATURES.iter().copied().find(|row| {
            row.oid == Some(oid)
                && match row.parameters {
                    Parameters::Absent => parameters.is_none(),
                    // RFC 4055, section 5: readers must also accept absent parameters.
                    Parameters::Null => parameters.is_none_or(|der| der == [0x05, 0x00]),
                    Parameters::Pss => {
                        row.digest.zip(parameters).is_some_and(|(name, der)| pss::fits(name, der))
                    }
                }
        })
    }

    /// DER of the parameters of [`SignatureAlgorithm::oid`]; `None` if they are absent.
    pub fn encoded_parameters(&self) -> Result<Option<Vec<u8>>, CryptoError> {
        match self.parameters {
            Parameters::Absent => Ok(None),
            Parameters::Null => Ok(Some(vec![0x05, 0x00])),
            Parameters::Pss => pss::encode(self.digest.unwrap_or_default()).map(Some),
        }
    }

    /// The row with this Private CA name.
    pub fn by_pca_name(name: &str) -> Option<&'static Self> {
        SIGNATURES.iter().copied().find(|row| row.pca_name == Some(name))
    }
}

const fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_name_rows() {
        for row in SIGNATURES {
            let Some(oid) = row.oid else { continue };
            let parameters = row.encoded_parameters().unwrap();
            let found = SignatureAlgorithm::by_identifier(oid, parameters.as_deref());
            assert_eq!(found, Some(*row));
            let wrong = SignatureAlgorithm::by_identifier(oid, Some(&[0x30, 0]));
            assert_eq!(wrong, None, "{row:?}");
            if row.parameters != Parameters::Pss {
                assert_eq!(SignatureAlgorithm::by_oid(oid), Some(*row));
            }
        }
        assert_eq!(SignatureAlgorithm::by_oid(pss::OID), None);
    }

    /// RFC 4055, section 3.1, in the encoding of `openssl req -sigopt rsa_padding_mode:pss -sigopt
    /// rsa_pss_saltlen:digest`.
    #[test]
    fn pss_parameters_are_what_others_write() {
        let expected = "3034a00f300d06096086480165030402010500a11c301a06092a864886f70d010108\
                        300d06096086480165030402010500a203020120";
        let encoded = RSA_PSS_SHA_256.encoded_parameters().unwrap().unwrap();
        assert_eq!(hex::encode(&encoded), expected);
        // Without the inner NULLs, and with the default trailer encoded.
        let bare = "3035a00d300b0609608648016503040201a11a301806092a864886f70d010108\
                    300b0609608648016503040201a203020120a303020101";
        let bare = hex::decode(bare).unwrap();
        assert!(pss::fits("sha256", &bare) && !pss::fits("sha384", &bare));
        let mut short_salt = encoded.clone();
        *short_salt.last_mut().unwrap() = 20;
        assert!(!pss::fits("sha256", &short_salt));
        assert!(!pss::fits("sha256", &[0x30, 0]));
    }
}
