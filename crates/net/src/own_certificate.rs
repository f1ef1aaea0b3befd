//! A certificate that the operator provides: a chain and a private key from files.

use std::sync::Arc;

use outlast_pki::PkiError;
use outlast_pki::certificate::Certificate;
use outlast_pki::key_forms::{KeyError, PrivateKey};
use outlast_pki::object::{self, Kind};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use crate::door::ServerCertificate;
use crate::{certificate, limits};

/// Why a chain and a key are unusable. Reveals nothing about the key itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnError {
    /// The chain cannot be parsed.
    #[error("the chain cannot be read: {0}")]
    Chain(PkiError),
    /// It contains no certificate.
    #[error("the chain's file contains no certificate")]
    NoCertificate,
    /// It contains more certificates than a handshake may have.
    #[error("the chain has more than {max} certificates", max = limits::MAX_CHAIN)]
    TooLong,
    /// The certificates do not belong together, or are in another order.
    #[error("certificate {0} of the chain is not signed by the one after it")]
    Order(usize),
    /// The key cannot be parsed.
    #[error("the private key cannot be read: {0}")]
    Key(#[from] KeyError),
    /// There is no key.
    #[error("the key's file must contain exactly one private key")]
    NoKey,
    /// The key is encrypted, and nobody can be asked for the passphrase.
    #[error("the private key is encrypted")]
    Encrypted,
    /// The key does not belong to the certificate.
    #[error("the private key is not the first certificate's")]
    OtherKey,
    /// TLS cannot use such a key.
    #[error("TLS cannot sign with this key: {0}")]
    Unusable(String),
}

/// Contents of the files.
pub struct Own {
    /// Certificate and key for a door.
    pub certificate: ServerCertificate,
    /// Root certificate in PEM, if the file contains it.
    pub root_pem: Option<String>,
    /// Start of the leaf's validity, in seconds since 1970.
    pub not_before: i64,
    /// End of the leaf's validity, in seconds since 1970.
    pub not_after: i64,
}

/// Reads a chain, leaf first, and its private key: PEM or DER. A root at the end is not sent (RFC 8446, section 4.4.2).
pub fn read(chain: &[u8], key: &[u8]) -> Result<Own, OwnError> {
    let mut certificates = Vec::new();
    for object in object::read(chain).map_err(OwnError::Chain)? {
        // One file may contain both, as many tools write it.
        if object.kind == Kind::Certificate {
            certificates.push(Certificate::parse(object.der.expose()).map_err(OwnError::Chain)?);
        }
    }
    if certificates.len() > limits::MAX_CHAIN {
        return Err(OwnError::TooLong);
    }
    let misfit = certificates.windows(2).position(|pair| match pair {
        [below, above] => !below.signed_by(above),
        _ => false,
    });
    if let Some(at) = misfit {
        return Err(OwnError::Order(at + 1));
    }
    let root = certificates.pop_if(|last| last.signed_by(last));
    let root_pem = root.as_ref().map(|root| outlast_pki::pem::certificate(root.der()));
    if certificates.is_empty() {
        // A single self-signed certificate.
        certificates.extend(root);
    }
    let leaf = certificates.first().ok_or(OwnError::NoCertificate)?;
    let key = private_key(key)?;
    let spki = leaf.public_key().map_err(OwnError::Chain)?;
    if key.public_key != spki {
        return Err(OwnError::OtherKey);
    }
    let kind = certificate::kind_name(key.spec.name);
    let pkcs8 = key.to_pkcs8()?;
    let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(pkcs8.expose()));
    let unusable = |error: rustls::Error| OwnError::Unusable(error.to_string());
    // Not by the provider, which would keep a copy of the key without erasing it.
    let key = aws_lc_rs::sign::any_supported_type(&der).map_err(unusable)?;
    let (not_before, not_after) = (leaf.not_before(), leaf.not_after());
    let shown = certificates.iter().map(|row| CertificateDer::from(row.der().to_vec())).collect();
    let key = Arc::new(CertifiedKey::new(shown, key));
    let certificate = ServerCertificate { kind, key };
    Ok(Own { certificate, root_pem, not_before, not_after })
}

fn private_key(bytes: &[u8]) -> Result<PrivateKey, OwnError> {
    let objects = object::read(bytes).map_err(|_| OwnError::NoKey)?;
    if objects
        .iter()
        .any(|object| matches!(object.kind, Kind::EncryptedPrivateKey | Kind::LegacyEncryptedKey))
    {
        return Err(OwnError::Encrypted);
    }
    let mut keys = objects.iter().filter(|object| object.kind.is_bare_private_key());
    match (keys.next(), keys.next()) {
        (Some(only), None) => Ok(PrivateKey::read(only)?),
        _ => Err(OwnError::NoKey),
    }
}
