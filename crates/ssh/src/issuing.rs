//! Certificates whose authority's key is elsewhere: what that key must sign, and the certificate with its signature.

use der::Decode as _;
use der::asn1::UintRef;

use crate::certificate::{Certificate, CertificateFields, to_be_signed};
use crate::public_key::{KeyError, Material, PublicKey};
use crate::signature::{COMPOSITE_LABEL, composite_message};
use crate::wire::Writer;

/// A certificate without its signature.
pub struct Unsigned {
    blob: Vec<u8>,
    authority: PublicKey,
}

/// What the authority signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToSign {
    /// The key signs this.
    Message(Vec<u8>),
    /// ML-DSA-44 signs the message with the context, and Ed25519 signs the message.
    Composite {
        /// Context of ML-DSA (FIPS 204, section 5.2).
        context: &'static [u8],
        /// What both sign.
        message: Vec<u8>,
    },
}

/// `ECDSA-Sig-Value` (RFC 3279, section 2.2.3).
#[derive(der::Sequence)]
struct EcdsaSignature<'a> {
    r: UintRef<'a>,
    s: UintRef<'a>,
}

impl Unsigned {
    /// A certificate for `key`, to be signed by `authority`.
    ///
    /// # Errors
    /// If there is no type of certificates for the key, or there are no random numbers.
    pub fn new(
        key: &PublicKey,
        fields: &CertificateFields,
        authority: &PublicKey,
    ) -> Result<Self, KeyError> {
        Ok(Self { blob: to_be_signed(key, fields, authority)?, authority: authority.clone() })
    }

    /// What the authority signs: with Ed25519, with ECDSA and the hash of its curve (RFC 5656, section 6.2.1), or with
    /// RSASSA-PKCS1-v1_5 and SHA-512.
    pub fn to_sign(&self) -> ToSign {
        match self.authority.material() {
            Material::Composite(_) => ToSign::Composite {
                context: COMPOSITE_LABEL,
                message: composite_message(&self.blob),
            },
            _ => ToSign::Message(self.blob.clone()),
        }
    }

    /// The certificate. A signature of ECDSA is DER; that of a composite is ML-DSA's, then Ed25519's.
    ///
    /// # Errors
    /// If the signature does not verify.
    pub fn assemble(mut self, signature: &[u8]) -> Result<Certificate, KeyError> {
        let (name, bytes) = match self.authority.material() {
            Material::Rsa { .. } => ("rsa-sha2-512", signature.to_vec()),
            Material::Ecdsa(..) => {
                let parts = EcdsaSignature::from_der(signature).map_err(|_| KeyError::Invalid)?;
                let mut both = Vec::new();
                both.put_unsigned(parts.r.as_bytes());
                both.put_unsigned(parts.s.as_bytes());
                (self.authority.key_type(), both)
            }
            _ => (self.authority.key_type(), signature.to_vec()),
        };
        let mut signed = Vec::new();
        signed.put_string(name.as_bytes());
        signed.put_string(&bytes);
        self.blob.put_string(&signed);
        Certificate::parse(&self.blob)
    }
}
