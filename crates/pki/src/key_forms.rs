//! Private keys in the forms that files contain, and which software reads which form.
//!
//! ML-DSA and ML-KEM keys come as seed, expanded or both (RFC 9881 and RFC 9935, section 6), and implementations
//! differ in what they read: that is the table [`KEY_READERS`].

mod readers;

use der::asn1::{AnyRef, OctetStringRef};
use der::{Decode, Encode, Reader, Sequence, SliceReader, Tag, TagNumber, Tagged};
use outlast_crypto::Secret;
use outlast_crypto::keys::{Form, KEY_SPECS, KeySpec};
use pkcs8::PrivateKeyInfoRef;
use spki::AlgorithmIdentifierRef;

use crate::object::{Kind, Object};

pub use readers::{Answer, KEY_READERS, KeyReader};

/// Why a private key was refused. Reveals nothing of the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Not a private key.
    #[error("not a valid private key: {0}")]
    Malformed(String),
    /// A key type that the tables lack.
    #[error("private keys of the algorithm {0} are not supported")]
    Unsupported(String),
    /// RFC 9881, section 8.2: a reader of both forms must check that they are the same key.
    #[error("the seed and the expanded key are not the same key: refused (RFC 9881, section 8.2)")]
    Inconsistent,
    /// An invalid seed or expanded key.
    #[error("the {0} is not valid: its length, its ranges or its parts are wrong")]
    Part(&'static str),
    /// A seed cannot be computed from an expanded key.
    #[error("the key is in its expanded form, from which its seed cannot be computed")]
    NoSeed,
    /// Only ML-DSA and ML-KEM keys have seeds.
    #[error("{0} keys have one form only; seed, expanded and both are for ML-DSA and ML-KEM")]
    OneForm(&'static str),
}

/// A parsed and checked private key. There is no `Debug`.
pub struct PrivateKey {
    /// Its type.
    pub spec: &'static KeySpec,
    /// The structure that contained it: PKCS #8, SEC 1 or PKCS #1.
    pub kind: Kind,
    /// Its form.
    pub form: Form,
    /// DER `SubjectPublicKeyInfo` of its public key.
    pub public_key: Vec<u8>,
    stored: Secret,
}

impl PrivateKey {
    /// Parses a private key that is not encrypted.
    pub fn read(object: &Object) -> Result<Self, KeyError> {
        let pkcs8 = match object.kind {
            Kind::EcPrivateKey => wrap_ec(object.der.expose())?,
            Kind::RsaPrivateKey => {
                let null = AnyRef::NULL;
                envelope(const_oid::db::rfc5912::RSA_ENCRYPTION, Some(null), object.der.expose())?
            }
            _ => Secret::new(object.der.expose().to_vec()),
        };
        let mut key = Self::parse(pkcs8.expose())?;
        key.kind = object.kind;
        Ok(key)
    }

    /// Parses PKCS #8 DER.
    pub fn parse(pkcs8: &[u8]) -> Result<Self, KeyError> {
        for spec in KEY_SPECS.iter().filter(|spec| !spec.is_symmetric()) {
            let Ok(imported) = spec.import(pkcs8) else { continue };
            let loaded = spec.load(&imported.stored).ok();
            let public_key = loaded.and_then(|key| key.public_key().map(<[u8]>::to_vec));
            return Ok(Self {
                spec,
                kind: Kind::PrivateKey,
                form: imported.form,
                public_key: public_key.unwrap_or_default(),
                stored: imported.stored,
            });
        }
        Err(explain(pkcs8))
    }

    /// The structure and form in one word: `seed`, `expanded`, `both`, `PKCS #8`, `SEC 1`, `PKCS #1`.
    pub fn form_name(&self) -> &'static str {
        match (self.kind, self.form) {
            (Kind::EcPrivateKey, _) => "SEC 1",
            (Kind::RsaPrivateKey, _) => "PKCS #1",
            (_, Form::Pkcs8) => "PKCS #8",
            (_, form) => form.name(),
        }
    }

    /// PKCS #8 DER in the form that the key came in.
    pub fn to_pkcs8(&self) -> Result<Secret, KeyError> {
        self.to_form(self.form)
    }

    /// PKCS #8 DER in the given form.
    pub fn to_form(&self, form: Form) -> Result<Secret, KeyError> {
        let written = match form {
            Form::Pkcs8 => self.spec.to_pkcs8(&self.stored),
            form => self.spec.to_form(&self.stored, form),
        };
        written.map_err(|_| match self.form {
            Form::Expanded => KeyError::NoSeed,
            _ => KeyError::OneForm(self.spec.name),
        })
    }
}

/// Converts a SEC 1 key, which must name its curve, to PKCS #8 (RFC 5915, section 1).
fn wrap_ec(der: &[u8]) -> Result<Secret, KeyError> {
    let wrong = |error: der::Error| KeyError::Malformed(error.to_string());
    let mut curve: Option<const_oid::ObjectIdentifier> = None;
    let mut reader = SliceReader::new(der).map_err(wrong)?;
    reader
        .sequence(|inner| {
            while !inner.is_finished() {
                let any = AnyRef::decode(inner)?;
                if any.tag() == (Tag::ContextSpecific { constructed: true, number: TagNumber(0) }) {
                    curve = Some(const_oid::ObjectIdentifier::from_der(any.value())?);
                }
            }
            Ok::<_, der::Error>(())
        })
        .map_err(wrong)?;
    let curve = curve.ok_or_else(|| KeyError::Malformed("it does not name its curve".into()))?;
    envelope(const_oid::db::rfc5912::ID_EC_PUBLIC_KEY, Some(AnyRef::from(&curve)), der)
}

fn envelope(
    oid: const_oid::ObjectIdentifier,
    parameters: Option<AnyRef<'_>>,
    key: &[u8],
) -> Result<Secret, KeyError> {
    let wrong = |error: der::Error| KeyError::Malformed(error.to_string());
    let key = OctetStringRef::new(key).map_err(wrong)?;
    PrivateKeyInfoRef::new(AlgorithmIdentifierRef { oid, parameters }, key)
        .to_der()
        .map(Secret::new)
        .map_err(wrong)
}

/// Explains why no row accepts a key.
fn explain(pkcs8: &[u8]) -> KeyError {
    let info = match PrivateKeyInfoRef::from_der(pkcs8) {
        Ok(info) => info,
        Err(error) => return KeyError::Malformed(error.to_string()),
    };
    let oid = info.algorithm.oid;
    if !known(oid) {
        return KeyError::Unsupported(
            crate::oid_name(oid).map_or_else(|| oid.to_string(), str::to_owned),
        );
    }
    let bare = |part: &[u8]| envelope(oid, None, part).ok().map(|der| accepted(der.expose()));
    let Ok(any) = AnyRef::from_der(info.private_key.as_bytes()) else {
        return KeyError::Malformed(
            "its content is not the structure that its algorithm requires".into(),
        );
    };
    match any.tag() {
        Tag::ContextSpecific { number: TagNumber(0), .. } => KeyError::Part("seed"),
        Tag::OctetString => KeyError::Part("expanded key"),
        Tag::Sequence => {
            let Ok(both) = any.decode_as::<Both<'_>>() else {
                return KeyError::Malformed(
                    "its numbers do not form a key of its algorithm".into(),
                );
            };
            // With the tag [0] IMPLICIT, the OCTET STRING is the seed form.
            let mut seed = both.seed.to_der().unwrap_or_default();
            if let Some(tag) = seed.first_mut() {
                *tag = 0x80;
            }
            let seed = Secret::new(seed);
            let expanded = Secret::new(both.expanded_key.to_der().unwrap_or_default());
            match (bare(seed.expose()), bare(expanded.expose())) {
                (Some(true), Some(true)) => KeyError::Inconsistent,
                (Some(true), _) => KeyError::Part("expanded key"),
                _ => KeyError::Part("seed"),
            }
        }
        _ => KeyError::Malformed(
            "its content is not the structure that its algorithm requires".into(),
        ),
    }
}

fn accepted(pkcs8: &[u8]) -> bool {
    KEY_SPECS.iter().any(|spec| !spec.is_symmetric() && spec.import(pkcs8).is_ok())
}

/// Whether any row has this OID.
fn known(oid: const_oid::ObjectIdentifier) -> bool {
    const ML_KEM: &str = "2.16.840.1.101.3.4.4.";
    oid == const_oid::db::rfc5912::RSA_ENCRYPTION
        || oid == const_oid::db::rfc5912::ID_EC_PUBLIC_KEY
        || KEY_SPECS.iter().flat_map(|spec| spec.signing).any(|row| row.oid == Some(oid))
        || oid.to_string().starts_with(ML_KEM)
}

/// RFC 9881, section 6: the form with seed and expanded key.
#[derive(Sequence)]
struct Both<'a> {
    seed: &'a OctetStringRef,
    expanded_key: &'a OctetStringRef,
}
