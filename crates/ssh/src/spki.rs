//! Public keys from their X.509 form, `SubjectPublicKeyInfo`, in which key management services give them.

use der::asn1::{AnyRef, BitStringRef, ObjectIdentifier, UintRef};
use der::{Decode, Sequence};

use crate::public_key::{COMPOSITE_LEN, KeyError, Material, P256, P384, P521, PublicKey};

/// RFC 5280, section 4.1.
#[derive(Sequence)]
struct SubjectPublicKeyInfo<'a> {
    algorithm: Identifier<'a>,
    key: BitStringRef<'a>,
}

#[derive(Sequence)]
struct Identifier<'a> {
    oid: ObjectIdentifier,
    parameters: Option<AnyRef<'a>>,
}

/// `RSAPublicKey` (RFC 8017, appendix A.1.1).
#[derive(Sequence)]
struct Rsa<'a> {
    n: UintRef<'a>,
    e: UintRef<'a>,
}

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const ML_DSA_44: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.3.17");
const SECP256R1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const SECP384R1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const SECP521R1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");

impl PublicKey {
    /// The key of a DER `SubjectPublicKeyInfo`: Ed25519, ECDSA over P-256, P-384 or P-521, or RSA.
    ///
    /// # Errors
    /// If SSH has no such keys, or the bytes are not one.
    pub fn from_spki(der: &[u8]) -> Result<Self, KeyError> {
        let info = read(der)?;
        let key = bits(&info)?;
        let blob = match info.algorithm.oid {
            ED25519 => Material::Ed25519(key.try_into().map_err(|_| BAD)?),
            EC => {
                let curve: ObjectIdentifier = info
                    .algorithm
                    .parameters
                    .and_then(|parameters| parameters.decode_as().ok())
                    .ok_or(BAD)?;
                let curve = match curve {
                    SECP256R1 => &P256,
                    SECP384R1 => &P384,
                    SECP521R1 => &P521,
                    other => return Err(KeyError::UnsupportedType(other.to_string())),
                };
                Material::Ecdsa(curve, key.to_vec())
            }
            RSA => {
                let key = Rsa::from_der(key).map_err(|_| BAD)?;
                Material::Rsa { n: key.n.as_bytes().to_vec(), e: key.e.as_bytes().to_vec() }
            }
            other => return Err(KeyError::UnsupportedType(other.to_string())),
        };
        // The same checks as for any other key.
        Self::parse(Self::new(blob).blob())
    }

    /// The key `ssh-mldsa44-ed25519` of its halves, each a DER `SubjectPublicKeyInfo`.
    ///
    /// # Errors
    /// If they are not an ML-DSA-44 and an Ed25519 key.
    pub fn composite_from_spki(ml_dsa_44: &[u8], ed25519: &[u8]) -> Result<Self, KeyError> {
        let (first, second) = (read(ml_dsa_44)?, read(ed25519)?);
        if first.algorithm.oid != ML_DSA_44 || second.algorithm.oid != ED25519 {
            return Err(KeyError::Malformed("the halves are not ML-DSA-44 and Ed25519"));
        }
        let both = [bits(&first)?, bits(&second)?].concat();
        if both.len() != COMPOSITE_LEN {
            return Err(BAD);
        }
        Ok(Self::new(Material::Composite(both)))
    }
}

const BAD: KeyError = KeyError::Malformed("it is not a SubjectPublicKeyInfo");

fn read(der: &[u8]) -> Result<SubjectPublicKeyInfo<'_>, KeyError> {
    SubjectPublicKeyInfo::from_der(der).map_err(|_| BAD)
}

fn bits<'a>(info: &SubjectPublicKeyInfo<'a>) -> Result<&'a [u8], KeyError> {
    info.key.as_bytes().ok_or(BAD)
}
