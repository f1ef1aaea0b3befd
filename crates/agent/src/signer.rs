//! A machine's certificate and private key, which sign requests for sessions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outlast_crypto::digests;
use outlast_crypto::keys::Key;
use outlast_crypto::signatures::{Family, Message, SignatureAlgorithm};
use outlast_pki::certificate::Certificate;
use outlast_pki::key_forms::PrivateKey;

const SHA256_LEN: usize = 32;
/// Certificates between the machine's and the trust anchor, at most.
const MAX_CHAIN: usize = 5;

/// A way to sign, by the kind of key.
#[derive(Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Its name in the `Authorization` header.
    pub name: &'static str,
    /// Kind of key.
    pub family: Family,
    /// KMS name of the signature algorithm. ML-DSA signs the string to sign itself, the others its SHA-256.
    kms_name: &'static str,
}

/// All schemes.
pub static SCHEMES: &[Scheme] = &[
    Scheme {
        name: "AWS4-X509-RSA-SHA256",
        family: Family::Rsa,
        kms_name: "RSASSA_PKCS1_V1_5_SHA_256",
    },
    Scheme { name: "AWS4-X509-ECDSA-SHA256", family: Family::Ec, kms_name: "ECDSA_SHA_256" },
    Scheme { name: "AWS4-X509-MLDSA", family: Family::MlDsa, kms_name: "ML_DSA_SHAKE_256" },
];

/// Why there is no signature. Reveals nothing of the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The certificate cannot be read.
    #[error("the certificate cannot be read: {0}")]
    Certificate(String),
    /// The key is of a kind that Roles Anywhere does not take.
    #[error("keys of type {0} do not sign requests for sessions; RSA, EC and ML-DSA keys do")]
    Kind(String),
    /// Certificate and key are not a pair.
    #[error("the certificate is not for this private key")]
    Pair,
    /// There are too many certificates.
    #[error(
        "there are more than {MAX_CHAIN} certificates between the machine's and the trust anchor"
    )]
    Chain,
    /// The key cannot be used.
    #[error("the private key cannot be used: {0}")]
    Key(String),
}

/// Something that signs strings: a private key in memory or in a token.
pub trait Signs: Send + Sync {
    /// Signs; ECDSA signatures are DER.
    fn sign(&self, string: &[u8]) -> Result<Vec<u8>, SignError>;
}

/// A certificate and what signs with its key.
pub struct Identity {
    certificate: Certificate,
    chain: Vec<Vec<u8>>,
    scheme: &'static Scheme,
    key: Box<dyn Signs>,
}

struct SoftwareKey {
    key: Box<dyn Key>,
    algorithm: &'static SignatureAlgorithm,
}

impl Signs for SoftwareKey {
    fn sign(&self, string: &[u8]) -> Result<Vec<u8>, SignError> {
        let signed = match self.algorithm.digest_len() {
            // The longer curves come with longer hashes here. ECDSA reads a digest as a number, which zeros in front do
            // not change (FIPS 186-5, section 6.4.1): so this is a signature of the SHA-256.
            Some(len) if len > SHA256_LEN => {
                let mut digest = vec![0; len - SHA256_LEN];
                digest.extend_from_slice(&digests::sha256(string));
                self.key.sign(self.algorithm, Message::Digest(&digest))
            }
            _ => self.key.sign(self.algorithm, Message::Raw(string)),
        };
        signed.map_err(|error| SignError::Key(error.to_string()))
    }
}

impl Identity {
    /// A private key in memory with its certificate; `certificates` begins with it.
    pub fn of_key(certificates: &[Vec<u8>], key: &PrivateKey) -> Result<Self, SignError> {
        let failed = |error: &dyn std::fmt::Display| SignError::Key(error.to_string());
        let spec = key.spec;
        let scheme = |row: &&'static Scheme| {
            spec.signing.iter().any(|algorithm| algorithm.family == row.family)
        };
        let scheme =
            SCHEMES.iter().find(scheme).ok_or_else(|| SignError::Kind(spec.name.into()))?;
        let algorithm = match spec.signing_algorithm(scheme.kms_name) {
            Some(row) => row,
            // KMS ties the hash to the curve; Roles Anywhere wants SHA-256 with all curves.
            None => (spec.signing.iter().copied())
                .find(|row| row.family == Family::Ec && row.digest_len() > Some(SHA256_LEN))
                .ok_or_else(|| SignError::Kind(spec.name.into()))?,
        };
        let pkcs8 = key.to_pkcs8().map_err(|error| failed(&error))?;
        let stored = spec.import(pkcs8.expose()).map_err(|error| failed(&error))?.stored;
        let loaded = spec.load(&stored).map_err(|error| failed(&error))?;
        let identity = Self::new(certificates, Box::new(SoftwareKey { key: loaded, algorithm }))?;
        let of_certificate = identity.certificate.public_key();
        if of_certificate.is_ok_and(|found| found == key.public_key) {
            Ok(identity)
        } else {
            Err(SignError::Pair)
        }
    }

    /// The same with a key elsewhere, whose owner has checked that it belongs to the certificate.
    pub fn new(certificates: &[Vec<u8>], key: Box<dyn Signs>) -> Result<Self, SignError> {
        let unreadable = |error: &dyn std::fmt::Display| SignError::Certificate(error.to_string());
        let (first, rest) =
            certificates.split_first().ok_or_else(|| unreadable(&"there is none"))?;
        let certificate = Certificate::parse(first).map_err(|error| unreadable(&error))?;
        let scheme = scheme_of(&certificate)?;
        // The service has the trust anchor, and takes none from the request.
        let chain: Vec<Vec<u8>> = rest
            .iter()
            .filter(|der| {
                Certificate::parse(der).is_ok_and(|found| found.issuer() != found.subject())
            })
            .cloned()
            .collect();
        if chain.len() > MAX_CHAIN {
            return Err(SignError::Chain);
        }
        Ok(Self { certificate, chain, scheme, key })
    }

    /// The certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// How it signs.
    pub fn scheme(&self) -> &'static Scheme {
        self.scheme
    }

    /// Its serial number in decimal.
    pub fn serial(&self) -> String {
        decimal(self.certificate.serial())
    }

    pub(crate) fn certificate_header(&self) -> String {
        STANDARD.encode(self.certificate.der())
    }

    pub(crate) fn chain_header(&self) -> Option<String> {
        let parts: Vec<_> = self.chain.iter().map(|der| STANDARD.encode(der)).collect();
        (!parts.is_empty()).then(|| parts.join(","))
    }

    pub(crate) fn sign(&self, string: &[u8]) -> Result<Vec<u8>, SignError> {
        self.key.sign(string)
    }
}

/// The scheme for a certificate's public key.
pub fn scheme_of(certificate: &Certificate) -> Result<&'static Scheme, SignError> {
    let oid = certificate.public_key_algorithm().to_string();
    let family = match oid.as_str() {
        "1.2.840.113549.1.1.1" => Family::Rsa,
        "1.2.840.10045.2.1" => Family::Ec,
        "2.16.840.1.101.3.4.3.17" | "2.16.840.1.101.3.4.3.18" | "2.16.840.1.101.3.4.3.19" => {
            Family::MlDsa
        }
        _ => return Err(SignError::Kind(oid)),
    };
    SCHEMES.iter().find(|row| row.family == family).ok_or(SignError::Kind(oid))
}

/// An unsigned number, big-endian, in decimal.
fn decimal(bytes: &[u8]) -> String {
    let mut digits = vec![0u8];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            let value = u32::from(*digit) * 256 + carry;
            *digit = u8::try_from(value % 10).unwrap_or_default();
            carry = value / 10;
        }
        while carry > 0 {
            digits.push(u8::try_from(carry % 10).unwrap_or_default());
            carry /= 10;
        }
    }
    digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn serial_numbers_are_written_in_decimal() {
        for (bytes, expected) in [
            (&[][..], "0"),
            (&[0], "0"),
            (&[9], "9"),
            (&[10], "10"),
            (&[0, 255], "255"),
            (&[1, 0], "256"),
            (&[0xff; 8], "18446744073709551615"),
            (
                &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                "340282366920938463463374607431768211456",
            ),
        ] {
            assert_eq!(decimal(bytes), expected);
        }
    }
}
