//! Path validation (RFC 5280, section 6): rustls-webpki for the path, own checks for what it leaves out.
//!
//! webpki does not look at the leaf's key usage, and applies a *required* extended key usage to CAs as well.
//! So the purpose is checked along the path only where CAs restrict it, and the leaf is checked here.

use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage, anchor_from_trusted_cert};

use crate::certificate::Certificate;
use crate::templates::{CODE_SIGNING, SERVER_AUTH};
use crate::time::rfc3339;

/// Intermediate certificates offered to path building at most; more are not looked at.
pub const MAX_INTERMEDIATES: usize = 32;

/// Why a chain was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// No path from the certificate to a root in the trust store.
    #[error("no path from \"{subject}\" to a trusted root (issuer \"{issuer}\")")]
    UnknownIssuer {
        /// The leaf's subject.
        subject: String,
        /// The leaf's issuer.
        issuer: String,
    },
    /// A certificate had ended.
    #[error("a certificate of the chain expired at {not_after}, before {at}")]
    Expired {
        /// End of validity.
        not_after: String,
        /// Time of the check.
        at: String,
    },
    /// A certificate had not begun.
    #[error("a certificate of the chain is not valid before {not_before}, after {at}")]
    NotYetValid {
        /// Start of validity.
        not_before: String,
        /// Time of the check.
        at: String,
    },
    /// A signature in the chain is wrong.
    #[error("a signature in the certificate chain is not valid")]
    Signature,
    /// Key usage or extended key usage forbid code signing.
    #[error("the certificate is not for code signing: {0}")]
    Purpose(String),
    /// Anything else that breaks a rule of RFC 5280.
    #[error("the certificate chain breaks a rule: {0}")]
    Rule(String),
    /// A trust anchor that cannot be used.
    #[error("the trust store holds an unusable certificate: {0}")]
    TrustStore(String),
}

/// Checks that `leaf` may sign code at `at` (seconds since 1970) under one of `roots` (DER).
pub fn verify_code_signing(
    leaf: &Certificate,
    intermediates: &[Vec<u8>],
    roots: &[Vec<u8>],
    at: i64,
) -> Result<(), PathError> {
    check_code_signing_leaf(leaf)?;
    let roots: Vec<_> = roots.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
    let anchors = roots
        .iter()
        .map(anchor_from_trusted_cert)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| PathError::TrustStore(error.to_string()))?;
    let intermediates: Vec<_> = intermediates
        .iter()
        .take(MAX_INTERMEDIATES)
        .map(|der| CertificateDer::from(der.as_slice()))
        .collect();
    let der = CertificateDer::from(leaf.der());
    let end_entity = EndEntityCert::try_from(&der).map_err(|error| explain(leaf, &error, at))?;
    let seconds = u64::try_from(at).unwrap_or(0);
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    end_entity
        .verify_for_usage(
            webpki::ALL_VERIFICATION_ALGS,
            &anchors,
            &intermediates,
            time,
            KeyUsage::required_if_present(CODE_SIGNING.as_bytes()),
            None,
            None,
        )
        .map(|_| ())
        .map_err(|error| explain(leaf, &error, at))
}

/// The leaf's own rules, as `openssl cms -verify -purpose codesign` has them (CA/Browser Forum code-signing
/// requirements, 7.1.2.3): digitalSignature without any CA usage, codeSigning without serverAuth or any.
fn check_code_signing_leaf(leaf: &Certificate) -> Result<(), PathError> {
    let wrong = |text: &str| Err(PathError::Purpose(text.to_owned()));
    let Some((_, usage)) = leaf.key_usage() else {
        return wrong("it has no key usage");
    };
    if !usage.digital_signature() {
        return wrong("its key usage lacks digitalSignature");
    }
    if usage.key_cert_sign() || usage.crl_sign() {
        return wrong("its key usage is a CA's");
    }
    let Some((_, purposes)) = leaf.extended_key_usage() else {
        return wrong("it has no extended key usage");
    };
    if !purposes.contains(&CODE_SIGNING) {
        return wrong("its extended key usage lacks codeSigning");
    }
    if purposes.contains(&SERVER_AUTH)
        || purposes.contains(&const_oid::db::rfc5280::ANY_EXTENDED_KEY_USAGE)
    {
        return wrong("its extended key usage allows other purposes than code signing");
    }
    Ok(())
}

fn explain(leaf: &Certificate, error: &Error, at: i64) -> PathError {
    let text = |time: &UnixTime| rfc3339(i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
    match error {
        Error::CertExpired { not_after, .. } => {
            PathError::Expired { not_after: text(not_after), at: rfc3339(at) }
        }
        Error::CertNotValidYet { not_before, .. } => {
            PathError::NotYetValid { not_before: text(not_before), at: rfc3339(at) }
        }
        Error::UnknownIssuer => PathError::UnknownIssuer {
            subject: leaf.subject().to_string(),
            issuer: leaf.issuer().to_string(),
        },
        Error::InvalidSignatureForPublicKey => PathError::Signature,
        Error::RequiredEkuNotFoundContext(_) => {
            PathError::Purpose("a CA of the chain does not allow codeSigning".into())
        }
        other => PathError::Rule(format!("{other:?}")),
    }
}
