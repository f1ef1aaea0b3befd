//! Public keys: blobs (RFC 4253, section 6.6) and lines of OpenSSH's files.

use std::fmt;

use outlast_crypto::ml_dsa_context;

use crate::error::Error;
use crate::fingerprint;
use crate::limits::MAX_KEY_LINE_LEN;
use crate::wire::{Reader, Writer};

/// Why bytes are not a key or certificate that this crate can use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The bytes do not have the format.
    #[error("the key is malformed: {0}")]
    Malformed(&'static str),
    /// The type is unknown, or too weak to be accepted.
    #[error("keys of type {0} are not supported")]
    UnsupportedType(String),
    /// RSA with a modulus that is too short or too long.
    #[error("an RSA key has {0} bits; 2048 to 8192 are supported")]
    RsaSize(usize),
    /// A private key file that is encrypted.
    #[error("the private key is encrypted; remove its passphrase with ssh-keygen -p")]
    Encrypted,
    /// The library refused the key, or its halves do not belong together.
    #[error("the key is not valid")]
    Invalid,
}

impl From<Error> for KeyError {
    fn from(_: Error) -> Self {
        Self::Malformed("its fields do not have the lengths that they claim")
    }
}

/// A curve of ECDSA keys (RFC 5656, section 10.1).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    pub(crate) key_type: &'static str,
    /// Length of a coordinate, in bytes.
    pub(crate) len: usize,
}

pub(crate) static P256: Curve =
    Curve { name: "nistp256", key_type: "ecdsa-sha2-nistp256", len: 32 };
pub(crate) static P384: Curve =
    Curve { name: "nistp384", key_type: "ecdsa-sha2-nistp384", len: 48 };
pub(crate) static P521: Curve =
    Curve { name: "nistp521", key_type: "ecdsa-sha2-nistp521", len: 66 };
static CURVES: [&Curve; 3] = [&P256, &P384, &P521];

impl Curve {
    pub(crate) fn by_key_type(name: &str) -> Option<&'static Self> {
        CURVES.into_iter().find(|curve| curve.key_type == name)
    }
}

/// What a key consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Material {
    Ed25519([u8; 32]),
    /// An uncompressed point.
    Ecdsa(&'static Curve, Vec<u8>),
    /// Modulus and exponent, without leading zeros.
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// ML-DSA-44, then Ed25519 (draft-miller-sshm-mldsa44-ed25519-composite-sigs).
    Composite(Vec<u8>),
    /// Ed25519 on hardware, with the application (OpenSSH's PROTOCOL.u2f).
    SkEd25519([u8; 32], Vec<u8>),
    /// ECDSA P-256 on hardware.
    SkEcdsa(Vec<u8>, Vec<u8>),
}

/// Type name of RSA keys. Their signatures have other names (RFC 8332).
pub(crate) const RSA: &str = "ssh-rsa";
pub(crate) const ED25519: &str = "ssh-ed25519";
pub(crate) const COMPOSITE: &str = "ssh-mldsa44-ed25519";
pub(crate) const SK_ED25519: &str = "sk-ssh-ed25519@openssh.com";
pub(crate) const SK_ECDSA: &str = "sk-ecdsa-sha2-nistp256@openssh.com";
/// Lengths of an RSA modulus, in bits.
pub(crate) const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
/// Length of the public key of `ssh-mldsa44-ed25519`, in bytes.
pub(crate) const COMPOSITE_LEN: usize = ml_dsa_context::PUBLIC_KEY_LEN + 32;

/// A public key of a user, host or authority.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    blob: Vec<u8>,
    material: Material,
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} {})", self.key_type(), self.fingerprint())
    }
}

impl PublicKey {
    /// Parses a key blob. Certificates are not keys: see [`crate::Certificate::parse`].
    pub fn parse(blob: &[u8]) -> Result<Self, KeyError> {
        let mut reader = Reader::new(blob);
        let name = reader.text()?;
        let material = Material::read(name, &mut reader)?;
        reader.end()?;
        Ok(Self::new(material))
    }

    /// Parses a line such as `ssh-ed25519 AAAA... comment`; options before the type are not supported.
    pub fn from_openssh_line(line: &str) -> Result<Self, KeyError> {
        let (name, blob) = split_line(line)?;
        let key = Self::parse(&blob)?;
        if key.key_type() != name {
            return Err(KeyError::Malformed("the line names another type than its key has"));
        }
        Ok(key)
    }

    pub(crate) fn new(material: Material) -> Self {
        let mut blob = Vec::new();
        blob.put_string(material.key_type().as_bytes());
        material.write(&mut blob);
        Self { blob, material }
    }

    /// The blob.
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Type name, such as `ssh-ed25519` or `ssh-rsa`.
    pub fn key_type(&self) -> &'static str {
        self.material.key_type()
    }

    /// `SHA256:...`, as `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> String {
        fingerprint::sha256(&self.blob)
    }

    /// Type and base64 of the blob, without a comment.
    pub fn to_openssh_line(&self) -> String {
        format!("{} {}", self.key_type(), fingerprint::to_base64(&self.blob))
    }

    /// Length of the key in bits as `ssh-keygen -l` prints it, for the types that have several.
    pub fn bits(&self) -> Option<usize> {
        match &self.material {
            Material::Rsa { n, .. } => Some(bits(n)),
            Material::Ecdsa(curve, _) => Some(if curve.len == 66 { 521 } else { curve.len * 8 }),
            Material::SkEcdsa(..) => Some(256),
            _ => None,
        }
    }

    pub(crate) fn material(&self) -> &Material {
        &self.material
    }
}

impl Material {
    pub(crate) fn key_type(&self) -> &'static str {
        match self {
            Self::Ed25519(_) => ED25519,
            Self::Ecdsa(curve, _) => curve.key_type,
            Self::Rsa { .. } => RSA,
            Self::Composite(_) => COMPOSITE,
            Self::SkEd25519(..) => SK_ED25519,
            Self::SkEcdsa(..) => SK_ECDSA,
        }
    }

    /// The fields behind the type name.
    pub(crate) fn read(name: &str, reader: &mut Reader<'_>) -> Result<Self, KeyError> {
        Ok(match name {
            ED25519 => Self::Ed25519(ed25519(reader)?),
            RSA => {
                let e = reader.unsigned()?.to_vec();
                let n = reader.unsigned()?.to_vec();
                if !RSA_BITS.contains(&bits(&n)) {
                    return Err(KeyError::RsaSize(bits(&n)));
                }
                // FIPS 186-5, section 5.1, allows larger ones; OpenSSL and AWS-LC do not.
                if e.is_empty()
                    || e.len() > 4
                    || e.last().is_some_and(|last| last % 2 == 0)
                    || e == [1]
                {
                    return Err(KeyError::Malformed("the RSA exponent is not usable"));
                }
                Self::Rsa { n, e }
            }
            COMPOSITE => {
                let key = reader.string()?;
                if key.len() != COMPOSITE_LEN {
                    return Err(KeyError::Malformed("the composite key has a wrong length"));
                }
                Self::Composite(key.to_vec())
            }
            SK_ED25519 => {
                let key = ed25519(reader)?;
                Self::SkEd25519(key, reader.string()?.to_vec())
            }
            SK_ECDSA => {
                let point = point(&P256, reader)?;
                Self::SkEcdsa(point, reader.string()?.to_vec())
            }
            other => match Curve::by_key_type(other) {
                Some(curve) => Self::Ecdsa(curve, point(curve, reader)?),
                None => {
                    return Err(KeyError::UnsupportedType(crate::error::printable(
                        other.as_bytes(),
                    )));
                }
            },
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ed25519(key) => out.put_string(key),
            Self::Ecdsa(curve, point) => {
                out.put_string(curve.name.as_bytes());
                out.put_string(point);
            }
            Self::Rsa { n, e } => {
                out.put_unsigned(e);
                out.put_unsigned(n);
            }
            Self::Composite(key) => out.put_string(key),
            Self::SkEd25519(key, application) => {
                out.put_string(key);
                out.put_string(application);
            }
            Self::SkEcdsa(point, application) => {
                out.put_string(P256.name.as_bytes());
                out.put_string(point);
                out.put_string(application);
            }
        }
    }
}

fn ed25519(reader: &mut Reader<'_>) -> Result<[u8; 32], KeyError> {
    reader
        .string()?
        .try_into()
        .map_err(|_| KeyError::Malformed("an Ed25519 key does not have 32 bytes"))
}

fn point(curve: &Curve, reader: &mut Reader<'_>) -> Result<Vec<u8>, KeyError> {
    if reader.string()? != curve.name.as_bytes() {
        return Err(KeyError::Malformed("the curve is not that of the key's type"));
    }
    let point = reader.string()?;
    // RFC 5656, section 3.1: compression is optional, and nobody uses it.
    if point.len() != 1 + 2 * curve.len || point.first() != Some(&0x04) {
        return Err(KeyError::Malformed("a point of the curve is not in the uncompressed form"));
    }
    Ok(point.to_vec())
}

fn bits(n: &[u8]) -> usize {
    n.first().map_or(0, |first| n.len() * 8 - first.leading_zeros() as usize)
}

/// Type and blob of a line.
pub(crate) fn split_line(line: &str) -> Result<(&str, Vec<u8>), KeyError> {
    if line.len() > MAX_KEY_LINE_LEN {
        return Err(KeyError::Malformed("the line is too long"));
    }
    let mut words = line.split_ascii_whitespace();
    let (Some(name), Some(blob)) = (words.next(), words.next()) else {
        return Err(KeyError::Malformed("a line has a type and a key in base64"));
    };
    let blob =
        fingerprint::from_base64(blob).ok_or(KeyError::Malformed("the key is not base64"))?;
    Ok((name, blob))
}
