//! Private key files: OpenSSH's (its PROTOCOL.key), and the PEM files of other tools.
//!
//! Encrypted files are refused: no crate of this workspace has bcrypt's key derivation.

use aws_lc_rs::encoding::{AsBigEndian, Curve25519SeedBin};
use aws_lc_rs::rsa::{self, KeyPairComponents, PublicKeyComponents};
use aws_lc_rs::signature::{EcdsaKeyPair, Ed25519KeyPair};
use der::asn1::{AnyRef, OctetStringRef, UintRef};
use der::{Decode, Sequence};
use outlast_crypto::{Secret, ml_dsa_context, random};
use zeroize::Zeroizing;

use crate::fingerprint::{from_base64, to_base64};
use crate::limits::MAX_KEY_FILE_LEN;
use crate::private_key::{Inner, PrivateKey, rsa_pkcs8, scalar, signing};
use crate::public_key::{
    COMPOSITE, Curve, ED25519, KeyError, Material, P256, P384, P521, PublicKey, RSA,
};
use crate::wire::{Reader, Writer};

const MAGIC: &[u8] = b"openssh-key-v1\0";
const OPENSSH: &str = "OPENSSH PRIVATE KEY";

impl PrivateKey {
    /// Reads a private key file without a passphrase: OpenSSH's format, or PKCS #1, SEC 1 or PKCS #8 as PEM.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        if text.len() > MAX_KEY_FILE_LEN {
            return Err(KeyError::Malformed("the file is too long"));
        }
        let (label, bytes) = unwrap_pem(text)?;
        match label {
            OPENSSH => openssh(&bytes),
            "RSA PRIVATE KEY" => rsa::KeyPair::from_der(&bytes)
                .map_err(|_| KeyError::Invalid)
                .and_then(|pair| Self::new(Inner::Rsa(pair))),
            "EC PRIVATE KEY" => ec(&bytes),
            "PRIVATE KEY" => pkcs8(&bytes),
            "ENCRYPTED PRIVATE KEY" => Err(KeyError::Encrypted),
            _ => Err(KeyError::Malformed("the file does not contain a private key")),
        }
    }

    /// Writes an OpenSSH private key file without a passphrase.
    pub fn to_openssh_pem(&self, comment: &str) -> Result<Secret, KeyError> {
        let mut private = Zeroizing::new(Vec::with_capacity(4096));
        let check = random::bytes::<4>().map_err(|_| KeyError::Invalid)?;
        private.put(&check);
        private.put(&check);
        private.put_string(self.public_key().key_type().as_bytes());
        self.write_private(&mut private)?;
        private.put_string(comment.as_bytes());
        // Padding up to the block of the cipher `none`: 1, 2, 3...
        for byte in 1..=7 {
            if private.len().is_multiple_of(8) {
                break;
            }
            private.put_byte(byte);
        }
        let mut file = Zeroizing::new(Vec::with_capacity(private.len() + 4096));
        file.put(MAGIC);
        file.put_string(b"none");
        file.put_string(b"none");
        file.put_string(b"");
        file.put_u32(1);
        file.put_string(self.public_key().blob());
        file.put_string(&private);
        let encoded = Zeroizing::new(to_base64(&file));
        let mut text = Zeroizing::new(Vec::with_capacity(encoded.len() * 2));
        text.put(format!("-----BEGIN {OPENSSH}-----\n").as_bytes());
        for line in encoded.as_bytes().chunks(70) {
            text.put(line);
            text.put_byte(b'\n');
        }
        text.put(format!("-----END {OPENSSH}-----\n").as_bytes());
        Ok(Secret::new(std::mem::take(&mut *text)))
    }

    /// The private fields, as files and agents have them.
    pub(crate) fn write_private(&self, out: &mut Zeroizing<Vec<u8>>) -> Result<(), KeyError> {
        match (self.inner(), self.public_key().material()) {
            (Inner::Ed25519(pair), Material::Ed25519(public)) => {
                let mut both = Zeroizing::new(seed(pair)?.to_vec());
                both.put(public);
                out.put_string(public);
                out.put_string(&both);
            }
            (Inner::Ecdsa(curve, pair), Material::Ecdsa(_, point)) => {
                out.put_string(curve.name.as_bytes());
                out.put_string(point);
                out.put_unsigned(scalar(pair)?.as_ref());
            }
            (Inner::Composite { ml_dsa_seed, ed25519 }, Material::Composite(public)) => {
                let mut both = Zeroizing::new(ml_dsa_seed.expose().to_vec());
                both.put(&*seed(ed25519)?);
                out.put_string(public);
                out.put_string(&both);
            }
            (Inner::Rsa(pair), Material::Rsa { .. }) => {
                let der = rsa_pkcs8(pair)?;
                let bad = |_| KeyError::Invalid;
                let info = PrivateKeyInfo::from_der(der.as_ref()).map_err(bad)?;
                let key = RsaPrivateKey::from_der(info.private_key.as_bytes()).map_err(bad)?;
                for part in [key.n, key.e, key.d, key.q_inv, key.p, key.q] {
                    out.put_unsigned(part.as_bytes());
                }
            }
            _ => return Err(KeyError::Invalid),
        }
        Ok(())
    }
}

/// Seed of an Ed25519 key.
fn seed(pair: &Ed25519KeyPair) -> Result<Zeroizing<[u8; 32]>, KeyError> {
    let seed = pair.seed().map_err(|_| KeyError::Invalid)?;
    let bytes: Curve25519SeedBin<'_> = seed.as_be_bytes().map_err(|_| KeyError::Invalid)?;
    let bytes = <[u8; 32]>::try_from(bytes.as_ref()).map_err(|_| KeyError::Invalid)?;
    Ok(Zeroizing::new(bytes))
}

/// Label and contents of the first PEM block.
fn unwrap_pem(text: &str) -> Result<(&str, Zeroizing<Vec<u8>>), KeyError> {
    const BAD: KeyError = KeyError::Malformed("the file is not a PEM file");
    let (_, rest) = text.split_once("-----BEGIN ").ok_or(BAD)?;
    let (label, rest) = rest.split_once("-----").ok_or(BAD)?;
    let (body, _) = rest.split_once("-----END ").ok_or(BAD)?;
    if body.contains("ENCRYPTED") {
        return Err(KeyError::Encrypted);
    }
    let body: Zeroizing<String> =
        Zeroizing::new(body.chars().filter(|c| !c.is_ascii_whitespace()).collect());
    let bytes = from_base64(&body).ok_or(KeyError::Malformed("the file is not base64"))?;
    Ok((label, Zeroizing::new(bytes)))
}

fn openssh(bytes: &[u8]) -> Result<PrivateKey, KeyError> {
    let bytes =
        bytes.strip_prefix(MAGIC).ok_or(KeyError::Malformed("the file has another format"))?;
    let mut reader = Reader::new(bytes);
    let cipher = reader.string()?;
    let kdf = reader.string()?;
    reader.string()?;
    if cipher != b"none" || kdf != b"none" {
        return Err(KeyError::Encrypted);
    }
    if reader.u32()? != 1 {
        return Err(KeyError::Malformed("the file contains several keys"));
    }
    let public = PublicKey::parse(reader.string()?)?;
    let mut reader = Reader::new(reader.string()?);
    if reader.u32()? != reader.u32()? {
        return Err(KeyError::Encrypted);
    }
    let name = reader.text()?;
    let key = PrivateKey::new(private(name, &mut reader)?)?;
    // The comment.
    reader.string()?;
    let padded = reader.rest().iter().zip(1_u8..).all(|(byte, expected)| *byte == expected);
    if *key.public_key() != public || !padded || reader.rest().len() > 255 {
        return Err(KeyError::Invalid);
    }
    Ok(key)
}

fn private(name: &str, reader: &mut Reader<'_>) -> Result<Inner, KeyError> {
    let bad = |_| KeyError::Invalid;
    Ok(match name {
        ED25519 => {
            let public = reader.string()?;
            let both = reader.string()?;
            // The seed, then the public key again.
            let (seed, again) = both.split_at_checked(32).ok_or(KeyError::Invalid)?;
            if again != public {
                return Err(KeyError::Invalid);
            }
            let pair = Ed25519KeyPair::from_seed_and_public_key(seed, public).map_err(bad)?;
            Inner::Ed25519(pair)
        }
        COMPOSITE => {
            reader.string()?;
            let both = reader.string()?;
            let (ml_dsa, ed25519) =
                both.split_at_checked(ml_dsa_context::SEED_LEN).ok_or(KeyError::Invalid)?;
            let ed25519 = Ed25519KeyPair::from_seed_unchecked(ed25519).map_err(bad)?;
            Inner::Composite { ml_dsa_seed: Secret::new(ml_dsa.to_vec()), ed25519 }
        }
        RSA => {
            let (n, e) = (reader.unsigned()?, reader.unsigned()?);
            let (d, q_inv) = (reader.unsigned()?, reader.unsigned()?);
            let (p, q) = (reader.unsigned()?, reader.unsigned()?);
            let (d_p, d_q) = (exponent(d, p)?, exponent(d, q)?);
            let components = KeyPairComponents {
                public_key: PublicKeyComponents { n, e },
                d,
                p,
                q,
                dP: &d_p,
                dQ: &d_q,
                qInv: q_inv,
            };
            Inner::Rsa(rsa::KeyPair::from_components(&components).map_err(bad)?)
        }
        other => {
            let curve = Curve::by_key_type(other).ok_or_else(|| {
                KeyError::UnsupportedType(crate::error::printable(other.as_bytes()))
            })?;
            reader.string()?;
            let public = reader.string()?;
            let scalar = reader.unsigned()?;
            let missing = curve.len.checked_sub(scalar.len()).ok_or(KeyError::Invalid)?;
            let mut whole = Zeroizing::new(vec![0; missing]);
            whole.put(scalar);
            let pair =
                EcdsaKeyPair::from_private_key_and_public_key(signing(curve), &whole, public);
            Inner::Ecdsa(curve, pair.map_err(bad)?)
        }
    })
}

/// d mod (p - 1), which OpenSSH's format leaves out and the library wants. The library compares the result with d, p
/// and q, so that it cannot be a wrong one.
fn exponent(d: &[u8], p: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    // Bounds the time: 8192 bits, in half as many of a factor.
    if d.len() > 1024
        || p.is_empty()
        || p.len() > 1024
        || p.last().is_some_and(|last| last % 2 == 0)
    {
        return Err(KeyError::Invalid);
    }
    let mut modulus = Zeroizing::new(p.to_vec());
    if let Some(last) = modulus.last_mut() {
        *last -= 1;
    }
    // One byte more, for the bit that doubling adds.
    let mut rest = Zeroizing::new(vec![0_u8; p.len() + 1]);
    for bit in (0..d.len() * 8).map(|at| (d[at / 8] >> (7 - at % 8)) & 1) {
        let mut carry = bit;
        for byte in rest.iter_mut().rev() {
            let next = *byte >> 7;
            *byte = (*byte << 1) | carry;
            carry = next;
        }
        if rest[0] != 0 || rest[1..] >= modulus[..] {
            let mut borrow = 0;
            for (at, byte) in rest.iter_mut().enumerate().rev() {
                let take = at.checked_sub(1).map_or(0, |at| modulus[at]);
                let (value, first) = byte.overflowing_sub(take);
                let (value, second) = value.overflowing_sub(borrow);
                *byte = value;
                borrow = u8::from(first | second);
            }
        }
    }
    Ok(rest)
}

fn ec(der: &[u8]) -> Result<PrivateKey, KeyError> {
    [&P256, &P384, &P521]
        .into_iter()
        .find_map(|curve| {
            let pair = EcdsaKeyPair::from_private_key_der(signing(curve), der).ok()?;
            PrivateKey::new(Inner::Ecdsa(curve, pair)).ok()
        })
        .ok_or(KeyError::Invalid)
}

fn pkcs8(der: &[u8]) -> Result<PrivateKey, KeyError> {
    if let Ok(pair) = rsa::KeyPair::from_pkcs8(der) {
        return PrivateKey::new(Inner::Rsa(pair));
    }
    if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
        return PrivateKey::new(Inner::Ed25519(pair));
    }
    ec(der)
}

/// `PrivateKeyInfo` (RFC 5208, section 5).
#[derive(Sequence)]
struct PrivateKeyInfo<'a> {
    version: u8,
    algorithm: AnyRef<'a>,
    private_key: &'a OctetStringRef,
}

/// `RSAPrivateKey` (RFC 8017, appendix A.1.2).
#[derive(Sequence)]
struct RsaPrivateKey<'a> {
    version: u8,
    n: UintRef<'a>,
    e: UintRef<'a>,
    d: UintRef<'a>,
    p: UintRef<'a>,
    q: UintRef<'a>,
    d_p: UintRef<'a>,
    d_q: UintRef<'a>,
    q_inv: UintRef<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_remainders() {
        let exponent = |d: u32, p: u32| {
            let rest = exponent(&d.to_be_bytes(), &p.to_be_bytes()).unwrap();
            rest.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
        };
        for (d, p) in
            [(1_000_003, 7), (u32::MAX, 0xffff_fffb), (5, 0x1_0001), (0, 3), (u32::MAX, 3)]
        {
            assert_eq!(exponent(d, p), u64::from(d % (p - 1)), "{d} mod {p} - 1");
        }
        assert!(super::exponent(&[1], &[2]).is_err() && super::exponent(&[1], &[]).is_err());
    }
}
