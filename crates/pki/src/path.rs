//! Path validation (RFC 5280, section 6): rustls-webpki for the path, own checks for what it leaves out.
//!
//! webpki does not look at the leaf's key usage, and applies a *required* extended key usage to CAs as well.
//! So the purpose is checked along the path only where CAs restrict it, and the leaf is checked here.

use std::cell::RefCell;

use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage, VerifiedPath, anchor_from_trusted_cert};

use crate::certificate::Certificate;
use crate::templates::{CODE_SIGNING, SERVER_AUTH};
use crate::time::rfc3339;

mod algorithms;

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
    let unusable = |error: &dyn std::fmt::Display| PathError::TrustStore(error.to_string());
    let roots = roots
        .iter()
        .map(|der| Certificate::parse(der).map_err(|error| unusable(&error)))
        .collect::<Result<Vec<_>, _>>()?;
    // A certificate that may not issue is no root, even in a trust store: a leaf that lies beside its root
    // must not become an authority.
    let roots: Vec<_> = roots.iter().filter(|root| root.may_issue()).collect();
    if roots.is_empty() {
        return Err(PathError::TrustStore("there is no CA certificate in it".into()));
    }
    let root_ders: Vec<_> = roots.iter().map(|root| CertificateDer::from(root.der())).collect();
    let anchors = root_ders
        .iter()
        .map(anchor_from_trusted_cert)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unusable(&error))?;
    let intermediates: Vec<_> = intermediates
        .iter()
        .take(MAX_INTERMEDIATES)
        .map(|der| CertificateDer::from(der.as_slice()))
        .collect();
    let der = CertificateDer::from(leaf.der());
    let end_entity = EndEntityCert::try_from(&der).map_err(|error| explain(leaf, &error, at))?;
    let seconds = u64::try_from(at).unwrap_or(0);
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    // webpki believes anchors blindly and ignores key usage everywhere: both are checked here, for each path
    // that it finds, so that another path may still do.
    let reason = RefCell::new(None);
    let check_path = |path: &VerifiedPath<'_>| {
        let anchor = anchors.iter().position(|anchor| anchor == path.anchor());
        let outcome = match anchor.and_then(|index| roots.get(index)) {
            Some(root) => check_issuers(root, path, at),
            None => Err(PathError::TrustStore("the root of the path is not in it".into())),
        };
        outcome.map_err(|error| {
            *reason.borrow_mut() = Some(error);
            Error::UnknownIssuer
        })
    };
    end_entity
        .verify_for_usage(
            &algorithms::all(),
            &anchors,
            &intermediates,
            time,
            KeyUsage::required_if_present(CODE_SIGNING.as_bytes()),
            None,
            Some(&check_path),
        )
        .map(|_| ())
        .map_err(|error| reason.take().unwrap_or_else(|| explain(leaf, &error, at)))
}

/// RFC 5280, section 6.1.4 (n), for the CAs between, and the root's own validity and path length.
fn check_issuers(root: &Certificate, path: &VerifiedPath<'_>, at: i64) -> Result<(), PathError> {
    let mut between = 0;
    for der in path.intermediate_certificates() {
        between += 1;
        let issuer = Certificate::parse(der.der().as_ref())
            .map_err(|error| PathError::Rule(error.to_string()))?;
        if !issuer.may_issue() {
            return Err(PathError::Rule(format!(
                "\"{}\" may not issue certificates (key usage)",
                issuer.subject()
            )));
        }
    }
    if at > root.not_after() {
        return Err(PathError::Expired { not_after: rfc3339(root.not_after()), at: rfc3339(at) });
    }
    if at < root.not_before() {
        return Err(PathError::NotYetValid {
            not_before: rfc3339(root.not_before()),
            at: rfc3339(at),
        });
    }
    if root.path_len().is_some_and(|limit| between > limit) {
        return Err(PathError::Rule("the root's path length is exceeded".into()));
    }
    Ok(())
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
