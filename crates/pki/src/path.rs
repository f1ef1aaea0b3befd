//! The certificate path of a signer of code or times: [`crate::validate`] for the path, and the leaf's own rules.

use const_oid::ObjectIdentifier;
use x509_cert::ext::pkix::KeyUsages;

use crate::certificate::Certificate;
use crate::crl::Crl;
use crate::ocsp::Response;
use crate::seen::Seen;
use crate::templates::{CODE_SIGNING, SERVER_AUTH, TIME_STAMPING};
use crate::time::rfc3339;
use crate::validate::{
    Material, Options, Refusal, Revocation, Rule, SignatureTime, Standing, pinned, validate,
};

/// Intermediate certificates offered to path building, at most; more are ignored.
pub const MAX_INTERMEDIATES: usize = 32;

/// Why a chain was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// No path from the certificate to a root in the trust store.
    #[error("no path from \"{subject}\" to a trusted root (issuer \"{issuer}\")")]
    UnknownIssuer {
        /// Subject of the last certificate on the path.
        subject: String,
        /// Its issuer.
        issuer: String,
    },
    /// A certificate has expired.
    #[error("the certificate \"{subject}\" in the chain expired at {not_after}, before {at}")]
    Expired {
        /// Its subject.
        subject: String,
        /// End of validity.
        not_after: String,
        /// Time of the check.
        at: String,
    },
    /// A certificate is not valid yet.
    #[error(
        "the certificate \"{subject}\" in the chain is not valid before {not_before}, after {at}"
    )]
    NotYetValid {
        /// Its subject.
        subject: String,
        /// Start of validity.
        not_before: String,
        /// Time of the check.
        at: String,
    },
    /// A signature in the chain is invalid.
    #[error("a signature in the certificate chain is not valid")]
    Signature,
    /// Key usage or extended key usage forbid code signing.
    #[error("the certificate is not for code signing: {0}")]
    Purpose(String),
    /// Key usage or extended key usage forbid the purpose that a signing policy names.
    #[error("the certificate is not for {purpose}: {reason}")]
    OtherPurpose {
        /// Name of the extended key usage.
        purpose: String,
        /// What is missing.
        reason: String,
    },
    /// The signer's certificate or a CA's was revoked, in a way that refuses the signature.
    #[error("{0}")]
    Revoked(String),
    /// Revocation must be known, and is not.
    #[error("{0}")]
    RevocationUnknown(String),
    /// Anything else that breaks a rule of RFC 5280.
    #[error("the certificate chain breaks a rule: {0}")]
    Rule(String),
    /// A trust anchor that cannot be used.
    #[error("the trust store cannot be used: {0}")]
    TrustStore(String),
}

/// A signer's certificate chain, and what is known of its revocation.
#[derive(Debug, Clone)]
pub struct Chain {
    /// From the signer's certificate to the root.
    pub path: Vec<Certificate>,
    /// Revocation of each certificate below the root; empty if it was not checked.
    pub standings: Vec<Standing>,
}

/// When a signer signed, and what its chain is checked with.
#[derive(Debug, Clone, Copy)]
pub struct SignerCheck<'a> {
    /// Time of the signature, seconds since 1970.
    pub at: i64,
    /// What the certificate must be for (extended key usage).
    pub purpose: ObjectIdentifier,
    /// How that time is known.
    pub signature: SignatureTime,
    /// Whether revocation is checked.
    pub revocation: Revocation,
    /// CRLs.
    pub crls: &'a [Crl],
    /// OCSP responses.
    pub ocsp: &'a [Response],
    /// Signatures of certificates, CRLs and OCSP responses that need not be verified again.
    pub seen: Option<&'a Seen>,
}

/// Checks that `leaf` could sign code at `at` (seconds since 1970) under one of `roots` (DER), without revocation.
pub fn verify_code_signing(
    leaf: &Certificate,
    intermediates: &[Vec<u8>],
    roots: &[Vec<u8>],
    at: i64,
) -> Result<(), PathError> {
    let check = SignerCheck {
        at,
        purpose: CODE_SIGNING,
        signature: SignatureTime { is_trusted: true, now: at },
        revocation: Revocation::Off,
        crls: &[],
        ocsp: &[],
        seen: None,
    };
    verify_signer(leaf, intermediates, roots, &check).map(|_| ())
}

/// Checks that `leaf` could sign code, or for the other purpose of `check`, under one of `roots` (DER).
pub fn verify_signer(
    leaf: &Certificate,
    intermediates: &[Vec<u8>],
    roots: &[Vec<u8>],
    check: &SignerCheck<'_>,
) -> Result<Chain, PathError> {
    let roots = roots
        .iter()
        .map(|der| Certificate::parse(der))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| PathError::TrustStore(error.to_string()))?;
    check_leaf(leaf, check.purpose)?;
    check_roots(&roots)?;
    let intermediates: Vec<_> = intermediates
        .iter()
        .take(MAX_INTERMEDIATES)
        .filter_map(|der| Certificate::parse(der).ok())
        .collect();
    let material = Material {
        roots: &roots,
        intermediates: &intermediates,
        crls: check.crls,
        ocsp: check.ocsp,
        seen: check.seen,
    };
    let options = Options {
        purposes: &[check.purpose],
        revocation: check.revocation,
        signature: Some(check.signature),
        ..Options::at(check.at)
    };
    let validated = validate(leaf, &material, &options)
        .map_err(|refusal| explain(refusal, check.at, check.purpose))?;
    Ok(Chain {
        path: validated.path.into_iter().cloned().collect(),
        standings: validated.standings,
    })
}

/// What the CRLs and OCSP responses of `check` say of a certificate that is trusted by itself, without a path to a root.
/// `authorities` are certificates (DER) of CAs that the verifier has: that of its issuer must be among them. `None` if
/// revocation is not checked, or no evidence is about the certificate.
pub fn pinned_standing(
    leaf: &Certificate,
    authorities: &[Vec<u8>],
    check: &SignerCheck<'_>,
) -> Result<Option<Standing>, PathError> {
    let authorities: Vec<_> =
        authorities.iter().filter_map(|der| Certificate::parse(der).ok()).collect();
    let material = Material {
        roots: &[],
        intermediates: &authorities,
        crls: check.crls,
        ocsp: check.ocsp,
        seen: check.seen,
    };
    let options = Options {
        revocation: check.revocation,
        signature: Some(check.signature),
        ..Options::at(check.at)
    };
    pinned::standing(leaf, &material, &options)
        .map_err(|refusal| explain(refusal, check.at, check.purpose))
}

/// The rules of code signing that are not those of a path: the trust store's and the leaf's.
pub fn check_code_signing(leaf: &Certificate, roots: &[Certificate]) -> Result<(), PathError> {
    check_code_signing_leaf(leaf)?;
    check_roots(roots)
}

fn check_roots(roots: &[Certificate]) -> Result<(), PathError> {
    // A certificate that may not issue cannot be a root, even in a trust store: a leaf that is stored next to its
    // root must not become an authority.
    if !roots.iter().any(Certificate::may_issue) {
        return Err(PathError::TrustStore(NO_AUTHORITY.into()));
    }
    Ok(())
}

/// What is wrong with a trust store that holds leaf certificates only.
pub const NO_AUTHORITY: &str = "it contains no certificate of a CA";

/// The leaf's own rules, as in `openssl cms -verify -purpose codesign` (CA/Browser Forum code-signing requirements,
/// 7.1.2.3): digitalSignature without any CA usage, codeSigning without serverAuth or any.
pub fn check_code_signing_leaf(leaf: &Certificate) -> Result<(), PathError> {
    check_leaf(leaf, CODE_SIGNING)
}

/// The same rules for another purpose than code signing. Time stamping has its own.
pub fn check_leaf(leaf: &Certificate, purpose: ObjectIdentifier) -> Result<(), PathError> {
    let wrong = |text: &str| Err(unsuitable(purpose, text.to_owned()));
    if purpose == TIME_STAMPING {
        return time_stamping_fault(leaf).map_or(Ok(()), wrong);
    }
    let Some((_, usage)) = leaf.key_usage() else {
        return wrong("it has no key usage");
    };
    if !usage.digital_signature() {
        return wrong("its key usage lacks digitalSignature");
    }
    if usage.key_cert_sign() || usage.crl_sign() {
        return wrong("its key usage is a CA's");
    }
    if leaf.basic_constraints().is_some_and(|constraints| constraints.ca) {
        return wrong("it is a CA's certificate");
    }
    let Some((_, purposes)) = leaf.extended_key_usage() else {
        return wrong("it has no extended key usage");
    };
    if !purposes.contains(&purpose) {
        return wrong(&format!("its extended key usage lacks {}", purpose_name(purpose)));
    }
    if purposes.contains(&SERVER_AUTH)
        || purposes.contains(&const_oid::db::rfc5280::ANY_EXTENDED_KEY_USAGE)
    {
        return wrong("its extended key usage allows other purposes than code signing");
    }
    Ok(())
}

/// What is wrong with the certificate of a time-stamping authority (RFC 3161, section 2.3), if anything. As in `openssl
/// ts -verify`, a key usage may be missing, and otherwise consists of digitalSignature and nonRepudiation.
fn time_stamping_fault(leaf: &Certificate) -> Option<&'static str> {
    if leaf.basic_constraints().is_some_and(|constraints| constraints.ca) {
        return Some("it is a CA's certificate");
    }
    if let Some((_, usage)) = leaf.key_usage() {
        if !usage.digital_signature() && !usage.non_repudiation() {
            return Some("its key usage lacks digitalSignature");
        }
        let is_allowed =
            |flag| matches!(flag, KeyUsages::DigitalSignature | KeyUsages::NonRepudiation);
        if !usage.0.into_iter().all(is_allowed) {
            return Some("its key usage allows other purposes than time stamping");
        }
    }
    match leaf.extended_key_usage() {
        None => Some("it has no extended key usage"),
        Some((_, purposes)) if !purposes.contains(&TIME_STAMPING) => {
            Some("its extended key usage lacks timeStamping")
        }
        Some((_, purposes)) if purposes.len() != 1 => {
            Some("its extended key usage allows other purposes than time stamping")
        }
        Some((false, _)) => Some("its extended key usage is not critical"),
        Some((true, _)) => None,
    }
}

fn unsuitable(purpose: ObjectIdentifier, text: String) -> PathError {
    if purpose == CODE_SIGNING {
        return PathError::Purpose(text);
    }
    PathError::OtherPurpose { purpose: purpose_name(purpose), reason: text }
}

/// Name of an extended key usage in RFCs, or its OID.
pub fn purpose_name(purpose: ObjectIdentifier) -> String {
    if purpose == CODE_SIGNING {
        return "codeSigning".into();
    }
    if purpose == TIME_STAMPING {
        return "timeStamping".into();
    }
    crate::oid_name(purpose).map_or_else(|| purpose.to_string(), str::to_owned)
}

fn explain(refusal: Refusal, at: i64, purpose: ObjectIdentifier) -> PathError {
    match refusal.rule {
        Rule::Expired(not_after) => PathError::Expired {
            subject: refusal.subject,
            not_after: rfc3339(not_after),
            at: rfc3339(at),
        },
        Rule::NotYetValid(not_before) => PathError::NotYetValid {
            subject: refusal.subject,
            not_before: rfc3339(not_before),
            at: rfc3339(at),
        },
        Rule::UnknownIssuer(issuer) => {
            PathError::UnknownIssuer { subject: refusal.subject, issuer }
        }
        Rule::Signature => PathError::Signature,
        Rule::Purpose(_) => unsuitable(
            purpose,
            format!("a CA in the chain does not allow {}", purpose_name(purpose)),
        ),
        Rule::RevokedSigner(_) | Rule::Revoked { .. } => PathError::Revoked(refusal.to_string()),
        Rule::RevocationUnknown(_) => PathError::RevocationUnknown(refusal.to_string()),
        _ => PathError::Rule(refusal.to_string()),
    }
}
