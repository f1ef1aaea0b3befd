//! Signature algorithms as rows, and verification.

use aws_lc_rs::digest::{SHA256, SHA512, digest};
use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{self as aws, UnparsedPublicKey};
use outlast_crypto::ml_dsa_context;

use crate::error::Error;
use crate::public_key::{Curve, Material, PublicKey, RSA};
use crate::wire::{Reader, Writer};

/// A signature algorithm of host or user keys.
#[derive(Debug)]
pub(crate) struct Algorithm {
    pub(crate) name: &'static str,
    /// Name when the key comes with a certificate.
    pub(crate) with_certificate: &'static str,
    /// Type of its keys.
    pub(crate) key_type: &'static str,
    /// Type in the blob of their certificates.
    pub(crate) certificate_type: &'static str,
    /// Whether the key is on hardware of a user; a server cannot have one.
    pub(crate) hardware: bool,
}

/// The row of an algorithm that is named like its keys.
macro_rules! row {
    ($name:literal) => {
        Algorithm {
            name: $name,
            with_certificate: concat!($name, "-cert-v01@openssh.com"),
            key_type: $name,
            certificate_type: concat!($name, "-cert-v01@openssh.com"),
            hardware: false,
        }
    };
    (rsa $name:literal) => {
        Algorithm {
            name: $name,
            with_certificate: concat!($name, "-cert-v01@openssh.com"),
            key_type: RSA,
            certificate_type: "ssh-rsa-cert-v01@openssh.com",
            hardware: false,
        }
    };
    (hardware $name:literal) => {
        Algorithm {
            name: concat!($name, "@openssh.com"),
            with_certificate: concat!($name, "-cert-v01@openssh.com"),
            key_type: concat!($name, "@openssh.com"),
            certificate_type: concat!($name, "-cert-v01@openssh.com"),
            hardware: true,
        }
    };
}

/// All algorithms, the preferred first.
pub(crate) static ALGORITHMS: &[Algorithm] = &[
    // draft-miller-sshm-mldsa44-ed25519-composite-sigs; its certificates are named without a version, as OpenSSH 10.6 does.
    Algorithm {
        name: "ssh-mldsa44-ed25519",
        with_certificate: "ssh-mldsa44-ed25519-cert",
        key_type: "ssh-mldsa44-ed25519",
        certificate_type: "ssh-mldsa44-ed25519-cert",
        hardware: false,
    },
    row!("ssh-ed25519"),
    row!("ecdsa-sha2-nistp256"),
    row!("ecdsa-sha2-nistp384"),
    row!("ecdsa-sha2-nistp521"),
    // RFC 8332.
    row!(rsa "rsa-sha2-512"),
    row!(rsa "rsa-sha2-256"),
    // OpenSSH's PROTOCOL.u2f.
    row!(hardware "sk-ssh-ed25519"),
    row!(hardware "sk-ecdsa-sha2-nistp256"),
];

impl Algorithm {
    /// The row with this name, and whether the name is that for certificates.
    pub(crate) fn by_name(name: &str) -> Option<(&'static Self, bool)> {
        ALGORITHMS.iter().find_map(|row| {
            (row.name == name)
                .then_some((row, false))
                .or_else(|| (row.with_certificate == name).then_some((row, true)))
        })
    }
}

/// What hardware said when it signed (OpenSSH's PROTOCOL.u2f).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Touch {
    /// Whether a user touched it.
    pub(crate) present: bool,
    /// Whether it verified the user, by a PIN for example.
    pub(crate) verified: bool,
}

/// Prefix and label of the composite's message (draft-ietf-lamps-pq-composite-sigs, section 2.2).
const COMPOSITE_PREFIX: &[u8] = b"CompositeAlgorithmSignatures2025";
pub(crate) const COMPOSITE_LABEL: &[u8] = b"COMPSIG-MLDSA44-Ed25519-SHA512";

/// What both halves of a composite sign.
pub(crate) fn composite_message(message: &[u8]) -> Vec<u8> {
    // No application context: its length is 0.
    [COMPOSITE_PREFIX, COMPOSITE_LABEL, &[0], digest(&SHA512, message).as_ref()].concat()
}

/// Whether the signature blob is this key's by this algorithm. For hardware it also says what the hardware saw.
pub(crate) fn verify(
    key: &PublicKey,
    algorithm: &Algorithm,
    message: &[u8],
    blob: &[u8],
) -> Option<Option<Touch>> {
    if key.key_type() != algorithm.key_type {
        return None;
    }
    let mut reader = Reader::new(blob);
    if reader.string().ok()? != algorithm.name.as_bytes() {
        return None;
    }
    let signature = reader.string().ok()?;
    let hardware = algorithm.hardware.then(|| Hardware::read(&mut reader)).transpose().ok()?;
    reader.end().ok()?;
    let valid = match key.material() {
        Material::Ed25519(key) => ed25519(key, message, signature),
        Material::Ecdsa(curve, point) => ecdsa(curve, point, message, signature).unwrap_or(false),
        Material::Rsa { n, e } => rsa(algorithm, n, e, message, signature),
        Material::Composite(key) => composite(key, message, signature),
        Material::SkEd25519(key, application) => {
            ed25519(key, &hardware?.message(application, message), signature)
        }
        Material::SkEcdsa(point, application) => {
            let message = hardware?.message(application, message);
            ecdsa(&crate::public_key::P256, point, &message, signature).unwrap_or(false)
        }
    };
    valid.then(|| hardware.map(Hardware::touch))
}

fn ed25519(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&aws::ED25519, key).verify(message, signature).is_ok()
}

/// RFC 5656, section 3.1.2: `mpint` r and s.
fn ecdsa(curve: &Curve, point: &[u8], message: &[u8], signature: &[u8]) -> Result<bool, Error> {
    let mut reader = Reader::new(signature);
    let mut fixed = vec![0; 2 * curve.len];
    for half in fixed.chunks_exact_mut(curve.len) {
        let integer = reader.unsigned()?;
        let Some(start) = half.len().checked_sub(integer.len()) else { return Ok(false) };
        half[start..].copy_from_slice(integer);
    }
    reader.end()?;
    let algorithm: &aws::EcdsaVerificationAlgorithm = match curve.len {
        32 => &aws::ECDSA_P256_SHA256_FIXED,
        48 => &aws::ECDSA_P384_SHA384_FIXED,
        _ => &aws::ECDSA_P521_SHA512_FIXED,
    };
    Ok(UnparsedPublicKey::new(algorithm, point).verify(message, &fixed).is_ok())
}

fn rsa(algorithm: &Algorithm, n: &[u8], e: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let parameters = if algorithm.name == "rsa-sha2-512" {
        &aws::RSA_PKCS1_2048_8192_SHA512
    } else {
        &aws::RSA_PKCS1_2048_8192_SHA256
    };
    // RFC 8332, section 3: some programs leave leading zeros out.
    let Some(missing) = n.len().checked_sub(signature.len()) else { return false };
    let mut whole = vec![0; missing];
    whole.extend_from_slice(signature);
    PublicKeyComponents { n, e }.verify(parameters, message, &whole).is_ok()
}

fn composite(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let (Some((ml_dsa_key, ed25519_key)), Some((ml_dsa, rest))) = (
        key.split_at_checked(ml_dsa_context::PUBLIC_KEY_LEN),
        signature.split_at_checked(ml_dsa_context::SIGNATURE_LEN),
    ) else {
        return false;
    };
    let message = composite_message(message);
    // Both halves are computed always.
    let ed25519 = ed25519(ed25519_key, &message, rest);
    let ml_dsa = ml_dsa_context::verify(ml_dsa_key, COMPOSITE_LABEL, &message, ml_dsa);
    ed25519 & ml_dsa
}

/// Flags and counter behind a signature of hardware.
#[derive(Clone, Copy)]
struct Hardware {
    flags: u8,
    counter: u32,
}

impl Hardware {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self { flags: reader.byte()?, counter: reader.u32()? })
    }

    fn message(self, application: &[u8], message: &[u8]) -> Vec<u8> {
        let mut signed = digest(&SHA256, application).as_ref().to_vec();
        signed.put_byte(self.flags);
        signed.put_u32(self.counter);
        signed.put(digest(&SHA256, message).as_ref());
        signed
    }

    fn touch(self) -> Touch {
        Touch { present: self.flags & 0x01 != 0, verified: self.flags & 0x04 != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::public_key::{COMPOSITE, ED25519, SK_ECDSA, SK_ED25519};

    #[test]
    fn names_are_those_of_openssh() {
        let names = |name: &str| {
            let (row, _) = Algorithm::by_name(name).unwrap();
            (row.with_certificate, row.key_type, row.certificate_type)
        };
        let sk = "sk-ssh-ed25519-cert-v01@openssh.com";
        assert_eq!(names(SK_ED25519), (sk, SK_ED25519, sk));
        assert_eq!(names(SK_ECDSA).1, SK_ECDSA);
        assert_eq!(names(ED25519).1, ED25519);
        assert_eq!(names(COMPOSITE).1, COMPOSITE);
        let rsa = ("rsa-sha2-512-cert-v01@openssh.com", "ssh-rsa", "ssh-rsa-cert-v01@openssh.com");
        assert_eq!(names("rsa-sha2-512"), rsa);
        assert!(Algorithm::by_name("rsa-sha2-512-cert-v01@openssh.com").unwrap().1);
        assert!(Algorithm::by_name("ssh-rsa").is_none());
    }
}
