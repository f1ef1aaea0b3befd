//! KMS keys with certificates, with which service-linked roles sign timestamps and uploads: a key's tag [`CERTIFICATE_TAG`] names
//! the certificate, which a CA of this service has issued for the key.
//!
//! The records are read each time, so that a certificate that is revoked, replaced or moved to another key signs nothing more.
//! Only what was parsed is kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::SignatureAlgorithm;
use outlast_pki::ObjectIdentifier;
use outlast_pki::certificate::Certificate;
use outlast_pki::cms::sign::suitable;
use outlast_pki::path::check_leaf;
use outlast_pki::pem;
use outlast_pki::time::rfc3339;

use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::ca::{self, CaError};
use crate::identity::action;
use crate::keyring::KeyRing;
use crate::kms::{self, Access, Key, KmsError};
use crate::work::Work;

/// Tag of a KMS key that names its certificate.
pub const CERTIFICATE_TAG: &str = "outlast:certificate-arn";

/// Keys whose certificates are kept parsed.
const MAX_KEPT: usize = 64;

/// Why a key cannot sign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The key or its certificate cannot be used; the reason is for the operator.
    #[error("{0}")]
    Unusable(String),
    /// This service failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<KmsError> for Unfit {
    fn from(error: KmsError) -> Self {
        match error {
            KmsError::Fault(fault) => Self::Fault(fault),
            other => Self::Unusable(other.to_string()),
        }
    }
}

impl From<CaError> for Unfit {
    fn from(error: CaError) -> Self {
        match error {
            CaError::Fault(fault) => Self::Fault(fault),
            other => Self::Unusable(other.to_string()),
        }
    }
}

/// A certificate with its chain, parsed.
pub(crate) struct Identity {
    /// What was parsed, in PEM.
    certificate_pem: String,
    chain_pem: String,
    /// The key material that the certificate is for.
    material_id: String,
    /// The certificate.
    pub(crate) certificate: Certificate,
    /// The CAs between the certificate and the root, in DER.
    pub(crate) chain: Vec<Vec<u8>>,
}

impl Identity {
    /// Whether the certificate is valid at a time, in milliseconds since 1970.
    pub(crate) fn require_valid(&self, at_ms: i64) -> Result<(), Unfit> {
        let (at, certificate) = (at_ms.div_euclid(1000), &self.certificate);
        if at >= certificate.not_before() && at <= certificate.not_after() {
            return Ok(());
        }
        Err(Unfit::Unusable(format!(
            "the certificate \"{}\" is valid from {} to {}",
            certificate.subject(),
            rfc3339(certificate.not_before()),
            rfc3339(certificate.not_after()),
        )))
    }
}

/// Parsed certificates for one purpose, by the ARN of their key.
pub struct Identities {
    purpose: ObjectIdentifier,
    kept: Mutex<HashMap<String, Arc<Identity>>>,
}

impl Identities {
    /// Certificates for this extended key usage and nothing else.
    pub fn new(purpose: ObjectIdentifier) -> Self {
        Self { purpose, kept: Mutex::default() }
    }

    /// The certificate of a key, as it is now.
    pub(crate) fn of(
        &self,
        work: &mut Work<'_>,
        ring: &KeyRing,
        access: Access<'_>,
        key: &Key,
    ) -> Result<Arc<Identity>, Unfit> {
        let arn = key.tags().get(CERTIFICATE_TAG).ok_or_else(|| {
            Unfit::Unusable(format!("{} has no tag {CERTIFICATE_TAG}", key.arn()))
        })?;
        let (owner, serial) = arn
            .split_once("/certificate/")
            .ok_or_else(|| Unfit::Unusable(format!("{arn} is not the ARN of a certificate")))?;
        let region = Arn::parse(owner).map(|arn| arn.region().to_owned()).unwrap_or_default();
        let scope = Scope { account: key.account().to_owned(), region };
        let authority = ca::find(work, &scope, owner)?;
        if let Some(revoked) = ca::revoked(work, &authority, serial)? {
            let at = rfc3339(revoked.revoked_ms.div_euclid(1000));
            return Err(Unfit::Unusable(format!("the certificate {arn} was revoked at {at}")));
        }
        let issued = ca::issued(work, &authority, arn)?;
        let chain_pem = issued.chain.unwrap_or_default();
        let known =
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&key.arn()).cloned();
        let is_it = |known: &Arc<Identity>| {
            known.certificate_pem == issued.certificate
                && known.chain_pem == chain_pem
                && known.material_id == key.material_id()
        };
        if let Some(known) = known.filter(is_it) {
            return Ok(known);
        }
        let certificate = Certificate::parse_one(issued.certificate.as_bytes())
            .map_err(|_| Fault::Damaged(arn.clone()))?;
        check_leaf(&certificate, self.purpose)
            .map_err(|error| Unfit::Unusable(error.to_string()))?;
        let permit = kms::authorize(work, access, action::kms::GetPublicKey, key)?;
        let public_key = kms::public_key(work, ring, key, &permit)?;
        if certificate.public_key().map_err(Fault::from)? != public_key {
            return Err(Unfit::Unusable(format!(
                "the certificate {arn} is not for the key {}",
                key.arn()
            )));
        }
        let mut chain = Vec::new();
        if !chain_pem.is_empty() {
            for der in pem::read_certificates(chain_pem.as_bytes())
                .map_err(|_| Fault::Damaged(arn.clone()))?
            {
                let above = Certificate::parse(&der).map_err(Fault::from)?;
                // A verifier has the root, and would not trust one in a message.
                if above.issuer() != above.subject() {
                    chain.push(der);
                }
            }
        }
        let identity = Arc::new(Identity {
            certificate_pem: issued.certificate,
            chain_pem,
            material_id: key.material_id().to_owned(),
            certificate,
            chain,
        });
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(key.arn(), identity.clone());
        Ok(identity)
    }
}

/// What a key signs with, if its signatures are quick enough to be made for each request of somebody else's.
pub(crate) fn quick(key: &Key) -> Result<(&'static SignatureAlgorithm, &'static Digest), Unfit> {
    let found = suitable(key.spec(), None)
        .ok_or_else(|| Unfit::Unusable(format!("{} is a key that cannot sign", key.arn())))?;
    if found.0.slow {
        // Each request would occupy a core for long.
        return Err(Unfit::Unusable(format!("the signatures of {} take too long", key.arn())));
    }
    Ok(found)
}
